"""Admission and slot assignment: one bounded queue per model. Pure: never awaits, logs or touches engines.

Runs on the node's thread. Decisions come out through ``Effects``; time comes in as a parameter, so a test needs no
clock, no loop and no model. Models never share a queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from laya_desktop.config.schema import QueueConfig
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import ModelState, Priority

AGEING_S = 15.0
"""Seconds of waiting that lift a request by one priority class, so that nothing starves."""

_RANK = {Priority.INTERACTIVE: 0, Priority.NORMAL: 1, Priority.BATCH: 2}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request's place in the world of the scheduler. Times are monotonic seconds."""

    request_id: str
    model: str
    priority: Priority
    arrived_s: float
    deadline_s: float
    """The route's timeout: a request that still waits then is rejected."""


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


@dataclass(slots=True)
class _Lane:
    queue: QueueConfig
    state: ModelState = ModelState.UNLOADED
    slots: int = 0
    waiting: list[Ticket] = field(default_factory=list)
    running: dict[str, Ticket] = field(default_factory=dict)
    service_s: float | None = None
    """Smoothed time that one answer holds its slot."""
    started_s: dict[str, float] = field(default_factory=dict)
    removed: bool = False
    """No longer configured: takes nothing new and goes when its worker does."""


class Scheduler:
    """Decides who runs, who waits and who is refused."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
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
        has_slot = lane.state is ModelState.READY and len(lane.running) < lane.slots and not lane.waiting
        limit = lane.queue.max_waiting if lane.state is ModelState.READY else max(1, lane.queue.max_waiting)
        if not has_slot and len(lane.waiting) >= limit:
            raise self._full(ticket.model, lane)
        lane.waiting.append(ticket)
        if lane.state in (ModelState.UNLOADED, ModelState.FAILED):
            lane.state = ModelState.LOADING
            self._effects.start_load(ticket.model)
        self._fill(lane, now_s)

    def on_finished(self, ticket: Ticket, now_s: float) -> None:
        """A dispatched request is over and its slot is free."""
        lane = self._lanes.get(ticket.model)
        if lane is None or lane.running.pop(ticket.request_id, None) is None:
            return
        took_s = now_s - lane.started_s.pop(ticket.request_id, now_s)
        lane.service_s = took_s if lane.service_s is None else 0.8 * lane.service_s + 0.2 * took_s
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
        """The worker is gone: as asked (None), or by a failed load or a death, which fails all its requests."""
        lane = self._lanes.get(model)
        if lane is None:
            return
        lane.slots = 0
        lane.state = ModelState.FAILED if error else ModelState.UNLOADED
        if lane.removed:
            del self._lanes[model]
        if error is None:
            return
        running = list(lane.running.values())
        lane.running.clear()
        lane.started_s.clear()
        self._reject_waiting(lane, error)
        for ticket in running:
            self._effects.reject(ticket, error)

    def on_tick(self, now_s: float) -> None:
        """Reject what has waited too long."""
        for model, lane in self._lanes.items():
            for ticket in [t for t in lane.waiting if now_s >= min(t.arrived_s + lane.queue.max_wait, t.deadline_s)]:
                lane.waiting.remove(ticket)
                waited_s = now_s - ticket.arrived_s
                what = "for the model to load" if lane.state is ModelState.LOADING else "for a free slot"
                self._effects.reject(
                    ticket,
                    LayaError(
                        f"The request waited {waited_s:.0f} s {what} of '{model}' and was given up.",
                        hint="Retry later, raise queue.max_wait, or give the model more slots (batch_size).",
                        code="queue_timeout",
                        status=503,
                        retry_after_s=self._expected_wait_s(lane),
                    ),
                )

    def places(self, model: str) -> list[str]:
        """Ids of the waiting requests, next one first, as of the last decision."""
        lane = self._lanes.get(model)
        return [t.request_id for t in lane.waiting] if lane else []

    def counts(self, model: str) -> tuple[int, int]:
        """(waiting, running) of a model."""
        lane = self._lanes.get(model)
        return (len(lane.waiting), len(lane.running)) if lane else (0, 0)

    def _fill(self, lane: _Lane, now_s: float) -> None:
        while lane.state is ModelState.READY and lane.waiting and len(lane.running) < lane.slots:
            if lane.queue.policy == "priority":
                lane.waiting.sort(key=lambda t: (_RANK[t.priority] - (now_s - t.arrived_s) / AGEING_S, t.arrived_s))
            ticket = lane.waiting.pop(0)
            lane.running[ticket.request_id] = ticket
            lane.started_s[ticket.request_id] = now_s
            self._effects.dispatch(ticket)

    def _reject_waiting(self, lane: _Lane, error: LayaError) -> None:
        waiting, lane.waiting = lane.waiting, []
        for ticket in waiting:
            self._effects.reject(ticket, error)

    def _full(self, model: str, lane: _Lane) -> LayaError:
        return LayaError(
            f"The queue of '{model}' is full: {len(lane.waiting)} waiting, {len(lane.running)} running.",
            hint="Retry after the given time, or raise queue.max_waiting.",
            code="queue_full",
            status=429,
            retry_after_s=self._expected_wait_s(lane),
        )

    @staticmethod
    def _expected_wait_s(lane: _Lane) -> float:
        if lane.service_s is None or not lane.slots:
            return 5.0
        return min(300.0, max(1.0, lane.service_s * (len(lane.waiting) + 1) / lane.slots))
