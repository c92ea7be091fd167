"""The last log lines in memory, for the Logs page. Thread-safe; knows nothing of files or of ``logging``."""

from __future__ import annotations

import threading
from dataclasses import dataclass

RING_LINES = 10_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log.

    Attributes:
        seq: counts up by one from 1; a gap means that lines were overwritten before they were read.
        time_unix_s: when it was logged.
        level: ``debug``, ``info``, ``warn`` or ``error``.
        logger: dotted name of who logged it.
        message: the text; further lines of it (a traceback) follow after newlines.
    """

    seq: int
    time_unix_s: float
    level: str
    logger: str
    message: str


class LogRing:
    """A bounded memory of log lines: ``append`` by the writer thread, ``since`` by any reader."""

    def __init__(self, capacity: int = RING_LINES) -> None:
        self._capacity = capacity
        self._lines: list[LogLine | None] = [None] * capacity
        self._last_seq = 0
        self._lock = threading.Lock()

    @property
    def last_seq(self) -> int:
        """The newest line's number; 0 while there is none."""
        return self._last_seq

    def append(self, time_unix_s: float, level: str, logger: str, message: str) -> LogLine:
        """Add a line, overwriting the oldest one when full."""
        with self._lock:
            seq = self._last_seq + 1
            line = LogLine(seq, time_unix_s, level, logger, message)
            self._lines[(seq - 1) % self._capacity] = line
            self._last_seq = seq
        return line

    def since(self, seq: int, limit: int = 1000) -> tuple[LogLine, ...]:
        """Lines newer than ``seq`` that are still held, oldest first, at most ``limit``.

        Pass the last line's ``seq`` again for the next ones; ``last_seq - limit`` begins with the newest ``limit``.
        """
        with self._lock:
            first = max(seq, self._last_seq - self._capacity, 0)
            last = min(self._last_seq, first + max(limit, 0))
            found = [self._lines[i % self._capacity] for i in range(first, last)]
        return tuple(line for line in found if line is not None)
