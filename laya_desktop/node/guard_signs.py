"""What the guard looks at: forecasts, memory pressure, swapping, disk and heat, each with a level and words. Pure.

Forecasts bring their own hysteresis; the others get it here. A missing sensor gives no sign. What shedding cannot cure
(a full queue answers 429 by itself, a full disk holds only the logs) never counts above ``warn``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from laya_desktop.node.levels import ORDER, RANK, Gate
from laya_desktop.state.enums import Level

if TYPE_CHECKING:
    from laya_desktop.state.snapshot import Forecast, MachineSnapshot

MIB, GIB = 2**20, 2**30
PRESSURE_SOME = 10.0
"""Per cent of 10 s in which some task waited for memory: worth watching."""
PRESSURE_FULL = (10.0, 40.0)
"""Per cent in which all did, for warn and critical; systemd-oomd kills at 60 by default, and we act before it."""
SWAP_IN = (2 * MIB, 20 * MIB)
"""Bytes a second read back from swap, for watch and warn. Writing alone is harmless: the kernel parks what is idle."""
DISK = (2 * GIB, 500 * MIB)
CPU_C, GPU_C = (90.0, 97.0), (87.0, 93.0)
_LAX = 0.85
"""Share of a threshold below which its level falls again."""

MEMORY, HEAT, OTHER = "memory", "heat", "other"


@dataclass(frozen=True, slots=True)
class Sign:
    """One resource now."""

    resource: str
    level: Level
    text: str
    kind: str
    """``memory``, ``heat`` or ``other``: what shedding can do about it."""
    form: str = ""
    """The form of ``text``, stable, for other languages and programs."""
    values: Mapping[str, float] = field(default_factory=dict)
    """The figures in ``text``."""


class Signs:
    """Remembers the hysteresis of what is no forecast."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}

    def read(self, now_s: float, forecasts: Iterable[Forecast], machine: MachineSnapshot) -> tuple[Sign, ...]:
        """All signs at that time (monotonic seconds), calm ones included."""
        return (*map(_of_forecast, forecasts), *self._of_machine(now_s, machine))

    def _of_machine(self, now_s: float, m: MachineSnapshot) -> Iterator[Sign]:
        some, full = m.memory_some_avg10_percent, m.memory_full_avg10_percent
        if some is not None and full is not None:
            levels = [_pressure(some * f, full * f) for f in (1.0, 1 / _LAX)]
            text = f"Programs waited for memory in {max(some, full):.0f} % of the last 10 s"
            values = {"percent": max(some, full), "some_percent": some, "full_percent": full}
            yield self._sign(now_s, Sign("pressure", Level.CALM, text, MEMORY, "pressure", values), levels)
        if (swapped := m.swap_in_bytes_per_s) is not None:
            levels = [_above(swapped * f, SWAP_IN) for f in (1.0, 1 / _LAX)]
            text = f"{swapped / 1e6:.1f} MB a second are read back from swap"
            yield self._sign(now_s, Sign("swap", Level.CALM, text, MEMORY, "swap", {"bytes_per_s": swapped}), levels)
        if (free := m.disk_free_bytes) is not None:
            levels = [_above(-free * f, (-DISK[0], -DISK[1])) for f in (1.0, _LAX)]
            text = f"{free / 1e9:.1f} GB left on the disk of the log folder"
            yield self._sign(now_s, Sign("disk", Level.CALM, text, OTHER, "disk", {"free_bytes": free}), levels)
        yield from self._of_heat(now_s, m)

    def _of_heat(self, now_s: float, m: MachineSnapshot) -> Iterator[Sign]:
        hot = [(t, f"GPU {g.index}", GPU_C) for g in m.gpus if (t := g.temperature_c) is not None]
        if m.cpu_temperature_c is not None:
            hot.append((m.cpu_temperature_c, "CPU", CPU_C))
        if hot:
            value_c, name, limits = max(hot, key=lambda h: h[0] - h[2][0])
            levels = [_above(value_c + more, limits) for more in (0.0, 3.0)]
            text, values = f"{name} at {value_c:.0f} °C", {"celsius": value_c}
            yield self._sign(now_s, Sign("temperature", Level.CALM, text, HEAT, "heat", values), levels)
        slow = [f"GPU {g.index}" for g in m.gpus if g.throttle == "heat"]
        slow += ["CPU"] if m.cpu_throttle == "heat" else []
        if slow or "throttle" in self._gates:
            text = f"{' and '.join(slow) or 'Nothing'} slowed down by heat"
            level = Level.WATCH if slow else Level.CALM
            yield self._sign(now_s, Sign("throttle", Level.CALM, text, OTHER, "throttle", {}), [level, level])

    def _sign(self, now_s: float, sign: Sign, levels: list[Level]) -> Sign:
        """With its level: what the figures ask for, and what they would still hold."""
        level = self._gates.setdefault(sign.resource, Gate()).update(now_s, levels[0], levels[1])
        return replace(sign, level=level)


def _of_forecast(forecast: Forecast) -> Sign:
    name, _, which = forecast.resource.partition(":")
    if name == "queue":
        level = min(forecast.level, Level.WARN, key=RANK.__getitem__)
        return Sign(forecast.resource, level, f"'{which}': {forecast.text}", OTHER, forecast.kind, _figures(forecast))
    label = "RAM" if name == "ram" else f"VRAM of GPU {which}"
    text = forecast.text if forecast.text.startswith(("RAM", "VRAM")) else f"{label}: {forecast.text}"
    return Sign(forecast.resource, forecast.level, text, MEMORY, forecast.kind, _figures(forecast))


def _figures(forecast: Forecast) -> dict[str, float]:
    room = "places" if forecast.resource.startswith("queue") else "headroom_bytes"
    found = {room: forecast.headroom, "time_to_full_s": forecast.time_to_full_s, "growth_per_s": forecast.slope_per_s}
    return {name: round(value, 3) for name, value in found.items() if value is not None}


def _pressure(some: float, full: float) -> Level:
    if full >= PRESSURE_FULL[0]:
        return Level.CRITICAL if full >= PRESSURE_FULL[1] else Level.WARN
    return Level.WATCH if some >= PRESSURE_SOME else Level.CALM


def _above(value: float, limits: tuple[float, float]) -> Level:
    return ORDER[sum(value >= limit for limit in limits)]
