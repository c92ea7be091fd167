"""Requests over kept connections to an upstream, which go on in callbacks: the same promises as those in a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.node.upstream import UpstreamPool
from laya_desktop.node.upstream_client import Upstream
from laya_desktop.node.upstream_relay import Relay
from laya_desktop.state.enums import Phase
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_both_loops, serving, wait_for

HI = [{"role": "user", "content": "hi"}]
KEY = "k-0123456789abcdef"
CHAT = {"model": "m", "messages": HI}


@asynccontextmanager
async def warm(
    port: int, *, limit: str = "20s", silence_s: float = 120.0, **upstream: Any
) -> AsyncIterator[tuple[FakeGateway, RawClient]]:
    """A node in front of that port whose connection to it is kept already, and a client of it."""
    config = NodeConfig.model_validate(
        {
            "upstreams": [{"name": "box", "url": f"http://127.0.0.1:{port}/v1", **upstream}],
            "routes": [{"name": "far", "match": {"prefix": "/far"}, "target": "box", "timeout": limit}],
        }
    )
    pool = UpstreamPool(config, silence_s=silence_s)
    node = FakeGateway(config, pool)
    try:
        async with serving(node) as (_, front_port), RawClient(front_port) as raw:
            assert (await raw.ask("GET", "/far/models")).status == 200
            yield node, raw
    finally:
        await pool.close()


@pytest.fixture(autouse=True)
def relays(monkeypatch: pytest.MonkeyPatch) -> list[Relay]:
    """Every relay made; the test's requests must have gone this way."""
    made: list[Relay] = []
    relay = Upstream.relay

    def counted(self: Upstream, *args: Any) -> Relay | None:
        found = relay(self, *args)
        if found is not None:
            made.append(found)
        return found

    monkeypatch.setattr(Upstream, "relay", counted)
    return made


