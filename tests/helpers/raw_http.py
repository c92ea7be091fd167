"""HTTP by hand: exactly the bytes that the test wants, and the server's answer taken apart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from laya_desktop.node.server.listener import Listener

LIMIT_S = 10.0
LOOPS: tuple[Any, ...] = (asyncio.new_event_loop,)
if sys.platform != "win32":
    import uvloop

    LOOPS = (*LOOPS, uvloop.new_event_loop)


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on the loop that the node runs on; it fails when a task of it is left behind."""
    return _on(test, LOOPS[-1:])


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The same on asyncio's own loop as well: the two differ in flow control and in how connections end."""
    return _on(test, LOOPS)


def _on(test: Callable[..., Coroutine[Any, Any, None]], loops: tuple[Any, ...]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*args, **kwargs), 30)
            await wait_for(lambda: len(asyncio.all_tasks()) == 1)

        for loop_factory in loops:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(bounded())

    return run


async def wait_for(condition: Callable[[], bool]) -> None:
    """Until the condition holds."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - conditions of the server, which sets no event for tests
            await asyncio.sleep(0.002)


@dataclass
class Response:
    """One answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]

    @property
    def events(self) -> list[Any]:
        lines = [line[6:] for line in self.body.decode().split("\n\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


class RawClient:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> RawClient:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, data: bytes | str) -> None:
        self.writer.write(data.encode("latin-1") if isinstance(data, str) else data)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(data)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data)

    async def head(self) -> Response:
        async with asyncio.timeout(LIMIT_S):
            raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw.strip().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        return Response(int(first.split(" ")[1]), {k.lower(): v for k, v in pairs})

    async def chunk(self) -> bytes:
        async with asyncio.timeout(LIMIT_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def response(self, *, head_only: bool = False) -> Response:
        got = await self.head()
        if head_only or got.status in (100, 204, 304):
            return got
        async with asyncio.timeout(LIMIT_S):
            if "content-length" in got.headers:
                got.body = await self.reader.readexactly(int(got.headers["content-length"]))
            elif got.headers.get("transfer-encoding") == "chunked":
                while part := await self.chunk():
                    got.body += part
            else:
                got.body = await self.reader.read()
        return got

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        self.request(method, path, body, **headers)
        return await self.response(head_only=method == "HEAD")

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(LIMIT_S):
            return await self.reader.read()


@asynccontextmanager
async def serving(gateway: Any, host: str = "127.0.0.1") -> AsyncIterator[tuple[Listener, int]]:
    """The real listener on a free port; nothing of it is left afterwards."""
    listener = Listener()
    port = await listener.start(gateway, host, 0)
    try:
        yield listener, port
    finally:
        await listener.stop(0.2)
        assert listener.connections == 0
