"""The node: sole owner of all mutable state. Runs on one asyncio thread; everyone else gets snapshots and events.

It joins configuration, routing table, models, upstreams, listener and telemetry. It opens no socket itself (the
listener does), runs no model itself (workers do) and knows no Qt.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from laya_desktop.config import key_edits
from laya_desktop.config.paths import model_folders, resolve_model_path, with_adapters_found
from laya_desktop.config.schema import ModelConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.config_keeper import ConfigKeeper
from laya_desktop.node.config_watch import ConfigWatch
from laya_desktop.node.guarding import Guarding
from laya_desktop.node.load_gate import LoadGate
from laya_desktop.node.measured import PeakWatch
from laya_desktop.node.metrics import Metrics
from laya_desktop.node.pace import BUSY_S, Activity, Pace
from laya_desktop.node.params import engine_params
from laya_desktop.node.parts import ListenerApi, NodeParts, Overrides
from laya_desktop.node.pool import ModelPool
from laya_desktop.node.prompt_log import PromptLog
from laya_desktop.node.records import RequestLog, RequestRecord, new_request_id
from laya_desktop.node.room import Room, ceiling_bytes, most_bytes, room_for
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.survival import SleepWatch, boot_s
from laya_desktop.node.swap import RoomMaker
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import Level, ModelState, NodeState, Verdict
from laya_desktop.state.events import ConfigApplied, ConfigSaved, Event, NodeStateChanged, Notice
from laya_desktop.state.snapshot import (
    Capability,
    NodeSnapshot,
    NodeStatus,
    RouteSnapshot,
)

if TYPE_CHECKING:
    from laya_desktop.config.schema import GuardConfig, NodeConfig
    from laya_desktop.config.store import ConfigDocument
    from laya_desktop.node.balance import TargetLoad
    from laya_desktop.node.engines.base import EngineParams, Generate
    from laya_desktop.node.generation import GenerationStream
    from laya_desktop.node.runtime import ModelRuntime
    from laya_desktop.node.telemetry import TelemetrySample
    from laya_desktop.state.snapshot import FoundModel, MachineSnapshot, MemoryEstimate, ModelFileInfo, RouteExplanation

log = logging.getLogger(__name__)
LARGE_TABLE = 500
"""Routes from which on compiling the table would hold up requests by more than some milliseconds."""

T = TypeVar("T")
GRACE_S = 5.0
_REST_S = 0.05
"""Between two looks at least, however long a look took."""


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
        self._keeper = ConfigKeeper(document, self._off_loop)
        self.config: NodeConfig = document.config
        self.table = RoutingTable.compile(document.config)
        self.metrics = Metrics()
        self.upstreams = parts.upstreams(document.config)
        self.snapshot = NodeSnapshot()
        self._status = NodeStatus()
        self._capability = Capability()
        self._sample: TelemetrySample | None = None
        self._requests = RequestLog(self.metrics.record_request)
        self._listener: ListenerApi | None = None
        gate = LoadGate(
            sheds=lambda: self._guard.mode == "shed",
            refusal=lambda: self._guarding.refuse_loads(),
            estimate=self.estimate_model,
            ceiling=self._ceiling,
            identify=parts.tools.identify,
        )
        self._pool = ModelPool(
            parts.make_handle,
            self._params,
            self.emit,
            self.request_publish,
            make_room=self._make_room,
            off_loop=self._off_loop,
            gate=gate,
        )
        self._guarding = Guarding(self._pool, self.emit)
        self._sleep = SleepWatch()
        self._pace = Pace()
        self._peaks = PeakWatch()
        self._room = RoomMaker(
            runtimes=lambda: self._pool.runtimes,
            waiting=self._pool.waiting,
            estimate=self.estimate_model,
            free=self._free_now,
            enabled=lambda: self._guard.mode == "shed",
            ceiling=lambda model, gpu: most_bytes(model, self.snapshot.machine, self._guard, gpu=gpu),
        )
        self._subscribers: set[asyncio.Queue[Event]] = set()
        self._lock = asyncio.Lock()
        self._watch = ConfigWatch(self._keeper, self._lock, lambda: self.config, self._apply, self.emit)
        self._publish_due: asyncio.TimerHandle | None = None
        self._clocks: tuple[asyncio.Task[None], ...] = ()
        self._draining = False

    # -- life

    async def open(self) -> None:
        """Begin to tick, probe the devices and preload models."""
        self._pool.configure(self.config.models)
        self.upstreams.update(self.config)
        self._report_table()
        self._clocks = (
            spawn(self._tick_forever(), "node ticker"),
            spawn(self._watch.run_forever(), "configuration watch"),
        )
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
        self._parts.telemetry.close()
        for clock in self._clocks:
            clock.cancel()
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
        config = self.table.route(route) if route else None
        record = RequestRecord(new_request_id(), method, path, route, target)
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
        heard = PromptLog(model, request).note if self.config.log.prompts else None
        return self._pool.generate(record, model, request, timeout_s, heard)

    def target_load(self, name: str) -> TargetLoad:
        """How busy a model or an upstream is, and whether it can begin."""
        if self.config.upstream(name) is not None:
            return self.upstreams.get(name).load
        return self._pool.load_of(name)

    async def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> None:
        """Load a model; ``override``: although the guard advises against it, this once. Raises LayaError."""
        await self._pool.load(name, device, override=override)

    async def unload_model(self, name: str) -> None:
        """Unload a model once its running answers are done."""
        await self._pool.unload(name)

    async def clear_cache(self, name: str) -> None:
        """Forget a model's kept answers. Raises LayaError."""
        self._pool.clear_cache(name)

    def undo_guard_action(self, action_id: str) -> str:
        """Take an action of the guard back; what it was, in words. Raises LayaError."""
        done = self._guarding.undo(action_id)
        self.request_publish()
        return done

    def cancel_request(self, request_id: str) -> bool:
        """Cancel a live request; False when it is already over."""
        reason = "cancelled by the user"
        if self._pool.cancel(request_id, reason):
            return True
        record = self._requests.live.get(request_id)
        if record is None or record.finished_s is not None or record.cancel is None:
            return False
        record.cancel(reason)
        return True

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
            await self._apply(config, source)

    async def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the configuration and continue with that file. Raises LayaError."""
        async with self._lock:
            saved = await self._keeper.save(self.config, path, overwrite=overwrite)
            if self._keeper.document.config != self.config:  # another folder: relative paths became absolute
                await self._apply(self._keeper.document.config, "save")
        self.emit(ConfigSaved(str(saved)))
        self.request_publish()
        return saved

    async def create_api_key(self, name: str) -> str:
        """Make a key for callers, put its hash in force, and return the key: it is kept nowhere. Raises LayaError."""
        async with self._lock:
            config, key = key_edits.with_new_key(self.config, name, _today())
            await self._apply(config, "keys")
        return key

    async def revoke_api_key(self, name: str) -> None:
        """Take the key of that name or label (``keys.describe``) out of force. Raises LayaError."""
        async with self._lock:
            await self._apply(key_edits.without_key(self.config, name), "keys")

    async def create_admin_key(self) -> str:
        """Make a key for ``/admin`` in place of the one there was, and return it. Raises LayaError."""
        async with self._lock:
            config, key = key_edits.with_new_admin_key(self.config, _today())
            await self._apply(config, "keys")
        return key

    async def revoke_admin_key(self) -> None:
        """Take the key of ``/admin`` out of force. Raises LayaError."""
        async with self._lock:
            await self._apply(key_edits.without_admin_key(self.config), "keys")

    async def export_config(self, path: Path) -> Path:
        """Write a copy; the current file and the unsaved state stay. Raises LayaError."""
        await self._keeper.export(self.config, path)
        return path

    async def diff_config(self) -> str:
        """Unified diff from the file as read to what saving would write. Raises LayaError."""
        return await self._keeper.diff(self.config)

    async def revert_config(self) -> None:
        """Read the file again and put it in force. Raises ConfigError."""
        await self._adopt(None, "revert")

    async def open_config(self, path: Path) -> None:
        """Put another file in force. Raises ConfigError and keeps the old configuration."""
        await self._adopt(path, "open")

    async def _adopt(self, path: Path | None, source: str) -> None:
        async with self._lock:
            document = await self._keeper.read(path)
            await self._apply(document.config, source, document)

    async def _apply(self, config: NodeConfig, source: str, document: ConfigDocument | None = None) -> None:
        if len(config.routes) > LARGE_TABLE:  # requests go on meanwhile; the lock keeps edits in order
            table = await self._off_loop(lambda: RoutingTable.compile(config))
        else:
            table = RoutingTable.compile(config)
        old = self.config
        await self._move_listener(config)
        self.config, self.table = config, table
        self._keeper.applied(config, document)
        self._pool.configure(config.models)
        self.upstreams.update(config)
        for route in {r.name for r in old.routes} - {r.name for r in config.routes}:
            self.metrics.forget(route)
        for target in set(old.target_names) - set(config.target_names):
            self.metrics.forget_target(target)
        if config.log.level != old.log.level and self._overrides.log_level is None:
            self._parts.on_log_level(config.log.level)
        self.emit(ConfigApplied(self._keeper.status.revision, source))
        self._report_table()
        self.request_publish()

    async def _move_listener(self, config: NodeConfig) -> None:
        """Listen at the new address before the old one is given up, so that a taken port changes nothing."""
        previous, old = self._listener, self.config
        before = self._address
        self.config = config
        if previous is None:
            return
        try:
            if self._address == before:
                previous.check_settings(config.server)
                return
            self._listener = await self._listen()
        except LayaError:
            self.config = old
            raise
        spawn(previous.stop(GRACE_S), "old listener")

    # -- looking

    def explain_route(self, method: str, path: str, headers: dict[str, str], model: str | None) -> RouteExplanation:
        """Which route a request would take, and why the others would not."""
        return self.table.explain(method, path, headers, model)

    async def inspect_model(self, path: Path) -> ModelFileInfo:
        """Metadata of a model file, its path as a configuration may write it. Raises LayaError."""
        named = ModelConfig(name="model", path=path)
        return await self._parts.tools.inspect(resolve_model_path(named, self._keeper.folder))

    async def find_models(self) -> tuple[FoundModel, ...]:
        """Models that are on this machine already."""
        return await self._parts.tools.find(model_folders(self.config, self._keeper.folder))

    async def estimate_model(self, model: ModelConfig, device: str | None) -> MemoryEstimate:
        """What the model would take against what is free on that device after the guard's reserve."""
        params = self._params(model, device)
        model = with_adapters_found(model, self._keeper.folder)
        machine = await self._machine()
        torch_gpu = any(g.vram_total_bytes for g in machine.gpus)  # it uses none that shares the RAM
        has_gpu = torch_gpu if params.engine == "transformers" else self._capability.gpu_available
        if params.device == "auto" and not has_gpu:
            params = msgspec.structs.replace(params, device="cpu")
        room = room_for(model, machine, params.device, self._guard)
        found = await self._parts.tools.estimate(model, Path(params.path), params.device, room.free_bytes)
        if params.device == "auto" and found.device == "CPU":  # auto would choose it, so its memory counts
            room = room_for(model, machine, "cpu", self._guard)
            found = await self._parts.tools.estimate(model, Path(params.path), "cpu", room.free_bytes)
        return _with_limit(found, room)

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
            config_status=self._keeper.status,
            routing=self.metrics.routing,
            routing_windows=self.metrics.routing_windows,
            models=models,
            routes=tuple(self._route_snapshot(r.name) for r in self.config.routes),
            upstreams=self.upstreams.snapshot(),
            requests=self._requests.snapshot(now_s),
            machine=self._sample.machine if self._sample else NodeSnapshot().machine,
            forecasts=self._parts.forecaster.forecasts,
            capability=self._capability,
            guard=self._guarding.snapshot(),
        )
        self.snapshot = snapshot
        self._publish_out(snapshot)

    async def _tick_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            if self._pace.due(started_s, self._activity()):
                try:
                    await self._tick()
                except Exception:  # a faulty sensor must not stop the clock of the node
                    log.exception("A node tick failed")
            await asyncio.sleep(max(_REST_S, BUSY_S - (loop.time() - started_s)))

    def _activity(self) -> Activity:
        machine = self.snapshot.machine
        used, total = machine.ram_used_bytes, machine.ram_total_bytes
        changing = (ModelState.LOADING, ModelState.UNLOADING)
        return Activity(
            count=self.metrics.routing_histogram.count,
            under_way=bool(self._requests.live) or any(r.state in changing for r in self._pool.runtimes),
            alarmed=any(f.level is not Level.CALM for f in self.snapshot.forecasts),
            ram_share=used / total if used is not None and total else None,
        )

    async def _tick(self) -> None:
        pids = self._pool.worker_pids()
        self._sample = await self._parts.telemetry.read(pids)
        now_s = time.monotonic()
        self.metrics.tick(now_s)
        self._pool.tick(now_s)
        await asyncio.sleep(0)  # requests that came in the meantime go first, here and below
        waiting = {m.name: (m.waiting, m.queue_limit) for m in self.snapshot.models}
        unix_s, machine, guard = time.time(), self._sample.machine, self._guard
        forecasts = self._parts.forecaster.update(now_s, machine, waiting, guard)
        await asyncio.sleep(0)
        self._guarding.update(now_s, unix_s, forecasts, machine, guard.mode)
        if (slept_s := self._sleep.slept_s(now_s, boot_s())) is not None:
            self._on_wake(slept_s)
        self._note_peaks()
        await asyncio.sleep(0)
        self.publish()

    def _note_peaks(self) -> None:
        """Have it remembered what workers on the CPU hold once they have decoded: it corrects the next estimate."""
        for config, held_bytes in self._peaks.news(self._pool.runtimes, self.snapshot.models):
            path, found = self._params(config, "cpu").path, with_adapters_found(config, self._keeper.folder)
            spawn(self._parts.tools.remember(found, path, held_bytes), f"memory of {config.name}")

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
        spawn(listener.warm_up(self.table), "rehearsal")
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
            s.state, s.host, s.port, s.url, s.error, s.started_unix_s, connections, self.metrics.routing_histogram.count
        )

    def _route_snapshot(self, name: str) -> RouteSnapshot:
        shadowed_by = self.table.shadowed.get(name)
        stats = self.metrics.route_stats(name)
        if stats is None:
            return RouteSnapshot(name, shadowed_by=shadowed_by)
        return RouteSnapshot(name, stats.count, stats.p50_us, stats.p99_us, shadowed_by, stats.p95_us, stats.max_us)

    def _report_table(self) -> None:
        for warning in self.table.warnings:
            self.emit(Notice("warning", f"{warning.key}: {warning.message}", "routes"))

    def _params(self, model: ModelConfig, device: str | None) -> EngineParams:
        return engine_params(model, device, self._keeper.folder)

    async def _make_room(self, runtime: ModelRuntime, device: str) -> None:
        await self._room.make_room(runtime, device)

    async def _free_now(self, model: ModelConfig, gpu: bool) -> int | None:
        """What the model may take on the first GPU or in RAM, measured now."""
        sample = await self._parts.telemetry.read(self._pool.worker_pids())
        return room_for(model, sample.machine, "gpu" if gpu else "cpu", self._guard).free_bytes

    async def _machine(self) -> MachineSnapshot:
        """The sensors, read now where a load comes before the first tick."""
        if self._sample is None:
            self._sample = await self._parts.telemetry.read(self._pool.worker_pids())
        return self._sample.machine

    async def _ceiling(self, model: ModelConfig, override: bool) -> int | None:
        return ceiling_bytes(model, await self._machine(), self._guard, override=override)

    def _on_wake(self, slept_s: float) -> None:
        """Devices may have come, gone or been reset meanwhile."""
        log.info(
            "The machine slept for %.0f s (or its clock was set): sensors and devices are looked at again", slept_s
        )
        self._parts.telemetry.forget()
        spawn(self._probe(), "device probe")

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


def _with_limit(found: MemoryEstimate, room: Room) -> MemoryEstimate:
    """Say so where it is no lack of memory but a mem_fraction that sets the limit."""
    if found.verdict not in (Verdict.WILL_NOT_FIT, Verdict.TIGHT) or not room.limit:
        return found
    return replace(found, reason=f"{found.reason} The limit is {room.limit}.")


def _today() -> date:
    return datetime.now(UTC).date()
