"""Admission and slot assignment: one bounded queue per model. Pure: never awaits, logs or touches engines.

Runs on the node's thread. Decisions come out through ``Effects``; time comes in as a parameter, so a test needs no
clock, no loop and no model. Models never share a queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from laya_desktop.config.schema import QueueConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.tickets import Ticket, expected_starts, order_key
from laya_desktop.state.enums import ModelState, Priority

RESERVE_S = 30.0
"""Under ``priority`` one slot of several is kept for interactive requests for so long after the last one came."""
UNKNOWN_WAIT_S, MAX_RETRY_S = 5.0, 300.0
"""``Retry-After`` where nothing was measured yet, and its largest value."""
RATE_WEIGHT = 0.2
"""Share of the newest answer in the smoothed service rate."""


class Effects(Protocol):
    """What the scheduler may cause."""

    def start_load(self, model: str) -> None:
        """Begin to load a model; ``on_ready`` or ``on_gone`` follows."""
        ...

    def dispatch(self, ticket: Ticket) -> None:
        """Hand the request to the engine; ``on_finished`` follows."""
        ...

    def reject(self, ticket: Ticket, error: LayaError) -> None:
        """Fail a request that will not run, or whose worker is gone."""
        ...

    def has_room(self, ticket: Ticket) -> bool:
        """Whether one worker has all the slots that the request needs; asked where it needs several."""
        ...


@dataclass(slots=True)
class _Lane:
    queue: QueueConfig
    state: ModelState = ModelState.UNLOADED
    slots: int = 0
    waiting: list[Ticket] = field(default_factory=list)
    running: dict[str, Ticket] = field(default_factory=dict)
    s_per_token: float | None = None
    """Smoothed seconds that an answer holds its slot, for each token of its expected cost."""
    started_s: dict[str, float] = field(default_factory=dict)
    interactive_s: float | None = None
    """When the last interactive request came."""
    removed: bool = False
    """No longer configured: takes nothing new and goes when its worker does."""

    @property
    def used(self) -> int:
        """Slots that are taken."""
        return sum(ticket.slots for ticket in self.running.values())


class Scheduler:
    """Decides who runs, who waits and who is refused."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self.hold_batch = False
        """The guard's wish: batch requests wait, whatever is free."""
        self._lanes: dict[str, _Lane] = {}

    def configure(self, queues: dict[str, QueueConfig]) -> None:
        """Add and change lanes. A lane that is no longer named takes nothing new and goes with its worker."""
        for model, queue in queues.items():
            lane = self._lanes.setdefault(model, _Lane(queue))
            lane.queue, lane.removed = queue, False
        for model in [m for m, lane in self._lanes.items() if m not in queues]:
            lane = self._lanes[model]
            gone = LayaError(
                f"The model '{model}' was removed from the configuration.",
                hint="Send the request to another model.",
                code="model_not_found",
                status=404,
                param="model",
            )
            self._reject_waiting(lane, gone)
            lane.removed = True
            if lane.state in (ModelState.UNLOADED, ModelState.FAILED):
                del self._lanes[model]

    def on_request(self, ticket: Ticket, now_s: float) -> None:
        """Admit a request: it runs now, waits, or the error is raised.

        Raises:
            LayaError: 404 unknown model, 429 queue full, 503 while the model is being unloaded.
        """
        lane = self._lanes.get(ticket.model)
        if lane is None or lane.removed:
            raise LayaError(f"No model '{ticket.model}'.", code="model_not_found", status=404, param="model")
        if lane.state is ModelState.UNLOADING:
            raise LayaError(
                f"The model '{ticket.model}' is being unloaded.",
                hint="Try again once it is loaded.",
                code="model_unloading",
                status=503,
                retry_after_s=2.0,
            )
        if ticket.priority is Priority.INTERACTIVE:
            lane.interactive_s = now_s
        self._refuse_when_full(lane, ticket, now_s)
        lane.waiting.append(ticket)
        self._start(ticket.model, lane)
        self._fill(lane, now_s)

    def on_finished(self, ticket: Ticket, now_s: float, *, complete: bool = True) -> None:
        """A dispatched request is over and its slot is free; ``complete``: it ended by itself, so its time counts."""
        lane = self._lanes.get(ticket.model)
        if lane is None or lane.running.pop(ticket.request_id, None) is None:
            return
        took_s = now_s - lane.started_s.pop(ticket.request_id, now_s)
        if complete:
            rate, last = took_s / ticket.cost, lane.s_per_token
            lane.s_per_token = rate if last is None else (1 - RATE_WEIGHT) * last + RATE_WEIGHT * rate
        self._fill(lane, now_s)

    def on_cancelled(self, ticket: Ticket) -> bool:
        """Take a waiting request out; it never runs. False when it is not waiting."""
        lane = self._lanes.get(ticket.model)
        if lane is None or ticket not in lane.waiting:
            return False
        lane.waiting.remove(ticket)
        return True

    def on_loading(self, model: str) -> None:
        """A load began (by hand); requests wait for it."""
        self._lanes[model].state = ModelState.LOADING

    def on_ready(self, model: str, slots: int, now_s: float) -> None:
        """The engine is up with that many slots."""
        lane = self._lanes[model]
        lane.state, lane.slots = ModelState.READY, slots
        self._fill(lane, now_s)

    def on_slots(self, model: str, slots: int, now_s: float) -> None:
        """The number of slots changed while the model serves: a replica died or came back."""
        lane = self._lanes[model]
        lane.slots = slots
        self._fill(lane, now_s)

    def on_unloading(self, model: str, *, keep_waiting: bool = False) -> None:
        """No more dispatches; running answers finish. ``keep_waiting``: a reload, so the queue stays."""
        lane = self._lanes[model]
        lane.state = ModelState.LOADING if keep_waiting else ModelState.UNLOADING
        lane.slots = 0
        if not keep_waiting:
            error = LayaError(
                f"The model '{model}' was unloaded while the request waited.",
                hint="Load it again or send the request to another model.",
                code="model_unloaded",
                status=503,
                retry_after_s=5.0,
            )
            self._reject_waiting(lane, error)

    def on_gone(self, model: str, error: LayaError | None) -> None:
        """The worker is gone: as asked (None), or by a failed load or a death, which fails all its requests.

        What still waits after it went as asked (its memory was needed elsewhere) has it loaded again.
        """
        lane = self._lanes.get(model)
        if lane is None:
            return
        lane.slots = 0
        lane.state = ModelState.FAILED if error else ModelState.UNLOADED
        if lane.removed:
            del self._lanes[model]
        if error is None:
            if not lane.removed:
                self._start(model, lane)
            return
        running = list(lane.running.values())
        lane.running.clear()
        lane.started_s.clear()
        self._reject_waiting(lane, error)
        for ticket in running:
            self._effects.reject(ticket, error)

    def on_lost(self, model: str, error: LayaError) -> None:
        """The worker died and is started again soon: what it answered fails, what waits goes on waiting."""
        lane = self._lanes.get(model)
        if lane is None or lane.removed:
            self.on_gone(model, error)
            return
        lane.slots, lane.state = 0, ModelState.LOADING
        running = list(lane.running.values())
        lane.running.clear()
        lane.started_s.clear()
        for ticket in running:
            self._effects.reject(ticket, error)

    def on_tick(self, now_s: float) -> None:
        """Reject what has waited too long, and give a slot that is no longer kept for interactive requests away."""
        for model, lane in self._lanes.items():
            self._start(model, lane)
            self._fill(lane, now_s)
            for ticket in [t for t in lane.waiting if now_s >= min(t.arrived_s + lane.queue.max_wait, t.deadline_s)]:
                lane.waiting.remove(ticket)
                self._effects.reject(ticket, self._late(lane, ticket, now_s))

    def places(self, model: str, now_s: float) -> list[tuple[Ticket, float | None]]:
        """The waiting requests, next one first, with the seconds until each is likely to start (None: unknown)."""
        lane = self._lanes.get(model)
        if lane is None or not lane.waiting:
            return []
        ordered = self._ordered(lane, now_s)
        return list(zip(ordered, self._starts(lane, ordered, now_s), strict=False))

    def expected_wait_s(self, model: str, now_s: float) -> float | None:
        """Seconds until a request that came now would start, if nothing passed it; None: unknown."""
        lane = self._lanes.get(model)
        if lane is None or lane.state is not ModelState.READY:
            return None
        if not lane.waiting and lane.used < lane.slots:
            return 0.0
        return self._starts(lane, lane.waiting, now_s)[-1]

    def counts(self, model: str) -> tuple[int, int]:
        """(waiting, running) of a model."""
        lane = self._lanes.get(model)
        return (len(lane.waiting), len(lane.running)) if lane else (0, 0)

    def _start(self, model: str, lane: _Lane) -> None:
        """Have a model loaded that somebody waits for; a batch request that is held does not count."""
        idle = lane.state in (ModelState.UNLOADED, ModelState.FAILED)
        if idle and any(not self.is_held(t) for t in lane.waiting):
            lane.state = ModelState.LOADING
            self._effects.start_load(model)

    def is_held(self, ticket: Ticket) -> bool:
        """True while the guard keeps this request waiting."""
        return self.hold_batch and ticket.priority is Priority.BATCH

    def _fill(self, lane: _Lane, now_s: float) -> None:
        while lane.state is ModelState.READY and lane.waiting and lane.used < lane.slots:
            ticket = self._next(lane, now_s)
            if ticket is None or (ticket.slots > 1 and not self._fits(lane, ticket)):
                return
            lane.waiting.remove(ticket)
            if now_s >= ticket.deadline_s:
                self._effects.reject(ticket, self._late(lane, ticket, now_s))
                continue
            lane.running[ticket.request_id] = ticket
            lane.started_s[ticket.request_id] = now_s
            self._effects.dispatch(ticket)

    def _fits(self, lane: _Lane, ticket: Ticket) -> bool:
        """Whether a request for several slots can begin. One for more than there are may: its worker refuses it."""
        if ticket.slots > lane.slots:
            return True
        return lane.used + ticket.slots <= lane.slots and self._effects.has_room(ticket)

    def _next(self, lane: _Lane, now_s: float) -> Ticket | None:
        """Who runs next; None: the free slot is kept for an interactive request, or only batch requests wait, held."""
        waiting = [t for t in lane.waiting if not self.is_held(t)] if self.hold_batch else lane.waiting
        if not waiting:
            return None
        if lane.queue.policy == "fifo":
            return waiting[0]
        first = min(waiting, key=lambda t: order_key(t, now_s))
        recent = lane.interactive_s is not None and now_s - lane.interactive_s < RESERVE_S
        is_last_slot = lane.slots > 1 and lane.used == lane.slots - 1
        if recent and is_last_slot and first.priority is not Priority.INTERACTIVE:
            return next((t for t in waiting if t.priority is Priority.INTERACTIVE), None)
        return first

    @staticmethod
    def _ordered(lane: _Lane, now_s: float) -> list[Ticket]:
        if lane.queue.policy == "fifo":
            return list(lane.waiting)
        return sorted(lane.waiting, key=lambda t: order_key(t, now_s))

    @staticmethod
    def _starts(lane: _Lane, ordered: list[Ticket], now_s: float) -> list[float | None]:
        running = [(t, now_s - lane.started_s[t.request_id]) for t in lane.running.values()]
        return expected_starts(ordered, running, lane.slots, lane.s_per_token)

    def _reject_waiting(self, lane: _Lane, error: LayaError) -> None:
        waiting, lane.waiting = lane.waiting, []
        for ticket in waiting:
            self._effects.reject(ticket, error)

    def _refuse_when_full(self, lane: _Lane, ticket: Ticket, now_s: float) -> None:
        """Raise 429 where the request would wait and there is no place for it."""
        ready = lane.state is ModelState.READY
        if ready and lane.used + ticket.slots <= lane.slots and not lane.waiting:
            return
        queue = lane.queue
        limit = queue.max_waiting if ready else max(1, queue.max_waiting)
        what = f"{len(lane.waiting)} waiting, {len(lane.running)} running"
        hint = "Retry after the given time, or raise queue.max_waiting."
        full = len(lane.waiting) >= limit
        if not full and queue.max_prompt_tokens is not None and lane.waiting:
            tokens = sum(t.prompt_tokens for t in lane.waiting)
            full = tokens + ticket.prompt_tokens > queue.max_prompt_tokens
            what = f"about {tokens:,} prompt tokens wait, and this request has about {ticket.prompt_tokens:,}"
            hint = "Retry after the given time, or raise queue.max_prompt_tokens."
        if full:
            raise LayaError(
                f"The queue of '{ticket.model}' is full: {what}.",
                hint=hint,
                code="queue_full",
                status=429,
                retry_after_s=self._retry_after_s(lane, now_s),
            )

    def _late(self, lane: _Lane, ticket: Ticket, now_s: float) -> LayaError:
        what = "for the model to load" if lane.state is ModelState.LOADING else "for a free slot"
        return LayaError(
            f"The request waited {now_s - ticket.arrived_s:.0f} s {what} of '{ticket.model}' and was given up.",
            hint="Retry later, raise queue.max_wait, or give the model more slots (batch_size).",
            code="queue_timeout",
            status=503,
            retry_after_s=self._retry_after_s(lane, now_s),
        )

    def _retry_after_s(self, lane: _Lane, now_s: float) -> float:
        """When the queue will have been worked off, at the measured rate."""
        drained_s = self._starts(lane, lane.waiting, now_s)[-1]
        return UNKNOWN_WAIT_S if drained_s is None else min(MAX_RETRY_S, max(1.0, drained_s))
