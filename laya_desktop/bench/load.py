"""A level of load: so many requests over so many connections, bounded in number and time. The helper's event loop.

Closed loop: a connection sends the next request when the answer is there. Open loop (``rate_per_s``): requests are due
at even intervals whether or not answers come, and latency counts from when they were due.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from laya_desktop.bench.figures import Sample
from laya_desktop.bench.lane import Lane
from laya_desktop.errors import LayaError

GRACE_S = 30.0
"""For answers that are under way when the time is up; what is not there then is cut off and counted as such."""
_REFUSALS_MOST = 3
"""Attempts to connect again, in a row, before the level is given up."""
_SHED = frozenset({429, 503})
_SHED_PAUSE_S = 0.05
"""After a refusal: a client that asks again at once would only measure how quickly it is refused."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go."""

    host: str
    port: int
    base: str
    authority: str
    tls: ssl.SSLContext | None = None

    @classmethod
    def parse(cls, url: str) -> Server:
        """From ``http://127.0.0.1:5292``. Raises LayaError."""
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or not port:
            raise LayaError(
                f"'{url}' is not the address of a node.", hint="Write it like http://127.0.0.1:5292.", status=400
            )
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        return cls(parts.hostname, port, parts.path.rstrip("/"), parts.netloc.rpartition("@")[2], tls)

    def request(self, method: str, path: str, body: bytes | None, api_key: str) -> bytes:
        """The bytes of a request."""
        lines = [f"{method} {self.base}{path} HTTP/1.1", f"Host: {self.authority}", "User-Agent: laya-bench"]
        lines += [f"Authorization: Bearer {api_key}"] if api_key else []
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body is not None else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class Load:
    """Runs one level; ``samples`` grows while it runs.

    Args:
        server: where requests go.
        make: the bytes of request number n.
        total: requests to send.
        concurrency: connections, and requests under way at once.
        seconds: after that no new request is sent.
        rate_per_s: open loop at that rate; None: closed loop.
    """

    def __init__(
        self,
        server: Server,
        make: Callable[[int], bytes],
        *,
        total: int,
        concurrency: int,
        seconds: float,
        rate_per_s: float | None = None,
    ) -> None:
        self.samples: list[Sample] = []
        self._server, self._make = server, make
        self._total, self._seconds, self._rate_per_s = total, seconds, rate_per_s
        self._concurrency = min(concurrency, total)
        self._sent = 0
        self._lanes: set[Lane] = set()
        self._refused = 0
        self._due: deque[float] = deque()
        self._closing = False
        self._rest_until_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> float:
        """Send everything; seconds that it took.

        Raises:
            LayaError: nobody listens there.
        """
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._begin_s = time.monotonic()
        timers = [self._loop.call_later(self._seconds, self._on_time_up)]
        timers.append(self._loop.call_later(self._seconds + GRACE_S, self._cut_off))
        try:
            for _ in range(self._concurrency):
                await self._connect()
            if self._rate_per_s:
                self._start(self._pace(self._rate_per_s))
            await self._done
        finally:
            self._closing = True
            for timer in timers:
                timer.cancel()
            for task in tuple(self._tasks):
                task.cancel()
            for lane in tuple(self._lanes):
                lane.close()
        last_s = max((s.end_s for s in self.samples), default=self._begin_s)
        return last_s - self._begin_s

    # Source

    def take(self, lane: Lane) -> tuple[bytes, Sample] | None:
        """The next request."""
        if self._over():
            return None
        rest_s = self._rest_until_s - time.monotonic()
        if rest_s > 0:
            self._loop.call_later(rest_s, lane.go)
            return None
        if self._rate_per_s:
            if not self._due:
                return None
            due_s = self._due.popleft()
        else:
            due_s = time.monotonic()
        self._sent += 1
        return self._make(self._sent - 1), Sample(due_s)

    def finished(self, sample: Sample) -> None:
        """Keep it; the last one ends the level."""
        self.samples.append(sample)
        if sample.status is not None:
            self._refused = 0
        if sample.status in _SHED:
            self._rest_until_s = time.monotonic() + _SHED_PAUSE_S
        if self._over() and len(self.samples) >= self._sent and not self._done.done():
            self._done.set_result(None)

    def lost(self, lane: Lane) -> None:
        """Connect again, unless it is over or nobody answers any more."""
        self._lanes.discard(lane)
        if not self._closing and not self._over():
            self._start(self._connect_again())

    def _over(self) -> bool:
        return self._sent >= self._total

    async def _connect(self) -> None:
        server = self._server
        try:
            _, lane = await self._loop.create_connection(lambda: Lane(self), server.host, server.port, ssl=server.tls)
        except OSError as fault:
            raise LayaError(
                f"No answer from {server.authority}: {fault.strerror or fault}.",
                hint="Start the node, then measure again.",
                code="unreachable",
                status=502,
            ) from None
        self._lanes.add(lane)

    async def _connect_again(self) -> None:
        self._refused += 1
        if self._refused <= _REFUSALS_MOST * self._concurrency:
            with contextlib.suppress(LayaError):
                await self._connect()
                return
        if not self._lanes and not self._done.done():
            self._done.set_exception(
                LayaError(
                    f"{self._server.authority} closes the connections or does not answer any more.",
                    hint="The node's log says why.",
                    code="unreachable",
                    status=502,
                )
            )

    async def _pace(self, rate_per_s: float) -> None:
        """Make requests due; wake idle connections."""
        made = 0
        while made < self._total:
            now_s = time.monotonic()
            while made < self._total and (due_s := self._begin_s + made / rate_per_s) <= now_s:
                self._due.append(due_s)
                made += 1
            for lane in tuple(self._lanes):
                if not self._due:
                    break
                lane.go()
            await asyncio.sleep(max(0.0, self._begin_s + made / rate_per_s - time.monotonic()))

    def _on_time_up(self) -> None:
        self._total = self._sent
        if len(self.samples) >= self._sent and not self._done.done():
            self._done.set_result(None)

    def _cut_off(self) -> None:
        for lane in tuple(self._lanes):
            lane.give_up("cut_off", f"Not answered within {GRACE_S:g} s of the end of the level.")

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
