"""The legend of a plot: one dash sample, name and live value a series. Qt main thread; draws what it is given.

One widget that paints itself: its texts change four times a second, and labels in a layout would lay the page out
again each time. Where it does not fit, names are cut and values go first, then items from the right; it is never
drawn over the title.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr

_SAMPLE_PX, _GAP_PX, _BETWEEN_PX = 12, 4, 10
_LONGEST_NAME, _SHORT_NAME = 14, 9
_DASH = (2.0, 1.0)
_HIDDEN_OPACITY = 0.55


@dataclass(frozen=True, slots=True)
class LegendItem:
    """One series as the legend shows it."""

    name: str
    value: str
    role: str
    dashed: bool = False
    key: str = ""
    """Names the series where a click hides it."""
    hidden: bool = False

    @property
    def text(self) -> str:
        """Name and value."""
        return self.wording(_LONGEST_NAME, value=True)

    def wording(self, longest: int, *, value: bool) -> str:
        """The name, cut where it has more than ``longest`` characters, with or without the value."""
        name = self.name if len(self.name) <= longest else f"{self.name[: longest - 1].rstrip('- ')}…"
        return f"{name} {self.value}" if value and self.value else name


class PlotLegend(QWidget):
    """Right-aligned legend of one line; a click on an item hides its curve or shows it again."""

    toggled = Signal(str)
    """The key of the item that was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._items: tuple[LegendItem, ...] = ()
        self._font = theme.ui_font(theme.FONT_SECONDARY)
        self._wanted_px = 0
        self._places: list[tuple[float, float, str]] = []
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(18)

    @property
    def items(self) -> tuple[LegendItem, ...]:
        """What is shown."""
        return self._items

    def set_items(self, items: tuple[LegendItem, ...]) -> None:
        """Show these, from left to right."""
        if items != self._items:
            self._items = items
            self.setAccessibleName(", ".join(item.text for item in items))
            lines = [item.text for item in items]
            self.setToolTip("\n".join([*lines, tr("Click a name to hide its curve.")] if len(items) > 1 else lines))
            wanted_px = sum(self._widths([item.text for item in items])) + _BETWEEN_PX * max(len(items) - 1, 0)
            if not self._wanted_px - 2 * _BETWEEN_PX <= wanted_px <= self._wanted_px:
                self._wanted_px = wanted_px
                self.updateGeometry()
            self.update()

    def _widths(self, texts: list[str]) -> list[int]:
        metrics = QFontMetrics(self._font)
        return [_SAMPLE_PX + _GAP_PX + metrics.horizontalAdvance(text) for text in texts]

    @property
    def wanted_px(self) -> int:
        """How wide it wants to be; changes rarely."""
        return self._wanted_px

    def sizeHint(self) -> QSize:
        """As wide as the items need, or a little wider than that."""
        return QSize(self._wanted_px, 18)

    def minimumSizeHint(self) -> QSize:
        """The legend gives way to the title."""
        return QSize(0, 18)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw it."""
        painter = QPainter(self)
        painter.setFont(self._font)
        metrics = QFontMetrics(self._font)
        for longest, value in (
            (_LONGEST_NAME, True),
            (_SHORT_NAME, True),
            (_LONGEST_NAME, False),
            (_SHORT_NAME, False),
        ):
            texts = [item.wording(longest, value=value) for item in self._items]
            widths = self._widths(texts)
            if sum(widths) + _BETWEEN_PX * (len(widths) - 1) <= self.width():
                break
        shown = len(widths)
        while shown and sum(widths[:shown]) + _BETWEEN_PX * (shown - 1) > self.width():
            shown -= 1
        x = self.width() - sum(widths[:shown]) - _BETWEEN_PX * max(shown - 1, 0)
        self._places = []
        middle = self.height() / 2
        baseline = middle + (metrics.ascent() - metrics.descent()) / 2
        for item, text, width in zip(self._items[:shown], texts[:shown], widths[:shown], strict=True):
            self._places.append((x, x + width, item.key))
            painter.setOpacity(_HIDDEN_OPACITY if item.hidden else 1.0)
            pen = QPen(theme.color(item.role), 2.0)
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            if item.dashed:
                pen.setDashPattern(_DASH)
            painter.setPen(pen)
            painter.drawLine(QPointF(x, middle), QPointF(x + _SAMPLE_PX, middle))
            painter.setPen(theme.color("secondary"))
            painter.drawText(QPointF(x + _SAMPLE_PX + _GAP_PX, baseline), text)
            if item.hidden:  # struck out too, since paleness alone says little
                painter.setPen(QPen(theme.color("secondary"), 1.0))
                painter.drawLine(QPointF(x + _SAMPLE_PX + _GAP_PX, middle), QPointF(x + width, middle))
            x += width + _BETWEEN_PX

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Hide or show what is under the pointer."""
        at = event.position().x()
        key = next((key for left, right, key in self._places if left <= at <= right), "")
        if key:
            self.toggled.emit(key)
