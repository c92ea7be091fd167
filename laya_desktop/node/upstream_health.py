"""When an upstream counts as down, and how long to leave it alone. Pure; the node's loop; times are monotonic seconds.

Three failures in a row open the circuit. With health checks, a check that succeeds closes it; without, one request
is let through as a trial each time the pause is over.
"""

from __future__ import annotations

FAILURES = 3
"""In a row, and the upstream counts as down."""
MAX_PAUSE_S = 60.0


class Circuit:
    """Health of one upstream."""

    __slots__ = ("_base_s", "_failures", "_next_s", "_probed", "error", "healthy")

    def __init__(self, base_s: float, *, probed: bool) -> None:
        """``base_s``: pause between checks (or before a trial) while all is well; it doubles with each failure."""
        self._base_s = base_s
        self._probed = probed
        self._failures = 0
        self._next_s = 0.0
        self.healthy: bool | None = None
        """None until the first check or request."""
        self.error: str | None = None
        """Why it is not healthy."""

    @property
    def is_open(self) -> bool:
        """True while requests are refused."""
        return self._failures >= FAILURES

    def success(self) -> None:
        """It answered."""
        self._failures = 0
        self.healthy, self.error = True, None

    def failure(self, reason: str, now_s: float) -> None:
        """It did not answer."""
        self._failures += 1
        self.healthy, self.error = False, reason
        self._next_s = now_s + self.pause_s

    @property
    def pause_s(self) -> float:
        """Until the next check."""
        doublings = max(self._failures - FAILURES + 1, 0)
        return min(self._base_s * 2.0 ** min(doublings, 16), max(MAX_PAUSE_S, self._base_s))

    def refused_for_s(self, now_s: float) -> float | None:
        """Seconds after which a refused request may try again; None: it may go now."""
        if not self.is_open:
            return None
        if now_s < self._next_s:
            return self._next_s - now_s
        if self._probed:
            return 1.0  # a check is under way
        self._next_s = now_s + self.pause_s
        return None
