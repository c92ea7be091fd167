"""Heads and bodies made up by hypothesis against the real listener: it never crashes, hangs or sees a request too many.

The judge is a second, independent and strict reader of HTTP/1.1 framing: whatever it does not accept as a whole
request, the node must not answer as one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laya_desktop.config.schema import NodeConfig
from laya_desktop.node.server.listener import Listener
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import LOOPS, RawClient, wait_for

INNER = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: inner\r\n\r\n"
FIRST = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\n"
LIMIT_S = 5.0

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*?)[ \t]*")
_REQUEST = re.compile(rb"[A-Z]+ +[!-~]+ +HTTP/1\.[01]")  # more spaces between the words change no framing
_CHUNK = re.compile(rb"([0-9A-Fa-f]+)((?:;[^\x00\r\n]*)?)\r\n")
_ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n")


# -- the judge


def whole_requests(data: bytes) -> list[bytes]:
    """Heads of the requests that a strict reader takes out of the bytes; it stops at the first thing it doubts."""
    found: list[bytes] = []
    while True:
        data = data.lstrip(b"\r\n")  # empty lines between requests frame nothing (RFC 9112, section 2.2)
        head, end, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        fields = [_LINE.fullmatch(line) for line in lines]
        if not end or not _REQUEST.fullmatch(first) or not all(fields):
            return found
        length = _length([(m[1].lower(), m[2]) for m in fields if m], rest)
        if length is None or length > len(rest):
            return found
        found.append(head)
        data = rest[length:]


def _length(fields: list[tuple[bytes, bytes]], rest: bytes) -> int | None:
    """Bytes of the body; None where they are in doubt or not all there."""
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        return None
    if lengths:
        return int(lengths[0]) if re.fullmatch(rb"[0-9]{1,9}", lengths[0]) else None
    if not codings:
        return 0
    return _chunked_length(rest) if codings[0].lower() == b"chunked" else None


def _chunked_length(rest: bytes) -> int | None:
    at = 0
    while (chunk := _CHUNK.match(rest, at)) is not None and len(chunk[1]) < 9:
        at, size = chunk.end(), int(chunk[1], 16)
        if size == 0:
            while (line := re.compile(rb"[^\x00\r\n]+\r\n").match(rest, at)) is not None:
                at = line.end()
            return at + 2 if rest.startswith(b"\r\n", at) else None
        if rest[at + size : at + size + 2] != b"\r\n":
            return None
        at += size + 2
    return None


def inner_seen(answers: bytes) -> int:
    """How often the node answered the inner request as one of its own."""
    return len([m for m in _ANSWER.finditer(answers) if m[1] == b"200" and b"X-Request-Id: inner\r\n" in m[2]])


# -- what is sent

SPACES = st.sampled_from([b"", b" ", b"\t", b"  ", b"\x0b", b"\r\n ", b"\x00", b"\xa0"])
SIZES = st.sampled_from([0, 1, 5, len(INNER) - 1, len(INNER), len(INNER) + 1, 10**6])


def _number(size: int) -> st.SearchStrategy[bytes]:
    n, x = b"%d" % size, b"%x" % size
    forms = (n, b"+" + n, b"-" + n, b"0" + n, b" " + n + b" ", n + b", " + n, n + b".0", b"0x" + x, n + b"_0")
    return st.sampled_from([*forms, b'"' + n + b'"', n + b"\x00", n + b"e0"])


NAMES = st.sampled_from(
    [b"Content-Length", b"content-length", b"Content_Length", b"Content-Length ", b" Content-Length", b"Content-Lengt"]
)
LENGTH_LINES = st.builds(
    lambda name, space, value: name + b":" + space + value + b"\r\n", NAMES, SPACES, SIZES.flatmap(_number)
)
CODINGS = st.sampled_from(
    [
        b"chunked",
        b"Chunked",
        b"xchunked",
        b"chunked, chunked",
        b"identity",
        b"gzip, chunked",
        b"chunked\x00",
        b"chun ked",
    ]
)
CODING_NAMES = st.sampled_from(
    [b"Transfer-Encoding", b"transfer-encoding", b"Transfer_Encoding", b"Transfer-Encoding ", b"\tTransfer-Encoding"]
)
CODING_LINES = st.builds(
    lambda name, space, value: name + b":" + space + value + b"\r\n", CODING_NAMES, SPACES, CODINGS
)
OTHER_LINES = st.sampled_from(
    [
        b"Connection: keep-alive\r\n",
        b"Connection: upgrade\r\nUpgrade: h2c\r\n",
        b"Expect: 100-continue\r\n",
        b"X: y\n",
        b"X\r\n",
        b"Host: localhost\r\n",
        b"Origin: null\r\n",
        b"X-Long: " + b"x" * 20_000 + b"\r\n",
    ]
)
HEAD_LINES = st.lists(st.one_of(LENGTH_LINES, CODING_LINES, OTHER_LINES), max_size=4).map(b"".join)
CHUNK_HEADS = st.builds(
    lambda form, size, rest, end: form % size + rest + end,
    st.sampled_from([b"%x", b"%X", b"0%x", b"+%x", b"-%x", b"0x%x", b" %x", b"%x ", b"%xg", b"%x\x00"]),
    SIZES,
    st.sampled_from([b"", b";a", b";a=b", b";" + b"a" * 300, b"\r", b";\n"]),
    st.sampled_from([b"\r\n", b"\n", b"\r", b"\r\r\n", b""]),
)
CHUNKS = st.builds(
    lambda head, end: head + INNER + end, CHUNK_HEADS, st.sampled_from([b"\r\n", b"\n", b"", b"\r\n\r\n", b"xx\r\n"])
)
LASTS = st.sampled_from([b"0\r\n\r\n", b"0\r\n", b"0\n\n", b"00\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0;a\r\n\r\n", b""])
CHUNKED_BODIES = st.builds(lambda chunks, last: b"".join(chunks) + last, st.lists(CHUNKS, max_size=3), LASTS)
BODIES = st.one_of(st.just(INNER), CHUNKED_BODIES, st.just(b"0\r\n\r\n" + INNER), st.just(b""))
FRAMED = st.builds(lambda head, body: FIRST + head + b"\r\n" + body + INNER, HEAD_LINES, BODIES)
WELL_MEANT = st.sampled_from(
    [
        INNER,
        FIRST + b"Content-Length: %d\r\n\r\n" % len(INNER) + INNER,
        FIRST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(INNER) + INNER + b"\r\n0\r\n\r\n",
    ]
)


DAMAGE = st.one_of(st.binary(max_size=3), st.sampled_from([b"\r\n", b"\n", b"\r", b" ", b":", b"0"]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Well-meant requests with a few bytes put in, taken out or replaced."""
    data = bytearray(b"".join(draw(st.lists(WELL_MEANT, min_size=1, max_size=3))))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        out = draw(st.integers(0, 3))
        data[at : at + out] = draw(
            st.one_of(st.binary(max_size=3), st.sampled_from([b"\r\n", b"\n", b"\r", b" ", b":", b"0"]))
        )
    return bytes(data)


