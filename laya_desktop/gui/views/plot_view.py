"""The drawing area of one live plot. Qt main thread; the only importer of pyqtgraph, which gives axes and scales.

Whoever paints in Python holds the interpreter, and the router waits. So what changes at every frame is painted by Qt
alone: curves and marks are Qt's own path and line items, the view's paint event is Qt's, and axes are painted into a
cache once. Measured with six plots of two curves at 4 Hz: another thread's p99 wake-up was 0.37 ms as without plots,
against 0.50 ms with the library's curves, and the main thread took 3.0 % of a core instead of 4.2 %.

Importing the library takes half a second, so the window makes plots after it is shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPainterPath, QPen, QTransform
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsLineItem,
    QGraphicsPathItem,
    QGraphicsSceneResizeEvent,
    QGraphicsSimpleTextItem,
    QGraphicsView,
    QGraphicsWidget,
)

from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.history import Floats
from laya_desktop.gui.views.plot_scale import Tick

Bools = npt.NDArray[np.bool_]
_LEFT_PX, _BOTTOM_PX = 34, 23
_INSET = 0.02
"""Of the width: how far texts stand from the left edge."""
_NOTE_DOWN_PX = 5


class _Axis(pg.AxisItem):
    """An axis that works out its bounds when it is resized, and not several times a frame."""

    def __init__(self, side: str, spare_px: int) -> None:
        self._spare_px = spare_px
        self._bounds: QRectF | None = None
        super().__init__(side)

    def boundingRect(self) -> QRectF:
        """Beside the library's, half a line more: it drops the labels at both ends where there is a grid."""
        if self._bounds is None:
            self._bounds = super().boundingRect().adjusted(0, -self._spare_px, 0, self._spare_px)
        return self._bounds

    def forget_bounds(self) -> None:
        """This axis or the plot beside it has another size."""
        self.prepareGeometryChange()
        self._bounds = None

    def resizeEvent(self, event: QGraphicsSceneResizeEvent | None = None) -> None:
        """Another size."""
        self.forget_bounds()
        super().resizeEvent(event)


class _Quick:
    """Bounds and painting are Qt's own again: the library's versions in Python give the same and are asked often."""

    boundingRect = QGraphicsWidget.boundingRect  # noqa: N815
    shape = QGraphicsWidget.shape
    paint = QGraphicsWidget.paint


class _ViewBox(_Quick, pg.ViewBox):
    pass


class _PlotItem(_Quick, pg.PlotItem):
    pass


