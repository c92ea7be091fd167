"""A scripted HTTP server on a free port, for tests of the upstream clients: it does on the socket what it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    """Counts connections from 0."""

    def header(self, name: str) -> str | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


class Line:
    """The server's end of one connection, for a script."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.writer = writer
        self._reader = reader

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes = b"ok", status: str = "200 OK", extra: str = "") -> None:
        await self.send(f"HTTP/1.1 {status}\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def closed(self) -> None:
        """Wait until the client closes."""
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            return

    def cut(self) -> None:
        self.writer.transport.abort()


Script = Callable[[Line, Seen], Awaitable[None]]


async def answer_ok(line: Line, _: Seen) -> None:
    await line.answer()


@dataclass
class ScriptedServer:
    """``async with ScriptedServer(script)``; the script runs for every request; ``seen`` holds what arrived."""

    script: Script = answer_ok
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> ScriptedServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        line = Line(self.connections, reader, writer)
        self.connections += 1
        try:
            while (request := await _read(reader, line.number)) is not None:
                self.seen.append(request)
                await self.script(line, request)
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()
            self._tasks.discard(task)


async def _read(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ssl.SSLError):
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(n, v.strip()) for n, _, v in (line.partition(":") for line in lines)]
    length = next((int(v) for n, v in headers if n.lower() == "content-length"), 0)
    return Seen(method, target, headers, await reader.readexactly(length), connection)
