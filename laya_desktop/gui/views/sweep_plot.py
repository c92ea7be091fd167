"""A chart over the number of requests at once, looking like the live plots. Qt main thread; draws what it is given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent

from laya_desktop.gui.qtmodels.bench_charts import Chart, Curve
from laya_desktop.gui.qtmodels.history import Floats
from laya_desktop.gui.views.plot_legend import LegendItem, PlotLegend
from laya_desktop.gui.views.plot_scale import Bools, Scale, connected, dashes, next_maximum, value_ticks
from laya_desktop.gui.views.plot_view import PlotView
from laya_desktop.gui.views.widgets import Card, ElidedLabel, SectionTitle, row

_HEIGHT_PX = 176
_STEPS = 60
"""Points between two levels, so that a dashed line has dashes."""
_MARK, _LONE_MARK = 0.05, 0.2
"""Half the width of the mark at each level, in levels."""


class SweepPlot(Card):
    """Title, unit, legend with values, and the curves."""

    def __init__(self) -> None:
        super().__init__(padding=12, spacing=2)
        self._chart: Chart | None = None
        self._levels: tuple[int, ...] = ()
        self._pointed: int | None = None
        self._title, self._unit, self.legend = SectionTitle(""), ElidedLabel("", "secondary"), PlotLegend()
        head = row(self._title, self._unit, self.legend, spacing=5)
        head.setStretch(1, 1)
        self.body.addLayout(head)
        self._plot = PlotView()
        self._plot.setFixedHeight(_HEIGHT_PX)
        self._plot.pointed.connect(self._on_pointed)
        self.body.addWidget(self._plot)
        self._plot.restyle()

    @property
    def chart(self) -> Chart | None:
        """What is shown."""
        return self._chart

    def set_chart(self, chart: Chart, levels: tuple[int, ...]) -> None:
        """Show a chart over these levels."""
        if (chart, levels) == (self._chart, self._levels):
            return
        self._chart, self._levels, self._pointed = chart, levels, None
        self._title.setText(chart.title)
        self._unit.set_text(chart.unit, short="")
        self.setAccessibleName(f"{chart.title}, {chart.unit}")
        self._plot.set_curves({c.key: c.role for c in chart.curves})
        values = [v for c in chart.curves for _, v in c.points]
        scale = _scale(chart, values)
        top = next_maximum(scale, max(values, default=None), None)
        bottom, height = scale.bottom, scale.height(top)
        self._plot.set_ranges(0.6, len(levels) + 0.4, bottom, bottom + (height - bottom) * 1.02)
        self._plot.set_ticks(value_ticks(scale, top), [(i + 1.0, str(n)) for i, n in enumerate(levels)])
        for curve in chart.curves:
            self._plot.draw(curve.key, *_path(curve, levels, scale))
        self._show_values()

    def _on_pointed(self, at: float | None) -> None:
        place = None if at is None or not self._levels else min(max(round(at), 1), len(self._levels))
        self._pointed = place
        self._plot.show_hover(None if place is None else float(place))
        self._show_values()

    def _show_values(self) -> None:
        if self._chart is None:
            return
        level = self._levels[self._pointed - 1] if self._pointed else None
        items: dict[str, LegendItem] = {}
        for curve in self._chart.curves:
            known = dict(curve.points)
            value = known.get(level) if level is not None else (curve.points[-1][1] if curve.points else None)
            text, before = self._chart.text(value), items.get(curve.name)
            if before is not None:  # one colour, two quantiles: one item
                items[curve.name] = replace(before, value=f"{before.value} / {text}")
            else:
                items[curve.name] = LegendItem(curve.name, text, curve.role, curve.dashed)
        self.legend.set_items(tuple(items.values()))

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer left."""
        super().leaveEvent(event)
        self._on_pointed(None)

    def changeEvent(self, event: QEvent) -> None:
        """Take the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_plot"):
            self._plot.restyle()


def _scale(chart: Chart, values: list[float]) -> Scale:
    if not chart.log or not values:
        return Scale(least=1.0)
    low = 10.0 ** math.floor(math.log10(min(values)) + 1e-9)
    return Scale("log", low=low, least=low * 10)


def _path(curve: Curve, levels: tuple[int, ...], scale: Scale) -> tuple[Floats, Floats, Bools]:
    """The line through the points, and a short bar at each of them."""
    places = np.array([levels.index(n) + 1.0 for n, _ in curve.points])
    heights = np.array([scale.height(v) for _, v in curve.points])
    if len(places) > 1:
        x = np.linspace(places[0], places[-1], round(places[-1] - places[0]) * _STEPS + 1)
        y = np.interp(x, places, heights)
        finite = np.ones(len(x), dtype=np.bool_)
        joined = dashes(finite, np.arange(len(x))) if curve.dashed else connected(finite)
        joined[-1] = False
    else:
        x, y, joined = np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)
    half = _MARK if len(places) > 1 else _LONE_MARK
    marks_x = np.column_stack((places - half, places + half)).ravel()
    marks_joined = np.tile(np.array([True, False]), len(places))
    return (
        np.concatenate((x, marks_x)),
        np.concatenate((y, np.repeat(heights, 2))),
        np.concatenate((joined, marks_joined)),
    )
