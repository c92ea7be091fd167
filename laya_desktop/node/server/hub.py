"""What all connections of one listener share: their number, limits, draining, and one timer for every deadline.

Runs on the node's loop. It knows no routes and no APIs; it asks connections to end, it never writes to them.
"""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from laya_desktop.config.schema import ServerConfig

SWEEP_S = 0.5
CHECKED_AT_ONCE = 64
CHECK_PAUSE_S = 0.002
BODIES_IN_FLIGHT = 8
"""Bodies of the largest size that may be in memory at once, over all connections."""
MIN_BODY_BUDGET = 256 * 1024**2
REPEATS_KEPT = 32
REPEAT_BYTES = 512


class HasServerConfig(Protocol):
    """The part of the gateway that limits come from."""

    @property
    def server(self) -> ServerConfig:
        """The server's settings in force."""
        ...


class Member(Protocol):
    """A connection, as far as its listener goes."""

    def check_deadlines(self, now_ns: int, limits: ServerConfig) -> None:
        """End it where its client was too slow."""
        ...

    def drain(self) -> None:
        """End it where it owes no answer."""
        ...

    def cancel(self, reason: str) -> None:
        """Stop the work on its answer, so that it can say so and end."""
        ...

    def abort(self) -> None:
        """End it at once."""
        ...


class Hub:
    """Limits, counters and the sweeper of one listener."""

    def __init__(self, settings: HasServerConfig, count_answer: Callable[[int], None]) -> None:
        self._settings = settings
        self.count_answer = count_answer
        """Called with the status of each answer."""
        self.connections: set[Member] = set()
        self.requests_total = 0
        self.body_bytes = 0
        """Of all bodies in memory."""
        self.draining = False
        self.repeats: set[bytes] = set()
        """Whole requests, byte for byte, whose answer the application can repeat without parsing them again."""
        self.date_line = ""
        self.date_bytes = b""
        self.ids = count(1)
        self.id_prefix = token_hex(6).encode()
        self._timer: asyncio.TimerHandle | None = None
        self._unchecked: list[Member] = []
        self._empty: asyncio.Future[None] | None = None
        self._refresh_date()

    @property
    def limits(self) -> ServerConfig:
        """The server's settings in force."""
        return self._settings.server

    @property
    def body_budget(self) -> int:
        """Bytes of bodies that may be in memory at once."""
        return max(MIN_BODY_BUDGET, BODIES_IN_FLIGHT * self.limits.max_body)

    def new_id(self) -> str:
        """A request id that no other request of this listener has."""
        return f"{self.id_prefix.decode()}{next(self.ids):08x}"

    def remember(self, request: bytes) -> None:
        """Let a request be answered by its bytes from now on; only a few short ones are kept."""
        if len(self.repeats) < REPEATS_KEPT and len(request) <= REPEAT_BYTES:
            self.repeats.add(bytes(request))

    def start(self) -> None:
        """Begin to sweep."""
        self._arm()

    def close(self) -> None:
        """Stop sweeping."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def enter(self, connection: Member) -> bool:
        """Count a connection; False when it is one too many."""
        self.connections.add(connection)
        return len(self.connections) <= self.limits.max_connections

    def leave(self, connection: Member) -> None:
        """The connection is gone."""
        self.connections.discard(connection)
        if not self.connections and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def wait_empty(self, timeout_s: float) -> bool:
        """True once no connection is left, False after ``timeout_s``."""
        if not self.connections:
            return True
        self._empty = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self._empty, timeout_s)
        except TimeoutError:
            return False
        return True

    def _arm(self) -> None:
        limits = self.limits
        shortest = min(limits.head_timeout, limits.body_timeout, limits.idle_timeout)
        delay_s = min(SWEEP_S, max(0.02, shortest / 4))
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._sweep)

    def _sweep(self) -> None:
        self._refresh_date()
        self._unchecked = list(self.connections)
        self._check_some()

    def _check_some(self) -> None:
        """Check a few connections and let requests through before the next few: all at once held them up for ms."""
        some, self._unchecked = self._unchecked[:CHECKED_AT_ONCE], self._unchecked[CHECKED_AT_ONCE:]
        try:
            now_ns, limits = time.perf_counter_ns(), self.limits
            for connection in some:
                if connection in self.connections:
                    connection.check_deadlines(now_ns, limits)
        finally:
            if self._unchecked:
                self._timer = asyncio.get_running_loop().call_later(CHECK_PAUSE_S, self._check_some)
            else:
                self._arm()

    def _refresh_date(self) -> None:
        self.date_line = f"Date: {formatdate(usegmt=True)}\r\n"
        self.date_bytes = self.date_line.encode()
