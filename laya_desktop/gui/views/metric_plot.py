"""One live plot as a card: title, legend with values, and the drawing area. Qt main thread.

It draws what it is given: whole curves now and then (``draw``), and the samples since in between (``advance``), which
costs a tenth. Ranges are fixed, maxima step, and curves have at most 300 points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

import numpy as np
from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QStackedLayout, QWidget

from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.history import Floats
from laya_desktop.gui.views.plot_legend import LegendItem, PlotLegend
from laya_desktop.gui.views.plot_scale import (
    Scale,
    Series,
    connected,
    dashes,
    in_dash,
    next_maximum,
    time_ticks,
    value_ticks,
)
from laya_desktop.gui.views.plot_view import PlotView
from laya_desktop.gui.views.widgets import Card, ElidedLabel, EmptyState, SectionTitle

FUTURE_SHARE = 1 / 7
"""Of the shown past: room to the right of "now", where the forecast is drawn."""
_SPARE_PX = 24
_DASHES_A_WINDOW = 240
"""A dashed curve has five of these drawn and three left out, whatever the window is; they move with the curve."""
Curve = tuple[Floats, Floats]


@dataclass(slots=True)
class _Tip:
    """The newest point of a curve, where it grows."""

    value: float = float("nan")
    leads_on: bool = False
    """Whether a line goes from it to the next point."""


class MetricPlot(Card):
    """A titled plot with live values in its legend.

    Args:
        title: what is plotted.
        unit: shown beside the title.
        scale: fixed or stepping maximum, linear or logarithmic.
        text: turns a value into the legend's text.
    """

    hovered = Signal(object)
    """Seconds relative to now (≤ 0) under the pointer, or None when it leaves. Connect it to ``show_hover`` of all."""

    def __init__(self, title: str, unit: str, scale: Scale, text: Callable[[float | None], str]) -> None:
        super().__init__(padding=12, spacing=2)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.scale, self._text = scale, text
        self._series: tuple[Series, ...] = ()
        self._drawn: dict[str, Curve] = {}
        self._tips: dict[str, _Tip] = {}
        self._drawn_at_s = 0.0
        self._maximum: float | None = None
        self._window_s = 0.0
        self._hover_s: float | None = None
        self._limit: float | None = None
        self.note = ""
        self._unit = ElidedLabel("", "secondary")
        self._unit.set_text(unit, short="")
        self.legend = PlotLegend()
        self.legend.toggled.connect(self.toggle)
        self._hidden: set[str] = set()
        self._head = QGridLayout()
        self._head.setHorizontalSpacing(5)
        self._head.setVerticalSpacing(0)
        self._head.setColumnStretch(1, 1)
        self._title = SectionTitle(title)
        for column, item in enumerate((self._title, self._unit, self.legend)):
            self._head.addWidget(item, 0, column)
        self._two_lines = False
        self._legend_px = 0
        self.body.addLayout(self._head)
        self.setAccessibleName(f"{title}, {unit}")
        self._plot = PlotView()
        self._plot.set_limit_text(tr("limit"))
        self._plot.pointed.connect(self._on_pointed)
        self._empty = EmptyState("", "", wrap_px=220)
        holder = QWidget()
        self._stack = QStackedLayout(holder)
        self._stack.addWidget(self._plot)
        self._stack.addWidget(self._empty)
        self.body.addWidget(holder, 1)
        self._plot.restyle()

    def set_series(self, series: tuple[Series, ...]) -> None:
        """Say which curves there are; a no-op when they are the same as before."""
        if series == self._series:
            return
        self._series = series
        self._plot.set_curves({s.key: s.role for s in series})
        self._show_curves()

    def toggle(self, key: str) -> None:
        """Hide a curve or show it again; the last one that is shown stays."""
        shown = {s.key for s in self._series} - self._hidden
        if key in self._hidden:
            self._hidden.discard(key)
        elif len(shown) > 1:
            self._hidden.add(key)
        self._show_curves()
        self._show_values()

    def _show_curves(self) -> None:
        for series in self._series:
            self._plot.set_curve_visible(series.key, series.key not in self._hidden)

    def set_empty(self, title: str | None, text: str = "") -> None:
        """Say why there is nothing to draw, instead of the plot; None shows the plot."""
        if self.empty_text == (None if title is None else (title, text)):
            return
        self._stack.setCurrentIndex(0 if title is None else 1)
        if title is not None:
            self._empty.set_text(title, text)
            self.legend.set_items(())

    def set_scale(self, scale: Scale) -> None:
        """Use another scale from the next ``draw`` on."""
        if scale != self.scale:
            self.scale, self._maximum = scale, None

    def set_limit(self, value: float | None) -> None:
        """A dotted line at the value, or none."""
        if value != self._limit:
            self._limit = value
            self._plot.set_limit(None if value is None else self.scale.height(value))

    def set_note(self, text: str) -> None:
        """A line of text over the curves; empty: none."""
        if text != self.note:
            self.note = text
            self._plot.set_note(text)

    def set_forecast(self, points: tuple[tuple[float, float], tuple[float, float]] | None) -> None:
        """A dashed line between two points (seconds, value), cut at the plot's edges; None draws none."""
        if points is not None:
            (x0, y0), (x1, y1) = points
            points = (x0, self.scale.height(y0)), (x1, self.scale.height(y1))
        self._plot.set_forecast(points)

    def draw(self, window_s: float, curves: Mapping[str, Curve], now_s: float = 0.0) -> None:
        """Show the curves: for each series key, seconds relative to ``now_s`` (≤ 0) and values; NaN is a gap."""
        self._drawn_at_s = now_s
        self._drawn = {s.key: curves[s.key] for s in self._series if s.key in curves}
        highest = None
        for series in self._series:
            x, y = self._drawn.get(series.key, (_NOTHING, _NOTHING))
            heights = self._heights(y)
            finite = np.isfinite(heights)
            if finite.any() and series.key not in self._hidden:
                highest = max(highest or 0.0, float(y[finite].max()))
            joined = None if finite.all() else connected(finite)
            if series.dashed and len(x):
                joined = dashes(finite, np.floor((x + now_s) * (_DASHES_A_WINDOW / window_s)).astype(np.int64))
            self._plot.draw(series.key, x, heights if joined is None else np.where(finite, heights, 0.0), joined)
            self._tips[series.key] = self._tip(series, float(x[-1]), float(y[-1]), window_s) if len(x) else _Tip()
        self._set_range(window_s, next_maximum(self.scale, highest, self._maximum))
        self._show_values()

    def advance(self, now_s: float, samples: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        """Move what ``draw`` showed to ``now_s`` and add the samples since, for each series key: time and value."""
        highest = 0.0
        for series in self._series:
            points, tip = [], self._tips[series.key]
            for time_s, value in samples[series.key]:
                x, joined = time_s - self._drawn_at_s, tip.leads_on
                tip = self._tip(series, x, value, self._window_s)
                if isfinite(value):
                    points.append((x, self.scale.height(value), joined))
                    highest = max(highest, value)
            self._tips[series.key] = tip
            self._plot.extend(series.key, points, now_s - self._drawn_at_s)
        if self._maximum is not None and highest > self._maximum:
            self._set_range(self._window_s, next_maximum(self.scale, highest, self._maximum))
        self._show_values()

    def _tip(self, series: Series, x: float, value: float, window_s: float) -> _Tip:
        dash = int((x + self._drawn_at_s) * (_DASHES_A_WINDOW / window_s) // 1)
        return _Tip(value, isfinite(value) and (not series.dashed or in_dash(dash)))

    @property
    def series(self) -> tuple[Series, ...]:
        """The curves there are."""
        return self._series

    def _heights(self, values: Floats) -> Floats:
        if self.scale.kind == "linear":
            return values
        return np.log10(1 + values) if self.scale.low == 0 else np.log10(np.maximum(values, self.scale.low))

    def _set_range(self, window_s: float, maximum: float) -> None:
        if (window_s, maximum) == (self._window_s, self._maximum):
            return
        self._window_s, self._maximum = window_s, maximum
        top = self.scale.height(maximum)
        bottom = self.scale.bottom
        self._plot.set_ranges(-window_s, window_s * FUTURE_SHARE, bottom, bottom + (top - bottom) * 1.02)
        self._plot.set_ticks(value_ticks(self.scale, maximum), time_ticks(window_s))

    @property
    def empty_text(self) -> tuple[str, str] | None:
        """Title and text shown instead of the plot, or None while the plot is shown."""
        return (self._empty.title.text(), self._empty.text.text()) if self._stack.currentIndex() == 1 else None

    def lines(self, key: str) -> list[tuple[float, float, float, float]]:
        """The pieces of a curve as they are shown: from and to, each in seconds relative to now, and height."""
        path = self._plot.shown(key)
        points = [path.elementAt(i) for i in range(path.elementCount())]
        return [(a.x, a.y, b.x, b.y) for a, b in pairwise(points) if b.isLineTo()]

    @property
    def points(self) -> dict[str, int]:
        """How many points each series has."""
        return {key: len(x) for key, (x, _) in self._drawn.items()}

    @property
    def time_range(self) -> tuple[float, float]:
        """Seconds at the left and the right edge."""
        return self._plot.time_range

    @property
    def hover_s(self) -> float | None:
        """Where the hover line is, or None."""
        return self._hover_s

    @property
    def maximum(self) -> float | None:
        """The largest value on the axis now."""
        return self._maximum

    def show_hover(self, age_s: float | None) -> None:
        """Draw the hover line at that moment (≤ 0) and show its values in the legend; None goes back to now."""
        self._hover_s = age_s
        self._plot.show_hover(age_s)
        self._show_values()

    def _show_values(self) -> None:
        self.legend.set_items(
            tuple(
                LegendItem(s.name, self._text(self._value(s.key)), s.role, s.dashed, s.key, s.key in self._hidden)
                for s in self._series
                if self._stack.currentIndex() == 0
            )
        )
        if self.legend.wanted_px != self._legend_px:
            self._legend_px = self.legend.wanted_px
            self._place_legend()

    def _value(self, key: str) -> float | None:
        x, y = self._drawn.get(key, (_NOTHING, _NOTHING))
        if not len(x):
            return None
        value = self._tips[key].value if self._hover_s is None else float(y[np.argmin(np.abs(x - self._hover_s))])
        return value if isfinite(value) else None

    def _on_pointed(self, at_s: float | None) -> None:
        self.hovered.emit(None if at_s is None else min(0.0, max(-self._window_s, at_s)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find the legend its place."""
        super().resizeEvent(event)
        self._place_legend()

    def _place_legend(self) -> None:
        """Beside the title; under it where it would not fit, until it fits with room to spare."""
        room = self._head.geometry().width() - self._title.sizeHint().width() - 2 * self._head.horizontalSpacing()
        two_lines = self.legend.sizeHint().width() + (_SPARE_PX if self._two_lines else 0) > room > 0
        if two_lines != self._two_lines:
            self._two_lines = two_lines
            self._head.removeWidget(self.legend)
            self._head.addWidget(self.legend, *((1, 0, 1, 3) if two_lines else (0, 2, 1, 1)))

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer left the card."""
        super().leaveEvent(event)
        self.hovered.emit(None)

    def changeEvent(self, event: QEvent) -> None:
        """Take the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_empty"):
            self._plot.restyle()


_NOTHING: Floats = np.empty(0)
