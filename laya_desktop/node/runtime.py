"""One configured model and its worker: load, drain, unload, death. Node thread only.

Owns the worker handle and the model's state; tells the pool through ``RuntimeListener``. It never decides who runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from laya_desktop.errors import LayaError
from laya_desktop.node.params import changed_load_keys
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import EngineParams, Generate, Loaded, RequestEvent, Stats

log = logging.getLogger(__name__)

STOP_GRACE_S = 2.0


class EngineHandle(Protocol):
    """The parent's end of a worker process."""

    @property
    def pid(self) -> int | None:
        """The worker's process id while it runs."""
        ...

    @property
    def stats(self) -> Stats | None:
        """Totals the worker last reported."""
        ...

    @property
    def log_tail(self) -> tuple[str, ...]:
        """The last lines the worker printed."""
        ...

    async def start(self, params: EngineParams, on_progress: Callable[[float], None]) -> Loaded:
        """Start the worker and load. Raises LayaError."""
        ...

    def generate(self, request: Generate, sink: Callable[[RequestEvent], None]) -> None:
        """Give a request to a free slot; its events go to the sink."""
        ...

    def cancel(self, request_id: str) -> None:
        """Stop a request."""
        ...

    async def stop(self, grace_s: float) -> None:
        """End the worker."""
        ...


HandleFactory = Callable[[str, Callable[[LayaError | None], None]], EngineHandle]
"""Makes a handle for the model of that name; its second argument is called once when the worker dies unasked."""

ParamsFactory = Callable[["ModelConfig", str | None], "EngineParams"]
"""Resolves a model's configuration and the device asked for into what the worker loads. Raises LayaError."""


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

    def on_unloaded(self, runtime: ModelRuntime, reason: str) -> None:
        """The worker is gone as asked."""
        ...

    def on_failed(self, runtime: ModelRuntime, error: LayaError) -> None:
        """The load failed or the worker died."""
        ...


class ModelRuntime:
    """The life of one model."""

    def __init__(
        self, config: ModelConfig, make_handle: HandleFactory, make_params: ParamsFactory, listener: RuntimeListener
    ) -> None:
        self.config = config
        self.state = ModelState.UNLOADED
        self.progress: float | None = None
        self.error: LayaError | None = None
        self.log_tail: tuple[str, ...] = ()
        self.loaded: Loaded | None = None
        self.loaded_config: ModelConfig | None = None
        self.handle: EngineHandle | None = None
        self.last_used_s = time.monotonic()
        self.last_used_unix_s: float | None = None
        self.failed_s: float | None = None
        self.retired = False
        """No longer configured: it goes when its running answers are done."""
        self._device: str | None = None
        self._make_handle = make_handle
        self._make_params = make_params
        self._listener = listener
        self._lock = asyncio.Lock()
        self._running: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._abort = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self.config.name

    @property
    def idle(self) -> bool:
        """True while no request holds a slot."""
        return not self._running

    @property
    def changed_keys(self) -> tuple[str, ...]:
        """Settings that changed since the load and wait for the next one."""
        return changed_load_keys(self.loaded_config, self.config) if self.loaded_config else ()

    async def load(self, device: str | None) -> None:
        """Load, or reload when the device or the configuration differs from what is loaded.

        Raises:
            LayaError: why it failed, what next; the state is then ``failed``.
        """
        wanted = device or self.config.device
        async with self._lock:
            if self.state is ModelState.READY:
                if self._device == wanted and not self.changed_keys:
                    return
                await self._drain(reload=True)
                await self._stop_handle()
            await self._load(wanted)

    async def unload(self, reason: str, *, grace_s: float | None = None) -> None:
        """Unload once the running answers are done (at most ``grace_s`` later); a load under way is aborted."""
        if self.state is ModelState.LOADING and self.handle is not None:
            self._abort = True
            await self.handle.stop(0.0)
        async with self._lock:
            if self.state is not ModelState.READY:
                return
            if not await self._drain(reload=False, grace_s=grace_s):
                return
            await self._stop_handle()
            self._set_gone(ModelState.UNLOADED)
            self._listener.on_unloaded(self, reason)

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
        handle: EngineHandle | None = None
        try:
            params = self._make_params(config, device)
            handle = self.handle = self._make_handle(config.name, lambda error: self._on_exit(handle, error))
            self.loaded = await handle.start(params, self._on_progress)
        except LayaError as error:
            self._fail(error, handle)
            if self._abort:
                self._listener.on_unloaded(self, "the load was stopped")
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
        self._touch()
        self._listener.on_loaded(self)

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

    def _on_exit(self, handle: EngineHandle | None, error: LayaError | None) -> None:
        if handle is not self.handle or self.state not in (ModelState.READY, ModelState.UNLOADING):
            return
        died = error or LayaError(
            f"The worker of '{self.name}' ended unexpectedly.", hint="Load the model again.", code="worker_died"
        )
        died.status, died.retry_after_s = 503, died.retry_after_s or 5.0
        self._fail(died, handle)

    def _fail(self, error: LayaError, handle: EngineHandle | None) -> None:
        tail = handle.log_tail if handle is not None else ()
        if handle is not None:
            spawn(handle.stop(0.0), f"stop worker of {self.name}")
        self._set_gone(ModelState.UNLOADED if self._abort else ModelState.FAILED)
        if self._abort:
            return
        self.error, self.log_tail, self.failed_s = error, tail, time.monotonic()
        self._listener.on_failed(self, error)

    def _set_gone(self, state: ModelState) -> None:
        self.state, self.handle, self.loaded, self.progress = state, None, None, None
        self.loaded_config = self._device = None
        self._running.clear()
        self._idle.set()

    def _touch(self) -> None:
        self.last_used_s, self.last_used_unix_s = time.monotonic(), time.time()
