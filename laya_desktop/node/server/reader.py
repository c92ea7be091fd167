"""From bytes to whole requests: llhttp's callbacks, checks of the head, bounds on everything. Node's loop.

The reader builds exchanges and hands them to its connection; it writes nothing itself. After a request that it
refused as HTTP it reads nothing more from that client, so one sender's bytes can never become another request.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from laya_desktop.errors import LayaError
from laya_desktop.node.server import framing
from laya_desktop.node.server.exchange import Carrier, Exchange
from laya_desktop.node.server.framing import HEAD_LIMIT_BYTES, bad_request

if TYPE_CHECKING:
    from laya_desktop.config.schema import ServerConfig

log = logging.getLogger(__name__)

SMALL_BODY_BYTES = 64 * 1024
"""Bodies of refused requests up to this size are read, so that the connection can be kept."""
MIN_BODY_RATE = 16 * 1024
"""Bytes per second that earn a slow upload more time."""
FRAMING_SLACK_BYTES = 64 * 1024
FRAMING_FACTOR = 8
"""Chunk sizes, extensions and trailers may take this many times the body's bytes, plus the slack."""

IDLE, HEAD, BODY = range(3)


class HeadSink(Protocol):
    """Who looks at a head before its body is read."""

    def on_head(self, exchange: Exchange) -> None:
        """Raises LayaError to refuse the request."""
        ...


class ReadingCarrier(Carrier, Protocol):
    """The connection that a reader belongs to."""

    @property
    def busy(self) -> bool:
        """True while an answer is owed for an earlier request."""
        ...

    def request_complete(self, exchange: Exchange) -> None:
        """A whole request, or one that was refused."""
        ...


class _StopParsing(Exception):  # noqa: N818 - never an error, never leaves this module
    """Makes llhttp stop in the middle of its buffer."""


