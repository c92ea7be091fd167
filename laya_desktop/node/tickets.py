"""What the scheduler knows of a request, its expected cost, and the order of those that wait. Pure; any thread.

Costs are estimates in tokens, made from the request alone: the scheduler only compares them and scales them by what
earlier ones took, so that an estimate which is always too high does no harm.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.state.enums import Priority

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Generate

AGEING_S = 15.0
"""Seconds of waiting that lift a request by one priority class, so that nothing starves."""
BYTES_PER_TOKEN = 4
"""Of English text with the vocabularies of the last years; other languages have fewer, which makes them look longer."""
FORECAST_PLACES = 512
"""Waiting requests whose start is forecast; those behind them are not asked about often enough to pay for it."""

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
    prompt_tokens: int = 0
    """Estimated."""
    answer_tokens: int = 0
    """The most that one of its answers may have, estimated where it names no limit."""
    slots: int = 1
    """One for each answer: all of them at once, or it waits."""

    @property
    def cost(self) -> int:
        """Expected work of one slot in tokens, at least 1."""
        return max(1, self.prompt_tokens + self.answer_tokens)


def estimate_tokens(request: Generate, max_seq_len: int) -> tuple[int, int]:
    """(prompt tokens, most answer tokens) of a request, without a tokeniser.

    Args:
        request: its prompt or messages and its limit.
        max_seq_len: tokens of context, the limit of a request that names none.
    """
    if request.task == "embed":
        return min(sum(_input_tokens(one) for one in request.inputs), max_seq_len * len(request.inputs)), 1
    if isinstance(request.prompt, list):
        prompt = len(request.prompt)
    elif request.prompt is not None:
        prompt = _tokens(len(request.prompt.encode()))
    else:
        prompt = _tokens(sum(_size(message.get("content")) for message in request.messages or ()))
    prompt = min(prompt, max_seq_len)
    room = max(1, max_seq_len - prompt)
    if request.task != "answer":
        return 1, 1
    return prompt, min(room, request.max_tokens or room)


def _input_tokens(value: str | list[int]) -> int:
    return _tokens(len(value.encode())) if isinstance(value, str) else len(value)


def order_key(ticket: Ticket, now_s: float) -> tuple[int, int, float]:
    """What ``priority`` sorts by: the class, less one for every ageing step; then the expected work; then arrival."""
    steps = int(max(0.0, now_s - ticket.arrived_s) // AGEING_S)
    return _RANK[ticket.priority] - steps, ticket.cost * ticket.slots, ticket.arrived_s


def expected_starts(
    waiting: Sequence[Ticket], running: Iterable[tuple[Ticket, float]], slots: int, s_per_token: float | None
) -> list[float | None]:
    """Seconds until each waiting request is likely to start, in the order given, and until one behind them all.

    Args:
        waiting: in the order in which they will be taken.
        running: with the seconds each has been running for.
        slots: of the model.
        s_per_token: measured seconds that a slot takes for a token of cost; None: nothing measured yet.
    """
    if s_per_token is None or slots < 1:
        return [None] * (len(waiting) + 1)
    left = [max(0.0, t.cost * s_per_token - ran_s) for t, ran_s in running for _ in range(t.slots)]
    free_at = heapq.nsmallest(slots, left) if len(left) > slots else left + [0.0] * (slots - len(left))
    heapq.heapify(free_at)
    starts: list[float | None] = []
    for ticket in waiting[:FORECAST_PLACES]:
        needs = min(ticket.slots, slots)
        start_s = heapq.nsmallest(needs, free_at)[-1] if needs > 1 else free_at[0]
        starts.append(start_s)
        for _ in range(needs):
            heapq.heapreplace(free_at, start_s + ticket.cost * s_per_token)
    if len(waiting) > FORECAST_PLACES:
        beyond = sum(t.cost * t.slots for t in waiting[FORECAST_PLACES:]) * s_per_token / slots
        return [*starts, *([None] * (len(waiting) - FORECAST_PLACES)), free_at[0] + beyond]
    return [*starts, free_at[0]]


def _tokens(size_bytes: int) -> int:
    return -(-size_bytes // BYTES_PER_TOKEN)


def _size(content: object) -> int:
    """Bytes of text in a message's content; parts that are no text (images) count as little as their names."""
    if isinstance(content, str):
        return len(content.encode())
    if isinstance(content, list):
        return sum(_size(part.get("text")) for part in content if isinstance(part, dict))
    return 0
