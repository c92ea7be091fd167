"""The smallest parts of the window: labels, buttons, cards, pills, bars. Qt main thread; they know no node.

Look comes from the style sheet through dynamic properties: ``role`` (card, title, secondary, mono, primary, danger,
ghost, segment …), ``tone`` (calm, watch, warn, critical, accent, neutral) and ``invalid``. Change one of them with
``set_property``, which repolishes only when the value is new, so that it may be called with every snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.views import icons

_Box = TypeVar("_Box", QHBoxLayout, QVBoxLayout)


def repolish(widget: QWidget) -> None:
    """Make the style sheet look at the widget's dynamic properties again."""
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    widget.update()


def set_property(widget: QWidget, name: str, value: object) -> None:
    """Set a dynamic property that the style sheet selects on; repolishes the widget and its labels if it is new."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    repolish(widget)
    for child in widget.findChildren(QLabel, options=Qt.FindChildOption.FindDirectChildrenOnly):
        repolish(child)


def label(text: str = "", role: str = "", *, wrap: bool = False) -> QLabel:
    """A plain-text label. Roles: "" (body), secondary, hint, title, heading, figure, mono, error."""
    result = QLabel(text)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(wrap)
    if role:
        result.setProperty("role", role)
    return result


def button(
    text: str, role: str = "secondary", icon: str | None = None, on_click: Callable[[], object] | None = None
) -> IconButton:
    """A push button. Roles: primary (one a view), secondary, danger, ghost (no frame), segment (checkable)."""
    result = IconButton(text, icon, {"primary": "on_accent", "danger": "critical"}.get(role, "secondary"))
    result.setProperty("role", role)
    result.setCheckable(role == "segment")
    if on_click is not None:
        result.clicked.connect(lambda _checked=False: on_click())
    return result


def row(*items: QWidget | int | None, spacing: int = theme.SPACE_2) -> QHBoxLayout:
    """A horizontal layout without margins; None is a stretch, a number that many px of space."""
    return _fill(QHBoxLayout(), items, spacing)


def column(*items: QWidget | int | None, spacing: int = theme.SPACE_2) -> QVBoxLayout:
    """A vertical layout without margins; None is a stretch, a number that many px of space."""
    return _fill(QVBoxLayout(), items, spacing)


def _fill(layout: _Box, items: Iterable[QWidget | int | None], spacing: int) -> _Box:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for item in items:
        if item is None:
            layout.addStretch(1)
        elif isinstance(item, int):
            layout.addSpacing(item)
        else:
            layout.addWidget(item)
    return layout


def divider() -> QFrame:
    """A hairline."""
    result = QFrame()
    result.setProperty("role", "divider")
    return result


def scrolled(content: QWidget) -> QScrollArea:
    """A vertical scroll area without a frame around the content."""
    area = QScrollArea()
    content.setProperty("role", "scrolled")
    area.setWidget(content)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.viewport().setAutoFillBackground(False)
    return area


class IconButton(QPushButton):
    """A push button whose icon follows the theme."""

    def __init__(self, text: str, icon: str | None, icon_role: str = "secondary") -> None:
        super().__init__(text)
        self._icon, self._icon_role = icon, icon_role
        self.setIconSize(QSize(16, 16))
        self._paint_icon()

    def set_icon(self, icon: str | None, role: str | None = None) -> None:
        """Show another icon of ``resources/icons``."""
        if (icon, role or self._icon_role) != (self._icon, self._icon_role):
            self._icon, self._icon_role = icon, role or self._icon_role
            self._paint_icon()

    def changeEvent(self, event: QEvent) -> None:
        """Draw the icon in the new theme's colour."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._paint_icon()

    def _paint_icon(self) -> None:
        if self._icon:
            self.setIcon(icons.icon(self._icon, self._icon_role))


