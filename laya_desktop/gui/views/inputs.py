"""Editors for forms that set values without telling, and tell what people change. Qt main thread; no node, no rules.

``edited`` of each editor fires for people's changes only; ``set_value`` leaves an equal value (and the cursor) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.widgets import IconButton, button, set_property

_SPACING = 6


class TextInput(QLineEdit):
    """One line of text. ``left`` fires at Enter and when the focus goes."""

    edited = Signal()

    def __init__(self, placeholder: str = "", *, mono: bool = False) -> None:
        super().__init__()
        self.setPlaceholderText(placeholder)
        if mono:
            self.setProperty("role", "mono")
        self.textEdited.connect(lambda _text: self.edited.emit())

    def value(self) -> str:
        """The text."""
        return self.text()

    def set_value(self, value: str) -> None:
        """Show a text."""
        if value != self.text():
            with QSignalBlocker(self):
                self.setText(value)
                self.setCursorPosition(0)


class Choice(QComboBox):
    """One of a few values. The wheel scrolls the form instead of changing a value in passing."""

    edited = Signal()

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self._items: tuple[tuple[str, str], ...] = ()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.set_items(items)
        self.activated.connect(lambda _index: self.edited.emit())

    def set_items(self, items: Iterable[tuple[str, str]]) -> None:
        """Offer (value, text) pairs; the value shown stays, also where it is none of them."""
        new = tuple(items)
        if new == self._items:
            return
        value = self.value()
        with QSignalBlocker(self):
            self._items = new
            self.clear()
            for key, text in new:
                self.addItem(text, key)
            self._choose(value)

    def value(self) -> str:
        """The value shown; empty where there is none."""
        return str(self.currentData() or "")

    def set_value(self, value: str) -> None:
        """Show a value; one that is not offered is added, so that nothing is changed by looking at it."""
        if value != self.value():
            with QSignalBlocker(self):
                self._choose(value)

    def _choose(self, value: str) -> None:
        if value and self.findData(value) < 0:
            self.addItem(value, value)
        self.setCurrentIndex(self.findData(value))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave it to the form."""
        event.ignore()


_SWITCH_LEAST_PX = 120


class Switch(QCheckBox):
    """Yes or no."""

    edited = Signal()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setToolTip(text)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.clicked.connect(lambda _checked: self.edited.emit())

    def value(self) -> bool:
        """Is it checked?"""
        return self.isChecked()

    def set_value(self, value: bool) -> None:
        """Show it."""
        with QSignalBlocker(self):
            self.setChecked(value)

    def sizeHint(self) -> QSize:
        """As tall as the other editors, so that the label beside it is level."""
        return super().sizeHint().expandedTo(QSize(0, theme.CONTROL_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """A long text gives way, and is in the tip, before it widens the whole form."""
        return super().minimumSizeHint().boundedTo(QSize(_SWITCH_LEAST_PX, theme.CONTROL_HEIGHT))


class PairsInput(QWidget):
    """A list of (name, value) conditions with one line each."""

    edited = Signal()

    def __init__(self, add_text: str, names: str, values: str) -> None:
        super().__init__()
        self._placeholders = (names, values)
        self._lines: list[tuple[QWidget, TextInput, TextInput]] = []
        self.add_button = button(add_text, "ghost", "plus", lambda: self._add("", "", focus=True))
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(_SPACING)
        self._layout.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self.add_button)

    def value(self) -> tuple[tuple[str, str], ...]:
        """Every line, also half-filled ones."""
        return tuple((name.value(), value.value()) for _, name, value in self._lines)

    def set_value(self, value: Iterable[tuple[str, str]]) -> None:
        """Show these lines."""
        new = tuple(value)
        if new == self.value():
            return
        for line, _, _ in self._lines:
            line.hide()
            line.deleteLater()
        self._lines = []
        for name, text in new:
            self._add(name, text, focus=False)

    def set_invalid(self, invalid: bool) -> None:
        """Red frames, or none."""
        for _, name, value in self._lines:
            set_property(name, "invalid", invalid)
            set_property(value, "invalid", invalid)

    @property
    def lines(self) -> list[tuple[TextInput, TextInput]]:
        """Name and value editors, top to bottom."""
        return [(name, value) for _, name, value in self._lines]

    def _add(self, name: str, text: str, *, focus: bool) -> None:
        line = QWidget()
        name_input = TextInput(self._placeholders[0], mono=True)
        value_input = TextInput(self._placeholders[1], mono=True)
        name_input.setAccessibleName(tr("Header name"))
        value_input.setAccessibleName(tr("Header value"))
        name_input.set_value(name)
        value_input.set_value(text)
        remove = IconButton("", "close")
        remove.setProperty("role", "ghost")
        remove.setToolTip(tr("Remove this condition"))
        remove.setAccessibleName(tr("Remove this condition"))
        remove.setFixedWidth(28)
        layout = QHBoxLayout(line)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for widget, stretch in ((name_input, 1), (value_input, 1), (remove, 0)):
            layout.addWidget(widget, stretch)
        entry = (line, name_input, value_input)
        self._lines.append(entry)
        self._layout.insertWidget(len(self._lines) - 1, line)
        name_input.edited.connect(self.edited)
        value_input.edited.connect(self.edited)
        remove.clicked.connect(lambda _checked=False: self._remove(entry))
        if focus:
            name_input.setFocus()
            self.edited.emit()

    def _remove(self, entry: tuple[QWidget, TextInput, TextInput]) -> None:
        self._lines.remove(entry)
        entry[0].hide()
        entry[0].deleteLater()
        self.edited.emit()


class Preview(QPlainTextEdit):
    """Read-only monospace text that is as tall as its lines."""

    def __init__(self, name: str, max_lines: int = 12) -> None:
        super().__init__()
        self._max_lines = max_lines
        self.setProperty("role", "well")
        self.setAccessibleName(name)
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(4)
        self.set_text("")

    def set_text(self, text: str) -> None:
        """Show a text."""
        if text == self.toPlainText():
            return
        self.setPlainText(text)
        lines = min(max(text.count("\n") + 1, 2), self._max_lines)
        self.setFixedHeight(QFontMetrics(theme.mono_font()).lineSpacing() * lines + 18)

    def minimumSizeHint(self) -> QSize:
        """Narrow is fine: it scrolls."""
        return QSize(80, 40)


Editor = TextInput | Choice | Switch | PairsInput


def connect_all(editors: Iterable[Editor], on_edited: Callable[[], None]) -> None:
    """One callback for every change that a person makes."""
    for editor in editors:
        editor.edited.connect(on_edited)
