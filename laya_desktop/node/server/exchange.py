"""One request and its answer. Runs on the node's loop; knows HTTP, no API and no route.

An exchange is answered once: ``respond``, or ``begin``, ``send`` … and ``end`` (or ``cut``). Answers of one connection
leave in the order of its requests; the connection sees to that by running one exchange at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import msgspec

from laya_desktop.node.server.faults import CLIENT_GONE, MethodNotAllowedError

if TYPE_CHECKING:
    from laya_desktop.errors import LayaError
    from laya_desktop.node.metrics import Metrics
    from laya_desktop.node.server.hub import Hub

JSON = "application/json"
_REASONS = {s.value: s.phrase for s in HTTPStatus} | {CLIENT_GONE: "Client Closed Request"}
_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_NO_HEADERS: Mapping[str, str] = {}
_VISIBLE = "".join(chr(c) for c in range(0x20, 0x7F) if chr(c) != "%")


class ClientGoneError(Exception):
    """The client left before its answer was complete."""


class Carrier(Protocol):
    """The connection that an exchange came on."""

    hub: Hub
    write_paused: bool

    @property
    def peer_address(self) -> str:
        """The client's address."""
        ...

    @property
    def local_address(self) -> str:
        """This end's address."""
        ...

    def write(self, data: bytes) -> None:
        """Send; nothing once the connection is gone."""
        ...

    async def wait_writable(self) -> None:
        """Return once the client has caught up or is gone."""
        ...

    def exchange_ended(self, exchange: Exchange) -> None:
        """The answer is complete, or never will be."""
        ...


