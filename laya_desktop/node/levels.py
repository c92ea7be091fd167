"""Levels with hysteresis: up once a condition has held, down once a laxer one has failed for longer. Pure."""

from __future__ import annotations

from laya_desktop.state.enums import Level

RAISE_S = 1.5
LOWER_S = 5.0

ORDER = (Level.CALM, Level.WATCH, Level.WARN, Level.CRITICAL)
RANK = {level: rank for rank, level in enumerate(ORDER)}


def worst(levels: list[Level]) -> Level:
    """The highest; calm where there is none."""
    return max(levels, key=RANK.__getitem__, default=Level.CALM)


class Gate:
    """Hysteresis of one level."""

    def __init__(self) -> None:
        self.level = Level.CALM
        self._rising_since_s: float | None = None
        self._falling_since_s: float | None = None
        self._falls_to = Level.CALM

    def update(self, now_s: float, strict: Level, lax: Level) -> Level:
        """``strict``: what the figures ask for; ``lax``: what they would still hold."""
        if RANK[strict] > RANK[self.level]:
            self._falling_since_s = None
            if self._rising_since_s is None:
                self._rising_since_s = now_s
            if now_s - self._rising_since_s >= RAISE_S:
                self.level, self._rising_since_s = strict, None
        elif RANK[lax] < RANK[self.level]:
            self._rising_since_s = None
            if self._falling_since_s is None:
                self._falling_since_s, self._falls_to = now_s, lax
            self._falls_to = max(self._falls_to, lax, key=RANK.__getitem__)
            if now_s - self._falling_since_s >= LOWER_S:
                self.level, self._falling_since_s = self._falls_to, None
        else:
            self._rising_since_s = self._falling_since_s = None
        return self.level
