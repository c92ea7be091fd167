"""Has somebody stopped a worker's process? Seen in the system's own books, long before its heartbeat is missed.

A process in state ``T`` (SIGSTOP, or SIGTSTP from a terminal) computes nothing, however busy the machine is, so it is
no guess as a missed beat is. It is believed after ``LOOKS`` looks in a row: Ctrl-Z stops node and worker together, and
a node that has just been continued must not blame a worker that is continued a moment later. A process under a
debugger (``t``) is nobody's fault. A sleeping machine stops nobody in this sense.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import psutil

LOOK_S = 0.25
"""One look reads one small file: 10 µs."""
LOOKS = 4

State = Literal["running", "stopped", "traced"]


def read_state(pid: int, proc: Path = Path("/proc")) -> State | None:
    """What the system says about the process; None where it does not say, or there is none."""
    if sys.platform == "linux":
        try:
            text = (proc / str(pid) / "stat").read_bytes()
        except OSError:
            return None
        letter = text.rpartition(b")")[2].lstrip()[:1]  # the name before it may hold spaces and ")"
        return "stopped" if letter == b"T" else "traced" if letter == b"t" else "running" if letter else None
    try:
        return "stopped" if psutil.Process(pid).status() == psutil.STATUS_STOPPED else "running"
    except psutil.Error:
        return None


class StopWatch:
    """Looks at one process."""

    def __init__(self, pid: int, read: Callable[[int], State | None] = read_state) -> None:
        self._pid = pid
        self._read = read
        self._stopped = 0
        self.traced = False
        """A debugger held it at the last look."""

    def look(self) -> bool:
        """Look once; True: it has been stopped at the last ``LOOKS`` looks."""
        state = self._read(self._pid)
        self.traced = state == "traced"
        self._stopped = self._stopped + 1 if state == "stopped" else 0
        return self._stopped >= LOOKS
