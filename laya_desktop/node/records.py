"""Live and recent requests. Mutable, owned by the node's thread; the world sees ``RequestSnapshot`` copies.

The server fills in what HTTP knows, the node what queue and engine know; nobody else writes here.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from typing import Literal

from laya_desktop.state.enums import Phase, Priority
from laya_desktop.state.snapshot import RequestSnapshot

RECENT_KEPT = 200
_PROCESS_ID = token_hex(10)
_numbers = count(1)
KEPT_AT_ONCE = 50
"""Of the requests that finished between two snapshots: copying two thousand would hold up routing for ten ms."""


def new_request_id() -> str:
    """An id that no other request has, on this node or another: random for the process, counted within it.

    Not a random one each: reading randomness lets go of the interpreter, which a drawing window then keeps.
    """
    return f"{_PROCESS_ID}{next(_numbers):012x}"


CacheMode = Literal["auto", "force", "refresh", "no_store"]


@dataclass(slots=True, eq=False)
class RequestRecord:
    """One request, from its head to its last byte. Times are of ``time.monotonic``."""

    request_id: str
    method: str
    path: str
    route: str | None
    target: str | None
    priority: Priority = Priority.NORMAL
    stream: bool = False
    phase: Phase = Phase.QUEUED
    received_s: float = field(default_factory=time.monotonic)
    received_unix_s: float = field(default_factory=time.time)
    routing_us: float | None = None
    queue_place: int | None = None
    dispatched_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    finished_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    status: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    expected_wait_s: float | None = None
    waiting_for: str | None = None
    caller: str = ""
    """Who asks, as a digest of the key; callers never share cached answers."""
    cache_mode: CacheMode = "auto"
    """What the caller asks of the response cache: ``auto`` deterministic requests only, ``force`` any request,
    ``refresh`` no stored answer but keep the new one, ``no_store`` neither."""
    cache: str | None = None
    """``hit``, ``miss`` or ``bypass``, set by the node; None: the model has no response cache."""
    cancel: Callable[[str], None] | None = None
    """Set by the server for requests that no model's queue knows (those sent to an upstream); takes the reason."""

    @property
    def queue_s(self) -> float | None:
        """Seconds from receipt to the slot; None while waiting or where no queue was met."""
        return None if self.dispatched_s is None else self.dispatched_s - self.received_s

    @property
    def ttft_s(self) -> float | None:
        """Seconds from receipt to the first token, queue included."""
        return None if self.first_token_s is None else self.first_token_s - self.received_s

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens after the first over the time they took; None below two tokens."""
        if self.first_token_s is None or self.last_token_s is None or (self.completion_tokens or 0) < 2:
            return None
        span_s = self.last_token_s - self.first_token_s
        return ((self.completion_tokens or 0) - 1) / span_s if span_s > 0 else None

    def start_over(self) -> None:
        """The target gave the request back: what it had noted is void."""
        self.phase, self.queue_place, self.cancel = Phase.QUEUED, None, None
        self.dispatched_s = self.first_token_s = self.last_token_s = None
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = None
        self.expected_wait_s = self.waiting_for = self.cache = None

    def finish(self, phase: Phase, *, status: int | None = None, error: str | None = None) -> None:
        """Close the record; the first call wins."""
        if self.finished_s is None:
            self.finished_s = time.monotonic()
            self.phase, self.status, self.error, self.queue_place = phase, status, error, None
            self.expected_wait_s = self.waiting_for = None
            self.cancel = None  # it refers back to this record, and only the garbage collector would end that

    def snapshot(self, now_s: float) -> RequestSnapshot:
        """A frozen copy."""
        return RequestSnapshot(
            request_id=self.request_id,
            received_unix_s=self.received_unix_s,
            route=self.route,
            target=self.target,
            method=self.method,
            path=self.path,
            phase=self.phase,
            priority=self.priority,
            queue_place=self.queue_place,
            stream=self.stream,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            routing_us=self.routing_us,
            queue_s=self.queue_s,
            ttft_s=self.ttft_s,
            decode_tokens_per_s=self.decode_tokens_per_s,
            duration_s=(self.finished_s or now_s) - self.received_s,
            status=self.status,
            error=self.error,
            finish_reason=self.finish_reason,
            expected_wait_s=self.expected_wait_s,
            waiting_for=self.waiting_for,
            cache=self.cache,
        )


class RequestLog:
    """Live requests by id, and the last finished ones."""

    def __init__(self, on_finished: Callable[[RequestRecord], None] | None = None) -> None:
        """``on_finished`` is told of every record once it is over, at the next sweep."""
        self._on_finished = on_finished
        self.live: OrderedDict[str, RequestRecord] = OrderedDict()
        self._recent: deque[RequestSnapshot] = deque(maxlen=RECENT_KEPT)

    def add(self, record: RequestRecord) -> None:
        """Begin to follow a request."""
        self.live[record.request_id] = record

    def sweep(self, now_s: float) -> None:
        """Move finished requests to the recent ones; of very many, the newest."""
        finished = [record for record in self.live.values() if record.finished_s is not None]
        for record in finished:
            del self.live[record.request_id]
            if self._on_finished is not None:
                self._on_finished(record)
        self._recent.extendleft(record.snapshot(now_s) for record in finished[-KEPT_AT_ONCE:])

    def snapshot(self, now_s: float) -> tuple[RequestSnapshot, ...]:
        """Live ones newest first, then recent ones newest first."""
        self.sweep(now_s)
        return (*(r.snapshot(now_s) for r in reversed(self.live.values())), *self._recent)