class RequestReader:
    """The parsing half of one connection.

    Attributes:
        stage: ``IDLE`` between requests, ``HEAD`` or ``BODY`` within one.
        since_ns: when the stage began.
        fresh: no request has begun on this connection.
        deaf: nothing more is read.
        unread: the client may still be sending something that nobody will read.
    """

    def __init__(self, conn: ReadingCarrier, sink: HeadSink) -> None:
        self.stage = IDLE
        self.since_ns = time.perf_counter_ns()
        self.fresh = True
        self.deaf = False
        self.unread = False
        self.continue_due = False
        self._conn = conn
        self._sink = sink
        self._parser = HttpRequestParser(self)
        self._incoming: Exchange | None = None
        self._read_ns = 0
        self._raw_bytes = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._repeated: str | None = None
        self._upgrading = False
        self._replaying = False
        self._begun = 0
        self._last: Exchange | None = None

    def feed(self, data: bytes) -> None:
        """Parse; whole requests reach the connection before this returns."""
        self._read_ns = time.perf_counter_ns()
        stage, message = self.stage, self._headers
        self._begun, self._last = 0, None
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except HttpParserCallbackError as error:
            if not self.deaf:
                log.error("A callback of the HTTP parser failed.", exc_info=error.__context__ or error)
                self.refuse(bad_request("The request could not be read.", status=500, code="internal_error"))
        except HttpParserError as error:
            if not self.deaf:
                self.refuse(bad_request(f"Not a valid HTTP request: {error}.", code="bad_http", hint="Speak HTTP/1.1."))
        if self._last is not None and self._last.repeatable and self._begun == 1 and stage == self.stage == IDLE:
            self._conn.hub.remember(data)
        if stage != IDLE and stage == self.stage and message is self._headers and not self.deaf:
            self._check_overhead(len(data))

    def stop(self) -> None:
        """Read nothing more; let go of the parser and the unfinished request."""
        self.deaf = True
        self.stage = IDLE
        self._drop_incoming()

    def check_deadline(self, now_ns: int, limits: ServerConfig) -> None:
        """Refuse a request that arrives too slowly."""
        waited_s = (now_ns - self.since_ns) / 1e9
        if self.stage == HEAD and waited_s > limits.head_timeout:
            self.refuse(_timed_out("headers", limits.head_timeout))
        elif self._incoming is not None:
            earned_s = len(self._incoming.body) / MIN_BODY_RATE
            if waited_s > limits.body_timeout + earned_s:
                self.refuse(_timed_out("body", limits.body_timeout))

    def refuse(self, error: LayaError, exchange: Exchange | None = None) -> None:
        """Answer with the error when it is its turn, then close; nothing more is read from this client.

        Raises:
            _StopParsing: where an exchange is given, which parser callbacks do.
        """
        refused = exchange or self._incoming or Exchange(self._conn, "", "", {}, http10=False, keep_alive=False)
        self._incoming = None
        self.deaf = self.unread = True
        self.stage = IDLE
        refused.refusal = error
        refused.keep_alive = False
        refused.read_ns = self._read_ns
        self._conn.request_complete(refused)
        if exchange is not None:
            raise _StopParsing

    def send_continue(self) -> None:
        """Invite the body that the client holds back."""
        self.continue_due = False
        if self._incoming is not None:
            self._conn.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- llhttp's callbacks

    def on_message_begin(self) -> None:
        """A new request starts."""
        if self._replaying:
            return
        self._begun += 1
        self.stage = HEAD
        self.fresh = False
        self.since_ns = self._read_ns
        self._raw_bytes = self._head_bytes = 0
        self._url = b""
        self._headers = {}
        self._repeated = None

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        if not self._replaying:
            self._url += url
            self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; those after the body (trailers) are ignored."""
        if self.stage != HEAD:
            return
        self._head_bytes += len(name) + len(value) + 4
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip(" \t")
        if key in self._headers:
            self._repeated = framing.join_repeated(self._headers, key, text) or self._repeated
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        """Check the head and ask the application before the body is read."""
        if self._replaying:
            self._replaying = False
            return
        parser = self._parser
        version = parser.get_http_version()
        method = framing.METHODS.get(parser.get_method())
        exchange = Exchange(
            self._conn,
            method or "",
            self._url.decode("latin-1"),
            self._headers,
            http10=version == "1.0",
            keep_alive=parser.should_keep_alive(),
        )
        if self._head_bytes > HEAD_LIMIT_BYTES:
            self.refuse(framing.head_too_large(), exchange)
        fault = framing.check_head(version, method, self._headers, self._repeated)
        if fault is not None:
            self.refuse(fault, exchange)
        self.stage = BODY
        self._incoming = exchange
        try:
            self._sink.on_head(exchange)
        except LayaError as error:
            exchange.refusal = error
        if exchange.has_body:
            self._before_body(exchange)
        self._upgrading = parser.should_upgrade()

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        exchange = self._incoming
        assert exchange is not None
        if not exchange.body:
            exchange.body = data
        else:
            if isinstance(exchange.body, bytes):
                exchange.body = bytearray(exchange.body)
            exchange.body += data
        hub = self._conn.hub
        hub.body_bytes += len(data)
        limit = hub.limits.max_body if exchange.refusal is None else SMALL_BODY_BYTES
        if len(exchange.body) > limit:
            self.refuse(exchange.refusal or framing.body_too_large(limit), exchange)
        if hub.body_bytes > hub.body_budget:
            self.refuse(_too_many_bodies(), exchange)

    def on_message_complete(self) -> None:
        """A whole request."""
        if self._upgrading:
            return
        exchange, self._incoming = self._incoming, None
        assert exchange is not None
        self.stage = IDLE
        self.continue_due = False
        exchange.read_ns = self._read_ns
        self._last = exchange
        if not exchange.keep_alive:
            self.deaf = True
        self._conn.request_complete(exchange)

    # -- details

    def _before_body(self, exchange: Exchange) -> None:
        self.since_ns = self._read_ns
        self._raw_bytes = 0
        limit = self._conn.hub.limits.max_body
        length = int(exchange.content_length or 0)
        awaits_continue = "expect" in exchange.headers and not exchange.http10
        fault = exchange.refusal or framing.check_expect(exchange.headers)
        if fault is None and length > limit:
            fault = framing.body_too_large(limit)
        if fault is not None and (awaits_continue or length > SMALL_BODY_BYTES):
            self.refuse(fault, exchange)
        exchange.refusal = fault
        if awaits_continue:
            self.continue_due = True
            if not self._conn.busy:
                self.send_continue()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Serve the request as plain HTTP/1.1: llhttp skips the body of an upgrade, so the framing is parsed again."""
        self._upgrading = False
        exchange = self._incoming
        if exchange is None:
            return
        line = ""
        if exchange.content_length is not None:
            line = f"Content-Length: {exchange.content_length}\r\n"
        elif exchange.has_body:
            line = f"Transfer-Encoding: {exchange.headers['transfer-encoding']}\r\n"
        self._parser = HttpRequestParser(self)
        self._replaying = True
        self.feed(f"POST / HTTP/1.1\r\n{line}\r\n".encode() + rest)

    def _check_overhead(self, received: int) -> None:
        """Bound what is not body: heads that never end, chunk extensions, trailers."""
        self._raw_bytes += received
        if self._incoming is None:
            if self._raw_bytes > HEAD_LIMIT_BYTES:
                self.refuse(framing.head_too_large())
            return
        if self._raw_bytes > FRAMING_SLACK_BYTES + FRAMING_FACTOR * len(self._incoming.body):
            self.refuse(bad_request("The chunked body is almost all framing.", hint="Send larger chunks."))

    def _drop_incoming(self) -> None:
        if self._incoming is not None:
            self._conn.hub.body_bytes -= len(self._incoming.body)
            self._incoming = None


def _timed_out(what: str, limit_s: float) -> LayaError:
    return bad_request(
        f"The request's {what} did not arrive within {limit_s:g} s.", status=408, code="timeout", hint="Send it again."
    )


def _too_many_bodies() -> LayaError:
    return LayaError(
        "The node holds as many request bodies in memory as it may.",
        hint="Retry shortly.",
        code="bodies_in_memory",
        status=503,
        retry_after_s=1.0,
    )
