"""A panel over the window's pages: the palette, the list of shortcuts, the first steps. Qt main thread; not modal."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QGraphicsDropShadowEffect, QWidget

from laya_desktop.gui import theme

_TOP_PX, _EDGE_PX = 72, 24


class Overlay(QFrame):
    """A child of the window in its middle; Escape hides it and gives the focus back.

    Args:
        parent: the window.
        width_px: at most; a small window gets a narrower one.
    """

    closed = Signal()
    """It was shown and is not any more."""

    def __init__(self, parent: QWidget, width_px: int) -> None:
        super().__init__(parent)
        self._window, self._width_px = parent, width_px
        self._before: QWidget | None = None
        self.setObjectName("popover")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.hide()

    def open(self) -> None:
        """Show it in front."""
        self._before = self._window.focusWidget()
        self.place()
        self.show()
        self.raise_()
        self.setFocus()

    def toggle(self) -> None:
        """Show it, or hide it."""
        self.hide() if self.isVisible() else self.open()

    def place(self) -> None:
        """Fit into the window."""
        width = min(self._width_px, self._window.width() - 2 * _EDGE_PX)
        self.setFixedWidth(width)
        self.adjustSize()
        most = self._window.height() - _TOP_PX - _EDGE_PX
        self.resize(width, min(self.sizeHint().height(), most))
        self.move((self._window.width() - width) // 2, _TOP_PX)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the window's size."""
        super().showEvent(event)
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(32)
        shadow.setOffset(0, 8)
        shadow.setColor(theme.color("text", 0.25) if not theme.is_dark() else theme.color("background", 0.9))
        self.setGraphicsEffect(shadow)
        self._window.installEventFilter(self)

    def hideEvent(self, event: QHideEvent) -> None:
        """Give the focus back."""
        super().hideEvent(event)
        self.closed.emit()
        self._window.removeEventFilter(self)
        if self._before is not None and self._before.isVisible():
            self._before.setFocus()
        self._before = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The window was resized."""
        if event.type() == QEvent.Type.Resize:
            self.place()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)
