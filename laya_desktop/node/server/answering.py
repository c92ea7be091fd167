"""Carrying a generation's events to the client, streamed or whole. One task per answer on the node's loop.

Whatever happens (an engine's error, a dead worker, a client that leaves or stops reading), the generation is
cancelled or over and the record is closed when a function here returns. It decides no route and parses no body.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Delta, Finished, Started, Tokens, Vector
from laya_desktop.node.server.choices import Choices
from laya_desktop.node.server.completions import Outcome
from laya_desktop.node.server.exchange import ClientGoneError
from laya_desktop.node.server.faults import CLIENT_GONE, STOPPING, cancelled, stopping
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Generation
    from laya_desktop.node.server.shapes import Shape

log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream; charset=utf-8"
STREAM_HEADERS = (("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"))


class Answer:
    """One generation on its way to one client."""

    def __init__(
        self,
        exchange: Exchange,
        generation: Generation,
        record: RequestRecord,
        shape: Shape,
        retry: Callable[[LayaError], bool],
        count: int = 1,
    ) -> None:
        """``retry`` is asked before the first byte whether another target takes the request instead.

        ``count``: answers that the request asks for.
        """
        self._exchange = exchange
        self._generation = generation
        self._record = record
        self._shape = shape
        self._retry = retry
        self._count = count
        self._handed_s = time.monotonic()
        self._left: str | None = None
        exchange.on_gone = self._on_gone

    async def run(self, *, stream: bool) -> None:
        """Answer, and close the record."""
        exchange, record = self._exchange, self._record
        try:
            await (self._stream() if stream else self._whole())
            record.finish(Phase.DONE, status=exchange.status)
        except ClientGoneError:
            self._close_as_left()
        except LayaError as error:
            self._fail(error)
        except asyncio.CancelledError:
            self._left = STOPPING
            self._generation.cancel(STOPPING)
            self._fail(stopping())
            raise
        except Exception as error:
            log.exception("An answer failed: request %s", record.request_id)
            self._generation.cancel("internal error")
            self._fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))

    def _on_gone(self, reason: str) -> None:
        self._left = reason
        self._generation.cancel(reason)

    async def _stream(self) -> None:
        exchange, shape = self._exchange, self._shape
        finished: Finished | None = None
        async for event in self._generation:
            if isinstance(event, Delta):
                if chunk := shape.delta(event):
                    exchange.send(chunk)
                    await exchange.drain()
            elif isinstance(event, Started):
                self._note_queue()
                exchange.begin(200, EVENT_STREAM, STREAM_HEADERS)
                exchange.send(shape.opening(event))
            elif isinstance(event, Finished):
                finished = event
        exchange.send(shape.closing(self._outcome(finished)))
        await exchange.drain()
        exchange.end()

    async def _whole(self) -> None:
        choices = Choices(self._count)
        finished: Finished | None = None
        async for event in self._generation:
            if isinstance(event, Delta):
                choices.add(event)
            elif isinstance(event, Vector | Tokens):
                choices.results.append(event)
            elif isinstance(event, Started):
                self._note_queue()
            elif isinstance(event, Finished):
                finished = event
        outcome = self._outcome(finished)
        if self._exchange.gone:
            raise ClientGoneError
        self._exchange.respond_json(self._shape.whole(choices, outcome))

    def _note_queue(self) -> None:
        """The time in the queue is known once the request holds a slot."""
        self._exchange.cache = self._record.cache
        queue_s = self._record.queue_s
        self._exchange.queue_ms = 1000 * (time.monotonic() - self._handed_s if queue_s is None else queue_s)

    def _outcome(self, finished: Finished | None) -> Outcome:
        if finished is None or finished.finish_reason == "cancelled":
            if self._exchange.gone:
                raise ClientGoneError
            raise cancelled(self._left)
        if self._record.finish_reason is None:
            self._record.finish_reason = finished.finish_reason
        return Outcome.of(finished, self._record)

    def _fail(self, error: LayaError) -> None:
        exchange, record = self._exchange, self._record
        if exchange.gone:
            self._close_as_left()
            return
        if self._left == STOPPING:
            error = stopping()
        elif self._left is None and exchange.status is None and self._retry(error):
            return
        phase = Phase.CANCELLED if error.code in ("cancelled", "draining") else Phase.FAILED
        record.finish(phase, status=error.status, error=str(error))
        if exchange.status is None:
            exchange.fail(error)
        else:
            exchange.send(self._shape.failed(error))
            exchange.end(close=True)

    def _close_as_left(self) -> None:
        reason = self._left or "the client disconnected"
        self._generation.cancel(reason)
        self._record.finish(Phase.CANCELLED, status=CLIENT_GONE, error=f"{reason[:1].upper()}{reason[1:]}.")
        self._exchange.cut()
