"""Scales of the plots: maxima that do not jump, ticks that read well, dashes. Pure, of Qt only the translation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import tr

_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_SHRINK_BELOW = 0.4
Kind = Literal["linear", "log"]
Tick = tuple[float, str]
_DASH_ON, _DASH_OFF = 5, 3


@dataclass(frozen=True, slots=True)
class Series:
    """How one curve looks; ``dashed`` tells it apart where colour does not."""

    key: str
    name: str
    role: str = "series_1"
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """How a plot maps values to heights.

    Attributes:
        kind: ``linear`` from 0, or ``log`` between two powers of ten.
        low: log only: the value at the bottom; 0 maps log(1 + value), so that zero has a place.
        top: the fixed maximum, or None to step it with the data.
        least: the smallest maximum.
    """

    kind: Kind = "linear"
    low: float = 0.0
    top: float | None = None
    least: float = 4.0

    def height(self, value: float) -> float:
        """Where the value is drawn."""
        if self.kind == "linear":
            return value
        return math.log10(1 + max(value, 0.0)) if self.low == 0 else math.log10(max(value, self.low))

    def value(self, height: float) -> float:
        """The inverse of ``height``."""
        if self.kind == "linear":
            return height
        return 10**height - 1 if self.low == 0 else 10**height

    @property
    def bottom(self) -> float:
        """Height of the lower edge."""
        return 0.0 if self.kind == "linear" or self.low == 0 else math.log10(self.low)


def nice_step(span: float, parts: int = 4) -> float:
    """The smallest readable step that covers ``span`` in ``parts``."""
    if span <= 0:
        return 1.0
    raw = span / parts
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in _STEPS if step * power >= raw * 0.9999)


def next_maximum(scale: Scale, highest: float | None, current: float | None) -> float:
    """The maximum to show: grows when the data does, shrinks only when they fall below 40 % of it.

    Args:
        scale: the plot's scale.
        highest: the largest value in view, or None when there is none.
        current: the maximum shown now, or None at first.
    """
    if scale.top is not None:
        return scale.top
    value = max(highest or 0.0, 1e-9)
    if scale.kind == "log":
        wanted = max(scale.least, 10.0 ** math.ceil(math.log10(value * 1.02)))
        keep = current is not None and wanted <= current and value > current / 200
    else:
        wanted = max(scale.least, 4 * nice_step(value * 1.05))
        keep = current is not None and wanted <= current and value > current * _SHRINK_BELOW
    return current if keep and current is not None else wanted


def value_ticks(scale: Scale, maximum: float) -> list[Tick]:
    """Heights and texts of the horizontal grid."""
    if scale.kind == "log":
        first = 0 if scale.low == 0 else round(math.log10(scale.low))
        powers = range(first, math.floor(math.log10(maximum) + 1e-9) + 1)
        stride = 1 if len(powers) <= 5 else 2
        ticks = [(scale.height(10.0**p), fmt.axis(10.0**p)) for p in powers if (p - powers[0]) % stride == 0]
        return [(0.0, "0"), *ticks] if scale.low == 0 else ticks
    step = nice_step(maximum)
    return [(i * step, fmt.axis(round(i * step, 9))) for i in range(int(maximum / step + 1e-9) + 1)]


def time_ticks(window_s: float) -> list[Tick]:
    """Positions (seconds, ≤ 0) and texts of the time axis: ``-60 s … now``."""
    if window_s <= 60:
        return [(-60.0, "-60 s"), (-40.0, "-40"), (-20.0, "-20"), (0.0, tr("now"))]
    minutes = window_s / 60
    thirds = [minutes, minutes * 2 / 3, minutes / 3] if minutes % 3 == 0 else [minutes, minutes * 0.6, minutes * 0.2]
    texts = [f"-{thirds[0]:g} min", *(f"-{m:g}" for m in thirds[1:])]
    return [*((-m * 60, text) for m, text in zip(thirds, texts, strict=True)), (0.0, tr("now"))]


Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


def connected(finite: Bools) -> Bools:
    """Which points are joined to the next one: where both are known."""
    joined = finite.copy()
    joined[:-1] &= finite[1:]
    return joined


def dashes(finite: Bools, places: Places) -> Bools:
    """Which points are joined to the next one: five segments, a gap of three; ``places`` numbers the points."""
    return connected(finite) & (places % (_DASH_ON + _DASH_OFF) < _DASH_ON)


def in_dash(place: int) -> bool:
    """Whether the point with that number is joined to the next one."""
    return place % (_DASH_ON + _DASH_OFF) < _DASH_ON
