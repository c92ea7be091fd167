"""Load that ratebench cannot make: timed event streams, and a closed loop of POST requests. asyncio on uvloop.

The origin writes the moment (``time.monotonic_ns``, one clock for the whole machine) into every event, so the client
knows how long each one was on its way.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import uvloop

EVENT_S = 0.02
"""Pause between two events of a stream."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_STAMP = re.compile(rb'"at_ns": (\d+)')
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_FILLER = "x" * 120


class _Origin(asyncio.Protocol):
    """Answers every request with a stream that ends when the client leaves."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer: asyncio.TimerHandle | None = None
        self._next_s = 0.0

    def data_received(self, data: bytes) -> None:
        if self._timer is None and b"\r\n\r\n" in data:
            self._transport.write(_HEAD)
            self._next_s = asyncio.get_running_loop().time()
            self._send()

    def _send(self) -> None:
        text = f'data: {{"at_ns": {time.monotonic_ns()}, "text": "{_FILLER}"}}\n\n'.encode()
        self._transport.write(b"%x\r\n%b\r\n" % (len(text), text))
        self._next_s += EVENT_S
        self._timer = asyncio.get_running_loop().call_at(self._next_s, self._send)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def _serve(port: int) -> None:
    listening = await asyncio.get_running_loop().create_server(_Origin, "127.0.0.1", port)
    print("ready", flush=True)
    async with listening:
        await listening.serve_forever()


@contextmanager
def origin(port: int) -> Iterator[None]:
    """The origin in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.streams", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.terminate()


class _Listener(asyncio.Protocol):
    """One stream's client: notes the delay of every event."""

    def __init__(self, port: int, delays_ns: list[int]) -> None:
        self._request = f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        self._delays_ns = delays_ns
        self.events = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        for stamp in _STAMP.findall(data):
            self._delays_ns.append(now_ns - int(stamp))
            self.events += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


async def measure(port: int, count: int, seconds: float) -> dict[str, float]:
    """Open ``count`` streams spread over one interval, and sum up the delays of ``seconds`` seconds."""
    loop = asyncio.get_running_loop()
    delays_ns: list[int] = []
    opened = []
    for _ in range(count):
        opened.append(await loop.create_connection(lambda: _Listener(port, delays_ns), "127.0.0.1", port))
        await asyncio.sleep(EVENT_S / count)
    await asyncio.sleep(0.3)
    delays_ns.clear()
    await asyncio.sleep(seconds)
    ordered = sorted(delays_ns)
    failed = len([1 for _, listener in opened if listener.lost or not listener.events])
    for transport, _ in opened:
        transport.abort()
    await asyncio.sleep(0.05)
    if not ordered:
        return {"events": 0, "failed": float(count), "p50_us": float("nan"), "p99_us": float("nan")}
    return {
        "events": float(len(ordered)),
        "failed": float(failed),
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[int((len(ordered) - 1) * 0.99)] / 1e3,
    }


class _Asker(asyncio.Protocol):
    """One connection of the closed loop: asks again as soon as it is answered."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._buffer = b""
        self.answered = 0
        self.failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark or not self._is_whole(head, rest):
            return
        if head[9:10] == b"2":
            self.answered += 1
        else:
            self.failed += 1
        self._buffer = b""
        self._transport.write(self._request)

    @staticmethod
    def _is_whole(head: bytes, rest: bytes) -> bool:
        length = _LENGTH.search(head)
        return len(rest) >= int(length[1]) if length else rest.endswith(b"0\r\n\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.failed += 1


async def flood(port: int, path: str, body: bytes, connections: int, seconds: float) -> tuple[float, int]:
    """Ask on so many connections for so long; answers with 2xx a second, and how many failed."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    loop = asyncio.get_running_loop()
    opened = [await loop.create_connection(lambda: _Asker(request), "127.0.0.1", port) for _ in range(connections)]
    started_s = time.monotonic()
    await asyncio.sleep(seconds)
    took_s = time.monotonic() - started_s
    rate = sum(asker.answered for _, asker in opened) / took_s
    failed = sum(asker.failed for _, asker in opened)
    for transport, _ in opened:
        transport.abort()
    await asyncio.sleep(0.05)
    return rate, failed


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
