"""From ``logging`` to ring, console and files. Whoever logs only formats the message and queues it.

One writer thread does the rest, so a slow disk or terminal never holds up a caller. The queue is bounded: what does
not fit is dropped, counted and said. Nothing here raises into the code that logs.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

from laya_desktop.logs.files import Announce, LogFiles, Severity
from laya_desktop.logs.redact import redact
from laya_desktop.logs.repeats import Repeats
from laya_desktop.logs.ring import LogRing
from laya_desktop.logs.text import clean, level_number, level_word, render

QUEUE_LINES = 10_000
BATCH_LINES = 500
OWN_LOGGER = "laya_desktop"

_JOIN_S = 2.0
_LOGGER = "laya_desktop.logs"


class _Entry(NamedTuple):
    time_unix_s: float
    level: str
    logger: str
    message: str


class _Mark(threading.Event):
    """Queued by ``flush`` and ``close``; set once everything before it is written."""

    def __init__(self, *, last: bool = False) -> None:
        super().__init__()
        self.last = last


class _Intake(logging.Handler):
    """Formats a record in the thread that logs, since its arguments may change later, and queues it."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: queue.SimpleQueue[_Entry | _Mark] = queue.SimpleQueue()  # reentrant, unlike queue.Queue
        self.dropped = 0
        self._exceptions = logging.Formatter()

    def createLock(self) -> None:  # noqa: N802 - named by logging.Handler
        """No lock: SimpleQueue has its own, and a lock here could deadlock a signal handler that logs."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Queue the record without the lock that ``logging`` would take."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record, or count it as dropped."""
        if self.entries.qsize() >= QUEUE_LINES:
            self.dropped += 1
            return
        self.entries.put(_Entry(record.created, level_word(record.levelno), record.name, self._text(record)))

    def _text(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
            if record.exc_info:
                text = f"{text}\n{self._exceptions.formatException(record.exc_info)}"
            if record.stack_info:
                text = f"{text}\n{record.stack_info}"
        except Exception as error:  # a wrong format string must not fail the code that logs
            text = f"{record.msg!r} could not be formatted: {error!r} ({record.pathname}:{record.lineno})"
        return redact(clean(text))


class LogHandle:
    """The running log. ``close`` writes what is queued and puts ``logging`` back as it was."""

    def __init__(self, ring: LogRing, files: LogFiles | None, stream: TextIO | None) -> None:
        self.ring = ring
        self._files = files
        self._stream = stream
        self._repeats = Repeats()
        self._intake = _Intake()
        self._said_dropped = 0
        self._own = logging.getLogger(OWN_LOGGER)
        self._root = logging.getLogger()
        self._levels_before = (self._own.level, self._root.level)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="laya-log", daemon=True)

    @property
    def dropped(self) -> int:
        """Lines lost because they came faster than they could be written."""
        return self._intake.dropped

    @property
    def directory(self) -> Path | None:
        """The folder of the log files; None where nothing goes to files."""
        return self._files.folder if self._files else None

    @property
    def file(self) -> Path | None:
        """The current log file; None where nothing goes to files."""
        return self._files.current if self._files else None

    def start(self) -> None:
        """Take over the root logger."""
        self._thread.start()
        self._root.addHandler(self._intake)

    def set_level(self, level: str) -> None:
        """Log from ``level`` up. Other packages stay at warnings: their details help nobody here.

        Raises:
            LayaError: the level is none of debug, info, warn and error.
        """
        number = level_number(level)
        self._own.setLevel(number)
        self._root.setLevel(max(number, logging.WARNING))

    def flush(self, timeout_s: float = _JOIN_S) -> bool:
        """Wait until all lines logged so far are in ring and file; False when that took longer."""
        mark = _Mark()
        self._intake.entries.put(mark)
        return mark.wait(timeout_s)

    def close(self) -> None:
        """Write what is queued, close the file, restore ``logging``. Two seconds at most; idempotent."""
        if self._closed:
            return
        self._closed = True
        self._root.removeHandler(self._intake)
        self._own.setLevel(self._levels_before[0])
        self._root.setLevel(self._levels_before[1])
        self._intake.entries.put(_Mark(last=True))
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while True:
            entries, mark = self._take()
            try:
                self._write(self._fold(entries, everything=mark is not None and mark.last))
            except Exception as error:  # the boundary of the thread: without it nothing would be logged any more
                self.announce("error", f"{len(entries)} log lines were lost to a fault of the log: {error!r}.")
            if mark is not None:
                mark.set()
                if mark.last:
                    break
        if self._files:
            self._files.close()

    def _fold(self, entries: list[_Entry], *, everything: bool) -> list[_Entry]:
        """The lines to write for these entries: repeats folded, summaries and the count of dropped lines added."""
        now_s = time.time()
        lines: list[_Entry] = []
        for entry in entries:
            lines += (_Entry(now_s, *key) for key in self._repeats.due(entry.time_unix_s))
            if self._repeats.admit((entry.level, entry.logger, entry.message), entry.time_unix_s):
                lines.append(entry)
        lines += (_Entry(now_s, *key) for key in self._repeats.due(now_s, everything=everything))
        if (dropped := self._intake.dropped) > self._said_dropped:
            count, self._said_dropped = dropped - self._said_dropped, dropped
            lines.append(_Entry(now_s, "warn", _LOGGER, f"{count} log lines came too fast and were dropped."))
        return lines

    def _take(self) -> tuple[list[_Entry], _Mark | None]:
        """Wait for entries; with folded lines pending, at most a second. Up to the first mark or a full batch."""
        entries: list[_Entry] = []
        with suppress(queue.Empty):
            item = self._intake.entries.get(timeout=1.0 if self._repeats.pending else None)
            while True:
                if isinstance(item, _Mark):
                    return entries, item
                entries.append(item)
                if len(entries) >= BATCH_LINES:
                    break
                item = self._intake.entries.get_nowait()
        return entries, None

    def _write(self, entries: list[_Entry]) -> None:
        if not entries:
            return
        for entry in entries:
            self.ring.append(*entry)
        lines = [render(*entry) for entry in entries]
        if self._files:
            self._files.write([line.encode("utf-8", "backslashreplace") for line in lines])
        if self._stream is not None:
            try:
                self._stream.write("".join(lines))
                self._stream.flush()
            except (OSError, ValueError):  # a closed terminal stays closed
                self._stream = None

    def announce(self, severity: Severity, text: str) -> None:
        """Put a sentence about the log itself into the ring, past the queue, so that it cannot be folded or lost."""
        self.ring.append(time.time(), {"warning": "warn"}.get(severity, severity), _LOGGER, text)


