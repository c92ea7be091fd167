"""A model's file: typed, chosen in a dialog, or taken from those that were used lately. Qt main thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget

from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.inputs import TextInput
from laya_desktop.gui.views.widgets import IconButton, row

_MENU_PX = 420


class PathInput(QWidget):
    """A path, the button that opens the file chooser, and the button that lists recent files."""

    browse_clicked = Signal()
    recent_chosen = Signal(str)
    """A path of the list."""

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self._ask: Callable[[], tuple[str, ...]] = tuple
        self.line = TextInput(placeholder, mono=True)
        self.edited = self.line.edited
        self.browse = self._tool("folder", tr("Choose a file"))
        self.browse.clicked.connect(lambda _checked=False: self.browse_clicked.emit())
        self.recent = self._tool("recent", tr("Files used lately"))
        self.recent.clicked.connect(lambda _checked=False: self._open())
        self.menu = QMenu(self)
        self.menu.setAccessibleName(tr("Files used lately"))
        self.menu.setToolTipsVisible(True)
        self.setLayout(row(self.line, self.recent, self.browse, spacing=4))
        self.setFocusProxy(self.line)

    def _tool(self, icon: str, text: str) -> IconButton:
        tool = IconButton("", icon)
        tool.setFixedWidth(34)
        tool.setProperty("role", "ghost")
        tool.setToolTip(text)
        tool.setAccessibleName(text)
        return tool

    def value(self) -> str:
        """The path as typed."""
        return self.line.value()

    def set_value(self, value: str) -> None:
        """Show a path, with its end in sight when the field is left."""
        self.line.set_value(value)
        self.line.end(False)
        self.line.setToolTip(value)

    def set_recent(self, ask: Callable[[], tuple[str, ...]]) -> None:
        """Where the list comes from; asked each time it opens."""
        self._ask = ask

    def fill_menu(self) -> None:
        """List the files, the newest first; a long path keeps its end in sight."""
        self.menu.clear()
        metrics = self.menu.fontMetrics()
        for path in self._ask():
            text = metrics.elidedText(path, Qt.TextElideMode.ElideMiddle, _MENU_PX)
            action = self.menu.addAction(text.replace("&", "&&"))
            action.setToolTip(path)
            action.triggered.connect(partial(self._choose, path))
        if self.menu.isEmpty():
            self.menu.addAction(tr("No file was used lately")).setEnabled(False)

    def _choose(self, path: str, _checked: bool = False) -> None:
        self.recent_chosen.emit(path)

    def _open(self) -> None:
        self.fill_menu()
        below = self.recent.mapToGlobal(QPoint(self.recent.width() - self.menu.sizeHint().width(), self.height()))
        self.menu.popup(below)
