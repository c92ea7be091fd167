"""HTTP/1.1 on one connection: order of answers, flow control, deadlines and disconnects. Runs on the node's loop.

A plain ``asyncio.Protocol`` on llhttp (facts.md: several times faster than the HTTP frameworks). Whole requests go to
the application one at a time, in order; one that is answered at once is answered inside ``data_received``. It knows no
route and no API.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol, cast

from laya_desktop.errors import LayaError
from laya_desktop.node.server.reader import IDLE, HeadSink, RequestReader

if TYPE_CHECKING:
    from laya_desktop.config.schema import ServerConfig
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.hub import Hub

log = logging.getLogger(__name__)

PIPELINE_LIMIT = 16
"""Whole requests that wait behind the one being answered before reading pauses."""
PIPELINE_BYTES = 1024**2
"""Bytes of their bodies."""
WRITE_HIGH_BYTES = 64 * 1024
LINGER_S = 3.0
"""How long a refused client is read and ignored, so that it sees the answer and no reset."""
LINGERING_REFUSALS = 256
"""Connections above the limit that are told so; beyond these they are reset."""


class Application(HeadSink, Protocol):
    """What the connection hands its requests to."""

    def on_request(self, exchange: Exchange) -> None:
        """The request is complete and it is its turn: answer now or later."""
        ...

    def repeat(self, read_ns: int) -> bytes | None:
        """The answer to a request that is in ``Hub.repeats``, or None to have it parsed again."""
        ...


class HttpConnection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, hub: Hub, application: Application) -> None:
        self.hub = hub
        self.transport: asyncio.Transport
        self.write_paused = False
        self.active: Exchange | None = None
        self._application = application
        self._reader = RequestReader(self, application)
        self._waiting: deque[Exchange] = deque()
        self._paused_ns = 0
        self._writable: asyncio.Future[None] | None = None
        self._lingering = False
        self._lost = False
        self._reading_paused = False
        self._pumping = False

    @property
    def busy(self) -> bool:
        """True while an answer is owed for an earlier request."""
        return self.active is not None or bool(self._waiting)

    @property
    def peer_address(self) -> str:
        """The client's address, empty where the connection is gone."""
        return _address(self.transport.get_extra_info("peername"))

    @property
    def local_address(self) -> str:
        """This end's address, empty where the connection is gone."""
        return _address(self.transport.get_extra_info("sockname"))

    # -- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection; one too many is told so and closed."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        if not self.hub.enter(self):
            self._refuse_connection()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop whatever works for this client."""
        self.hub.leave(self)
        self._client_gone("the client disconnected")
        del self._reader  # its parser refers back to it

    def eof_received(self) -> bool:
        """The client closed its side: answers have no reader any more."""
        self._client_gone("the client disconnected")
        return False

    def data_received(self, data: bytes) -> None:
        """Parse; requests that can be answered at once are answered before this returns."""
        if self._reader.deaf or (data in self.hub.repeats and self._repeat()):
            return
        self._reader.feed(data)
        if self._waiting or self.write_paused:
            self._balance_reading()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        self.write_paused = True
        self._paused_ns = time.perf_counter_ns()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.write_paused = False
        self._wake_writer()
        self._balance_reading()

    def write(self, data: bytes) -> None:
        """Send; once the connection is gone this does nothing."""
        if not self._lost:
            self.transport.write(data)

    async def wait_writable(self) -> None:
        """Return once the client has caught up or is gone. One waiter at a time."""
        self._writable = asyncio.get_running_loop().create_future()
        try:
            await self._writable
        finally:
            self._writable = None

    # -- the order of answers

    def request_complete(self, exchange: Exchange) -> None:
        """A whole request, or one that was refused: answer it, or queue it behind the one being answered."""
        if self.active is None and not self._waiting:
            self._run(exchange)
        else:
            self._waiting.append(exchange)

    def exchange_ended(self, exchange: Exchange) -> None:
        """An answer is complete: the next one may begin, or the connection closes."""
        self.hub.body_bytes -= len(exchange.body)
        exchange.body = b""
        if exchange.status is not None:
            self._note_answer(exchange, exchange.status)
        if exchange is not self.active:
            return
        self.active = None
        if self._lost:
            return
        self._reader.since_ns = time.perf_counter_ns()
        if not exchange.keep_alive or self.hub.draining:
            self._close()
        elif self._waiting:
            self._pump()
        elif self._reader.continue_due:
            self._reader.send_continue()

    def _note_answer(self, exchange: Exchange, status: int) -> None:
        self.hub.count_answer(status)
        level = logging.INFO if status >= 500 else logging.DEBUG
        if log.isEnabledFor(level):
            path = exchange.target.partition("?")[0]  # a query may hold secrets
            log.log(level, "%s %s answered %d (request %s)", exchange.method, path, status, exchange.request_id)

    def _repeat(self) -> bool:
        """Answer a request that was parsed and checked before, byte for byte; False where it cannot be its turn."""
        reader = self._reader
        if reader.stage != IDLE or self.active is not None or self.write_paused or self.hub.draining:
            return False
        reader.since_ns = now_ns = time.perf_counter_ns()
        answer = self._application.repeat(now_ns)
        if answer is None:
            return False
        reader.fresh = False
        self.hub.requests_total += 1
        self.hub.count_answer(200)
        self.write(answer)
        return True

    def _run(self, exchange: Exchange) -> None:
        self.active = exchange
        self.hub.requests_total += 1
        try:
            self._application.on_request(exchange)
        except Exception as error:
            log.exception("A request failed: %s %s", exchange.method, exchange.target.partition("?")[0])
            exchange.keep_alive = False
            exchange.fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        while self._waiting and self.active is None:
            self._run(self._waiting.popleft())
        self._pumping = False
        if self._lost:
            return
        self._balance_reading()
        if self._reader.continue_due and not self.busy:
            self._reader.send_continue()

    def _balance_reading(self) -> None:
        """Stop reading from a client that sends faster than it is answered, or that does not read its answers.

        While a single answer is on its way reading goes on, because only reading shows that the client is gone.
        """
        if self._lost or self.transport.is_closing():
            return
        too_many = len(self._waiting) >= PIPELINE_LIMIT or sum(len(e.body) for e in self._waiting) > PIPELINE_BYTES
        pause = too_many or (self.write_paused and self.active is None and not self._lingering)
        if pause != self._reading_paused:
            self._reading_paused = pause
            if pause:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # -- ending

    def check_deadlines(self, now_ns: int, limits: ServerConfig) -> None:
        """End the connection where the client was too slow. Called by the sweeper."""
        reader = self._reader
        waited_s = (now_ns - reader.since_ns) / 1e9
        if self._lingering:
            if waited_s > LINGER_S:
                self.transport.abort()
        elif self.write_paused and (now_ns - self._paused_ns) / 1e9 > limits.body_timeout:
            self._client_gone(f"the client read nothing for {limits.body_timeout:g} s")
            self.transport.abort()
        elif self.active is not None or self.transport.is_closing():
            return
        elif reader.stage != IDLE:
            reader.check_deadline(now_ns, limits)
        elif waited_s > (limits.head_timeout if reader.fresh else limits.idle_timeout):
            self.transport.close()

    def drain(self) -> None:
        """The listener stops: close if nothing is being answered."""
        if self.active is None and not self._lingering:
            self._reader.stop()
            self.transport.close()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self.transport.abort()

    def cancel(self, reason: str) -> None:
        """The listener's grace is over: stop the work, so that it can say so and end."""
        if self.active is not None:
            self.active.leave(reason)

    def _refuse_connection(self) -> None:
        if len(self.hub.connections) > self.hub.limits.max_connections + LINGERING_REFUSALS:
            self.transport.abort()
            return
        self._reader.refuse(
            LayaError(
                f"The node has {self.hub.limits.max_connections} connections, which is its limit.",
                hint="Retry shortly, or raise server.max_connections.",
                code="too_many_connections",
                status=503,
                retry_after_s=1.0,
            )
        )

    def _close(self) -> None:
        self._reader.stop()
        self._drop_waiting()
        if not self._reader.unread or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._lingering = True
        self._balance_reading()
        self.transport.write_eof()

    def _client_gone(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = True
        self._reader.stop()
        self._drop_waiting()
        self._wake_writer()
        if self.active is not None:
            self.active.gone = True
            self.active.leave(reason)

    def _drop_waiting(self) -> None:
        self.hub.body_bytes -= sum(len(e.body) for e in self._waiting)
        self._waiting.clear()

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)


def _address(name: tuple[str, int] | None) -> str:
    return name[0] if name else ""