class Exchange:
    """A request, and the means to answer it.

    Attributes:
        headers: names in lower case; repeated ones joined.
        body: the whole body once the request is handed over.
        read_ns: ``perf_counter_ns`` of the read that completed the request.
        json: the parsed body, once somebody needed it.
        plan: what the application decided from the head; called when the request is complete and it is its turn.
        repeatable: the application can answer the same bytes again without their being parsed.
        refusal: the error to answer with, found before the request was complete.
        on_gone: called once with the reason when the client left or the node stops; cancels the work.
        route: name of the user's route that took it, or None.
        served_by: name of the model or upstream that has the request, or None.
        extra_headers: what the route puts on its answers; they win over the answer's own.
        cache: ``hit``, ``miss`` or ``bypass`` of the model's response cache, or None.
        status: of the answer, None until it begins.
        cors: header lines that let a listed web page read the answer.
        error_body: what an error looks like to this API's clients; None: OpenAI's form.
    """

    __slots__ = (
        "_chunked",
        "_corked",
        "_request_id",
        "body",
        "cache",
        "conn",
        "content_length",
        "cors",
        "ended",
        "error_body",
        "extra_headers",
        "gone",
        "has_body",
        "headers",
        "http10",
        "json",
        "keep_alive",
        "method",
        "on_gone",
        "plan",
        "queue_ms",
        "read_ns",
        "refusal",
        "repeatable",
        "route",
        "routing_us",
        "served_by",
        "status",
        "target",
    )

    def __init__(
        self, conn: Carrier, method: str, target: str, headers: dict[str, str], *, http10: bool, keep_alive: bool
    ) -> None:
        self.conn = conn
        self.method = method
        self.target = target
        self.headers = headers
        self.http10 = http10
        self.keep_alive = keep_alive
        self.content_length = headers.get("content-length")
        self.has_body = "transfer-encoding" in headers or self.content_length not in (None, "0")
        self.body: bytes | bytearray = b""
        self.read_ns = 0
        self.repeatable = False
        self.json: dict[str, Any] | None = None
        self.plan: Callable[[Exchange], None] | None = None
        self.refusal: LayaError | None = None
        self.on_gone: Callable[[str], None] | None = None
        self.cors = ""
        self.error_body: Callable[[LayaError], dict[str, Any]] | None = None
        self.gone = False
        self.ended = False
        self.route: str | None = None
        self.served_by: str | None = None
        self.extra_headers: Mapping[str, str] = _NO_HEADERS
        self.routing_us: float | None = None
        self.queue_ms: float | None = None
        self.cache: str | None = None
        self.status: int | None = None
        self._request_id: str | None = None
        self._chunked = False
        self._corked: list[bytes] | None = None

    @property
    def host(self) -> str:
        """The Host header, or an empty string."""
        return self.headers.get("host", "")

    @property
    def request_id(self) -> str:
        """The caller's ``X-Request-Id`` where it is sane, else one of ours."""
        if self._request_id is None:
            given = self.headers.get("x-request-id")
            sane = given is not None and _SANE_ID.fullmatch(given) is not None
            self._request_id = given if given is not None and sane else self.conn.hub.new_id()
        return self._request_id

    @request_id.setter
    def request_id(self, value: str) -> None:
        if self._request_id is None and "x-request-id" not in self.headers:
            self._request_id = value

    def respond(
        self,
        status: int,
        body: bytes,
        content_type: str | None = JSON,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Answer whole."""
        if self.gone:
            self.cut()
            return
        length = "" if status in (204, 304) else f"Content-Length: {len(body)}\r\n"
        head = self._head(status, content_type, headers, length)
        self.conn.write(head if self.method == "HEAD" else head + body)
        self._finish()

    def respond_json(self, value: Any, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Answer with a value that msgspec can encode."""
        self.respond(status, msgspec.json.encode(value), JSON, headers)

    def fail(self, error: LayaError) -> None:
        """Answer with an error; an answer that has begun is cut instead."""
        if self.status is not None or self.gone:
            self.cut()
            return
        self.served_by = None
        headers = []
        if isinstance(error, MethodNotAllowedError):
            headers.append(("Allow", ", ".join(error.allow)))
        if error.retry_after_s is not None and error.status in (429, 503):
            headers.append(("Retry-After", str(max(1, math.ceil(error.retry_after_s)))))
            headers.append(("retry-after-ms", str(max(1, round(error.retry_after_s * 1000)))))
        if error.status == 401:
            headers.append(("WWW-Authenticate", 'Bearer realm="laya"'))
        body = error.to_wire() if self.error_body is None else self.error_body(error)
        self.respond_json(body, error.status, headers)

    def begin(
        self,
        status: int,
        content_type: str | None,
        headers: Iterable[tuple[str, str]] = (),
        length: int | None = None,
    ) -> None:
        """Send the head of an answer that comes in parts; ``length`` in bytes where it is known."""
        if self.gone:
            return
        self._chunked = length is None and not self.http10
        if length is None and self.http10:
            self.keep_alive = False
        framing = f"Content-Length: {length}\r\n" if length is not None else ""
        self._write(
            self._head(status, content_type, headers, "Transfer-Encoding: chunked\r\n" if self._chunked else framing)
        )

    def send(self, data: bytes) -> None:
        """A part of the body. Follow with ``drain`` where a slow reader must slow the writer down."""
        if data and not self.gone and self.method != "HEAD":
            self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def cork(self) -> None:
        """Keep back what is sent until ``uncork`` or the end, so that it leaves in one write."""
        self._corked = []

    def uncork(self) -> None:
        """Let go of what was kept back."""
        parts, self._corked = self._corked, None
        if parts:
            self.conn.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def _write(self, data: bytes) -> None:
        if self._corked is None:
            self.conn.write(data)
        else:
            self._corked.append(data)

    async def drain(self) -> None:
        """Wait while the client reads more slowly than we write.

        Raises:
            ClientGoneError: the client left.
        """
        if self.conn.write_paused and not self.gone:
            await self.conn.wait_writable()
        if self.gone:
            raise ClientGoneError

    def end(self, *, close: bool = False) -> None:
        """The answer is complete."""
        if close:
            self.keep_alive = False
        if self._chunked and not self.gone and not self.ended and self.method != "HEAD":
            self._write(b"0\r\n\r\n")
        self._finish()

    def cut(self) -> None:
        """The answer cannot be completed: close without its end, so that the client sees the loss."""
        self.keep_alive = False
        self._finish()

    def release_body(self) -> None:
        """The body is parsed and not needed any more."""
        self.conn.hub.body_bytes -= len(self.body)
        self.body = b""

    def replace_body(self, body: bytes) -> None:
        """Put another body in place of the one received."""
        self.conn.hub.body_bytes += len(body) - len(self.body)
        self.body = body

    def routed(self, metrics: Metrics, route: str | None) -> None:
        """The request has been handed to its target: routing latency ends here."""
        self.route = route
        self.routing_us = (perf_counter_ns() - self.read_ns) / 1000
        metrics.record_routing(route, self.routing_us)

    def leave(self, reason: str) -> None:
        """Tell the work behind the exchange to stop, once."""
        callback, self.on_gone = self.on_gone, None
        if callback is not None and not self.ended:
            callback(reason)

    def _finish(self) -> None:
        if not self.ended:
            if self._corked is not None:
                self.uncork()
            self.ended = True
            self.on_gone = None
            self.conn.exchange_ended(self)

    def _connection_line(self) -> str:
        if not self.keep_alive or self.conn.hub.draining:
            self.keep_alive = False
            return "Connection: close\r\n"
        return "Connection: keep-alive\r\n" if self.http10 else ""

    def _head(self, status: int, content_type: str | None, headers: Iterable[tuple[str, str]], framing: str) -> bytes:
        self.status = status
        parts = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n",
            self.conn.hub.date_line,
            f"Content-Type: {content_type}\r\n" if content_type else "",
            framing,
            f"X-Request-Id: {self.request_id}\r\n",
            self._connection_line(),
            self.cors,
        ]
        if self.routing_us is not None:
            parts.append(f"X-Laya-Routing-Us: {self.routing_us:.1f}\r\n")
        if self.route is not None:
            parts.append(f"X-Laya-Route: {header_text(self.route)}\r\n")
        if self.served_by is not None:
            parts.append(f"X-Laya-Target: {header_text(self.served_by)}\r\n")
        if self.queue_ms is not None:
            parts.append(f"X-Laya-Queue-Ms: {self.queue_ms:.3f}\r\n")
        if self.cache is not None:
            parts.append(f"X-Laya-Cache: {self.cache}\r\n")
        if self.extra_headers:
            own = {name.lower() for name in self.extra_headers}
            headers = [h for h in headers if h[0].lower() not in own] + list(self.extra_headers.items())
        parts += [f"{name}: {value}\r\n" for name, value in headers]
        parts.append("\r\n")
        return "".join(parts).encode("latin-1", "replace")


@lru_cache(maxsize=1024)
def header_text(value: str) -> str:
    """A name from the configuration as a header value: what is not plain ASCII is percent-encoded."""
    return quote(value, safe=_VISIBLE)
