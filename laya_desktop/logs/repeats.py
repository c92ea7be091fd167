"""Folding of repeated lines. Pure; the writer thread passes every line through ``Repeats`` with its time."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

BURST = 5
"""Equal lines that pass within one window before the others are counted only."""
WINDOW_S = 5.0
KEYS = 256
"""Different lines followed at a time; beyond, the oldest one's window ends early."""

Key = tuple[str, str, str]
"""Level, logger and message."""


@dataclass(slots=True)
class _Window:
    started_s: float
    passed: int = 1
    held_back: int = 0


class Repeats:
    """Lets the first ``BURST`` equal lines of a window pass and sums up the others in one line at its end."""

    def __init__(self) -> None:
        self._windows: OrderedDict[Key, _Window] = OrderedDict()

    @property
    def pending(self) -> bool:
        """True while any window is open, so that ``due`` has to be asked."""
        return bool(self._windows)

    def admit(self, key: Key, now_s: float) -> bool:
        """Whether the line is to be written; ask ``due`` first, with the same time."""
        window = self._windows.get(key)
        if window is None:
            self._windows[key] = _Window(now_s)
            return True
        if window.passed < BURST:
            window.passed += 1
            return True
        window.held_back += 1
        return False

    def due(self, now_s: float, *, everything: bool = False) -> list[Key]:
        """End the windows whose time is over (``everything``: all). Returns the summary lines to write."""
        summaries = []
        while self._windows:
            key, window = next(iter(self._windows.items()))
            over = not 0 <= now_s - window.started_s < WINDOW_S
            if not (over or everything or len(self._windows) > KEYS):
                break
            del self._windows[key]
            if window.held_back:
                level, logger, message = key
                first_line, _, _ = message.partition("\n")
                summaries.append((level, logger, f"{first_line} … repeated {_times(window.held_back)}"))
        return summaries


def _times(count: int) -> str:
    return "once more" if count == 1 else f"{count} more times"
