"""The node: sole owner of all mutable state. Runs on one asyncio thread; everyone else gets snapshots and events.

It joins configuration, routing table, models, upstreams, listener and telemetry. It opens no socket itself (the
listener does), runs no model itself (workers do) and knows no Qt.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from laya_desktop.config.store import ConfigDocument
from laya_desktop.errors import LayaError
from laya_desktop.node.metrics import Metrics
from laya_desktop.node.model_tools import ModelTools, free_bytes
from laya_desktop.node.params import engine_params
from laya_desktop.node.pool import ModelPool
from laya_desktop.node.records import RequestLog, RequestRecord
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.tasks import spawn
from laya_desktop.node.upstream import UpstreamPool
from laya_desktop.state.enums import NodeState
from laya_desktop.state.events import ConfigApplied, ConfigChangedOnDisk, ConfigSaved, Event, NodeStateChanged, Notice
from laya_desktop.state.snapshot import (
    Capability,
    ConfigStatus,
    NodeSnapshot,
    NodeStatus,
    RouteSnapshot,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from laya_desktop.config.schema import GuardConfig, ModelConfig, NodeConfig
    from laya_desktop.node.engines.base import EngineParams, Generate
    from laya_desktop.node.forecast import Forecaster
    from laya_desktop.node.generation import GenerationStream
    from laya_desktop.node.runtime import HandleFactory
    from laya_desktop.node.telemetry import Telemetry, TelemetrySample
    from laya_desktop.state.snapshot import MemoryEstimate, ModelFileInfo, RouteExplanation

log = logging.getLogger(__name__)

T = TypeVar("T")
SNAPSHOT_S = 0.25
GRACE_S = 5.0


class ListenerApi(Protocol):
    """The HTTP listener as the node uses it."""

    @property
    def connections(self) -> int:
        """Open connections."""
        ...

    async def start(self, gateway: Node, host: str, port: int) -> int:
        """Listen; returns the port. Raises LayaError when the port is taken."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Stop accepting; running answers get ``grace_s`` to finish."""
        ...


@dataclass(frozen=True, slots=True)
class Overrides:
    """Flags of the command line: they win over the file and are never written to it."""

    host: str | None = None
    port: int | None = None
    log_level: str | None = None
    mem_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class NodeParts:
    """Collaborators, built by ``service``."""

    make_handle: HandleFactory
    make_listener: Callable[[], ListenerApi]
    tools: ModelTools
    telemetry: Telemetry
    forecaster: Forecaster
    executor: Executor
    upstreams: Callable[[NodeConfig], UpstreamPool]
    on_log_level: Callable[[str], None]


