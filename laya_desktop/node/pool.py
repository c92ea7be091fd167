"""All models: joins scheduler, runtimes, caches and request streams. Node thread only.

Satisfies ``scheduler.Effects`` and ``runtime.RuntimeListener``; it moves what they decide and decides nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from laya_desktop.errors import LayaError, near
from laya_desktop.node.answers import AnswerCaches, OffLoop
from laya_desktop.node.balance import Readiness, TargetLoad
from laya_desktop.node.engines import frames
from laya_desktop.node.engines.base import Delta, Finished, Prefilled, Refused, RequestEvent, Started
from laya_desktop.node.generation import GenerationStream, Heard
from laya_desktop.node.metrics import TokenRate
from laya_desktop.node.pool_view import model_snapshot, waiting_for, worker_names
from laya_desktop.node.runtime import MakeRoom, ModelRuntime, ParamsFactory
from laya_desktop.node.scheduler import Scheduler
from laya_desktop.node.tasks import spawn
from laya_desktop.node.tickets import Ticket, estimate_tokens
from laya_desktop.state.enums import ModelState, Phase, Priority
from laya_desktop.state.events import Event, ModelFailed, ModelLoaded, ModelUnloaded, Notice

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import EngineParams, Generate
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.replicas import HandleFactory
    from laya_desktop.node.telemetry import WorkerUsage
    from laya_desktop.state.snapshot import ModelSnapshot

log = logging.getLogger(__name__)

HELD = "the machine to have room again: the guard holds batch requests"
KEPT_CODES = ("will_not_fit", "overloaded", "out_of_memory", "restarts_ended")
"""Codes of a failure that callers get as they are; any other is ``model_failed``."""


class Gate(Protocol):
    """Who decides whether a load goes ahead."""

    async def admit(self, runtime: ModelRuntime, params: EngineParams, override: bool) -> EngineParams:
        """What the worker gets; ``override``: a person insists. Raises LayaError."""
        ...

    def loaded(self, name: str) -> None:
        """The load worked."""
        ...

    def failed(self, name: str, error: LayaError) -> None:
        """It failed, or the worker died later."""
        ...


class OpenGate:
    """Lets every load through."""

    async def admit(self, _runtime: ModelRuntime, params: EngineParams, _override: bool) -> EngineParams:
        """As they are."""
        return params

    def loaded(self, name: str) -> None:
        """Nothing to note."""

    def failed(self, name: str, error: LayaError) -> None:
        """Nothing to note."""


async def _here(call: Callable[[], object]) -> object:
    return call()


class ModelPool:
    """Every configured model, loaded or not."""

    def __init__(
        self,
        make_handle: HandleFactory,
        make_params: ParamsFactory,
        emit: Callable[[Event], None],
        changed: Callable[[], None],
        *,
        make_room: MakeRoom | None = None,
        off_loop: OffLoop = _here,
        gate: Gate | None = None,
    ) -> None:
        """Begin without models.

        Args:
            make_handle: makes workers.
            make_params: resolves a model's configuration.
            emit: takes events.
            changed: called when a new snapshot is worth publishing.
            make_room: waits for memory before a load; None: loads never wait.
            off_loop: runs blocking calls elsewhere.
            gate: refuses loads, or adds limits to their parameters; None: none is refused.
        """
        self.refuse_batch: Callable[[], LayaError | None] = lambda: None
        """The guard's refusal of batch requests, while there is one."""
        self._gate = gate or OpenGate()
        self._make_handle = make_handle
        self._make_params = make_params
        self._emit = emit
        self._changed = changed
        self._make_room = make_room
        self._answers = AnswerCaches(lambda config: make_params(config, None), off_loop)
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
                made = ModelRuntime(config, self._make_handle, self._make_params, self, self._make_room)
                self._runtimes[name] = made
            else:
                runtime.config, runtime.retired = config, False
        self._answers.configure(wanted.values())
        self._scheduler.configure({name: m.queue for name, m in wanted.items()})
        for name, runtime in self._runtimes.items():
            if name not in wanted and not runtime.retired:
                runtime.retired = True
                spawn(self._retire(runtime), f"retire {name}")

    async def load(self, name: str, device: str | None, *, override: bool = False) -> None:
        """Load a model by hand; ``override``: against the guard's advice, this once. Raises LayaError."""
        await self._runtime(name).load(device, by_hand=True, override=override)

    async def unload(self, name: str, reason: str = "asked", *, keep_waiting: bool = False) -> None:
        """Unload a model once its running answers are done; ``keep_waiting``: who waits has it loaded again."""
        await self._runtime(name).unload(reason, keep_waiting=keep_waiting)

    def hold_batch(self, *, on: bool) -> None:
        """Keep batch requests waiting, whatever is free."""
        self._scheduler.hold_batch = on

    def clear_cache(self, name: str) -> None:
        """Forget a model's kept answers. Raises LayaError."""
        self._answers.clear(self._runtime(name).name)
        self._changed()

    def generate(
        self, record: RequestRecord, model: str, request: Generate, timeout_s: float, heard: Heard | None = None
    ) -> GenerationStream:
        """Admit a request, or answer it from the cache. ``heard`` is told of the answer too. Raises LayaError."""
        now_s = time.monotonic()
        runtime = self._runtime(model)
        max_seq_len = runtime.loaded.max_seq_len if runtime.loaded else runtime.config.max_seq_len
        tokens = estimate_tokens(request, max_seq_len)
        _refuse_too_many(runtime, request)
        _refuse_unsendable(request)
        ticket = Ticket(request.request_id, model, record.priority, now_s, now_s + timeout_s, *tokens, slots=request.n)
        stream = GenerationStream(record, ticket, request, self._on_cancel, heard)
        if (kept := self._answers.find(record, model, request, now_s)) is not None:
            stream.replay(kept, now_s)
        else:
            self._admit(runtime, stream, now_s)
            stream.arm(timeout_s)
            self._place(model, now_s)
        self._requests_total[model] = self._requests_total.get(model, 0) + 1
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
        if runtime is None or runtime.retired or runtime.restart_in_s or runtime.rests_for_s(time.monotonic()):
            return TargetLoad(0, Readiness.BROKEN)
        ready = Readiness.READY if runtime.state is ModelState.READY else Readiness.TO_BE_LOADED
        return TargetLoad(sum(self._scheduler.counts(name)), ready)

    def tick(self, now_s: float) -> None:
        """Expire waiting requests, unload idle models, restart dead replicas. Called a few times a second."""
        self._scheduler.on_tick(now_s)
        spawn(self._answers.look(now_s), "answer caches")
        for runtime in self._runtimes.values():
            limit_s = None if runtime.config.pin else runtime.config.idle_unload
            idle = runtime.state is ModelState.READY and runtime.idle and not any(self._scheduler.counts(runtime.name))
            if idle and limit_s is not None and now_s - runtime.last_used_s >= limit_s:
                spawn(runtime.unload(f"idle for {limit_s:g} s"), f"idle unload {runtime.name}")
            elif runtime.restore_due(now_s):
                spawn(runtime.restore(), f"restore {runtime.name}")

    @property
    def runtimes(self) -> tuple[ModelRuntime, ...]:
        """All models, also those that are on their way out."""
        return tuple(self._runtimes.values())

    def waiting(self, name: str) -> int:
        """Requests that wait for this model."""
        return self._scheduler.counts(name)[0]

    def worker_pids(self) -> dict[str, int]:
        """Process ids of the workers that run, by model and replica."""
        pids: dict[str, int] = {}
        for name, runtime in self._runtimes.items():
            pids |= worker_names(name, runtime.handle.pids) if runtime.handle else {}
        return pids

    def snapshot(self, usage: Mapping[str, WorkerUsage], now_s: float) -> tuple[ModelSnapshot, ...]:
        """Frozen pictures of all models."""
        shown = [r for r in self._runtimes.values() if not r.retired]
        for runtime in shown:
            self._place(runtime.name, now_s)
        return tuple(self._model_snapshot(r, usage, now_s) for r in shown)

    async def close(self) -> None:
        """Stop every worker; running answers are cut."""
        for stream in list(self._streams.values()):
            stream.fail(LayaError("The node is shutting down.", code="shutting_down", status=503, retry_after_s=5.0))
            self._runtimes[stream.ticket.model].cancel(stream.ticket.request_id)  # an unload under way waits for it
        await asyncio.gather(*(r.unload("the node closes", grace_s=0.0) for r in self._runtimes.values()))

    # -- scheduler.Effects

    def start_load(self, model: str) -> None:
        """Load on demand; a failure reaches the waiting requests through ``on_failed``."""
        spawn(self._load_on_demand(self._runtimes[model]), f"load {model}")

    def dispatch(self, ticket: Ticket) -> None:
        """Give a request its slot."""
        stream = self._streams[ticket.request_id]
        record = stream.record
        record.dispatched_s, record.phase = time.monotonic(), Phase.PREFILL
        record.queue_place = record.expected_wait_s = record.waiting_for = None
        self._runtimes[ticket.model].generate(stream.request, lambda event: self._on_event(stream, event))

    def reject(self, ticket: Ticket, error: LayaError) -> None:
        """Fail a request that waits, or whose worker is gone."""
        stream = self._drop(ticket.request_id)
        if stream is not None:
            stream.fail(error)

    def has_room(self, ticket: Ticket) -> bool:
        """Whether one worker has all the slots that a request for several answers needs."""
        handle = self._runtimes[ticket.model].handle
        return handle is not None and handle.has_room(ticket.slots)

    # -- runtime.RuntimeListener

    def on_loading(self, runtime: ModelRuntime) -> None:
        """Requests wait for it."""
        self._scheduler.on_loading(runtime.name)
        self._changed()

    def on_progress(self, runtime: ModelRuntime) -> None:
        """Shown with the next snapshot."""

    async def before_start(self, runtime: ModelRuntime, params: EngineParams, *, override: bool) -> EngineParams:
        """Ask whether the load may go ahead; kept answers of another file are forgotten."""
        params = await self._gate.admit(runtime, params, override)
        await self._answers.before_load(runtime.name, params)
        return params

    def on_loaded(self, runtime: ModelRuntime) -> None:
        """Let waiting requests run."""
        assert runtime.loaded is not None
        loaded = runtime.loaded
        self._gate.loaded(runtime.name)
        log.info("Model '%s' is ready on %s after %.1f s", runtime.name, loaded.device, loaded.load_s)
        self._emit(ModelLoaded(runtime.name, loaded.load_s, loaded.device))
        self._scheduler.on_ready(runtime.name, loaded.slots, time.monotonic())
        self._changed()

    def on_draining(self, runtime: ModelRuntime, *, reload: bool) -> None:
        """No more dispatches."""
        self._scheduler.on_unloading(runtime.name, keep_waiting=reload)
        self._changed()

    def on_unloaded(self, runtime: ModelRuntime, reason: str, *, keep_waiting: bool) -> None:
        """Back to the start; those that wait stay where the memory was only lent."""
        log.info("Model '%s' is unloaded: %s", runtime.name, reason)
        self._answers.on_gone(runtime.name)
        if not keep_waiting:
            text = f"The model '{runtime.name}' was unloaded: {reason}."
            stopped = LayaError(text, code="model_unloaded", status=503, retry_after_s=5.0)
            self._scheduler.on_gone(runtime.name, stopped)
        self._scheduler.on_gone(runtime.name, None)
        self._emit(ModelUnloaded(runtime.name, reason))
        self._changed()

    def on_lost(self, runtime: ModelRuntime, error: LayaError, restart_in_s: float) -> None:
        """Fail what it was answering; what waits goes on waiting for the restart."""
        self._gate.failed(runtime.name, error)
        log.error("Model '%s' died and is started again in %g s: %s", runtime.name, restart_in_s, error)
        self._answers.on_gone(runtime.name)
        self._scheduler.on_lost(runtime.name, error)
        text = f"{error.message} It is started again in {restart_in_s:g} s."
        self._emit(ModelFailed(runtime.name, text, runtime.log_tail))
        self._changed()

    def on_failed(self, runtime: ModelRuntime, error: LayaError) -> None:
        """Fail its requests; other models never notice."""
        log.error("Model '%s' failed: %s", runtime.name, error)
        self._gate.failed(runtime.name, error)
        self._answers.on_gone(runtime.name)
        self._scheduler.on_gone(runtime.name, error)
        self._emit(ModelFailed(runtime.name, str(error), runtime.log_tail))
        self._changed()

    def on_replica_lost(self, runtime: ModelRuntime, error: LayaError, request_ids: tuple[str, ...]) -> None:
        """Fail what the dead replica was answering; the others go on."""
        assert runtime.handle is not None
        now_s, count = time.monotonic(), len(request_ids)
        self._scheduler.on_slots(runtime.name, runtime.handle.slots, now_s)
        for request_id in request_ids:
            if (stream := self._drop(request_id)) is not None:
                stream.fail(error)
                runtime.release(request_id)
                self._scheduler.on_finished(stream.ticket, now_s, complete=False)
        failed = f"{count} answer{'s' if count != 1 else ''} failed, the other replicas go on."
        text = f"A replica of '{runtime.name}' is gone: {error.message} {failed}"
        log.warning("%s", text)
        self._emit(Notice("warning", text, "models"))
        self._changed()

    def on_restored(self, runtime: ModelRuntime) -> None:
        """Use the new replica's slots."""
        assert runtime.handle is not None
        log.info("Model '%s' has all its %d replicas again", runtime.name, runtime.config.replicas)
        self._scheduler.on_slots(runtime.name, runtime.handle.slots, time.monotonic())
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

    def _admit(self, runtime: ModelRuntime, stream: GenerationStream, now_s: float) -> None:
        ticket = stream.ticket
        self._streams[ticket.request_id] = stream
        try:
            if ticket.priority is Priority.BATCH and (refusal := self.refuse_batch()) is not None:
                raise refusal
            self._refuse_while_failed(runtime, now_s)
            self._scheduler.on_request(ticket, now_s)
        except LayaError:
            self._drop(ticket.request_id)
            raise

    @staticmethod
    def _refuse_while_failed(runtime: ModelRuntime, now_s: float) -> None:
        left_s = runtime.rests_for_s(now_s)
        if left_s > 0 and runtime.error is not None:
            raise LayaError(
                f"The model '{runtime.name}' could not be used: {runtime.error.message}",
                hint=runtime.error.hint,
                code=runtime.error.code if runtime.error.code in KEPT_CODES else "model_failed",
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

    def _drop(self, request_id: str) -> GenerationStream | None:
        self._answers.forget(request_id)
        return self._streams.pop(request_id, None)

    def _on_cancel(self, stream: GenerationStream, reason: str) -> None:
        ticket = stream.ticket
        self._answers.forget(ticket.request_id)
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
                stream.slot_ids = (event.slot_id, *event.more_slots)
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
                stream.note_end(event)
        self._answers.note(stream.ticket.request_id, event)
        stream.push(event)
        if isinstance(event, Finished | Refused):
            self._on_end(stream, event, now_s)

    def _on_end(self, stream: GenerationStream, event: RequestEvent, now_s: float) -> None:
        ticket, began_s = stream.ticket, stream.record.dispatched_s
        complete = isinstance(event, Finished) and event.finish_reason != "cancelled"
        if complete and began_s is not None:
            self._answers.finish(ticket.request_id, now_s - began_s, now_s)
        self._drop(ticket.request_id)
        if (runtime := self._runtimes.get(ticket.model)) is not None:
            runtime.release(ticket.request_id)
        self._scheduler.on_finished(ticket, now_s, complete=complete)

    def _place(self, model: str, now_s: float) -> None:
        places = self._scheduler.places(model, now_s)
        words = waiting_for(self._runtimes[model]) if places else None
        for place, (ticket, wait_s) in enumerate(places, start=1):
            if (stream := self._streams.get(ticket.request_id)) is not None:
                record = stream.record
                held = self._scheduler.is_held(ticket)
                record.queue_place, record.expected_wait_s = place, None if held else wait_s
                record.waiting_for = HELD if held else words

    def _model_snapshot(self, runtime: ModelRuntime, usage: Mapping[str, WorkerUsage], now_s: float) -> ModelSnapshot:
        name = runtime.name
        rates = self._rates.get(name)
        busy = {slot: s for s in self._streams.values() if s.ticket.model == name for slot in s.slot_ids}
        return model_snapshot(
            runtime,
            usage,
            busy,
            counts=self._scheduler.counts(name),
            rates=(rates[0].per_s(now_s), rates[1].per_s(now_s)) if rates else (0.0, 0.0),
            requests_total=self._requests_total.get(name, 0),
            expected_wait_s=self._scheduler.expected_wait_s(name, now_s),
            cache=self._answers.snapshot(name),
        )


def _refuse_unsendable(request: Generate) -> None:
    """Raises LayaError where a request cannot be sent to a worker: found before it holds a place or a slot."""
    try:
        frames.encode([request])
    except OverflowError:
        raise LayaError(
            "A whole number in the request is larger than 64 bits hold.",
            hint="Send a smaller number.",
            code="invalid_request",
            status=400,
        ) from None
    except frames.FrameError as error:
        raise LayaError(str(error), hint="Send less.", code="request_too_large", status=413) from None


def _refuse_too_many(runtime: ModelRuntime, request: Generate) -> None:
    """Raises LayaError where a request asks for more answers than a worker of the model has slots."""
    slots = (runtime.loaded_config or runtime.config).batch_size
    if request.n > slots:
        raise LayaError(
            f"n is {request.n}; '{runtime.name}' decodes at most {slots} answers at once, one in each slot.",
            hint=f"Set n to {slots} or less, send several requests, or raise the model's batch_size.",
            code="too_many_choices",
            status=400,
            param="n",
        )
