"""Requests to upstreams through two real listeners and the real upstream client: one node in front of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.node.upstream import UpstreamPool
from laya_desktop.state.enums import Phase
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_loop, serving, wait_for

HI = [{"role": "user", "content": "hi"}]
KEY = "k-0123456789abcdef"


@asynccontextmanager
async def front_of(port: int, **upstream: Any) -> AsyncIterator[tuple[FakeGateway, RawClient]]:
    """A node whose routes lead to the upstream on that port, and a client of it."""
    config = NodeConfig.model_validate(
        {
            "models": [{"name": "local", "path": "/l.gguf"}],
            "upstreams": [{"name": "box", "url": f"http://127.0.0.1:{port}/v1", **upstream}],
            "routes": [{"name": "far", "match": {"prefix": "/far"}, "target": "box", "timeout": "20s"}],
        }
    )
    pool = UpstreamPool(config)
    node = FakeGateway(config, pool)
    try:
        async with serving(node) as (_, front_port), RawClient(front_port) as raw:
            yield node, raw
    finally:
        await pool.close()


def back(**server: Any) -> FakeGateway:
    return FakeGateway(NodeConfig.model_validate({"server": server, "models": [{"name": "m", "path": "/m.gguf"}]}))


@on_loop
async def test_an_answer_passes_whole() -> None:
    behind = back()
    async with serving(behind) as (_, port), front_of(port) as (node, raw):
        got = await raw.ask("POST", "/far/v1/chat/completions", {"model": "m", "messages": HI})
        assert got.json["choices"][0]["message"]["content"] == "Hello, world"
        assert got.headers["x-laya-route"] == "far"
        assert float(got.headers["x-laya-routing-us"]) > 0
        assert behind.records[0].path == "/v1/chat/completions"
    record = node.records[0]
    assert (record.phase, record.status, record.target, record.stream) == (Phase.DONE, 200, "box", False)
    assert node.metrics.route_stats("far").count == 1


@on_loop
async def test_a_stream_passes_as_it_comes() -> None:
    behind = back()
    behind.script.text_gate = asyncio.Event()
    async with serving(behind) as (_, port), front_of(port) as (node, raw):
        raw.request("POST", "/far", {"model": "m", "messages": HI, "stream": True})
        assert (await raw.head()).headers["content-type"].startswith("text/event-stream")
        seen = b""
        while b"Hello" not in seen:
            seen += await raw.chunk()
        assert behind.generations[0].sent == 1
        behind.script.text_gate.set()
        while part := await raw.chunk():
            seen += part
        assert seen.endswith(b"data: [DONE]\n\n")
        await wait_for(lambda: node.records[0].phase is Phase.DONE)
    assert node.records[0].stream
    assert node.records[0].ttft_s is not None


@on_loop
async def test_a_client_that_leaves_stops_the_upstream() -> None:
    behind = back()
    behind.script.text_gate = asyncio.Event()
    async with serving(behind) as (_, port), front_of(port) as (node, raw):
        raw.request("POST", "/far", {"model": "m", "messages": HI, "stream": True})
        await raw.head()
        raw.writer.close()
        await wait_for(lambda: behind.generations[0].cancelled is not None)
        await wait_for(lambda: node.records[0].phase is Phase.CANCELLED)


@on_loop
async def test_a_client_that_leaves_before_the_answer_stops_the_upstream_as_well() -> None:
    behind = back()
    behind.script.start_gate = asyncio.Event()
    async with serving(behind) as (_, port), front_of(port) as (node, raw):
        raw.request("POST", "/far", {"model": "m", "messages": HI})
        await wait_for(lambda: len(behind.generations) == 1)
        raw.writer.close()
        await wait_for(lambda: behind.generations[0].cancelled is not None)
        await wait_for(lambda: node.records[0].phase is Phase.CANCELLED)


@on_loop
async def test_a_forwarded_request_is_cancelled_through_its_record() -> None:
    behind = back()
    behind.script.start_gate = asyncio.Event()
    async with serving(behind) as (_, port), front_of(port) as (node, raw):
        raw.request("POST", "/far", {"model": "m", "messages": HI})
        await wait_for(lambda: len(behind.generations) == 1)
        cancel = node.records[0].cancel
        assert cancel is not None
        cancel("cancelled by the user")
        got = await raw.response()
        assert (got.status, got.error["code"]) == (499, "cancelled")
        await wait_for(lambda: behind.generations[0].cancelled is not None)
        assert node.records[0].phase is Phase.CANCELLED


@on_loop
async def test_stopping_says_so_to_who_waits_for_an_upstream() -> None:
    behind = back()
    behind.script.start_gate = asyncio.Event()
    async with serving(behind) as (_, port), AsyncExitStack() as clients:
        async with front_of(port) as (_, raw):
            waiting = await clients.enter_async_context(RawClient(raw.port))
            waiting.request("POST", "/far", {"model": "m", "messages": HI})
            await wait_for(lambda: len(behind.generations) == 1)
        got = await waiting.response()
    assert (got.status, got.error["code"]) == (503, "draining")


@on_loop
async def test_the_callers_key_stays_here_and_ours_is_sent() -> None:
    async with serving(back(api_keys=[KEY])) as (_, port):
        async with front_of(port, api_key=KEY) as (_, raw):
            got = await raw.ask("POST", "/far", {"model": "m", "messages": HI}, Authorization="Bearer theirs")
            assert got.status == 200
        async with front_of(port) as (_, raw):
            got = await raw.ask("POST", "/far", {"model": "m", "messages": HI}, Authorization=f"Bearer {KEY}")
            assert got.status == 401


@on_loop
async def test_the_upstreams_errors_pass_with_their_status() -> None:
    async with serving(back()) as (_, port), front_of(port) as (node, raw):
        got = await raw.ask("POST", "/far/chat/completions", {"model": "none", "messages": HI})
        assert (got.status, got.error["code"]) == (404, "model_not_found")
    assert (node.records[0].phase, node.records[0].status) == (Phase.FAILED, 404)


@on_loop
async def test_an_upstream_that_is_not_there_is_502() -> None:
    async with serving(back()) as (_, port):
        pass
    async with front_of(port) as (node, raw):
        got = await raw.ask("POST", "/far", {"model": "m", "messages": HI})
        assert (got.status, got.error["code"]) == (502, "upstream_unreachable")
    assert node.records[0].phase is Phase.FAILED


@on_loop
@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_an_upstream_that_breaks_off_in_a_stream_is_said_in_it(framing: bytes) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        part = b"data: {}\n\n"
        chunk = part if b"Length" in framing else b"%x\r\n%b\r\n" % (len(part), part)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + b"\r\n" + chunk)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(half, "127.0.0.1", 0)
    async with server, front_of(server.sockets[0].getsockname()[1]) as (node, raw):
        raw.request("POST", "/far", {"model": "m", "messages": HI, "stream": True})
        rest = await raw.rest()
        assert b"upstream_broken" in rest
        assert b"[DONE]" not in rest
        await wait_for(lambda: node.records[0].phase is Phase.FAILED)


@on_loop
async def test_an_upstream_opens_this_node_to_no_web_page() -> None:
    async def open_to_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nSet-Cookie: a=b\r\nX-Kept: 1\r\n"
            b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(open_to_all, "127.0.0.1", 0)
    async with server, front_of(server.sockets[0].getsockname()[1]) as (_, raw):
        got = await raw.ask("GET", "/far/models")
        assert (got.body, got.headers["x-kept"], got.headers["content-length"]) == (b"{}", "1", "2")
        assert not {"access-control-allow-origin", "set-cookie"} & got.headers.keys()


@on_loop
async def test_without_a_route_the_model_names_the_upstream() -> None:
    behind = back()
    async with serving(behind) as (_, port), front_of(port) as (_, raw):
        named = await raw.ask("POST", "/v1/chat/completions", {"model": "box/m", "messages": HI})
        assert (named.status, named.json["model"]) == (200, "m")
        only = await raw.ask("POST", "/v1/chat/completions", {"model": "box", "messages": HI})
        assert (only.status, only.json["model"]) == (200, "m")
        assert (await raw.ask("GET", "/v1/models")).json["data"][1]["id"] == "box"


@on_loop
async def test_other_methods_and_the_query_pass() -> None:
    async with serving(back()) as (_, port), front_of(port) as (node, raw):
        assert (await raw.ask("GET", "/far/v1/models?limit=1")).json["data"][0]["id"] == "m"
        head = await raw.ask("HEAD", "/far/v1/models")
        assert head.status == 200
        assert (await raw.ask("DELETE", "/far/v1/models")).status == 405
    assert [r.method for r in node.records] == ["GET", "HEAD", "DELETE"]


@on_loop
async def test_a_slow_client_holds_the_upstream_back() -> None:
    behind = back()
    behind.script.texts = ("x" * 100_000,) * 400
    async with serving(behind) as (_, port), front_of(port) as (_, raw):
        raw.reader._limit = 2**16  # type: ignore[attr-defined]
        raw.request("POST", "/far", {"model": "m", "messages": HI, "stream": True})
        await raw.head()
        before = -1
        while behind.generations[0].sent != before:
            before = behind.generations[0].sent
            await asyncio.sleep(0.1)
        assert before < 400
        got = bytearray()
        while part := await raw.chunk():
            got += part
        assert got.count(behind.script.texts[0].encode()) == 400