class Node:
    """Satisfies ``server.gateway.Gateway`` and carries out what ``service`` asks."""

    def __init__(
        self,
        document: ConfigDocument,
        parts: NodeParts,
        overrides: Overrides,
        emit: Callable[[Event], None],
        publish: Callable[[NodeSnapshot], None],
    ) -> None:
        self._parts = parts
        self._overrides = overrides
        self._emit_out = emit
        self._publish_out = publish
        self._document = document
        self.config: NodeConfig = document.config
        self.table = RoutingTable.compile(document.config)
        self.metrics = Metrics()
        self.upstreams = parts.upstreams(document.config)
        self.snapshot = NodeSnapshot()
        self._status = NodeStatus()
        self._capability = Capability()
        self._config_status = ConfigStatus(path=str(document.path) if document.path else None)
        self._sample: TelemetrySample | None = None
        self._requests = RequestLog()
        self._listener: ListenerApi | None = None
        self._pool = ModelPool(parts.make_handle, self._params, self.emit, self.request_publish)
        self._subscribers: set[asyncio.Queue[Event]] = set()
        self._lock = asyncio.Lock()
        self._publish_due: asyncio.TimerHandle | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._draining = False

    # -- life

    async def open(self) -> None:
        """Begin to tick, probe the devices and preload models."""
        self._pool.configure(self.config.models)
        self.upstreams.update(self.config)
        self._report_table()
        self._ticker = spawn(self._tick_forever(), "node ticker")
        spawn(self._probe(), "device probe")
        for model in self.config.models:
            if model.preload:
                spawn(self._preload(model.name), f"preload {model.name}")
        self.publish()

    async def close(self) -> None:
        """Stop listening, end every worker, stop ticking."""
        await self.stop_listening(grace_s=0.5)
        await self._pool.close()
        await self.upstreams.close()
        if self._ticker:
            self._ticker.cancel()
        if self._publish_due:
            self._publish_due.cancel()
        self.publish()

    async def start_listening(self) -> None:
        """Open the listener at the configured address. Raises LayaError."""
        async with self._lock:
            if self._listener is not None:
                return
            self._set_status(NodeState.STARTING)
            try:
                self._listener = await self._listen()
            except LayaError as error:
                self._set_status(NodeState.FAILED, error=str(error))
                raise

    async def stop_listening(self, grace_s: float = GRACE_S) -> None:
        """Close the listener; models stay loaded."""
        async with self._lock:
            if (listener := self._listener) is None:
                return
            self._draining = True
            self._set_status(NodeState.STOPPING)
            try:
                await listener.stop(grace_s)
            finally:
                self._listener, self._draining = None, False
                self._set_status(NodeState.STOPPED)

    # -- what the server needs (gateway)

    def open_record(self, method: str, path: str, route: str | None, target: str | None) -> RequestRecord:
        """A new live request."""
        config = self.config.route(route) if route else None
        record = RequestRecord(uuid.uuid4().hex, method, path, route, target)
        if config is not None:
            record.priority = config.priority
        self._requests.add(record)
        return record

    def generate(self, record: RequestRecord, model: str, request: Generate, timeout_s: float) -> GenerationStream:
        """Admit a request to a model's queue. Raises LayaError."""
        if self._draining:
            raise LayaError(
                "The node is stopping.", hint="Retry shortly.", code="draining", status=503, retry_after_s=5.0
            )
        return self._pool.generate(record, model, request, timeout_s)

    async def load_model(self, name: str, device: str | None = None) -> None:
        """Load a model. Raises LayaError."""
        await self._pool.load(name, device)

    async def unload_model(self, name: str) -> None:
        """Unload a model once its running answers are done."""
        await self._pool.unload(name)

    def cancel_request(self, request_id: str) -> bool:
        """Cancel a live request; False when it is already over."""
        return self._pool.cancel(request_id, "cancelled by the user")

    async def subscribe(self) -> AsyncIterator[Event]:
        """Events from now on."""
        queue: asyncio.Queue[Event] = asyncio.Queue(maxsize=1000)
        self._subscribers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._subscribers.discard(queue)

    # -- configuration

    async def apply_config(self, config: NodeConfig, source: str = "window") -> None:
        """Put a configuration in force; whatever can fail fails before anything changes.

        Raises:
            ConfigError: ambiguous routes.
            LayaError: the new address cannot be listened on.
        """
        async with self._lock:
            table = RoutingTable.compile(config)
            old = self.config
            address = self._address
            self.config, previous = config, self._listener
            moved = previous is not None and self._address != address
            if moved:
                try:
                    self._listener = await self._listen()
                except LayaError:
                    self.config = old
                    raise
                assert previous is not None
                spawn(previous.stop(GRACE_S), "old listener")
            self.table = table
            self._pool.configure(config.models)
            self.upstreams.update(config)
            for route in {r.name for r in old.routes} - {r.name for r in config.routes}:
                self.metrics.forget(route)
            if config.log.level != old.log.level and self._overrides.log_level is None:
                self._parts.on_log_level(config.log.level)
            self._note_config(source)
            self._report_table()

    async def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the configuration and continue with that file. Raises LayaError."""
        async with self._lock:
            config, document = self.config, self._document
            saved = await self._off_loop(lambda: document.save(config, path, overwrite=overwrite))
            assert saved.path is not None
            self._document = saved
            self._note_config(None)
            self.emit(ConfigSaved(str(saved.path)))
            return saved.path

    async def export_config(self, path: Path) -> Path:
        """Write a copy; the current file and the unsaved state stay. Raises LayaError."""
        config, document = self.config, self._document
        await self._off_loop(lambda: document.save(config, path, overwrite=True))
        return path

    async def revert_config(self) -> None:
        """Read the file again and put it in force. Raises ConfigError."""
        if self._document.path is None:
            await self._adopt(self._document, "revert")
        else:
            await self.open_config(self._document.path, "revert")

    async def open_config(self, path: Path, source: str = "open") -> None:
        """Put another file in force. Raises ConfigError and keeps the old configuration."""
        await self._adopt(await self._off_loop(lambda: ConfigDocument.load(path)), source)

    async def _adopt(self, document: ConfigDocument, source: str) -> None:
        before, self._document = self._document, document
        try:
            await self.apply_config(document.config, source)
        except LayaError:
            self._document = before
            raise

    # -- looking

    def explain_route(self, method: str, path: str, headers: dict[str, str], model: str | None) -> RouteExplanation:
        """Which route a request would take, and why the others would not."""
        return self.table.explain(method, path, headers, model)

    async def inspect_model(self, path: Path) -> ModelFileInfo:
        """Metadata of a model file. Raises LayaError."""
        return await self._parts.tools.inspect(path)

    async def estimate_model(self, model: ModelConfig, device: str | None) -> MemoryEstimate:
        """What the model would take against what is free on that device after the guard's reserve."""
        params = self._params(model, device)
        reserve = self._guard.reserve_vram if params.device.startswith("gpu") else self._guard.reserve_ram
        free = free_bytes(self.snapshot.machine, params.device, reserve_bytes=reserve)
        return await self._parts.tools.estimate(model, Path(params.path), params.device, free)

    # -- events and snapshots

    def emit(self, event: Event) -> None:
        """Tell the window and the admin subscribers."""
        self._emit_out(event)
        for queue in self._subscribers:
            if not queue.full():
                queue.put_nowait(event)

    def request_publish(self) -> None:
        """Publish soon: several changes within 30 ms become one snapshot."""
        if self._publish_due is None:
            self._publish_due = asyncio.get_running_loop().call_later(0.03, self.publish)

    def publish(self) -> None:
        """Make a snapshot and hand it out."""
        self._publish_due = None
        now_s = time.monotonic()
        usage = self._sample.workers if self._sample else {}
        models = self._pool.snapshot(usage, now_s)
        snapshot = NodeSnapshot(
            seq=self.snapshot.seq + 1,
            monotonic_s=now_s,
            unix_s=time.time(),
            node=self._node_status(),
            config=self.config,
            config_status=self._config_status,
            routing=self.metrics.routing,
            models=models,
            routes=tuple(self._route_snapshot(r.name) for r in self.config.routes),
            upstreams=self.upstreams.snapshot(),
            requests=self._requests.snapshot(now_s),
            machine=self._sample.machine if self._sample else NodeSnapshot().machine,
            forecasts=self._parts.forecaster.forecasts,
            capability=self._capability,
        )
        self.snapshot = snapshot
        self._publish_out(snapshot)

    async def _tick_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            try:
                await self._tick()
            except Exception:  # a faulty sensor must not stop the clock of the node
                log.exception("A node tick failed")
            await asyncio.sleep(max(0.05, SNAPSHOT_S - (loop.time() - started_s)))

    async def _tick(self) -> None:
        pids = self._pool.worker_pids()
        self._sample = await self._off_loop(lambda: self._parts.telemetry.sample(pids))
        now_s = time.monotonic()
        self.metrics.tick(now_s)
        self._pool.tick(now_s)
        waiting = {m.name: (m.waiting, m.queue_limit) for m in self.snapshot.models}
        self._parts.forecaster.update(now_s, self._sample.machine, waiting, self._guard)
        if self.snapshot.seq % 4 == 0:
            await self._look_at_file()
        self.publish()

    async def _look_at_file(self) -> None:
        document = self._document
        changed = document.path is not None and await self._off_loop(document.changed_on_disk)
        if changed != self._config_status.changed_on_disk and document is self._document:
            status = self._config_status
            self._config_status = ConfigStatus(status.path, status.revision, status.unsaved, changed)
            if changed:
                self.emit(ConfigChangedOnDisk(str(document.path)))

    # -- inside

    @property
    def _address(self) -> tuple[str, int]:
        server, flags = self.config.server, self._overrides
        return flags.host or server.host, server.port if flags.port is None else flags.port

    @property
    def _guard(self) -> GuardConfig:
        guard, fraction = self.config.guard, self._overrides.mem_fraction
        return guard if fraction is None else guard.model_copy(update={"mem_fraction": fraction})

    async def _listen(self) -> ListenerApi:
        host, port = self._address
        listener = self._parts.make_listener()
        actual = await listener.start(self, host, port)
        shown = f"[{host}]" if ":" in host else host
        self._status = NodeStatus(NodeState.RUNNING, host, actual, f"http://{shown}:{actual}", None, time.time())
        log.info("Listening on %s", self._status.url)
        self.emit(NodeStateChanged(NodeState.RUNNING, self._status.url))
        self.request_publish()
        return listener

    def _set_status(self, state: NodeState, error: str | None = None) -> None:
        host, port = self._address
        self._status = NodeStatus(state, host, port, None, error)
        self.emit(NodeStateChanged(state, None, error))
        self.request_publish()

    def _node_status(self) -> NodeStatus:
        s = self._status
        connections = self._listener.connections if self._listener else 0
        return NodeStatus(
            s.state, s.host, s.port, s.url, s.error, s.started_unix_s, connections, self.metrics.routing.count
        )

    def _route_snapshot(self, name: str) -> RouteSnapshot:
        hits, p50_us, p99_us = self.metrics.route_stats(name)
        return RouteSnapshot(name, hits, p50_us, p99_us, self.table.shadowed.get(name))

    def _note_config(self, source: str | None) -> None:
        document = self._document
        revision = self._config_status.revision + (1 if source else 0)
        self._config_status = ConfigStatus(
            str(document.path) if document.path else None, revision, document.unsaved(self.config)
        )
        if source:
            self.emit(ConfigApplied(revision, source))
        self.request_publish()

    def _report_table(self) -> None:
        for warning in self.table.warnings:
            self.emit(Notice("warning", f"{warning.key}: {warning.message}", "routes"))

    def _params(self, model: ModelConfig, device: str | None) -> EngineParams:
        return engine_params(model, device, self._document.path.parent if self._document.path else None)

    async def _probe(self) -> None:
        self._capability = await self._parts.tools.probe()
        self.request_publish()

    async def _preload(self, name: str) -> None:
        try:
            await self._pool.load(name, None)
        except LayaError as error:
            log.debug("Preload of '%s' failed: %s", name, error)  # shown by ModelFailed

    async def _off_loop(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parts.executor, call)
