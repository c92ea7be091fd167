"""One HTTP/1.1 connection to an upstream: sends a request, hands out the answer as it arrives. The node's loop.

Bounded: it stops reading from the socket while its reader is behind. It knows nothing of routes, keys, retries or
time limits; it never follows a redirect and never sends twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import httptools

_HIGH_BYTES = 256 * 1024
"""Read ahead of the reader at most about this much."""
_LOW_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024


class WireError(Exception):
    """The answer cannot be had from this connection.

    Attributes:
        reason: what the other side did, as the end of a sentence.
        received: True when any byte of the answer had arrived.
    """

    def __init__(self, reason: str, *, received: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.received = received


class Connection(asyncio.Protocol):
    """Carries one request at a time. ``lost`` is called once when the connection is gone."""

    def __init__(self, lost: Callable[[Connection], None]) -> None:
        self._lost = lost
        self._transport: Any = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the socket is closed."""
        self.idle_since_s = 0.0
        """For the pool: when it was last given back."""
        self.watcher: Callable[[], None] | None = None
        """Called in place of waking who waits, whenever something has come."""
        self._busy = False
        self._parser: Any = None
        self._bodiless = self._keep_alive = self.complete = False
        self._reset(False)

    def _reset(self, bodiless: bool) -> None:
        if self._parser is None or self._bodiless or not (self.complete and self._keep_alive):
            self._parser = httptools.HttpResponseParser(self)
        self._bodiless = bodiless
        self._waiter: asyncio.Future[None] | None = None
        self._chunks: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._head_bytes = 0
        self._paused = False
        self._received = False
        self.head_done = False
        self._framed = False
        self.complete = False
        self._keep_alive = False
        self.error: WireError | None = None
        self.status = 0
        self.headers: list[tuple[str, str]] = []

    # -- for the upstream

    def send(self, head: bytes, body: bytes, *, bodiless: bool) -> None:
        """Begin a request. ``bodiless``: the answer has no body whatever its head says (HEAD)."""
        self._reset(bodiless)
        self._busy = True
        if self.is_closing:
            self._fail("closed the connection")
        elif len(body) <= _LOW_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines([head, body])

    async def read_head(self) -> None:
        """Wait for status and headers.

        Raises:
            WireError: the answer cannot be had.
        """
        while not self.head_done:
            if self.error is not None:
                raise self.error
            await self._wait()

    async def read_chunk(self) -> bytes | None:
        """The next part of the body as it arrived; None at its end.

        Raises:
            WireError: the answer broke off.
        """
        while not self._chunks:
            if self.error is not None:
                raise self.error
            if self.complete:
                return None
            await self._wait()
        chunk = self._chunks.popleft()
        self._buffered_bytes -= len(chunk)
        if self._buffered_bytes <= _LOW_BYTES:
            self.resume()
        return chunk

    def take(self, *, resume: bool) -> bytes:
        """All parts of the body that have come and were not taken; ``resume``: go on reading if reading was paused."""
        chunks = self._chunks
        if not chunks:
            return b""
        data = chunks.popleft() if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._buffered_bytes = 0
        if resume:
            self.resume()
        return data

    def pause(self) -> None:
        """Stop reading from the socket."""
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading from the socket."""
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def release(self) -> bool:
        """End the request; True when the connection can carry another one, else it is closed."""
        if self.complete and self._keep_alive and not self._chunks and not self.is_closing:
            self._busy = False
            return True
        self.abort()
        return False

    def abort(self) -> None:
        """Close at once; the upstream sees it and stops working."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_closing(self) -> bool:
        """True when nothing can be sent any more."""
        return self.closed.done() or self._transport is None or self._transport.is_closing()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self.watcher is not None:
            self.watcher()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, reason: str) -> None:
        if self.error is None and not self.complete:
            self.error = WireError(reason, received=self._received)
        self._keep_alive = False
        self._wake()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if not self._busy or self.complete:
            self.abort()  # nobody asked for this
            return
        self._received = True
        if not self.head_done:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("sent something that is not an HTTP answer")
            self.abort()
            return
        if not self.head_done and self._head_bytes > _MAX_HEAD_BYTES:
            self._fail("sent more than 64 KiB of headers")
            self.abort()
        elif self._buffered_bytes > _HIGH_BYTES and not self.complete:
            self.pause()
        self._wake()

    def eof_received(self) -> bool:
        """Called by the loop; lets the transport close."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the loop. An answer without a length ends here, where the other side closed in order."""
        if self._busy:
            if error is None and self.head_done and not self._framed:
                self.complete = True
                self._wake()
            self._fail("broke off in the middle of its answer" if self._received else "closed the connection")
        if not self.closed.done():
            self.closed.set_result(None)
        self._lost(self)

    # -- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser, also for trailers, which end here."""
        if not self.head_done:
            self.headers.append((name.decode("latin-1"), value.decode("latin-1")))
            self._framed = self._framed or name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        """Called by the parser; 100 Continue and its like are not the answer."""
        status = self._parser.get_status_code()
        if self.complete:
            return
        if status < 200:
            self.headers.clear()
            self._framed = False
            return
        self.status = status
        self.head_done = True
        self.complete = self._bodiless

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        if not self.complete:
            self._chunks.append(body)
            self._buffered_bytes += len(body)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self.head_done and not self.complete:
            self.complete = True
            self._keep_alive = self._parser.should_keep_alive()

    def on_message_begin(self) -> None:
        """Called by the parser; what follows a whole answer was not asked for and is not read."""
        if self.complete:
            self._keep_alive = False
            self.abort()
