"""Carrying a request to an upstream and its answer back, unbuffered. Runs on the node's loop.

The body goes out as it came in; the answer's parts are sent on as they arrive, no faster than the client reads. Over a
kept connection this happens in callbacks, within the read that brought a part; else in a task (``run``).
A client that leaves cancels the upstream's work at once. Keys and hop-by-hop headers are the upstream client's matter.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.server.completions import sse
from laya_desktop.node.server.exchange import ClientGoneError
from laya_desktop.node.server.faults import CLIENT_GONE, STOPPING, cancelled, stopping
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.upstream import Upstream, UpstreamResponse
    from laya_desktop.node.upstream_relay import Relay

log = logging.getLogger(__name__)

_NOT_SENT_ON = frozenset({"origin", "referer", "x-request-id"})
_NOT_SENT_BACK = frozenset({"content-length", "content-type", "date", "server", "set-cookie", "x-request-id"})
_OURS = ("x-laya-", "access-control-")
"""Ours to say: an upstream opens this node to no web page."""
_NO_BODY = (204, 304)
GIVEN_BACK = (429, 502, 503, 504)
"""Statuses of an upstream that another target may answer better."""


class Forward:
    """One request on its way to an upstream and back."""

    def __init__(
        self,
        exchange: Exchange,
        record: RequestRecord,
        upstream: Upstream,
        api_path: str,
        retry: Callable[[LayaError], bool],
    ) -> None:
        """``retry`` is asked before the first byte whether another target takes the request instead."""
        self._exchange = exchange
        self._record = record
        self._upstream = upstream
        self._api_path = api_path
        self._retry = retry
        self._left: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._relay: Relay | None = None
        self._begun = False
        exchange.on_gone = record.cancel = self._on_gone

    def start(self, timeout_s: float, handed: Callable[[], None]) -> None:
        """Forward, and close the record. ``handed`` is called when the request is handed to the upstream's client."""
        exchange = self._exchange
        relay = self._upstream.relay(
            exchange.method, self._api_path, exchange.headers, exchange.request_id, bytes(exchange.body), timeout_s
        )
        if relay is None:
            spawn(self.run(timeout_s, handed), f"forward {self._record.request_id}")
            return
        self._relay, relay.on_change = relay, self._on_relay
        self._record.dispatched_s = time.monotonic()
        handed()

    async def run(self, timeout_s: float, handed: Callable[[], None]) -> None:
        """The same, waiting for a connection where that is needed."""
        self._task = asyncio.current_task()
        try:
            if self._left is not None:
                raise asyncio.CancelledError
            await self._forward(timeout_s, handed)
        except (asyncio.CancelledError, ClientGoneError):
            self._end_as_left()
        except LayaError as error:
            self._fail(error)
        except Exception as error:
            log.exception("Forwarding failed: request %s", self._record.request_id)
            self._fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))

    def _on_gone(self, reason: str) -> None:
        self._left = reason
        if self._task is not None:
            self._task.cancel()
        elif self._relay is not None:
            self._relay.close()
            self._end_as_left()

    def _end_as_left(self) -> None:
        reason = self._left or STOPPING
        if self._exchange.gone:
            self._record.finish(Phase.CANCELLED, status=CLIENT_GONE, error=f"{reason[:1].upper()}{reason[1:]}.")
            self._exchange.cut()
        else:
            self._fail(stopping() if reason == STOPPING else cancelled(reason), Phase.CANCELLED)

    # -- over a kept connection

    def _on_relay(self) -> None:
        """Something has come: send it on before anything else happens on this loop."""
        relay, exchange = self._relay, self._exchange
        if relay is None or exchange.ended:
            return
        try:
            exchange.cork()
            over = self._begun or relay.answered or relay.error is not None
            if over and self._send_on(relay):
                relay.close()
            exchange.uncork()
        except Exception as error:
            log.exception("Forwarding failed: request %s", self._record.request_id)
            relay.close()
            self._fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))
        if exchange.conn.write_paused and not exchange.ended and not relay.held:
            relay.hold()
            spawn(self._resume(relay), f"slow reader {self._record.request_id}")

    def _send_on(self, relay: Relay) -> bool:
        """Send on what has come; True when there will be no more."""
        exchange = self._exchange
        if not self._begun:
            if not relay.answered:
                self._not_answered(relay)
                return True
            if relay.status in GIVEN_BACK and self._retry(_given_back(self._upstream.config.name, relay.status)):
                return True
            exchange.release_body()
            self._begun = True
            self._begin(relay.status, relay.headers)
        part = relay.take()
        if part:
            self._send_part(part)
        if relay.error is not None:
            self._fail(relay.error)
            return True
        if relay.complete:
            exchange.end()
            self._finish(relay.status)
            return True
        return False

    def _not_answered(self, relay: Relay) -> None:
        assert relay.error is not None
        if not relay.unanswered:
            self._fail(relay.error)
            return
        self._relay = None  # the kept connection was closed meanwhile: once more, on a new one
        left_s = relay.deadline_s - asyncio.get_running_loop().time()
        spawn(self.run(left_s, _nothing), f"forward {self._record.request_id}")

    async def _resume(self, relay: Relay) -> None:
        try:
            await self._exchange.drain()
        except ClientGoneError:
            return  # whoever noticed has ended it
        relay.resume()
        self._on_relay()

    # -- in a task

    async def _forward(self, timeout_s: float, handed: Callable[[], None]) -> None:
        exchange = self._exchange
        headers = {k: v for k, v in exchange.headers.items() if k not in _NOT_SENT_ON}
        headers["X-Request-Id"] = exchange.request_id
        self._record.dispatched_s = time.monotonic()
        handed()
        response = await self._upstream.request(
            exchange.method, self._api_path, headers, bytes(exchange.body), timeout_s=timeout_s
        )
        try:
            if response.status in GIVEN_BACK and self._retry(_given_back(self._upstream.config.name, response.status)):
                return
            exchange.release_body()
            await self._answer(response)
        finally:
            response.cancel()

    async def _answer(self, response: UpstreamResponse) -> None:
        self._begin(response.status, response.headers)
        async for part in response.body:
            self._send_part(part)
            await self._exchange.drain()
        self._exchange.end()
        self._finish(response.status)

    # -- both ways

    def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        exchange = self._exchange
        content_type, length, back = None, "", []
        for name, value in headers:
            lower = name.lower()
            if lower == "content-type":
                content_type = value
            elif lower == "content-length":
                length = value
            elif not _is_kept_back(lower):
                back.append((name, value))
        self._record.stream = content_type is not None and content_type.startswith("text/event-stream")
        if status in _NO_BODY:
            exchange.respond(status, b"", content_type, back)
        else:
            exchange.begin(status, content_type, back, int(length) if length.isdigit() else None)

    def _send_part(self, part: bytes) -> None:
        record = self._record
        if record.stream and record.first_token_s is None:
            record.first_token_s = time.monotonic()
        self._exchange.send(part)

    def _finish(self, status: int) -> None:
        self._record.finish(Phase.DONE if status < 400 else Phase.FAILED, status=status)

    def _fail(self, error: LayaError, phase: Phase = Phase.FAILED) -> None:
        exchange = self._exchange
        if exchange.status is None and self._left is None and self._retry(error):
            return
        self._record.finish(phase, status=error.status, error=str(error))
        if exchange.status is not None and self._record.stream:
            exchange.send(sse(error.to_wire()))
            exchange.end(close=True)
        else:
            exchange.fail(error)


def _given_back(name: str, status: int) -> LayaError:
    return LayaError(f"Upstream '{name}' answered {status}.", code="upstream_refused", status=status)


def _nothing() -> None:
    pass


def _is_kept_back(name: str) -> bool:
    return name in _NOT_SENT_BACK or name.startswith(_OURS)
