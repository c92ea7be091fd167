"""What memory the cgroups around this process leave it, versions 1 and 2. Telemetry's thread only.

Limits stack: each group from ours up to the root may have one, and siblings use up their parent's. So the total is
the lowest limit, and what is available is the least that any level leaves: its limit minus its usage, where file
pages that are not in active use count as available (the kernel drops them before it kills anyone).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

RESCAN_S = 10.0
"""Limits seldom change; groups even less."""
STAT_S = 1.0
"""``memory.stat`` makes the kernel add up per-CPU counters, so it is read less often than the usage."""


@dataclass(frozen=True, slots=True)
class CgroupLimit:
    """Bytes allowed in all, and bytes still to be had."""

    total_bytes: int
    available_bytes: int


@dataclass(slots=True)
class _Level:
    folder: Path
    limit_bytes: int
    usage_name: str
    inactive_key: bytes
    inactive_bytes: int = 0
    inactive_read_s: float | None = None


class CgroupMemory:
    """Reads the memory controller's files below ``root``."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._levels: list[_Level] = []
        self._scanned_s: float | None = None

    def read(self, machine_total_bytes: int) -> CgroupLimit | None:
        """The tightest limit, or None where none is below the machine's own memory."""
        now_s = self._clock()
        if self._scanned_s is None or now_s - self._scanned_s >= RESCAN_S:
            self._scanned_s = now_s
            self._levels = self._scan(machine_total_bytes)
        available = [a for level in self._levels if (a := self._available(level, now_s)) is not None]
        if not available:
            return None
        return CgroupLimit(min(level.limit_bytes for level in self._levels), min(available))

    def _available(self, level: _Level, now_s: float) -> int | None:
        usage = _number(level.folder / level.usage_name)
        if usage is None:
            return None
        if level.inactive_read_s is None or now_s - level.inactive_read_s >= STAT_S:
            level.inactive_read_s = now_s
            level.inactive_bytes = _stat(level.folder / "memory.stat", level.inactive_key)
        return max(level.limit_bytes - max(usage - level.inactive_bytes, 0), 0)

    def _scan(self, machine_total_bytes: int) -> list[_Level]:
        levels = []
        for mount, path, version in self._groups():
            limit_name, usage_name, key = (
                ("memory.max", "memory.current", b"inactive_file")
                if version == 2
                else ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file")
            )
            for folder in _upwards(mount, path):
                limit = _number(folder / limit_name)
                if limit is not None and limit < machine_total_bytes:
                    levels.append(_Level(folder, limit, usage_name, key))
        return levels

    def _groups(self) -> list[tuple[Path, str, int]]:
        """Mount point, our path below it and version, for each hierarchy that may limit memory."""
        found = []
        base = self._root / "sys/fs/cgroup"
        try:
            lines = (self._root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        for line in lines:
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if "memory" in controllers.split(","):
                found.append((base / "memory", path, 1))
            elif not controllers:
                unified = base / "unified"  # where version 1 owns the folder itself
                found.append((unified if unified.is_dir() else base, path, 2))
        return found


def _upwards(mount: Path, path: str) -> list[Path]:
    """Our group's folder and all above it. A container may see a path of the host that it has no folder for."""
    parts = [p for p in PurePosixPath(path).parts if p != "/"]
    if ".." in parts:
        parts = []
    return [mount.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]


def _number(path: Path) -> int | None:
    """Bytes in a one-line file; None for ``max`` and for a file that is not there."""
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        return None


def _stat(path: Path, key: bytes) -> int:
    try:
        for line in path.read_bytes().splitlines():
            name, _, value = line.partition(b" ")
            if name == key:
                return int(value)
    except (OSError, ValueError):
        return 0  # nothing is counted as reclaimable: the cautious side
    return 0