# -- the node


class Fuzzed:
    """A listener on a loop that runs while something is sent to it."""

    def __init__(self, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._run = run
        config = NodeConfig.model_validate({"models": [{"name": "m", "path": "/m.gguf"}]})
        self.listener = Listener()
        self.port: int = run(self.listener.start(FakeGateway(config), "127.0.0.1", 0))

    def send(self, data: bytes, cuts: list[int]) -> bytes:
        """Send the bytes in pieces, close our side, and return all answers."""
        answers: bytes = self._run(self._exchange(data, sorted({min(c, len(data)) for c in cuts})))
        return answers

    async def _exchange(self, data: bytes, cuts: list[int]) -> bytes:
        async with asyncio.timeout(LIMIT_S), RawClient(self.port) as raw:
            raw.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            got = b""
            try:
                for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                    raw.send(data[start:end])
                    await raw.writer.drain()
                    await asyncio.sleep(0)
                raw.writer.write_eof()
                while part := await raw.reader.read(65536):
                    got += part
            except ConnectionError:  # a refused client that goes on sending
                return got
            return got

    async def _is_well(self) -> bool:
        async with RawClient(self.port) as raw:
            return (await raw.ask("GET", "/health")).status == 200

    def check(self) -> None:
        """It answers, and holds on to nothing."""
        assert self._run(self._is_well())
        self._run(wait_for(lambda: self.listener.connections == 0))
        hub = self.listener._hub
        assert hub is not None
        assert hub.body_bytes == 0

    def close(self) -> None:
        self._run(self.listener.stop(0.2))


@pytest.fixture
def node(caplog: pytest.LogCaptureFixture) -> Iterator[Fuzzed]:
    caplog.set_level(logging.WARNING)
    with asyncio.Runner(loop_factory=LOOPS[-1]) as runner:
        fuzzed = Fuzzed(runner.run)
        yield fuzzed
        fuzzed.check()
        fuzzed.close()
    assert not caplog.records


FUZZ = settings(
    max_examples=400,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CUTS = st.lists(st.integers(0, 400), max_size=4)


def test_the_judge_and_the_node_agree_on_what_is_well_formed(node: Fuzzed) -> None:
    chunk = b"%x;a=b\r\n" % len(INNER) + INNER + b"\r\n"
    body = FIRST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2 + b"0\r\nX: y\r\n\r\n"
    for data, inner in (
        (INNER * 3, 3),
        (FIRST + b"Content-Length: %d\r\n\r\n" % len(INNER) + INNER * 2, 1),
        (body + INNER, 1),
        (FIRST + b"Content-Length: 0\r\n\r\n" + INNER, 1),
        (body, 0),
    ):
        assert len([h for h in whole_requests(data) if b"inner" in h]) == inner
        assert inner_seen(node.send(data, [])) == inner
    assert whole_requests(FIRST + b"Content-Length: +0\r\n\r\n" + INNER) == []
    assert whole_requests(body.replace(b"chunked", b"xchunked") + INNER) == []


def test_no_framing_makes_two_requests_of_one(node: Fuzzed) -> None:
    @FUZZ
    @given(FRAMED, CUTS)
    def check(data: bytes, cuts: list[int]) -> None:
        answers = node.send(data, cuts)
        assert inner_seen(answers) <= len([h for h in whole_requests(data) if b"X-Request-Id: inner" in h])

    check()


def test_no_damage_makes_a_request_of_nothing(node: Fuzzed) -> None:
    @FUZZ
    @given(damaged(), CUTS)
    def check(data: bytes, cuts: list[int]) -> None:
        answers = node.send(data, cuts)
        assert len([m for m in _ANSWER.finditer(answers) if m[1] == b"200"]) <= len(whole_requests(data))

    check()


def test_no_bytes_crash_or_hang_it(node: Fuzzed) -> None:
    @FUZZ
    @given(st.binary(max_size=300), CUTS)
    def check(data: bytes, cuts: list[int]) -> None:
        answers = node.send(data, cuts)
        assert not answers or answers.startswith(b"HTTP/1.1 ")

    check()
