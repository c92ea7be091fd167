"""One live plot as a card. Qt main thread; the only importer of pyqtgraph. It draws what it is given.

Drawing shares the interpreter with the router, so ranges are fixed, maxima step, and curves have at most 300 points.
Measured for six plots of two curves of noise: lines of one pixel drawn segment by segment cost 4 ms a frame plain and
7 ms antialiased; a wider line or one polyline costs 90 to 550 ms antialiased. Hence one pixel, antialiased, segmented,
and dashes made by leaving out segments. The import takes half a second, so the window makes plots after it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QPen, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QStackedLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.history import Floats
from laya_desktop.gui.views.plot_legend import LegendItem, PlotLegend
from laya_desktop.gui.views.plot_scale import Scale, Series, dashes, next_maximum, time_ticks, value_ticks
from laya_desktop.gui.views.widgets import Card, ElidedLabel, EmptyState, SectionTitle

FUTURE_SHARE = 1 / 7
"""Of the shown past: room to the right of "now", where the forecast is drawn."""
_LEFT_PX, _BOTTOM_PX = 34, 23
_SPARE_PX = 24
Curve = tuple[Floats, Floats]

_CACHED = pg.QtWidgets.QGraphicsItem.CacheMode.DeviceCoordinateCache

pg.setConfigOptions(antialias=True, segmentedLineMode="on")


class _ValueAxis(pg.AxisItem):
    """The left axis with its grid; keeps the labels at both ends, which the library drops where there is a grid."""

    def __init__(self) -> None:
        super().__init__("left")

    def boundingRect(self) -> QRectF:
        """Half a line of text more above and below."""
        return super().boundingRect().adjusted(0, -8, 0, 8)


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
        self._curves: dict[str, pg.PlotCurveItem] = {}
        self._maximum: float | None = None
        self._window_s = 0.0
        self._hover_s: float | None = None
        self._limit: float | None = None
        self._unit = ElidedLabel("", "secondary")
        self._unit.set_text(unit, short="")
        self.legend = PlotLegend()
        self._head = QGridLayout()
        self._head.setHorizontalSpacing(5)
        self._head.setVerticalSpacing(0)
        self._head.setColumnStretch(1, 1)
        self._title = SectionTitle(title)
        for column, item in enumerate((self._title, self._unit, self.legend)):
            self._head.addWidget(item, 0, column)
        self._two_lines = False
        self.body.addLayout(self._head)
        self.setAccessibleName(f"{title}, {unit}")
        self._make_plot()
        self._empty = EmptyState("", "", wrap_px=220)
        holder = QWidget()
        self._stack = QStackedLayout(holder)
        self._stack.addWidget(self._plot)
        self._stack.addWidget(self._empty)
        self.body.addWidget(holder, 1)
        self._restyle()

    def _make_plot(self) -> None:
        self._plot = pg.PlotWidget(background=None, axisItems={"left": _ValueAxis()})
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.viewport().setAutoFillBackground(False)
        item = self._plot.getPlotItem()
        item.setMenuEnabled(False)
        item.setMouseEnabled(x=False, y=False)
        item.hideButtons()
        item.setContentsMargins(0, 6, 0, 0)
        self._axes = item.getAxis("left"), item.getAxis("bottom")
        for axis in self._axes:
            axis.setStyle(tickLength=0, tickTextOffset=5, autoExpandTextSpace=False, hideOverlappingLabels=False)
            axis.setTickFont(theme.ui_font(theme.FONT_SMALL))
            axis.setZValue(-10)
            axis.setCacheMode(_CACHED)  # painted by Python again only when the ticks or the theme change
        self._axes[1].setStyle(tickTextOffset=8, hideOverlappingLabels=30)  # px that the first text may stick out
        self._axes[0].setWidth(_LEFT_PX)
        self._axes[1].setHeight(_BOTTOM_PX)
        self._axes[0].setGrid(255)
        self._now = pg.InfiniteLine(0.0, angle=90)
        self._hover = pg.InfiniteLine(0.0, angle=90)
        self._limit_line = pg.InfiniteLine(
            0.0, angle=0, label="limit", labelOpts={"position": 0.02, "anchors": [(0, 0), (0, 0)]}
        )
        self._limit_line.label.setFont(theme.ui_font(theme.FONT_SMALL))
        self._forecast = pg.PlotCurveItem(antialias=False)
        for line in (self._now, self._limit_line):
            line.setCacheMode(_CACHED)
        for mark in (self._now, self._hover, self._limit_line, self._forecast):
            item.addItem(mark, ignoreBounds=True)
        self._hover.hide()
        self._limit_line.hide()
        self._plot.scene().sigMouseMoved.connect(self._on_mouse_moved)

    def set_series(self, series: tuple[Series, ...]) -> None:
        """Say which curves there are; a no-op when they are the same as before."""
        if series == self._series:
            return
        self._series = series
        for curve in self._curves.values():
            self._plot.removeItem(curve)
        self._curves = {s.key: pg.PlotCurveItem() for s in series}
        for curve in self._curves.values():
            self._plot.addItem(curve, ignoreBounds=True)
        self._restyle()

    def set_empty(self, title: str | None, text: str = "") -> None:
        """Say why there is nothing to draw, instead of the plot; None shows the plot."""
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
            self._limit_line.setVisible(value is not None)
            if value is not None:
                self._limit_line.setPos(self.scale.height(value))

    def set_forecast(self, points: tuple[tuple[float, float], tuple[float, float]] | None) -> None:
        """A dashed line between two points (seconds, value), cut at the plot's edges; None draws none."""
        if points is None:
            self._forecast.setData([], [])
            return
        (x0, y0), (x1, y1) = points
        self._forecast.setData([x0, x1], [self.scale.height(y0), self.scale.height(y1)])

    def draw(self, window_s: float, curves: Mapping[str, Curve]) -> None:
        """Show the curves: for each series key, seconds relative to now (≤ 0) and values; NaN is a gap."""
        self._drawn = {s.key: curves[s.key] for s in self._series if s.key in curves}
        highest = None
        for series in self._series:
            x, y = self._drawn.get(series.key, (_NOTHING, _NOTHING))
            heights = self._heights(y)
            finite = np.isfinite(heights)
            if finite.any():
                highest = max(highest or 0.0, float(y[finite].max()))
            connect: Any = "all" if finite.all() else "finite"
            if series.dashed and len(x):
                connect = dashes(finite)
                heights = np.where(finite, heights, 0.0)
            self._curves[series.key].setData(x, heights, connect=connect, skipFiniteCheck=isinstance(connect, str))
        self._set_range(window_s, next_maximum(self.scale, highest, self._maximum))
        self._show_values()

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
        view = self._plot.getViewBox()
        view.setRange(
            xRange=(-window_s, window_s * FUTURE_SHARE),
            yRange=(self.scale.bottom, self.scale.bottom + (top - self.scale.bottom) * 1.02),
            padding=0,
            disableAutoRange=True,
        )
        self._axes[0].setTicks([value_ticks(self.scale, maximum)])
        self._axes[1].setTicks([time_ticks(window_s)])

    @property
    def empty_text(self) -> tuple[str, str] | None:
        """Title and text shown instead of the plot, or None while the plot is shown."""
        return (self._empty.title.text(), self._empty.text.text()) if self._stack.currentIndex() == 1 else None

    @property
    def points(self) -> dict[str, int]:
        """How many points each series has."""
        return {key: len(x) for key, (x, _) in self._drawn.items()}

    @property
    def time_range(self) -> tuple[float, float]:
        """Seconds at the left and the right edge."""
        left, right = self._plot.getViewBox().viewRange()[0]
        return left, right

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
        self._hover.setVisible(age_s is not None)
        if age_s is not None:
            self._hover.setPos(age_s)
        self._show_values()

    def _show_values(self) -> None:
        self.legend.set_items(
            tuple(
                LegendItem(s.name, self._text(self._value(s.key)), s.role, s.dashed)
                for s in self._series
                if self._stack.currentIndex() == 0
            )
        )
        self._place_legend()

    def _value(self, key: str) -> float | None:
        x, y = self._drawn.get(key, (_NOTHING, _NOTHING))
        if not len(x):
            return None
        place = len(x) - 1 if self._hover_s is None else int(np.argmin(np.abs(x - self._hover_s)))
        value = float(y[place])
        return value if np.isfinite(value) else None

    def _on_mouse_moved(self, position: QPointF) -> None:
        view = self._plot.getViewBox()
        if not view.sceneBoundingRect().contains(position):
            self.hovered.emit(None)
            return
        age_s = float(view.mapSceneToView(position).x())
        self.hovered.emit(min(0.0, max(-self._window_s, age_s)))

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
            self._restyle()

    def _restyle(self) -> None:
        for axis in self._axes:
            axis.setPen(None)
            axis.setTextPen(theme.color("secondary"))
            axis.setTickPen(theme.color("grid"))
        self._plot.setBackground(theme.color("panel"))
        for series in self._series:
            self._curves[series.key].setPen(_pen(series.role))
        self._now.setPen(_pen("line"))
        self._hover.setPen(_pen("secondary"))
        self._limit_line.setPen(_pen("critical", Qt.PenStyle.DotLine))
        self._limit_line.label.setColor(theme.color("critical"))
        self._forecast.setPen(_pen("warn", Qt.PenStyle.DashLine))


_NOTHING: Floats = np.empty(0)


def _pen(role: str, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(theme.color(role), 1.0, style)
    pen.setCosmetic(True)  # px on screen, whatever the axes' units are
    return pen
