"""Carrying a request to an upstream and its answer back, unbuffered. One task per request on the node's loop.

The body goes out as it came in; the answer's parts are sent on as they arrive, no faster than the client reads.
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
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.upstream import Upstream, UpstreamResponse

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
        exchange.on_gone = record.cancel = self._on_gone

    async def run(self, timeout_s: float, handed: Callable[[], None]) -> None:
        """Forward, and close the record. ``handed`` is called when the request is handed to the upstream's client."""
        self._task = asyncio.current_task()
        try:
            if self._left is not None:
                raise asyncio.CancelledError
            await self._forward(timeout_s, handed)
        except (asyncio.CancelledError, ClientGoneError):
            reason = self._left or STOPPING
            if self._exchange.gone:
                self._record.finish(Phase.CANCELLED, status=CLIENT_GONE, error=f"{reason[:1].upper()}{reason[1:]}.")
                self._exchange.cut()
            else:
                self._fail(stopping() if reason == STOPPING else cancelled(reason), Phase.CANCELLED)
        except LayaError as error:
            self._fail(error)
        except Exception as error:
            log.exception("Forwarding failed: request %s", self._record.request_id)
            self._fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))

    def _on_gone(self, reason: str) -> None:
        self._left = reason
        if self._task is not None:
            self._task.cancel()

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
        exchange, record = self._exchange, self._record
        given = {k.lower(): v for k, v in response.headers}
        content_type = given.get("content-type")
        record.stream = content_type is not None and content_type.startswith("text/event-stream")
        back = [(k, v) for k, v in response.headers if not _is_kept_back(k.lower())]
        if response.status in _NO_BODY:
            exchange.respond(response.status, b"", content_type, back)
        else:
            length = given.get("content-length", "")
            exchange.begin(response.status, content_type, back, int(length) if length.isdigit() else None)
            async for part in response.body:
                if record.stream and record.first_token_s is None:
                    record.first_token_s = time.monotonic()
                exchange.send(part)
                await exchange.drain()
            exchange.end()
        phase = Phase.DONE if response.status < 400 else Phase.FAILED
        record.finish(phase, status=response.status)

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


def _is_kept_back(name: str) -> bool:
    return name in _NOT_SENT_BACK or name.startswith(_OURS)
