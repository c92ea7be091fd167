"""How often the node looks at itself: four times a second while something happens, once a second while nothing does.

Looking, telling the window and drawing are most of what an idle node costs. Pure; times are ``time.monotonic`` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

BUSY_S = 0.25
IDLE_S = 1.0
_CALM_AFTER_S = 3.0
_MEMORY_STEP = 0.002
"""Share of the machine's RAM: when it moves more than that between two looks, somebody is filling it."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What tells whether something happens."""

    count: int = 0
    """Of everything that was ever asked; it only grows."""
    under_way: bool = False
    """A request is being answered, or a model loaded or unloaded."""
    alarmed: bool = False
    """Some resource is not calm."""
    ram_share: float | None = None
    """Used, of the machine's; None: unknown."""


class Pace:
    """Remembers when something happened last."""

    def __init__(self) -> None:
        self._last = Activity()
        self._busy_until_s = self._looked_s = float("-inf")

    def due(self, now_s: float, activity: Activity) -> bool:
        """Whether to look now; asked every ``BUSY_S``, more or less."""
        before, self._last = self._last, activity
        moved = None not in (before.ram_share, activity.ram_share) and (
            abs((activity.ram_share or 0.0) - (before.ram_share or 0.0)) > _MEMORY_STEP
        )
        if activity.under_way or activity.alarmed or activity.count != before.count or moved:
            self._busy_until_s = now_s + _CALM_AFTER_S
        if now_s >= self._busy_until_s and now_s - self._looked_s < IDLE_S - BUSY_S / 2:
            return False
        self._looked_s = now_s
        return True
