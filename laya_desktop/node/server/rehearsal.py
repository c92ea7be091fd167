"""A rehearsal of the request path, so that the first user's request is as fast as the next. Runs on the node's loop.

A stand-in node with a model and an upstream of its own answers a handful of requests through the real parser, policy,
table, wire format and writer, on a connection that leads nowhere. That imports what is imported late, builds what is
built on first use, and lets the interpreter specialise the code. It counts in no figure, writes no log line, opens no
socket and touches no model.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from laya_desktop.config.schema import MatchConfig, ModelConfig, NodeConfig, RouteConfig, ServerConfig, UpstreamConfig
from laya_desktop.node.balance import TargetLoad
from laya_desktop.node.engines.base import Delta, Finished, Prefilled, RequestEvent, Started
from laya_desktop.node.metrics import Metrics
from laya_desktop.node.records import RequestRecord, new_request_id
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.server.app import App
from laya_desktop.node.server.hub import Hub
from laya_desktop.node.server.protocol import HttpConnection
from laya_desktop.state.snapshot import NodeSnapshot

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Generate
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway

log = logging.getLogger(__name__)

ROUNDS = 12
"""CPython 3.11 specialises code after eight calls."""
LIMIT_S = 2.0
_HOST = "rehearsal.invalid"
_CHAT = b'{"model":"rehearsal","messages":[{"role":"user","content":"Hello"}],"max_tokens":1}'
_STREAM = b'{"model":"rehearsal","messages":[{"role":"user","content":"Hello"}],"stream":true}'
_CONFIG = NodeConfig(
    server=ServerConfig(host=_HOST),
    models=(ModelConfig(name="rehearsal", path="fake", engine="fake"),),
    upstreams=(UpstreamConfig(name="elsewhere", url="http://rehearsal.invalid"),),
    routes=(
        RouteConfig(name="exact", match=MatchConfig(path="/exact/chat/completions"), target="rehearsal"),
        RouteConfig(name="prefix", match=MatchConfig(prefix="/v1/prefix"), target="rehearsal"),
        RouteConfig(name="model", match=MatchConfig(prefix="/v1/model", model="rehearsal"), target="rehearsal"),
        RouteConfig(name="away", match=MatchConfig(prefix="/away"), target="elsewhere"),
        RouteConfig(
            name="shared",
            match=MatchConfig(prefix="/shared"),
            targets=({"name": "rehearsal", "weight": 2}, {"name": "elsewhere"}),
        ),
    ),
)


def _post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {_HOST}\r\nContent-Type: application/json\r\nAuthorization: Bearer none\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {_HOST}\r\nUser-Agent: rehearsal\r\n\r\n".encode()


REQUESTS = (
    _get("/health"),
    _get("/v1/models"),
    _post("/v1/chat/completions", _CHAT),
    _post("/v1/chat/completions", _STREAM),
    _post("/v1/completions", b'{"model":"rehearsal","prompt":"Hello"}'),
    _post("/v1/prefix", _CHAT),
    _post("/v1/model/chat/completions", _STREAM),
    _post("/exact/chat/completions", _CHAT),
    _post("/away/chat/completions", _CHAT),
    _post("/shared", _CHAT),
    _get("/nothing-here"),
)


async def rehearse(table: RoutingTable) -> None:
    """Run the request path a few times, and look into the table in force. Never raises; takes a few milliseconds."""
    table.touch()
    gateway = _StandIn()
    hub = Hub(gateway.config, gateway.metrics.count_response)
    app = App(cast("Gateway", gateway), hub, _HOST, loopback=True)
    try:
        async with asyncio.timeout(LIMIT_S):
            for _ in range(ROUNDS):
                for request in REQUESTS:
                    await _answered(hub, app, request)
                await asyncio.sleep(0)
    except Exception:  # a rehearsal that fails must not stop the performance
        log.debug("The rehearsal failed", exc_info=True)


async def _answered(hub: Hub, app: App, request: bytes) -> None:
    """One request on a connection of its own, head and body apart as most clients send them, until it is answered."""
    connection, transport = _Quiet(hub, app), _Nowhere()
    connection.connection_made(cast("asyncio.BaseTransport", transport))
    head, mark, body = request.partition(b"\r\n\r\n")
    for part in (head + mark, body):
        if part:
            connection.data_received(part)
    while connection.busy:  # noqa: ASYNC110 - a few turns of the loop
        await asyncio.sleep(0)
    connection.connection_lost(None)


class _Quiet(HttpConnection):
    """A connection whose answers are not logged."""

    @override
    def _note_answer(self, exchange: Exchange, status: int) -> None:
        self.hub.count_answer(status)


class _Nowhere:
    """A transport that forgets."""

    def write(self, data: bytes) -> None:
        """Forget."""

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        """A loopback address."""
        return ("127.0.0.1", 0)

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing is kept."""

    def is_closing(self) -> bool:
        """Never."""
        return False

    def can_write_eof(self) -> bool:
        """Nobody reads."""
        return False

    def close(self) -> None:
        """Nothing is open."""

    abort = pause_reading = resume_reading = write_eof = close


class _StandIn:
    """As much of ``Gateway`` as a request needs."""

    config = _CONFIG
    snapshot = NodeSnapshot()

    def __init__(self) -> None:
        self.table = RoutingTable.compile(_CONFIG)
        self.metrics = Metrics()
        self.upstreams = _Elsewhere()

    def open_record(self, method: str, path: str, route: str | None, target: str | None) -> RequestRecord:
        """Followed by nobody."""
        return RequestRecord(new_request_id(), method, path, route, target)

    def target_load(self, _name: str) -> TargetLoad:
        """Idle."""
        return TargetLoad()

    def generate(self, _record: RequestRecord, _model: str, request: Generate, _timeout_s: float) -> _Words:
        """Two words."""
        return _Words(request.request_id)


class _Words:
    """A generation without a model."""

    def __init__(self, request_id: str) -> None:
        self._events: list[RequestEvent] = [
            Started(request_id, slot_id=0, prompt_tokens=1, cached_tokens=0),
            Prefilled(request_id, prefill_s=0.0, prompt_tokens=1),
            Delta(request_id, "Hello"),
            Delta(request_id, " you"),
            Finished(
                request_id,
                "stop",
                prompt_tokens=1,
                completion_tokens=2,
                cached_tokens=0,
                prefill_s=0.0,
                decode_s=0.0,
            ),
        ]

    def __aiter__(self) -> AsyncIterator[RequestEvent]:
        return self

    async def __anext__(self) -> RequestEvent:
        if not self._events:
            raise StopAsyncIteration
        return self._events.pop(0)

    def cancel(self, reason: str) -> None:
        """It ends by itself."""


class _Elsewhere:
    """An upstream, its pool and its answer in one."""

    config = _CONFIG.upstreams[0]
    status = 200
    headers = (("Content-Type", "application/json"), ("Content-Length", "2"))

    def get(self, _name: str) -> _Elsewhere:
        """The one upstream."""
        return self

    def relay(self, *_args: Any) -> None:
        """No connection is kept."""

    async def request(self, *_args: Any, **_kwargs: Any) -> _Elsewhere:
        """Answered at once."""
        return self

    @property
    def body(self) -> AsyncIterator[bytes]:
        """A small one."""

        async def parts() -> AsyncIterator[bytes]:
            yield b"{}"

        return parts()

    def cancel(self) -> None:
        """Nothing is open."""