class PlotView(pg.PlotWidget):
    """Axes, curves, and four marks: now, hover, limit and forecast. Positions are in axis units (seconds, heights)."""

    pointed = Signal(object)
    """Seconds under the pointer, or None outside of the axes."""

    def __init__(self) -> None:
        self._axes = _Axis("left", spare_px=8), _Axis("bottom", spare_px=0)
        axes = {"left": self._axes[0], "bottom": self._axes[1]}
        super().__init__(background=None, plotItem=_PlotItem(viewBox=_ViewBox(), axisItems=axes))
        self._left, self._bottom, self._right, self._top = -1.0, 0.0, 0.0, 1.0
        self._limit_at: float | None = None
        self._hover_at: float | None = None
        self._curves: dict[str, tuple[QGraphicsPathItem, str]] = {}
        self._paths: dict[str, QPainterPath] = {}
        self._quiet()
        self._shape_axes()
        self._now, self._hover, self._limit, self._forecast = (QGraphicsLineItem() for _ in range(4))
        self._limit_text = QGraphicsSimpleTextItem()
        self._note, self._note_text = QGraphicsSimpleTextItem(), ""
        self._note.setTransform(QTransform.fromTranslate(0, _NOTE_DOWN_PX))
        for text in (self._limit_text, self._note):
            text.setFont(theme.ui_font(theme.FONT_SMALL))
            text.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIgnoresTransformations)
        for mark in (self._now, self._hover, self._limit, self._limit_text, self._forecast, self._note):
            self._view.addItem(mark, ignoreBounds=True)
            mark.hide()
        self._now.show()
        self._view.sigResized.connect(self._on_resized)
        self.scene().sigMouseMoved.connect(self._on_mouse_moved)

    # Qt's own, so that no Python is entered for a frame; _settle does what the library's version does beside painting.
    paintEvent = QGraphicsView.paintEvent  # noqa: N815

    @property
    def _view(self) -> Any:
        return self.getPlotItem().getViewBox()

    def _quiet(self) -> None:
        self.setFrameShape(self.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # the background fills all of it
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        item = self.getPlotItem()
        item.setMenuEnabled(False)
        item.setMouseEnabled(x=False, y=False)
        item.hideButtons()
        item.setContentsMargins(0, 6, 0, 0)

    def _shape_axes(self) -> None:
        for axis in self._axes:
            axis.setStyle(tickLength=0, tickTextOffset=5, autoExpandTextSpace=False, hideOverlappingLabels=False)
            axis.setTickFont(theme.ui_font(theme.FONT_SMALL))
            axis.setZValue(-10)
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # painted again when ticks or theme change
        self._axes[1].setStyle(tickTextOffset=8, hideOverlappingLabels=30)  # px that the first text may stick out
        self._axes[0].setWidth(_LEFT_PX)
        self._axes[1].setHeight(_BOTTOM_PX)
        self._axes[0].setGrid(255)

    def set_curves(self, roles: dict[str, str]) -> None:
        """Say which curves there are: theme colour by key."""
        for curve, _ in self._curves.values():
            self._view.removeItem(curve)
        self._curves = {key: (QGraphicsPathItem(), role) for key, role in roles.items()}
        self._paths = {}
        for curve, role in self._curves.values():
            curve.setPen(_pen(role))
            self._view.addItem(curve, ignoreBounds=True)

    def set_curve_visible(self, key: str, visible: bool) -> None:
        """Show or hide a curve."""
        self._curves[key][0].setVisible(visible)

    def curve_visible(self, key: str) -> bool:
        """Whether a curve is shown."""
        return self._curves[key][0].isVisible()

    def draw(self, key: str, x: Floats, heights: Floats, joined: Bools | None = None) -> None:
        """Show a curve of finite points; ``joined`` says which ones have a line to the next one, None: all."""
        connect: Any = "all" if joined is None else joined.astype(np.int32)
        path = pg.functions.arrayToQPath(x, heights, connect=connect, finiteCheck=False) if len(x) else QPainterPath()
        self._paths[key] = path
        curve = self._curves[key][0]
        curve.setX(0.0)
        curve.setPath(path)

    def extend(self, key: str, points: list[tuple[float, float, bool]], left_s: float) -> None:
        """Add points (x as given to ``draw``, height, whether a line leads to it), and show the curve that far left."""
        path, curve = self._paths[key], self._curves[key][0]
        for x, height, joined in points:
            path.lineTo(x, height) if joined else path.moveTo(x, height)
        if points:
            curve.setPath(path)
        curve.setX(-left_s)

    def shown(self, key: str) -> QPainterPath:
        """A curve in axis units, as it is shown."""
        curve = self._curves[key][0]
        return curve.mapToParent(curve.path())

    def set_ranges(self, left: float, right: float, bottom: float, top: float) -> None:
        """What the axes span."""
        self._left, self._right, self._bottom, self._top = left, right, bottom, top
        self._view.setRange(xRange=(left, right), yRange=(bottom, top), padding=0, disableAutoRange=True)
        self._now.setLine(0.0, bottom, 0.0, top)
        self._note.setPos(left + (right - left) * _INSET, top)
        self.show_hover(self._hover_at)
        self.set_limit(self._limit_at)
        self._settle()

    def set_ticks(self, values: list[Tick], times: list[Tick]) -> None:
        """Texts of both axes."""
        self._axes[0].setTicks([values])
        self._axes[1].setTicks([times])

    def set_limit(self, height: float | None) -> None:
        """A dotted line across the plot, or none."""
        self._limit_at = height
        for mark in (self._limit, self._limit_text):
            mark.setVisible(height is not None)
        if height is not None:
            self._limit.setLine(self._left, height, self._right, height)
            self._limit_text.setPos(self._left + (self._right - self._left) * _INSET, height)

    def set_limit_text(self, text: str) -> None:
        """What is written under the limit line."""
        self._limit_text.setText(text)

    def set_note(self, text: str) -> None:
        """A line of text at the top left of the curves; empty: none."""
        self._note_text = text
        self._fit_note()
        self._note.setVisible(bool(text))

    def _fit_note(self) -> None:
        room_px = int(self._view.width() * (1 - 2 * _INSET))
        metrics = QFontMetrics(self._note.font())
        self._note.setText(metrics.elidedText(self._note_text, Qt.TextElideMode.ElideRight, room_px))

    def set_forecast(self, points: tuple[tuple[float, float], tuple[float, float]] | None) -> None:
        """A dashed line between two points, or none."""
        self._forecast.setVisible(points is not None)
        if points is not None:
            (x0, y0), (x1, y1) = points
            self._forecast.setLine(x0, y0, x1, y1)

    def show_hover(self, at_s: float | None) -> None:
        """A line at that moment, or none."""
        self._hover_at = at_s
        self._hover.setVisible(at_s is not None)
        if at_s is not None:
            self._hover.setLine(at_s, self._bottom, at_s, self._top)

    def restyle(self) -> None:
        """Take the theme's colours."""
        for axis in self._axes:
            axis.setPen(None)
            axis.setTextPen(theme.color("secondary"))
            axis.setTickPen(theme.color("grid"))
        self.setBackground(theme.color("panel"))
        for curve, role in self._curves.values():
            curve.setPen(_pen(role))
        self._now.setPen(_pen("line"))
        self._hover.setPen(_pen("secondary"))
        self._limit.setPen(_pen("critical", Qt.PenStyle.DotLine))
        self._limit_text.setBrush(theme.color("critical"))
        self._note.setBrush(theme.color("secondary"))
        self._forecast.setPen(_pen("warn", Qt.PenStyle.DashLine))

    @property
    def time_range(self) -> tuple[float, float]:
        """Seconds at the left and the right edge."""
        left, right = self._view.viewRange()[0]
        return left, right

    def _on_resized(self, *_: object) -> None:
        for axis in self._axes:
            axis.forget_bounds()
        self._fit_note()
        self._settle()

    def _settle(self) -> None:
        self.scene().prepareForPaint()

    def _on_mouse_moved(self, position: QPointF) -> None:
        inside = self._view.sceneBoundingRect().contains(position)
        self.pointed.emit(float(self._view.mapSceneToView(position).x()) if inside else None)


def _pen(role: str, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(theme.color(role), 1.0, style)
    pen.setCosmetic(True)  # px on screen, whatever the axes' units are
    return pen
