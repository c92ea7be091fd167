"""The log's files: rotation by day and by size, a limit on their number and on their bytes together.

Used by the log's writer thread alone. Never raises and never logs: a full disk or a folder that cannot be written is
announced once, lines are counted as unwritten until it works again, and it is tried again every 30 s.

The limit on bytes holds at every moment: the current file grows to ``max_total_bytes / (keep + 1)`` at most, and
older ones are deleted, oldest first, until they and a full current file fit together.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

Severity = Literal["info", "warning", "error"]
Announce = Callable[[Severity, str], None]
"""Called with a severity and a sentence for people; from the writer thread."""

FileBytes = Callable[[Path], int]

CURRENT_NAME = "laya.log"
OLD_PATTERN = "laya-*.log"
MIN_FILE_BYTES = 4096
DISK_LOW_BYTES = 512 * 1024**2
"""Below this much free space people are told."""
DISK_STOP_BYTES = 64 * 1024**2
"""Below this much free space nothing is written: the last megabytes belong to whoever needs them more."""
RETRY_S = 30.0

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class LogFiles:
    """Writes lines to ``laya.log`` in a folder and keeps the folder's log files within their limits."""

    def __init__(
        self,
        folder: Path,
        *,
        keep: int,
        max_total_bytes: int,
        daily: bool = True,
        announce: Announce,
        now: Callable[[], float] = time.time,
        free_bytes: FileBytes = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.folder = folder
        self.unwritten = 0
        """Lines that reached no file."""
        self._keep = max(0, min(keep, max_total_bytes // MIN_FILE_BYTES - 1))
        self._max_total_bytes = max_total_bytes
        self._file_bytes = max_total_bytes // (self._keep + 1)
        self._daily = daily
        self._announce = announce
        self._now = now
        self._free_bytes = free_bytes
        self._fd: int | None = None
        self._size = 0
        self._day: str | None = None
        self._failed = False
        self._disk_low = False
        self._next_check = 0.0
        self._off = self._file_bytes < MIN_FILE_BYTES
        if self._off:
            announce("warning", f"Nothing is logged to files: log.max_total is below {MIN_FILE_BYTES} bytes.")

    @property
    def current(self) -> Path:
        """The file that is written now."""
        return self.folder / CURRENT_NAME

    def write(self, lines: list[bytes]) -> None:
        """Append whole lines, each with its newline; the ones that do not fit in a file of their own are cut."""
        if self._off or not lines or not self._ready():
            self.unwritten += len(lines)
            return
        done = 0
        try:
            while done < len(lines):
                done += self._write_some(lines, done)
        except OSError as error:
            self.unwritten += len(lines) - done
            self._fail(f"The log file {self.current} cannot be written: {_reason(error)}.")
            return
        if self._failed:
            self._failed = False
            self._announce("info", f"Log lines are written to {self.current} again.")

    def close(self) -> None:
        """Close the file. Idempotent; a later write opens it again."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):  # e.g. a quota that is only noticed at the end; there is nobody left to tell
                os.close(fd)

    def _ready(self) -> bool:
        now_s = self._now()
        if 0 < self._next_check - now_s <= RETRY_S:  # outside: it is time, or the clock was set back
            return not self._failed
        self._next_check = now_s + RETRY_S
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            free = self._free_bytes(self.folder)
        except OSError as error:
            self._fail(f"The log folder {self.folder} cannot be used: {_reason(error)}.")
            return False
        self._announce_low_disk(free)
        if free < DISK_STOP_BYTES:
            self._fail(f"The disk that holds the log folder {self.folder} has only {_mb(free)} left.")
            return False
        return True

    def _announce_low_disk(self, free: int) -> None:
        if free < DISK_LOW_BYTES and not self._disk_low and free >= DISK_STOP_BYTES:
            self._disk_low = True
            self._announce(
                "warning",
                f"The disk that holds the logs has {_mb(free)} left. Free some space, or set log.dir to another disk.",
            )
        elif free > 2 * DISK_LOW_BYTES:
            self._disk_low = False

    def _fail(self, what: str) -> None:
        self.close()
        self._next_check = self._now() + RETRY_S
        if not self._failed:
            self._failed = True
            self._announce("warning", f"{what} The log goes on in memory only; the file is tried again every 30 s.")

    def _write_some(self, lines: list[bytes], start: int) -> int:
        """Write as many lines as the current file has room for, and rotate when it has none. Returns their number."""
        self._open()
        room = self._file_bytes - self._size
        stop, taken = start, 0
        while stop < len(lines) and taken + len(lines[stop]) <= room:
            taken += len(lines[stop])
            stop += 1
        if stop == start and self._size:
            self._rotate()
            return 0
        data = b"".join(lines[start:stop]) if stop > start else lines[start][: self._file_bytes - 1] + b"\n"
        self._write_all(data)
        return max(stop - start, 1)

    def _write_all(self, data: bytes) -> None:
        if self._fd is None:
            raise OSError("the file is not open")
        while data:
            count = os.write(self._fd, data)  # a disk that fills up takes a part first, then reports the fault
            self._size += count
            data = data[count:]

    def _open(self) -> None:
        """Open the current file, or follow it where another process has rotated it; rotate on a new day."""
        today = datetime.fromtimestamp(self._now()).astimezone().strftime("%Y%m%d")
        if self._fd is not None and not _same_file(self._fd, self.current):
            self.close()
        if self._fd is None:
            self._fd = os.open(self.current, _FLAGS, 0o600)
            info = os.fstat(self._fd)
            written = datetime.fromtimestamp(info.st_mtime).astimezone().strftime("%Y%m%d")
            self._day = written if info.st_size else today
            self._prune()
        self._size = os.fstat(self._fd).st_size
        if self._size > self._file_bytes or (self._daily and self._size and self._day != today):
            self._rotate()
            self._open()
        self._day = today

    def _rotate(self) -> None:
        self.close()
        stamp = datetime.fromtimestamp(self._now()).astimezone().strftime("%Y%m%d-%H%M%S")
        number = 0
        while (target := self.folder / f"laya-{stamp}-{number:03d}.log").exists():
            number += 1
        with suppress(FileNotFoundError):  # another process has just rotated it
            self.current.rename(target)
        self._prune()

    def _prune(self) -> None:
        """Delete old files, oldest first, down to ``keep`` and to what leaves room for a full current file."""
        old = sorted((_age(p), p) for p in self.folder.glob(OLD_PATTERN))
        total = sum(size for (_, _, size), _ in old)
        spare = self._max_total_bytes - self._file_bytes
        while old and (len(old) > self._keep or total > spare):
            (_, _, size), path = old.pop(0)
            path.unlink(missing_ok=True)
            total -= size


def _age(path: Path) -> tuple[int, str, int]:
    """Sort key of an old file: last change, then name; and its size in bytes."""
    try:
        info = path.stat()
    except FileNotFoundError:  # another process has just deleted it
        return (0, path.name, 0)
    return (info.st_mtime_ns, path.name, info.st_size)


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _mb(size_bytes: int) -> str:
    return f"{size_bytes // 1024**2} MB"
