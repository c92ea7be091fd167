"""Ctrl+K: every command by a few letters. Qt main thread; used by the keyboard alone or by the mouse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.fuzzy import ranked
from laya_desktop.gui.views.inputs import TextInput
from laya_desktop.gui.views.overlay import Overlay
from laya_desktop.gui.views.widgets import column, label

_ROW_PX, _ROWS, _WIDTH_PX = 34, 9, 560
_NOTE_ROLE = Qt.ItemDataRole.UserRole.value + 1


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the palette: what it does, its shortcut or place, and the doing."""

    text: str
    act: Callable[[], object]
    note: str = ""


class CommandPalette(Overlay):
    """A field and the commands that fit; Up, Down and Enter work while typing.

    Args:
        parent: the window.
        commands: asked each time it opens.
    """

    def __init__(self, parent: QWidget, commands: Callable[[], list[Command]]) -> None:
        super().__init__(parent, _WIDTH_PX)
        self._ask, self._commands = commands, list[Command]()
        self.setAccessibleName(tr("Commands"))
        self.field = TextInput(tr("Type a command, a page or a model"))
        self.field.setAccessibleName(tr("Find a command"))
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._refresh)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Commands that fit"))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(_Lines(self.list))
        self.list.setFixedHeight(_ROW_PX * _ROWS)
        self.list.itemClicked.connect(lambda _item: self.run())
        self.none = label(tr("No command fits."), "secondary")
        layout = column(self.field, self.list, self.none)
        layout.setContentsMargins(*(theme.SPACE_3,) * 4)
        self.setLayout(layout)
        self.setFocusProxy(self.field)

    def open(self) -> None:
        """Show what can be done now."""
        self._commands = self._ask()
        self.field.clear()
        self._refresh()
        super().open()

    @property
    def texts(self) -> list[str]:
        """What is listed, best first."""
        return [self.list.item(i).text() for i in range(self.list.count())]

    def run(self) -> None:
        """Do what is selected."""
        item = self.list.currentItem()
        if item is not None:
            command = self._commands[item.data(Qt.ItemDataRole.UserRole)]
            self.hide()
            command.act()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys of the field that mean the list."""
        if watched is self.field and event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            last = self.list.count() - 1
            steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -_ROWS, Qt.Key.Key_PageDown: _ROWS}
            step = steps.get(Qt.Key(event.key()))
            if step is not None:
                self.list.setCurrentRow(max(0, min(self.list.currentRow() + step, last)))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.run()
                return True
        return super().eventFilter(watched, event)

    def _refresh(self) -> None:
        self.list.clear()
        for i in ranked(self.field.value(), [c.text for c in self._commands]):
            command = self._commands[i]
            item = QListWidgetItem(command.text)
            item.setData(Qt.ItemDataRole.UserRole, i)
            item.setData(_NOTE_ROLE, command.note)
            item.setSizeHint(QSize(0, _ROW_PX))
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        found = self.list.count() > 0
        self.list.setVisible(found)
        self.none.setVisible(not found)
        if self.isVisible():
            self.place()


class _Lines(QStyledItemDelegate):
    """The command on the leading side, its note on the other."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("selection"))
            painter.drawRoundedRect(option.rect, theme.RADIUS_SMALL, theme.RADIUS_SMALL)
        rect = option.rect.adjusted(10, 0, -10, 0)
        note = str(index.data(_NOTE_ROLE) or "")
        flags = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(theme.ui_font(theme.FONT_SECONDARY))
        painter.setPen(theme.color("secondary"))
        painter.drawText(rect, _aligned(flags, option, trailing=True), note)
        room = rect.width() - painter.fontMetrics().horizontalAdvance(note) - 16
        painter.setFont(theme.ui_font())
        painter.setPen(theme.color("text"))
        text = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, room)
        painter.drawText(rect, _aligned(flags, option, trailing=False), text)
        painter.restore()


def _aligned(flags: Qt.AlignmentFlag, option: QStyleOptionViewItem, *, trailing: bool) -> int:
    reversed_ = option.direction == Qt.LayoutDirection.RightToLeft
    side = Qt.AlignmentFlag.AlignRight if trailing != reversed_ else Qt.AlignmentFlag.AlignLeft
    return int((flags | side).value)
