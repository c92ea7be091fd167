"""Form rows, empty states and labels that fit or copy themselves. Qt main thread; they know no node.

Import them from ``widgets``, which names everything in one place.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.views import icons
from laya_desktop.gui.views.basics import IconButton, button, column, label, set_property

LABEL_WIDTH = 122
"""Width of the label column of forms, px."""
_COPIED_MS = 1200


class FieldRow(QWidget):
    """One line of a form: label on the left, editor on the right, error and hint under the editor.

    Args:
        text: the label.
        editor: any widget; a composite one may name its real editor with ``setFocusProxy``.
        hint: a secondary line under the editor, or None.
        key: the configuration key, shown small beside the label where the two differ.
    """

    def __init__(self, text: str, editor: QWidget, *, hint: str | None = None, key: str | None = None) -> None:
        super().__init__()
        self.editor = editor
        self.caption = label(text)
        self.caption.setBuddy(editor)
        (editor.focusProxy() or editor).setAccessibleName(text)
        self._error = label(role="error", wrap=True)
        self._hint = label(hint or "", "hint", wrap=True)
        self._error.hide()
        self._hint.setVisible(bool(hint))
        left = QWidget()
        left.setFixedWidth(LABEL_WIDTH)
        names = column(self.caption, spacing=0)
        if key:
            names.addWidget(label(key, "hint"))
        names.setContentsMargins(0, 6 if not key else 0, 0, 0)
        names.addStretch(1)
        left.setLayout(names)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(left)
        layout.addLayout(column(editor, self._error, self._hint, spacing=3), 1)

    def set_error(self, text: str | None) -> None:
        """Show what is wrong and what to write instead, with a red frame; None clears it."""
        self._error.setText(text or "")
        self._error.setVisible(bool(text))
        set_property(self.editor.focusProxy() or self.editor, "invalid", bool(text))

    def set_hint(self, text: str | None) -> None:
        """Replace the secondary line; None hides it."""
        self._hint.setText(text or "")
        self._hint.setVisible(bool(text))

    @property
    def hint(self) -> str:
        """The secondary line; empty where there is none."""
        return self._hint.text()

    @property
    def error(self) -> str | None:
        """The error shown, or None."""
        return self._error.text() or None


class EmptyState(QWidget):
    """What a page or a panel says when there is nothing to show, and the way on."""

    clicked = Signal()

    def __init__(
        self,
        title: str,
        text: str = "",
        button_text: str | None = None,
        icon: str | None = None,
        *,
        wrap_px: int = 420,
    ) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._wrap_px = wrap_px
        self._icon = icon
        self._mark = QLabel()
        self.title, self.text = label(title, "title"), label(text, "secondary", wrap=True)
        self._fit_text()
        layout = QVBoxLayout(self)
        layout.setSpacing(theme.SPACE_1)
        layout.addStretch(1)
        for item in (self._mark, self.title, self.text):
            layout.addWidget(item, 0, Qt.AlignmentFlag.AlignHCenter)
            item.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.action = button(button_text, "primary", on_click=self.clicked.emit) if button_text else None
        if self.action:
            layout.addSpacing(theme.SPACE_2)
            layout.addWidget(self.action, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(1)
        self._mark.setVisible(icon is not None)
        self._paint_icon()

    def set_text(self, title: str, text: str) -> None:
        """Say something else."""
        self.title.setText(title)
        self.text.setText(text)
        self._fit_text()

    def _fit_text(self) -> None:
        """Wide as the text, at most ``wrap_px``, and as high as it then is.

        A centred label that wraps is otherwise given the height of a guess and loses its last line.
        """
        width = min(self._wrap_px, self.text.fontMetrics().horizontalAdvance(self.text.text()) + theme.SPACE_2)
        self.text.setFixedWidth(width)
        self.text.setMinimumHeight(max(0, self.text.heightForWidth(width)))

    def changeEvent(self, event: QEvent) -> None:
        """Draw the icon in the new theme's colour."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._paint_icon()

    def _paint_icon(self) -> None:
        if self._icon:
            self._mark.setPixmap(icons.pixmap(self._icon, "disabled", 32))


class ElidedLabel(QLabel):
    """A label that shortens its text with "…" instead of widening its parent; the tooltip has the whole text.

    Where a shorter wording is given, it is shown instead of a cut text.
    """

    def __init__(self, text: str = "", role: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._mode, self._full = mode, ""
        self._short: str | None = None
        if role:
            self.setProperty("role", role)
        self.set_text(text)

    def set_text(self, text: str, short: str | None = None) -> None:
        """Show a text, or the shorter wording where the text does not fit."""
        if (text, short) != (self._full, self._short):
            self._full, self._short = text, short
            self._elide()

    @property
    def full_text(self) -> str:
        """The text without "…"."""
        return self._full

    def sizeHint(self) -> QSize:
        """Of the whole text."""
        hint = super().sizeHint()
        hint.setWidth(self.fontMetrics().horizontalAdvance(self._full) + 2)
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten for the new width."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics, width = self.fontMetrics(), max(self.width(), 1)
        text = self._full
        if self._short is not None and metrics.horizontalAdvance(text) > width:
            text = self._short
        shown = metrics.elidedText(text, self._mode, width)
        self.setText(shown)
        self.setToolTip(self._full if shown != self._full else "")


class MonoLabel(QLabel):
    """A selectable label in the monospace font, for paths, addresses and keys."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", "mono")
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)


class CopyButton(IconButton):
    """Puts a text on the clipboard and shows a check mark for a moment.

    Args:
        source: called at each click for the text.
        text: the button's caption; empty shows the icon alone.
    """

    def __init__(self, source: Callable[[], str], text: str = "", tooltip: str = "Copy") -> None:
        super().__init__(text, "copy")
        self.setProperty("role", "secondary" if text else "ghost")
        self.setToolTip(tooltip)
        self.setAccessibleName(tooltip)
        self._source = source
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_COPIED_MS)
        self._timer.timeout.connect(lambda: self.set_icon("copy", "secondary"))
        self.clicked.connect(self._copy)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._source())
        self.set_icon("check", "calm")
        self._timer.start()