class Card(QFrame):
    """A panel with a border and round corners. Add content to ``body`` (a vertical layout)."""

    clicked = Signal()

    def __init__(self, title: str | None = None, *, padding: int = theme.SPACE_4, spacing: int = theme.SPACE_2) -> None:
        super().__init__()
        self.setProperty("role", "card")
        self.setProperty("selected", False)  # so that the first set_selected(False) changes nothing
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(padding, padding - 4, padding, padding - 4)
        self.body.setSpacing(spacing)
        if title:
            self.body.addWidget(SectionTitle(title))

    def set_selected(self, selected: bool) -> None:
        """Show the accent border."""
        set_property(self, "selected", selected)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Tell that the card was clicked beside its controls."""
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit()


class SectionTitle(QLabel):
    """A card's heading."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", "title")


class FigureLabel(QLabel):
    """A card's large number. ``set_text`` is cheap when nothing changed."""

    def __init__(self, text: str = "–") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", "figure")


class StateDot(QWidget):
    """A round dot in a tone's colour."""

    def __init__(self, tone: str = "neutral", size_px: int = 8) -> None:
        super().__init__()
        self._tone = tone
        self.setFixedSize(size_px, size_px)

    def set_tone(self, tone: str) -> None:
        """Tones: calm, watch, warn, critical, accent, neutral."""
        if tone != self._tone:
            self._tone = tone
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("secondary" if self._tone == "neutral" else self._tone))
        painter.drawEllipse(self.rect())


class Pill(QFrame):
    """A rounded tag: dot and text. The text alone says the state; the dot's tone only helps.

    ``tone``: calm, watch, warn, critical, neutral, or accent (tinted, without a dot).
    """

    clicked = Signal()

    def __init__(self, text: str = "", tone: str = "neutral", *, clickable: bool = False, mono: bool = False) -> None:
        super().__init__()
        self.setProperty("role", "pill")
        self.setProperty("clickable", clickable)
        self._clickable = clickable
        self.dot = StateDot(tone)
        self.text_label = label(text, "mono" if mono else "secondary")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(24)
        layout = row(self.dot, self.text_label, spacing=6)
        layout.setContentsMargins(10, 0, 10, 0)
        self.setLayout(layout)
        if clickable:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.set_state(text, tone)

    def set_state(self, text: str, tone: str = "neutral", *, dot: bool = True) -> None:
        """Show a text in a tone; ``dot=False`` shows the text alone."""
        if text != self.text_label.text():
            self.text_label.setText(text)
            self.setAccessibleName(text)
        self.dot.set_tone(tone)
        self.dot.setVisible(dot and tone != "accent")
        set_property(self, "tone", tone)

    @property
    def text(self) -> str:
        """What it says."""
        return self.text_label.text()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on a clickable pill."""
        super().mouseReleaseEvent(event)
        if self._clickable and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()


@dataclass(frozen=True, slots=True)
class BarPart:
    """One stretch of an ``HBar``: a share of the whole (0.0 to 1.0), a colour role, and its name for the tooltip."""

    share: float
    role: str = "series_1"
    name: str = ""


class HBar(QWidget):
    """A stacked horizontal bar: parts in their colours, the rest empty, and a mark where the limit is."""

    def __init__(self, height_px: int = 6) -> None:
        super().__init__()
        self._parts: tuple[BarPart, ...] = ()
        self._limit: float | None = None
        self.setFixedHeight(height_px)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_parts(self, parts: Iterable[BarPart], limit: float | None = None) -> None:
        """Show the parts from left to right; shares above the whole are cut off. ``limit``: 0.0 to 1.0 or None."""
        new = tuple(parts)
        if (new, limit) == (self._parts, self._limit):
            return
        self._parts, self._limit = new, limit
        text = ", ".join(f"{p.name} {p.share:.0%}" for p in new if p.name)
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect())
        clip = QPainterPath()
        clip.addRoundedRect(rect, rect.height() / 2, rect.height() / 2)
        painter.setClipPath(clip)
        painter.fillRect(rect, theme.color("track"))
        x, end = 0.0, rect.width()
        for part in self._parts:
            width = min(max(part.share, 0.0) * rect.width(), end - x)
            painter.fillRect(QRectF(x, 0, width, rect.height()), theme.color(part.role))
            x += width
        if self._limit is not None:
            painter.fillRect(QRectF(self._limit * end - 1, 0, 2, rect.height()), theme.color("critical"))
