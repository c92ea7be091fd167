"""All models: joins scheduler, runtimes and request streams. Node thread only.

Satisfies ``scheduler.Effects`` and ``runtime.RuntimeListener``; it moves what they decide and decides nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError, near
from laya_desktop.node.balance import Readiness, TargetLoad
from laya_desktop.node.engines.base import Delta, Finished, Prefilled, RequestEvent, Started
from laya_desktop.node.generation import GenerationStream
from laya_desktop.node.metrics import TokenRate
from laya_desktop.node.runtime import HandleFactory, ModelRuntime, ParamsFactory
from laya_desktop.node.scheduler import Scheduler, Ticket
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState, Phase
from laya_desktop.state.events import Event, ModelFailed, ModelLoaded, ModelUnloaded
from laya_desktop.state.snapshot import ModelSnapshot, SlotSnapshot

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import Generate, Loaded
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.telemetry import WorkerUsage

log = logging.getLogger(__name__)

FAILED_REST_S = 10.0
"""After a failed load, requests are refused with its reason for so long before one of them tries again."""


class ModelPool:
    """Every configured model, loaded or not."""

    def __init__(
        self,
        make_handle: HandleFactory,
        make_params: ParamsFactory,
        emit: Callable[[Event], None],
        changed: Callable[[], None],
    ) -> None:
        self._make_handle = make_handle
        self._make_params = make_params
        self._emit = emit
        self._changed = changed
        self._scheduler = Scheduler(self)
        self._runtimes: dict[str, ModelRuntime] = {}
        self._streams: dict[str, GenerationStream] = {}
        self._requests_total: dict[str, int] = {}
        self._rates: dict[str, tuple[TokenRate, TokenRate]] = {}
        """Prefill and decode tokens per second, by model."""

    def configure(self, models: Iterable[ModelConfig]) -> None:
        """Follow the configuration. A loaded model keeps what it was loaded with until it is reloaded."""
        wanted = {m.name: m for m in models}
        for name, config in wanted.items():
            runtime = self._runtimes.get(name)
            if runtime is None:
                self._runtimes[name] = ModelRuntime(config, self._make_handle, self._make_params, self)
            else:
                runtime.config, runtime.retired = config, False
        self._scheduler.configure({name: m.queue for name, m in wanted.items()})
        for name, runtime in self._runtimes.items():
            if name not in wanted and not runtime.retired:
                runtime.retired = True
                spawn(self._retire(runtime), f"retire {name}")

    async def load(self, name: str, device: str | None) -> None:
        """Load a model. Raises LayaError."""
        await self._runtime(name).load(device)

    async def unload(self, name: str, reason: str = "asked") -> None:
        """Unload a model once its running answers are done."""
        await self._runtime(name).unload(reason)

    def generate(self, record: RequestRecord, model: str, request: Generate, timeout_s: float) -> GenerationStream:
        """Admit a request. Raises LayaError."""
        now_s = time.monotonic()
        runtime = self._runtime(model)
        self._refuse_while_failed(runtime, now_s)
        ticket = Ticket(request.request_id, model, record.priority, now_s, now_s + timeout_s)
        stream = GenerationStream(record, ticket, request, self._on_cancel)
        self._streams[request.request_id] = stream
        try:
            self._scheduler.on_request(ticket, now_s)
        except LayaError:
            del self._streams[request.request_id]
            raise
        self._requests_total[model] = self._requests_total.get(model, 0) + 1
        stream.arm(timeout_s)
        self._place(model)
        return stream

    def cancel(self, request_id: str, reason: str) -> bool:
        """Cancel a live generation; False when there is none."""
        stream = self._streams.get(request_id)
        if stream is None or stream.over:
            return False
        stream.cancel(reason)
        return True

    def load_of(self, name: str) -> TargetLoad:
        """Requests that a model runs or that wait for it, and whether it can begin."""
        runtime = self._runtimes.get(name)
        if runtime is None or runtime.retired or self._rests(runtime, time.monotonic()):
            return TargetLoad(0, Readiness.BROKEN)
        ready = Readiness.READY if runtime.state is ModelState.READY else Readiness.TO_BE_LOADED
        return TargetLoad(sum(self._scheduler.counts(name)), ready)

    def tick(self, now_s: float) -> None:
        """Expire waiting requests and unload idle models. Called a few times a second."""
        self._scheduler.on_tick(now_s)
        for runtime in self._runtimes.values():
            limit_s = runtime.config.idle_unload
            idle = runtime.state is ModelState.READY and runtime.idle and not any(self._scheduler.counts(runtime.name))
            if idle and limit_s is not None and now_s - runtime.last_used_s >= limit_s:
                spawn(runtime.unload(f"idle for {limit_s:g} s"), f"idle unload {runtime.name}")

    def worker_pids(self) -> dict[str, int]:
        """Process id by model, of the workers that run."""
        handles = {name: r.handle for name, r in self._runtimes.items()}
        return {name: h.pid for name, h in handles.items() if h is not None and h.pid is not None}

    def snapshot(self, usage: Mapping[str, WorkerUsage], now_s: float) -> tuple[ModelSnapshot, ...]:
        """Frozen pictures of all models."""
        shown = [r for r in self._runtimes.values() if not r.retired]
        for runtime in shown:
            self._place(runtime.name)
        return tuple(self._model_snapshot(r, usage.get(r.name), now_s) for r in shown)

    async def close(self) -> None:
        """Stop every worker; running answers are cut."""
        for stream in list(self._streams.values()):
            stream.fail(LayaError("The node is shutting down.", code="shutting_down", status=503, retry_after_s=5.0))
        await asyncio.gather(*(r.unload("the node closes", grace_s=0.0) for r in self._runtimes.values()))

    # -- scheduler.Effects

    def start_load(self, model: str) -> None:
        """Load on demand; a failure reaches the waiting requests through ``on_failed``."""
        spawn(self._load_on_demand(self._runtimes[model]), f"load {model}")

    def dispatch(self, ticket: Ticket) -> None:
        """Give a request its slot."""
        stream = self._streams[ticket.request_id]
        record = stream.record
        record.dispatched_s, record.phase, record.queue_place = time.monotonic(), Phase.PREFILL, None
        self._runtimes[ticket.model].generate(stream.request, lambda event: self._on_event(stream, event))

    def reject(self, ticket: Ticket, error: LayaError) -> None:
        """Fail a request that waits, or whose worker is gone."""
        stream = self._streams.pop(ticket.request_id, None)
        if stream is not None:
            stream.fail(error)

    # -- runtime.RuntimeListener

    def on_loading(self, runtime: ModelRuntime) -> None:
        """Requests wait for it."""
        self._scheduler.on_loading(runtime.name)
        self._changed()

    def on_progress(self, runtime: ModelRuntime) -> None:
        """Shown with the next snapshot."""

    def on_loaded(self, runtime: ModelRuntime) -> None:
        """Let waiting requests run."""
        assert runtime.loaded is not None
        loaded = runtime.loaded
        log.info("Model '%s' is ready on %s after %.1f s", runtime.name, loaded.device, loaded.load_s)
        self._emit(ModelLoaded(runtime.name, loaded.load_s, loaded.device))
        self._scheduler.on_ready(runtime.name, loaded.slots, time.monotonic())
        self._changed()

    def on_draining(self, runtime: ModelRuntime, *, reload: bool) -> None:
        """No more dispatches."""
        self._scheduler.on_unloading(runtime.name, keep_waiting=reload)
        self._changed()

    def on_unloaded(self, runtime: ModelRuntime, reason: str) -> None:
        """Back to the start."""
        log.info("Model '%s' is unloaded: %s", runtime.name, reason)
        stopped = LayaError(
            f"The model '{runtime.name}' was unloaded: {reason}.", code="model_unloaded", status=503, retry_after_s=5.0
        )
        self._scheduler.on_gone(runtime.name, stopped)
        self._scheduler.on_gone(runtime.name, None)
        self._emit(ModelUnloaded(runtime.name, reason))
        self._changed()

    def on_failed(self, runtime: ModelRuntime, error: LayaError) -> None:
        """Fail its requests; other models never notice."""
        log.error("Model '%s' failed: %s", runtime.name, error)
        self._scheduler.on_gone(runtime.name, error)
        self._emit(ModelFailed(runtime.name, str(error), runtime.log_tail))
        self._changed()

    # -- inside

    def _runtime(self, name: str) -> ModelRuntime:
        runtime = self._runtimes.get(name)
        if runtime is None or runtime.retired:
            names = [n for n, r in self._runtimes.items() if not r.retired]
            known = ", ".join(f"'{n}'" for n in names) or "none yet"
            raise LayaError(
                f"No model '{name}'.{near(name, names)}",
                hint=f"Configured models: {known}.",
                code="model_not_found",
                status=404,
                param="model",
            )
        return runtime

    @staticmethod
    def _rests(runtime: ModelRuntime, now_s: float) -> bool:
        """True for a while after a failure."""
        failed_s = runtime.failed_s if runtime.state is ModelState.FAILED else None
        return failed_s is not None and now_s < failed_s + FAILED_REST_S

    def _refuse_while_failed(self, runtime: ModelRuntime, now_s: float) -> None:
        if runtime.state is not ModelState.FAILED or runtime.failed_s is None or runtime.error is None:
            return
        left_s = runtime.failed_s + FAILED_REST_S - now_s
        if left_s > 0:
            raise LayaError(
                f"The model '{runtime.name}' could not be used: {runtime.error.message}",
                hint=runtime.error.hint,
                code="model_failed",
                status=503,
                retry_after_s=max(1.0, left_s),
            )

    async def _load_on_demand(self, runtime: ModelRuntime) -> None:
        try:
            await runtime.load(None)
        except LayaError as error:
            log.debug("Load on demand of '%s' failed: %s", runtime.name, error)

    async def _retire(self, runtime: ModelRuntime) -> None:
        await runtime.unload("removed from the configuration")
        if runtime.retired:
            self._runtimes.pop(runtime.name, None)
            self._changed()

    def _on_cancel(self, stream: GenerationStream, reason: str) -> None:
        ticket = stream.ticket
        if self._scheduler.on_cancelled(ticket):
            self._streams.pop(ticket.request_id, None)
        elif (runtime := self._runtimes.get(ticket.model)) is not None:
            runtime.cancel(ticket.request_id)
        log.debug("Request %s cancelled: %s", ticket.request_id, reason)

    def _on_event(self, stream: GenerationStream, event: RequestEvent) -> None:
        now_s = time.monotonic()
        record, model = stream.record, stream.ticket.model
        prefill, decode = self._rates.setdefault(model, (TokenRate(), TokenRate()))
        match event:
            case Started():
                stream.slot_id = event.slot_id
                record.prompt_tokens, record.cached_tokens = event.prompt_tokens, event.cached_tokens
            case Prefilled():
                record.phase = Phase.DECODE
                prefill.add(event.prompt_tokens - (record.cached_tokens or 0), now_s)
            case Delta():
                decode.add(event.tokens, now_s)
                record.first_token_s = record.first_token_s or now_s
                record.last_token_s = now_s
                record.completion_tokens = (record.completion_tokens or 0) + event.tokens
            case Finished():
                record.prompt_tokens, record.completion_tokens = event.prompt_tokens, event.completion_tokens
                record.cached_tokens, record.finish_reason = event.cached_tokens, event.finish_reason
        stream.push(event)
        if isinstance(event, Finished) or not isinstance(event, Started | Prefilled | Delta):
            self._streams.pop(stream.ticket.request_id, None)
            if (runtime := self._runtimes.get(model)) is not None:
                runtime.release(stream.ticket.request_id)
            self._scheduler.on_finished(stream.ticket, now_s)

    def _place(self, model: str) -> None:
        for place, request_id in enumerate(self._scheduler.places(model), start=1):
            if (stream := self._streams.get(request_id)) is not None:
                stream.record.queue_place = place

    def _model_snapshot(self, runtime: ModelRuntime, usage: WorkerUsage | None, now_s: float) -> ModelSnapshot:
        waiting, running = self._scheduler.counts(runtime.name)
        loaded, handle = runtime.loaded, runtime.handle
        rates = [rate.per_s(now_s) for rate in self._rates.get(runtime.name, ())] or [0.0, 0.0]
        return ModelSnapshot(
            name=runtime.name,
            state=runtime.state,
            progress=runtime.progress,
            error=str(runtime.error) if runtime.error else None,
            log_tail=runtime.log_tail,
            device=loaded.device if loaded else None,
            device_note=_notes(loaded) if loaded else None,
            offloaded_layers=loaded.offloaded_layers if loaded else None,
            total_layers=loaded.total_layers if loaded else None,
            slots=self._slots(runtime),
            waiting=waiting,
            running=running,
            queue_limit=runtime.config.queue.max_waiting,
            max_seq_len=loaded.max_seq_len if loaded else None,
            prefill_tokens_per_s=rates[0],
            decode_tokens_per_s=rates[1],
            pid=handle.pid if handle else None,
            cpu_percent=usage.cpu_percent if usage else None,
            rss_bytes=usage.rss_bytes if usage else None,
            vram_bytes=usage.vram_bytes if usage else None,
            load_s=loaded.load_s if loaded else None,
            requests_total=self._requests_total.get(runtime.name, 0),
            last_used_unix_s=runtime.last_used_unix_s,
            changed_keys=runtime.changed_keys,
        )

    def _slots(self, runtime: ModelRuntime) -> tuple[SlotSnapshot, ...]:
        if runtime.loaded is None:
            return ()
        stats = runtime.handle.stats if runtime.handle else None
        held = stats.slot_tokens if stats else ()
        slots = []
        busy = {s.slot_id: s for s in self._streams.values() if s.ticket.model == runtime.name}
        for slot_id in range(runtime.loaded.slots):
            tokens = held[slot_id] if slot_id < len(held) else 0
            stream = busy.get(slot_id)
            if stream is None:
                slots.append(SlotSnapshot(slot_id, kv_cache_tokens=tokens))
            else:
                slots.append(SlotSnapshot(slot_id, stream.record.phase, stream.ticket.request_id, tokens))
        return tuple(slots)


def _notes(loaded: Loaded) -> str | None:
    """What there is to say about a load: the choice of device, a missing template, a context beyond the trained one."""
    return " ".join(note for note in (loaded.device_note, *loaded.notes) if note) or None
