"""The panel that lists the unsaved changes, in words or as lines of the file. Qt main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QVBoxLayout, QWidget

from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.actions import Actions
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.diff_view import DiffView
from laya_desktop.gui.views.widgets import SectionTitle, button, column, label, row, scrolled
from laya_desktop.state.snapshot import ConfigStatus

_WIDTH_PX, _WIDE_PX, _LIST_PX = 420, 620, 260


class ReviewPanel(QFrame):
    """A popover inside the window: closes on Escape, on a click elsewhere, and when nothing is left to review."""

    def __init__(self, bridge: NodeBridge, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self._bridge, self._window = bridge, parent
        self.setObjectName("popover")
        self.setFixedWidth(_WIDTH_PX)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._title = SectionTitle("")
        self._where = label("", "secondary")
        self._list = QWidget()
        self._lines = QVBoxLayout(self._list)
        self._lines.setContentsMargins(0, 4, 0, 4)
        self._lines.setSpacing(6)
        self._area = scrolled(self._list)
        self._shown: tuple[str, ...] = ()
        self._revision: int | None = None
        self.diff = DiffView()
        self._no_diff = label("", "secondary", wrap=True)
        self.in_words = button(tr("In words"), "segment")
        self.in_file = button(tr("In the file"), "segment")
        choice = QButtonGroup(self)
        for each in (self.in_words, self.in_file):
            choice.addButton(each)
        self.in_words.setChecked(True)
        self.in_file.toggled.connect(self._show_choice)
        save = button(tr("Save"), "primary", on_click=lambda: self._act(actions.save.trigger))
        revert = button(tr("Revert all"), "danger", on_click=lambda: self._act(actions.revert.trigger))
        save_as = button(tr("Save as…"), on_click=lambda: self._act(actions.save_as.trigger))
        layout = column(self._title, self._where, spacing=4)
        layout.addLayout(row(self.in_words, self.in_file, None, spacing=6))
        for item in (self._area, self.diff, self._no_diff):
            layout.addWidget(item)
        layout.addLayout(row(revert, None, save_as, save))
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_3, theme.SPACE_4, theme.SPACE_3)
        self.setLayout(layout)
        self._show_choice(False)
        self.hide()

    @property
    def changes(self) -> tuple[str, ...]:
        """What is listed."""
        return self._shown

    def set_status(self, status: ConfigStatus) -> None:
        """List the changes."""
        if not status.unsaved:
            self.hide()
        if status.revision != self._revision:
            self._revision = status.revision
            self._ask_for_diff()
        if status.unsaved == self._shown:
            return
        self._shown = status.unsaved
        self._title.setText(fmt.counted(len(status.unsaved), "unsaved change"))
        self._where.setText(tr("In force on the node; not yet in the file."))
        while (item := self._lines.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        for change in status.unsaved:
            self._lines.addWidget(label(f"• {change}", wrap=True))
        self._lines.addStretch(1)
        self._area.setFixedHeight(min(_LIST_PX, 12 + 24 * len(status.unsaved)))

    def _show_choice(self, lines: bool) -> None:
        self._area.setVisible(not lines)
        self.diff.setVisible(lines)
        self._no_diff.hide()
        right = self.geometry().right()
        self.setFixedWidth(min(_WIDE_PX, self._window.width() - 2 * theme.SPACE_4) if lines else _WIDTH_PX)
        self.adjustSize()
        self.move(max(theme.SPACE_4, right - self.width() + 1), self.y())
        self._ask_for_diff()

    def _ask_for_diff(self) -> None:
        if self.in_file.isChecked() and self.isVisible():
            self._bridge.diff_config(self._on_diff, self._on_no_diff)

    def _on_diff(self, text: str) -> None:
        self.diff.set_diff(text)
        self.diff.setVisible(self.in_file.isChecked())
        self._no_diff.hide()
        self.adjustSize()

    def _on_no_diff(self, error: LayaError) -> None:
        self._no_diff.setText(str(error))
        self._no_diff.setVisible(self.in_file.isChecked())
        self.diff.hide()
        self.adjustSize()

    @property
    def _app(self) -> QCoreApplication:
        app = QCoreApplication.instance()
        assert app is not None
        return app

    def _act(self, act: Callable[[], object]) -> None:
        self.hide()
        act()

    def showEvent(self, event: QShowEvent) -> None:
        """Watch for clicks elsewhere."""
        super().showEvent(event)
        self._app.installEventFilter(self)
        self.setFocus()
        self._ask_for_diff()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop watching."""
        super().hideEvent(event)
        self._app.removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Close on a click outside."""
        if (
            isinstance(event, QMouseEvent)
            and event.type() == QEvent.Type.MouseButtonPress
            and isinstance(watched, QWidget)
            and not self.rect().contains(self.mapFromGlobal(event.globalPosition().toPoint()))
        ):
            self.hide()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)
