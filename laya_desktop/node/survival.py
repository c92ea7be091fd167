"""After a death: when to start again, when to give up, what never to try again; and did the machine sleep?

Pure, but for ``boot_s``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
WINDOW_S = 300.0
MOST_DEATHS = 3
"""Unexpected deaths within ``WINDOW_S`` that open the circuit: no restart by itself until they are past, or a person
loads the model."""
STABLE_S = 60.0
"""A worker that has served for so long starts the back-off anew."""
SLEPT_S = 10.0
"""No shorter sleep counts; the node ticks four times a second."""
REMEMBERED = 64


class Restarts:
    """One model's deaths."""

    def __init__(self) -> None:
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._tries = 0
        self._ready_s: float | None = None

    def on_ready(self, now_s: float) -> None:
        """It serves."""
        self._ready_s = now_s

    def on_death(self, now_s: float) -> float | None:
        """It died unasked. Seconds until the next start; None: the circuit is open."""
        if self._ready_s is not None and now_s - self._ready_s >= STABLE_S:
            self._tries = 0
        self._ready_s = None
        self._deaths.append(now_s)
        if self.is_open(now_s):
            return None
        delay_s = BACK_OFF_S[min(self._tries, len(BACK_OFF_S) - 1)]
        self._tries += 1
        return delay_s

    def recent(self, now_s: float) -> int:
        """Deaths within the window, up to the number that opens the circuit."""
        return sum(now_s - died_s < WINDOW_S for died_s in self._deaths)

    def is_open(self, now_s: float) -> bool:
        """True while it died too often to be started without being asked."""
        return self.recent(now_s) >= MOST_DEATHS

    def closes_in_s(self, now_s: float) -> float:
        """Seconds until it may be started again without a person; 0 while the circuit is closed."""
        return max(0.0, self._deaths[0] + WINDOW_S - now_s) if self.is_open(now_s) else 0.0

    def reset(self) -> None:
        """A person loads it: all is forgotten."""
        self._deaths.clear()
        self._tries, self._ready_s = 0, None


class HopelessLoads:
    """Loads that ran out of memory: the same one is not tried again, unless a person insists."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, str] = {}

    def add(self, key: Hashable, reason: str) -> None:
        """This load ran out of memory, in these words."""
        self._failed.pop(key, None)
        self._failed[key] = reason
        while len(self._failed) > REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def forget(self, key: Hashable) -> None:
        """It worked after all."""
        self._failed.pop(key, None)

    def reason(self, key: Hashable) -> str | None:
        """Why it failed the last time, or None."""
        return self._failed.get(key)


def boot_s() -> float:
    """A clock that goes on while the machine sleeps: Linux's since boot, which nobody sets, else the wall's."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if clock is None else time.clock_gettime(clock)


class SleepWatch:
    """Tells when the machine has slept: by two clocks, or where both went on (Windows) by a tick that is overdue."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def slept_s(self, monotonic_s: float, other_s: float) -> float | None:
        """Seconds of sleep since the last call, where there was one.

        Args:
            monotonic_s: a clock that stands still meanwhile on Linux and macOS.
            other_s: one that goes on (``boot_s``).
        """
        before, self._before = self._before, (monotonic_s, other_s)
        if before is None:
            return None
        passed_s, other_passed_s = monotonic_s - before[0], other_s - before[1]
        gone_s = max(other_passed_s - passed_s, passed_s if passed_s >= SLEPT_S else 0.0)
        return gone_s if gone_s >= SLEPT_S else None
