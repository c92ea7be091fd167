"""Where RAM, VRAM and queues are heading, and how near that is to their limits. Pure; called once per sample.

The limit of a memory is ``min(total × mem_fraction, total − reserve)`` (never below 0), its headroom is the limit minus
what is in use, and the time to full is headroom over growth (see ``forecast_trend``). A level rises once its condition
has held for 1.5 s, and falls once a laxer condition has failed for five, so noise does not make it flicker.
It reads no sensor and no clock, and it sheds nothing: that is the scheduler's part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.node.forecast_trend import Trend
from laya_desktop.node.levels import ORDER, Gate
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import Forecast

if TYPE_CHECKING:
    from laya_desktop.config.schema import GuardConfig
    from laya_desktop.state.snapshot import MachineSnapshot

MIN_RISE = 0.005
"""Share of the limit that memory must rise within a window to count as growing. At this share every growth that
would fill the memory within the 300 s of ``watch`` is seen before the headroom itself is at ``watch``."""


@dataclass(frozen=True, slots=True)
class _Thresholds:
    """Conditions of watch, warn and critical: room left (share of the limit), or seconds to full."""

    room: tuple[float, float, float]
    seconds: tuple[float, float, float]
    lax_room: float
    """Added to ``room`` before a level falls again."""

    def level(self, room: float, time_to_full_s: float | None, *, lax: bool = False) -> Level:
        more, factor = (self.lax_room, 1.5) if lax else (0.0, 1.0)
        for rank in (3, 2, 1):
            soon = time_to_full_s is not None and time_to_full_s <= self.seconds[rank - 1] * factor
            if soon or room <= self.room[rank - 1] + more:
                return ORDER[rank]
        return Level.CALM


_MEMORY = _Thresholds(room=(0.10, 0.04, 0.0), seconds=(300.0, 60.0, 10.0), lax_room=0.01)
_QUEUE = _Thresholds(room=(0.5, 0.25, 0.0), seconds=(120.0, 30.0, 0.0), lax_room=0.1)


class _Followed:
    """What is remembered of one resource."""

    def __init__(self) -> None:
        self.trend = Trend()
        self.gate = Gate()


class Forecaster:
    """Follows all resources; ``update`` with each new sample."""

    def __init__(self) -> None:
        self.forecasts: tuple[Forecast, ...] = ()
        """The latest ones: RAM, then each GPU, then each queue."""
        self._followed: dict[str, _Followed] = {}
        self._now_s = 0.0

    def update(
        self, now_s: float, machine: MachineSnapshot, queues: Mapping[str, tuple[int, int]], guard: GuardConfig
    ) -> tuple[Forecast, ...]:
        """Take a sample and forecast.

        Args:
            now_s: monotonic seconds.
            machine: the sensors at that time.
            queues: per model the waiting requests and the most that may wait. The growth of what waits is the rate
                of arrivals minus the rate of service, so neither has to be counted.
            guard: fraction and reserves in force.

        Returns:
            One forecast per resource: RAM, each GPU, each queue.
        """
        if not math.isfinite(now_s):
            return self.forecasts
        self._now_s = now_s
        ram_limit = memory_limit(machine.ram_total_bytes, guard.mem_fraction, guard.reserve_ram)
        made = [self._memory("ram", "RAM", machine.ram_used_bytes, ram_limit)]
        for gpu in machine.gpus:
            limit = memory_limit(gpu.vram_total_bytes, guard.mem_fraction, guard.reserve_vram)
            label = "VRAM" if len(machine.gpus) == 1 else f"VRAM of GPU {gpu.index}"
            made.append(self._memory(f"vram:{gpu.index}", label, gpu.vram_used_bytes, limit))
        made += (self._queue(f"queue:{name}", *figures) for name, figures in queues.items())
        for gone in self._followed.keys() - {f.resource for f in made}:
            del self._followed[gone]
        self.forecasts = tuple(made)
        return self.forecasts

    def _follow(self, resource: str, value: float) -> _Followed:
        followed = self._followed.get(resource)
        if followed is None or not followed.trend.continues_at(self._now_s):
            followed = self._followed[resource] = _Followed()
        followed.trend.add(self._now_s, value)
        return followed

    def _memory(self, resource: str, label: str, used: int | None, limit: int | None) -> Forecast:
        if used is None or limit is None:
            self._followed.pop(resource, None)
            return Forecast(resource, text=f"{label} unknown")
        followed = self._follow(resource, used)
        growth = followed.trend.growth_per_s(max(limit * MIN_RISE, 1.0))
        headroom = limit - followed.trend.value
        time_s = _time_to_full(headroom, growth)
        room = headroom / limit if limit > 0 else -1.0
        level = followed.gate.update(self._now_s, _MEMORY.level(room, time_s), _MEMORY.level(room, time_s, lax=True))
        text = _memory_text(label, headroom, growth, time_s, level)
        return Forecast(resource, level, growth, time_s, text, _memory_kind(headroom, time_s, level), headroom)

    def _queue(self, resource: str, waiting: int, limit: int) -> Forecast:
        if limit <= 0:
            self._followed.pop(resource, None)
            return Forecast(resource, text="no queue", kind="calm")
        followed = self._follow(resource, waiting)
        growth = followed.trend.growth_per_s(max(2.0, limit * 0.02))
        held = followed.trend.value
        time_s = _time_to_full(limit - held, growth)
        room = (limit - held) / limit
        level = followed.gate.update(self._now_s, _QUEUE.level(room, time_s), _QUEUE.level(room, time_s, lax=True))
        kind = "queue_full" if held >= limit else "calm" if time_s is None else "queue_grows"
        text = _queue_text(held, limit, growth, time_s)
        return Forecast(resource, level, growth, time_s, text, kind, limit - held)


def memory_limit(total_bytes: int | None, mem_fraction: float, reserve_bytes: int) -> int | None:
    """Bytes in use at which the guard steps in: ``min(total × fraction, total − reserve)``; None where unknown."""
    if total_bytes is None:
        return None
    return max(0, min(int(total_bytes * mem_fraction), total_bytes - reserve_bytes))


def _time_to_full(room: float, growth_per_s: float | None) -> float | None:
    if growth_per_s is None or growth_per_s <= 0:
        return None
    return max(room, 0.0) / growth_per_s


def _memory_kind(headroom: float, time_s: float | None, level: Level) -> str:
    if headroom <= 0:
        return "over_limit" if headroom < 0 else "at_limit"
    if time_s is not None:
        return "full_in"
    return "calm" if level is Level.CALM else "near_limit"


def _memory_text(label: str, headroom: float, growth: float | None, time_s: float | None, level: Level) -> str:
    if headroom <= 0:
        return f"{label} is {_gb(-headroom)} over the limit" if headroom < 0 else f"{label} is at the limit"
    if time_s is not None:
        return f"{label} full in {about(time_s)} at this rate"
    trend = "" if growth is None else "falling" if growth < 0 else "steady"
    if level is Level.CALM:
        return trend
    return f"{_gb(headroom)} to the limit" + (f", {trend}" if trend else "")


def _queue_text(held: float, limit: int, growth: float | None, time_s: float | None) -> str:
    if held >= limit:
        return "queue full: new requests are refused"
    if growth is not None and time_s is not None:
        return f"queue grows by {_rate(growth)}, full in {about(time_s)}"
    if growth is not None and growth < 0:
        return f"queue shrinks by {_rate(-growth)}"
    return "empty" if held == 0 else ("" if growth is None else "steady")


def about(seconds: float) -> str:
    """Rounded as people say it: ``a second``, ``about 8 s``, ``about 45 s``, ``about 4 min``, ``over an hour``."""
    if seconds < 1.5:
        return "a second"
    if seconds < 10:
        return f"about {seconds:.0f} s"
    if seconds < 117.5:
        return f"about {round(seconds / 5) * 5} s"
    return f"about {seconds / 60:.0f} min" if seconds < 3570 else "over an hour"


def _rate(per_s: float) -> str:
    if per_s < 0.95:
        return f"{max(per_s * 60, 1):.0f} a minute"
    return f"{per_s:.0f} a second" if per_s >= 9.5 or abs(per_s - round(per_s)) < 0.05 else f"{per_s:.1f} a second"


def _gb(size_bytes: float) -> str:
    """Decimal, as everywhere on screen."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 5e7 else f"{size_bytes / 1e6:.0f} MB"
