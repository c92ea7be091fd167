"""One admitted request between HTTP and engine: a stream of events with a deadline. Node thread only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Finished, Refused, RequestEvent
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Generate
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.tickets import Ticket

Heard = Callable[[RequestEvent], None]
"""Who else is told of what the engine says."""


class GenerationStream:
    """Satisfies ``server.gateway.Generation``. The pool pushes, the server iterates; either side may end it."""

    def __init__(
        self,
        record: RequestRecord,
        ticket: Ticket,
        request: Generate,
        on_cancel: Callable[[GenerationStream, str], None],
        heard: Heard | None = None,
    ) -> None:
        self.record = record
        self.ticket = ticket
        self.request = request
        self.slot_ids: tuple[int, ...] = ()
        self.over = False
        """True once nothing more is accepted from the engine."""
        self._on_cancel, self._heard = on_cancel, heard
        self._events: asyncio.Queue[RequestEvent | LayaError | None] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, timeout_s: float) -> None:
        """Fail the request with 504 when it is not over in time."""
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._expire, timeout_s)

    def push(self, event: RequestEvent) -> None:
        """An event from the engine; the last one ends the stream."""
        if self.over:
            return
        if isinstance(event, Refused):
            refusal = LayaError(event.message, hint=event.hint, code=event.code, status=event.status, param=event.param)
            self.fail(refusal)
            return
        self._events.put_nowait(event)
        if self._heard is not None:
            self._heard(event)
        if isinstance(event, Finished):
            self._end(None)

    def replay(self, events: list[RequestEvent], now_s: float) -> None:
        """Answer with kept events at once: no queue, no slot, no worker."""
        record = self.record
        record.dispatched_s = record.first_token_s = record.last_token_s = now_s
        record.phase = Phase.DECODE
        for event in events:
            if isinstance(event, Finished):
                self.note_end(event)
            self.push(event)

    def note_end(self, event: Finished) -> None:
        """Take the engine's final figures into the record."""
        record = self.record
        record.prompt_tokens, record.completion_tokens = event.prompt_tokens, event.completion_tokens
        record.cached_tokens, record.finish_reason = event.cached_tokens, event.finish_reason

    def fail(self, error: LayaError) -> None:
        """End the stream with an error."""
        if not self.over:
            self._end(error)

    def cancel(self, reason: str) -> None:
        """Stop the request wherever it is; the iteration ends with the error that says why."""
        if not self.over:
            self.fail(LayaError(f"The request was cancelled: {reason}.", code="cancelled", status=499))
            self._on_cancel(self, reason)

    def __aiter__(self) -> AsyncIterator[RequestEvent]:
        return self

    async def __anext__(self) -> RequestEvent:
        item = await self._events.get()
        if item is None:
            self._events.put_nowait(None)
            raise StopAsyncIteration
        if isinstance(item, LayaError):
            self._events.put_nowait(None)
            raise item
        return item

    def _end(self, error: LayaError | None) -> None:
        self.over = True
        if self._timer:
            self._timer.cancel()
        self._events.put_nowait(error)

    def _expire(self, timeout_s: float) -> None:
        if self.over:
            return
        self.fail(
            LayaError(
                f"The answer was not complete after {timeout_s:g} s, the route's timeout.",
                hint="Raise the route's timeout, or ask for fewer tokens (max_tokens).",
                code="timeout",
                status=504,
            )
        )
        self._on_cancel(self, "timeout")