def back(**server: Any) -> FakeGateway:
    return FakeGateway(NodeConfig.model_validate({"server": server, "models": [{"name": "m", "path": "/m.gguf"}]}))


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
MODELS = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def scripted(serve: Serve) -> AsyncIterator[int]:
    """An upstream whose connections answer the first request and then do what the test wants."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(MODELS)
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@on_both_loops
async def test_whole_answers_follow_each_other_on_one_connection(relays: list[Relay]) -> None:
    behind = back(api_keys=[KEY])
    async with serving(behind) as (listener, port), warm(port, api_key=KEY) as (node, raw):
        before = len(relays)
        for _ in range(5):
            got = await raw.ask("POST", "/far/v1/chat/completions", CHAT, Authorization="Bearer theirs")
            assert got.json["choices"][0]["message"]["content"] == "Hello, world"
            assert (got.headers["x-laya-route"], got.headers["x-laya-target"]) == ("far", "box")
            assert float(got.headers["x-laya-routing-us"]) > 0
        assert len(relays) - before == 5
        assert listener.connections == 1
        assert node.upstreams.snapshot()[0].in_flight == 0
    assert [(r.phase, r.status, r.stream) for r in node.records[1:]] == [(Phase.DONE, 200, False)] * 5


@on_both_loops
async def test_a_stream_passes_as_it_comes(relays: list[Relay]) -> None:
    behind = back()
    behind.script.text_gate = asyncio.Event()
    async with serving(behind) as (_, port), warm(port) as (node, raw):
        before = len(relays)
        raw.request("POST", "/far", {**CHAT, "stream": True})
        assert (await raw.head()).headers["content-type"].startswith("text/event-stream")
        seen = b""
        while b"Hello" not in seen:
            seen += await raw.chunk()
        assert behind.generations[-1].sent == 1
        behind.script.text_gate.set()
        while part := await raw.chunk():
            seen += part
        assert seen.endswith(b"data: [DONE]\n\n")
        assert len(relays) - before == 1
    assert node.records[1].stream
    assert node.records[1].ttft_s is not None


@on_both_loops
async def test_a_client_that_leaves_stops_the_upstream() -> None:
    for stream in (True, False):
        behind = back()
        async with serving(behind) as (_, port), warm(port) as (node, raw):
            if stream:
                behind.script.text_gate = asyncio.Event()
            else:
                behind.script.start_gate = asyncio.Event()
            raw.request("POST", "/far", {**CHAT, "stream": stream})
            await wait_for(lambda behind=behind: len(behind.generations) == 1)
            raw.writer.close()
            await wait_for(lambda behind=behind: behind.generations[0].cancelled is not None)
            await wait_for(lambda node=node: node.records[1].phase is Phase.CANCELLED)
            assert node.upstreams.snapshot()[0].in_flight == 0


@on_both_loops
async def test_a_forwarded_request_is_cancelled_through_its_record() -> None:
    behind = back()
    async with serving(behind) as (_, port), warm(port) as (node, raw):
        behind.script.start_gate = asyncio.Event()
        raw.request("POST", "/far", CHAT)
        await wait_for(lambda: len(behind.generations) == 1)
        cancel = node.records[1].cancel
        assert cancel is not None
        cancel("cancelled by the user")
        got = await raw.response()
        assert (got.status, got.error["code"]) == (499, "cancelled")
        await wait_for(lambda: behind.generations[0].cancelled is not None)


@on_both_loops
async def test_a_kept_connection_that_was_closed_is_no_fault(relays: list[Relay]) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")  # the second request is read and never answered

    async with scripted(close) as port, warm(port) as (node, raw):
        got = await raw.ask("GET", "/far/models")
        assert (got.status, got.body) == (200, b"{}")
        assert relays[-1].unanswered
        assert node.upstreams.snapshot()[0].healthy
        assert len(node.records) == 2


@on_both_loops
@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_an_upstream_that_breaks_off_is_said_in_the_stream(framing: bytes) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        part = b"data: {}\n\n"
        chunk = part if b"Length" in framing else b"%x\r\n%b\r\n" % (len(part), part)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + b"\r\n" + chunk)
        await writer.drain()

    async with scripted(half) as port, warm(port) as (node, raw):
        raw.request("POST", "/far", {**CHAT, "stream": True})
        rest = await raw.rest()
        assert b"upstream_broken" in rest
        assert b"[DONE]" not in rest
        await wait_for(lambda: node.records[1].phase is Phase.FAILED)
        assert node.upstreams.snapshot()[0].healthy is False


@on_both_loops
async def test_an_answer_that_is_no_http_is_502() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read()

    async with scripted(nonsense) as port, warm(port) as (node, raw):
        got = await raw.ask("GET", "/far/models")
        assert (got.status, got.error["code"]) == (502, "upstream_broken")
        assert node.upstreams.snapshot()[0].in_flight == 0


@on_both_loops
@pytest.mark.parametrize(("began", "words"), [(False, "did not begin"), (True, "did not finish")])
async def test_the_routes_time_is_the_limit(began: bool, words: str) -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if began:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: 1\n\n")
        await reader.read()

    async with scripted(slow) as port, warm(port, limit="300ms") as (node, raw):
        raw.request("POST", "/far", {**CHAT, "stream": True})
        rest = await raw.rest() if began else (await raw.response()).body
        assert b"upstream_timeout" in rest
        assert words.encode() in rest
        assert node.upstreams.snapshot()[0].healthy  # slow is not down


@on_both_loops
async def test_silence_in_mid_answer_is_a_limit_too() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: 1\n\n")
        await reader.read()

    async with scripted(silent) as port, warm(port, silence_s=0.2) as (_, raw):
        raw.request("POST", "/far", {**CHAT, "stream": True})
        assert b"was silent for 0.2 s" in await raw.rest()


@on_both_loops
async def test_a_slow_client_holds_the_upstream_back() -> None:
    behind = back()
    async with serving(behind) as (_, port), warm(port) as (_, raw):
        behind.script.texts = ("x" * 100_000,) * 400
        raw.reader._limit = 2**16  # type: ignore[attr-defined]
        raw.request("POST", "/far", {**CHAT, "stream": True})
        await raw.head()
        before = -1
        while behind.generations[-1].sent != before:
            before = behind.generations[-1].sent
            await asyncio.sleep(0.1)
        assert before < 400
        got = bytearray()
        while part := await raw.chunk():
            got += part
        assert got.count(behind.script.texts[0].encode()) == 400


@on_both_loops
async def test_head_empty_answers_and_errors_pass(relays: list[Relay]) -> None:
    async with serving(back()) as (_, port), warm(port) as (node, raw):
        assert (await raw.ask("HEAD", "/far/models")).status == 200
        assert (await raw.ask("GET", "/far/models")).json["data"][0]["id"] == "m"
        got = await raw.ask("POST", "/far/chat/completions", {"model": "none", "messages": HI})
        assert (got.status, got.error["code"]) == (404, "model_not_found")
        assert (await raw.ask("DELETE", "/far/models")).status == 405
    assert len(relays) >= 3
    assert [r.status for r in node.records] == [200, 200, 200, 404, 405]


@on_both_loops
async def test_an_upstream_opens_this_node_to_no_web_page() -> None:
    async def open_to_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nSet-Cookie: a=b\r\nX-Kept: 1\r\n"
            b"X-Hop: 1\r\nContent-Length: 2\r\nConnection: close, X-Hop\r\n\r\n{}"
        )
        await writer.drain()

    async with scripted(open_to_all) as port, warm(port) as (_, raw):
        got = await raw.ask("GET", "/far/models")
        assert (got.body, got.headers["x-kept"], got.headers["content-length"]) == (b"{}", "1", "2")
        assert not {"access-control-allow-origin", "set-cookie", "x-hop"} & got.headers.keys()


@on_both_loops
async def test_what_goes_out_is_what_may_go_out() -> None:
    seen: list[bytes] = []

    async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(MODELS)
        await reader.read()

    async with scripted(look) as port, warm(port, api_key=KEY) as (_, raw):
        await raw.ask(
            "GET", "/far/models?a=1", **{
                "Authorization": "Bearer theirs", "Cookie": "c=1", "TE": "trailers", "X-Own": "kept",
                "X-Laya-Hops": "2", "X-Request-Id": "mine-1",
            },
        )  # fmt: skip
    lines = seen[0].decode().lower().split("\r\n")
    assert lines[0] == "get /v1/models?a=1 http/1.1"
    assert {"x-own: kept", "x-laya-hops: 3", "x-request-id: mine-1", f"authorization: bearer {KEY}"} <= set(lines)
    assert not [line for line in lines if line.startswith(("cookie", "te:")) or "theirs" in line]


@on_both_loops
async def test_too_many_hops_and_named_headers_take_the_careful_way(relays: list[Relay]) -> None:
    async with serving(back()) as (_, port), warm(port) as (_, raw):
        before = len(relays)
        got = await raw.ask("GET", "/far/models", **{"X-Laya-Hops": "5"})
        assert (got.status, got.error["code"]) == (508, "too_many_hops")
        assert (await raw.ask("GET", "/far/models", Connection="keep-alive, X-Own", **{"X-Own": "1"})).status == 200
        assert len(relays) == before