def setup(
    level: str,
    folder: Path | None,
    keep: int = 7,
    max_total_bytes: int = 1024**3,
    console: bool = False,
    *,
    daily: bool = True,
    announce: Announce | None = None,
    ring: LogRing | None = None,
) -> LogHandle:
    """Start logging for the process.

    Args:
        level: ``debug``, ``info``, ``warn`` or ``error``; of our own packages, others log warnings and worse.
        folder: where the files go; None: memory (and console) only.
        keep: rotated files kept beside the current one.
        max_total_bytes: of all log files in the folder together.
        console: also write to standard error.
        daily: begin a new file each day, besides the limit on its size.
        announce: told once when files cannot be written, the disk runs low, or they can be written again; called
            from the log's thread. None: one line on standard error.
        ring: continue with the ring of an earlier handle (settings changed); None: a new one.

    Raises:
        LayaError: the level is unknown.

    Returns:
        The handle; its ``ring`` holds the last 10,000 lines.
    """
    level_number(level)
    files: LogFiles | None = None
    problems: list[tuple[Severity, str]] = []
    handles: list[LogHandle] = []

    def tell(severity: Severity, text: str) -> None:
        if not handles:
            problems.append((severity, text))
            return
        handles[0].announce(severity, text)
        _tell(announce, severity, text)

    if folder is not None:
        files = LogFiles(folder, keep=keep, max_total_bytes=max_total_bytes, daily=daily, announce=tell)
    handle = LogHandle(ring or LogRing(), files, sys.stderr if console else None)
    handles.append(handle)
    for severity, text in problems:
        tell(severity, text)
    handle.set_level(level)
    handle.start()
    return handle


def _tell(announce: Announce | None, severity: Severity, text: str) -> None:
    if announce is not None:
        with suppress(Exception):  # the log must not die of a listener's fault
            announce(severity, text)
    elif sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"laya-desktop: {text}\n")
