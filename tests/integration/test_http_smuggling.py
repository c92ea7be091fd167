"""Requests that two servers could read differently: each is refused, and never becomes two requests."""

from __future__ import annotations

import re

import pytest

from laya_desktop.config.schema import NodeConfig
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_loop, serving

HEAD = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
INNER = "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: smuggled\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"

SHAPES = {
    "both lengths": f"{HEAD}Content-Length: 5\r\n{CHUNKED}\r\n0\r\n\r\n{INNER}",
    "both lengths, chunked first": f"{HEAD}{CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n{INNER}",
    "Content-Length twice": f"{HEAD}Content-Length: 0\r\nContent-Length: {len(INNER)}\r\n\r\n{INNER}",
    "Content-Length twice, equal": f"{HEAD}Content-Length: 0\r\nContent-Length: 0\r\n\r\n{INNER}",
    "Content-Length list": f"{HEAD}Content-Length: 0, 0\r\n\r\n{INNER}",
    "Content-Length +0": f"{HEAD}Content-Length: +0\r\n\r\n{INNER}",
    "Content-Length -1": f"{HEAD}Content-Length: -1\r\n\r\n{INNER}",
    "Content-Length 0x0": f"{HEAD}Content-Length: 0x0\r\n\r\n{INNER}",
    "Content-Length 0_0": f"{HEAD}Content-Length: 0_0\r\n\r\n{INNER}",
    "Content-Length empty": f"{HEAD}Content-Length:\r\n\r\n{INNER}",
    "Content-Length too large": f"{HEAD}Content-Length: 99999999999999999999\r\n\r\n{INNER}",
    "Content_Length": f"{HEAD}Content_Length: 5\r\n\r\n{INNER}",
    "xchunked": f"{HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{INNER}",
    "chunkedx": f"{HEAD}Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n{INNER}",
    "chunked, identity": f"{HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{INNER}",
    "gzip, chunked": f"{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{INNER}",
    "Transfer-Encoding twice": f"{HEAD}{CHUNKED}{CHUNKED}\r\n0\r\n\r\n{INNER}",
    "identity": f"{HEAD}Transfer-Encoding: identity\r\n\r\n{INNER}",
    "vertical tab": f"{HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{INNER}",
    "Transfer_Encoding": f"{HEAD}Transfer_Encoding: chunked\r\n\r\n{INNER}",
    "xchunked, upgrade": f"{HEAD}Connection: upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: xchunked\r\n\r\n{INNER}",
    "HTTP/1.0 chunked": f"{HEAD.replace('1.1', '1.0')}Connection: keep-alive\r\n{CHUNKED}\r\n0\r\n\r\n{INNER}",
    "bare LF everywhere": f"GET /nothing HTTP/1.1\nHost: localhost\n\n{INNER}",
    "bare LF after the line": f"GET /nothing HTTP/1.1\nHost: localhost\r\n\r\n{INNER}",
    "bare LF in the head": f"GET /nothing HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n{INNER}",
    "bare LF at the end": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\n{INNER}",
    "bare CR": f"GET /nothing HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n{INNER}",
    "folded header": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n{INNER}",
    "folded coding": f"{HEAD}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{INNER}",
    "space before the first header": f"GET /nothing HTTP/1.1\r\n Host: localhost\r\n\r\n{INNER}",
    "NUL in a value": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n{INNER}",
    "NUL in a name": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nX\x00: a\r\n\r\n{INNER}",
    "space before colon": f"{HEAD}Content-Length : 0\r\n\r\n{INNER}",
    "tab before colon": f"{HEAD}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n{INNER}",
    "no colon": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n{INNER}",
    "Host twice": f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n{INNER}",
    "chunk size +5": f"{HEAD}{CHUNKED}\r\n+5\r\nhello\r\n0\r\n\r\n{INNER}",
    "chunk size 0x5": f"{HEAD}{CHUNKED}\r\n0x5\r\nhello\r\n0\r\n\r\n{INNER}",
    "chunk size with a space": f"{HEAD}{CHUNKED}\r\n5 \r\nhello\r\n0\r\n\r\n{INNER}",
    "chunk size with LF": f"{HEAD}{CHUNKED}\r\n5\nhello\r\n0\r\n\r\n{INNER}",
    "chunk data with LF": f"{HEAD}{CHUNKED}\r\n5\r\nhello\n0\r\n\r\n{INNER}",
    "chunk extension with LF": f"{HEAD}{CHUNKED}\r\n5;a\nhello\r\n0\r\n\r\n{INNER}",
    "chunk too long": f"{HEAD}{CHUNKED}\r\n5\r\nhelloX\r\n0\r\n\r\n{INNER}",
    "chunk size too large": f"{HEAD}{CHUNKED}\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n{INNER}",
    "length in a trailer": f"{HEAD}{CHUNKED}\r\n0\r\nContent-Length: 5\r\n\r\n{INNER}",
    "last chunk with LF": f"{HEAD}{CHUNKED}\r\n0\n\n{INNER}",
    "HTTP/0.9": f"GET /health\r\n\r\n{INNER}",
    "HTTP/2.0": f"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n{INNER}",
    "two spaces in the target": f"GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n{INNER}",
    "lower-case method": f"get /health HTTP/1.1\r\nHost: localhost\r\n\r\n{INNER}",
    "other address": f"GET http://evil/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n{INNER}",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\x00" * 50,
}
STATUS_LINE = re.compile(rb"HTTP/1\.1 \d{3} ")
OTHER_STATUS = {"HTTP/0.9": 505, "HTTP/2.0": 505}


@on_loop
@pytest.mark.parametrize("split", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_one_refusal_and_nothing_after_it(shape: str, split: bool) -> None:
    node = FakeGateway(NodeConfig.model_validate({"models": [{"name": "m", "path": "/m.gguf"}]}))
    data = SHAPES[shape].encode("latin-1")
    async with serving(node) as (listener, port), RawClient(port) as client:
        for part in [data[i : i + 1] for i in range(len(data))] if split else [data]:
            client.send(part)
        raw = await client.rest()
        assert len(STATUS_LINE.findall(raw)) == 1
        assert raw.startswith(b"HTTP/1.1 %d " % OTHER_STATUS.get(shape, 400))
        assert b"Connection: close" in raw
        assert b"smuggled" not in raw
        assert b'"error"' in raw
        assert listener.requests_total == 1
        assert node.generations == []


@on_loop
async def test_a_valid_request_before_a_bad_one_is_answered_first() -> None:
    node = FakeGateway(NodeConfig.model_validate({"models": [{"name": "m", "path": "/m.gguf"}]}))
    async with serving(node) as (_, port), RawClient(port) as client:
        body = b'{"model":"m","prompt":"hi"}'
        client.send(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body + SHAPES["both lengths"].encode())
        assert (await client.response()).status == 200
        got = await client.response()
        assert (got.status, got.headers["connection"]) == (400, "close")
        assert await client.rest() == b""


@on_loop
async def test_data_after_connection_close_is_not_a_request() -> None:
    node = FakeGateway(NodeConfig.model_validate({"models": [{"name": "m", "path": "/m.gguf"}]}))
    async with serving(node) as (_, port), RawClient(port) as client:
        client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + INNER)
        raw = await client.rest()
        assert len(STATUS_LINE.findall(raw)) == 1
        assert b"smuggled" not in raw
