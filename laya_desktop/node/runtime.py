"""One configured model and its workers: load, drain, unload, death. Node thread only.

Owns the worker handles and the model's state; tells the pool through ``RuntimeListener``. It never decides who runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from laya_desktop.errors import LayaError
from laya_desktop.node.params import changed_load_keys
from laya_desktop.node.replicas import HandleFactory, ReplicaSet
from laya_desktop.node.survival import MOST_DEATHS, WINDOW_S, Restarts
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import EngineParams, Generate, Loaded, RequestEvent

log = logging.getLogger(__name__)

STOP_GRACE_S = 2.0
RESTORE_S, MAX_RESTORE_S = 10.0, 300.0
"""Seconds until a dead replica is started again; doubled each time up to the second figure."""

FAILED_REST_S = 10.0
"""After a failed load, requests are refused with its reason for so long before one of them tries again."""
DEATHS = ("worker_died", "worker_hung")
"""Codes of a death during a restart after which another is tried; not for want of memory, which would only repeat."""

ParamsFactory = Callable[["ModelConfig", str | None], "EngineParams"]
"""Resolves a model's configuration and the device asked for into what the worker loads. Raises LayaError."""

MakeRoom = Callable[["ModelRuntime", str], Coroutine[Any, Any, None]]
"""Waits until there is memory for the model on that device, or nothing more can be done about it. Never fails."""


class RuntimeListener(Protocol):
    """What the pool wants to hear."""

    def on_loading(self, runtime: ModelRuntime) -> None:
        """A load began."""
        ...

    def on_progress(self, runtime: ModelRuntime) -> None:
        """``runtime.progress`` moved."""
        ...

    def on_loaded(self, runtime: ModelRuntime) -> None:
        """The model is ready; ``runtime.loaded`` says with what."""
        ...

    def on_draining(self, runtime: ModelRuntime, *, reload: bool) -> None:
        """No more dispatches; the worker stops when the running answers are done."""
        ...

    async def before_start(self, runtime: ModelRuntime, params: EngineParams, *, override: bool) -> EngineParams:
        """The workers are about to start; returns what they get. Raises LayaError where they may not.

        ``override``: a person insists on this load.
        """
        ...

    def on_unloaded(self, runtime: ModelRuntime, reason: str, *, keep_waiting: bool) -> None:
        """The worker is gone as asked; ``keep_waiting``: those that wait have it loaded again."""
        ...

    def on_replica_lost(self, runtime: ModelRuntime, error: LayaError, request_ids: tuple[str, ...]) -> None:
        """One of several workers is gone, with these requests; the others go on."""
        ...

    def on_restored(self, runtime: ModelRuntime) -> None:
        """All workers serve again."""
        ...

    def on_lost(self, runtime: ModelRuntime, error: LayaError, restart_in_s: float) -> None:
        """The worker died; what waits goes on waiting for the restart."""
        ...

    def on_failed(self, runtime: ModelRuntime, error: LayaError) -> None:
        """The load failed, or the worker died and is not started again."""
        ...


class ModelRuntime:
    """The life of one model."""

    def __init__(
        self,
        config: ModelConfig,
        make_handle: HandleFactory,
        make_params: ParamsFactory,
        listener: RuntimeListener,
        make_room: MakeRoom | None = None,
    ) -> None:
        self.config = config
        self.state = ModelState.UNLOADED
        self.progress: float | None = None
        self.error: LayaError | None = None
        self.log_tail: tuple[str, ...] = ()
        self.loaded: Loaded | None = None
        self.loaded_config: ModelConfig | None = None
        self.handle: ReplicaSet | None = None
        self.load_note: str | None = None
        """What a load under way waits for."""
        self.last_used_s = time.monotonic()
        self.last_used_unix_s: float | None = None
        self.failed_s: float | None = None
        self.retired = False
        """No longer configured: it goes when its running answers are done."""
        self._device: str | None = None
        self._make_handle = make_handle
        self._make_params = make_params
        self._listener = listener
        self._make_room = make_room
        self._room: asyncio.Task[None] | None = None
        self._restore_at_s: float | None = None
        self._restore_after_s = RESTORE_S
        self._lock = asyncio.Lock()
        self._running: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._abort = False
        self._override = False
        self._restarts = Restarts()
        self._restart: asyncio.TimerHandle | None = None
        self._restart_device = ""
        self._restarting = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self.config.name

    @property
    def running(self) -> int:
        """Requests that hold a slot."""
        return len(self._running)

    @property
    def idle(self) -> bool:
        """True while no request holds a slot."""
        return not self._running

    @property
    def changed_keys(self) -> tuple[str, ...]:
        """Settings that changed since the load and wait for the next one."""
        return changed_load_keys(self.loaded_config, self.config) if self.loaded_config else ()

    @property
    def deaths(self) -> int:
        """Unexpected deaths within the last five minutes."""
        return self._restarts.recent(time.monotonic())

    @property
    def restart_in_s(self) -> float | None:
        """Seconds until a planned restart; None: none is planned."""
        return None if self._restart is None else max(0.0, self._restart.when() - asyncio.get_running_loop().time())

    def rests_for_s(self, now_s: float) -> float:
        """Seconds for which requests are refused after a failure; 0: one may try to load it."""
        if self.state is not ModelState.FAILED or self.failed_s is None or self._restart is not None:
            return 0.0
        return max(0.0, self.failed_s + FAILED_REST_S - now_s, self._restarts.closes_in_s(now_s))

    async def load(self, device: str | None, *, by_hand: bool = False, override: bool = False) -> None:
        """Load, or reload when the device or the configuration differs from what is loaded.

        Args:
            device: None: the configured one.
            by_hand: a person asks, so earlier deaths are forgotten.
            override: load although the guard advises against it, this once.

        Raises:
            LayaError: why it failed, what next; the state is then ``failed``.
        """
        wanted = device or self.config.device
        async with self._lock:
            self._plan_restart(None)
            if by_hand:
                self._restarts.reset()
            self._override = override
            if self.state is ModelState.READY:
                if self._device == wanted and not self.changed_keys:
                    return
                await self._drain(reload=True)
                await self._stop_handle()
            await self._load(wanted)

    async def unload(self, reason: str, *, grace_s: float | None = None, keep_waiting: bool = False) -> None:
        """Unload once the running answers are done (at most ``grace_s`` later); a load under way is aborted.

        Args:
            reason: for the log and the event.
            grace_s: None: as long as the running answers take.
            keep_waiting: requests that wait stay, and have the model loaded again.
        """
        await self._call_off()
        async with self._lock:
            if self._restart is not None:
                self._plan_restart(None)
                self._set_gone(ModelState.UNLOADED)
                self._listener.on_unloaded(self, reason, keep_waiting=False)
            if self.state is not ModelState.READY:
                return
            if not await self._drain(reload=keep_waiting, grace_s=grace_s):
                return
            await self._stop_handle()
            self._set_gone(ModelState.UNLOADED)
            self._listener.on_unloaded(self, reason, keep_waiting=keep_waiting)

    def restore_due(self, now_s: float) -> bool:
        """True once a dead replica's rest is over; ``restore`` follows."""
        due = self._restore_at_s is not None and now_s >= self._restore_at_s and self.state is ModelState.READY
        if due:
            self._restore_at_s = None
        return due

    async def restore(self) -> None:
        """Start dead replicas again; a failure waits for the next attempt."""
        async with self._lock:
            handle = self.handle
            if self.state is not ModelState.READY or handle is None or not handle.degraded:
                return
            try:
                await handle.restore()
            except LayaError as error:
                log.warning("A replica of '%s' could not be started again: %s", self.name, error)
                self._plan_restore()
            else:
                self.error = None
                self._listener.on_restored(self)

    def generate(self, request: Generate, sink: Callable[[RequestEvent], None]) -> None:
        """Hand a request to the worker; the pool calls ``release`` when it is over."""
        assert self.handle is not None
        self._running.add(request.request_id)
        self._idle.clear()
        self.handle.generate(request, sink)

    def release(self, request_id: str) -> None:
        """The request holds its slot no longer."""
        self._running.discard(request_id)
        self._touch()
        if not self._running:
            self._idle.set()

    def cancel(self, request_id: str) -> None:
        """Stop a request that was given to the worker."""
        if self.handle is not None:
            self.handle.cancel(request_id)

    async def _load(self, device: str) -> None:
        config = self.config
        self.state, self.progress, self.error, self.log_tail, self._abort = ModelState.LOADING, 0.0, None, (), False
        self._listener.on_loading(self)
        handle: ReplicaSet | None = None
        try:
            params = self._make_params(config, device)
            await self._wait_for_room(device)
            params = await self._listener.before_start(self, params, override=self._override)
            if self._abort:
                raise LayaError(f"The load of '{config.name}' was stopped.", code="load_cancelled", status=503)
            handle = ReplicaSet(config.name, config.replicas, self._make_handle, self._on_exit, self._on_lost)
            self.handle = handle
            self.loaded = await handle.start(params, self._on_progress)
        except LayaError as error:
            self._fail(error, handle)
            if self._abort:
                self._listener.on_unloaded(self, "the load was stopped", keep_waiting=False)
                return
            raise
        except asyncio.CancelledError:
            if handle is not None:
                await handle.stop(0.0)
            self._set_gone(ModelState.UNLOADED)
            raise
        except Exception as fault:  # a fault of ours must leave the model in a state that can be left
            log.exception("Loading '%s' failed unexpectedly", config.name)
            wrapped = LayaError(f"Loading '{config.name}' failed: {fault}.", hint="The Logs page has the details.")
            self._fail(wrapped, handle)
            raise wrapped from fault
        self.state, self.progress, self._device, self.loaded_config = ModelState.READY, None, device, config
        self._restore_at_s, self._restore_after_s = None, RESTORE_S
        self._restarts.on_ready(time.monotonic())
        self._touch()
        self._listener.on_loaded(self)

    async def _wait_for_room(self, device: str) -> None:
        if self._make_room is None:
            return
        self._room = spawn(self._make_room(self, device), f"room for {self.name}")
        try:
            await asyncio.wait({self._room})
        finally:
            self._room.cancel()
            self._room, self.load_note = None, None

    async def _call_off(self) -> None:
        """Abort a load or a restart under way."""
        if self.state is ModelState.LOADING:
            self._abort = True
            if self._room is not None:
                self._room.cancel()
            if self.handle is not None:
                await self.handle.stop(0.0)
        elif self.handle is not None:
            await self.handle.call_off()

    async def _drain(self, *, reload: bool, grace_s: float | None = None) -> bool:
        """Wait for the running answers. False: the worker died meanwhile."""
        self.state = ModelState.UNLOADING
        self._listener.on_draining(self, reload=reload)
        if self._running:
            try:
                await asyncio.wait_for(self._idle.wait(), grace_s)
            except TimeoutError:
                log.warning("Unloading '%s' cuts %d running answers", self.name, len(self._running))
        return self.state is ModelState.UNLOADING

    async def _stop_handle(self) -> None:
        if (handle := self.handle) is not None:
            self.handle = None
            await handle.stop(STOP_GRACE_S)

    def _on_progress(self, progress: float) -> None:
        self.progress = progress
        self._listener.on_progress(self)

    def _on_exit(self, handle: ReplicaSet, error: LayaError) -> None:
        if handle is self.handle and self.state in (ModelState.READY, ModelState.UNLOADING):
            self._fail(error, handle, served=self.state is ModelState.READY)

    def _on_lost(self, handle: ReplicaSet, error: LayaError, request_ids: tuple[str, ...]) -> None:
        if handle is not self.handle:
            return
        self.error, self.log_tail = error, handle.log_tail
        self._plan_restore()
        self._listener.on_replica_lost(self, error, request_ids)

    def _plan_restore(self) -> None:
        self._restore_at_s = time.monotonic() + self._restore_after_s
        self._restore_after_s = min(MAX_RESTORE_S, 2 * self._restore_after_s)

    def _fail(self, error: LayaError, handle: ReplicaSet | None, *, served: bool = False) -> None:
        """The load failed, or (``served``) the worker died in use and is started again, unless it did so too often."""
        tail = handle.log_tail if handle is not None else ()
        if handle is not None:
            spawn(handle.stop(0.0), f"stop worker of {self.name}")
        device = self._device or self._restart_device
        self._set_gone(ModelState.UNLOADED if self._abort else ModelState.FAILED)
        if self._abort:
            return
        delay_s, now_s = None, time.monotonic()
        if (served or (self._restarting and error.code in DEATHS)) and not self.retired:
            delay_s = self._restarts.on_death(now_s)
            if delay_s is None:
                error = _too_often(error)
        self.error, self.log_tail, self.failed_s = error, tail, now_s
        self._restart_device = device
        if delay_s is None:
            self._listener.on_failed(self, error)
        else:
            self._plan_restart(delay_s)
            self._listener.on_lost(self, error, delay_s)

    def _plan_restart(self, delay_s: float | None) -> None:
        """Start again after so many seconds; None: do not."""
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        if delay_s is not None:
            self._restart = asyncio.get_running_loop().call_later(
                delay_s, lambda: spawn(self._start_again(), f"restart {self.name}")
            )

    async def _start_again(self) -> None:
        async with self._lock:
            if self._restart is None or self.state is not ModelState.FAILED:
                return
            self._restart, self._restarting, self._override = None, True, False
            try:
                await self._load(self._restart_device)
            except LayaError as error:
                log.debug("Restart of '%s' failed: %s", self.name, error)  # told through on_failed or on_lost
            finally:
                self._restarting = False

    def _set_gone(self, state: ModelState) -> None:
        self.state, self.handle, self.loaded, self.progress = state, None, None, None
        self.loaded_config = self._device = self._restore_at_s = None
        self._running.clear()
        self._idle.set()

    def _touch(self) -> None:
        self.last_used_s, self.last_used_unix_s = time.monotonic(), time.time()


def _too_often(error: LayaError) -> LayaError:
    """The error of a death after which nothing is started again by itself."""
    return LayaError(
        f"{error.message} It died {MOST_DEATHS} times within {WINDOW_S / 60:.0f} minutes, so it is not restarted.",
        hint=f"Remove the cause and load it by hand; until then its requests are refused. {error.hint or ''}".rstrip(),
        code="restarts_ended",
        status=503,
    )
