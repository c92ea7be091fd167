"""The bar on top: what runs, where, what is unsaved, and the few things one does about it. Qt main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLabel, QMenu, QToolButton, QWidget

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.actions import Actions
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.views import icons
from laya_desktop.gui.views.widgets import IconButton, Pill, button, label, row
from laya_desktop.state.enums import NodeState
from laya_desktop.state.snapshot import NodeSnapshot

_COPIED_MS = 1200


_STATES = {
    NodeState.STOPPED: QT_TR_NOOP("Stopped"),
    NodeState.STARTING: QT_TR_NOOP("Starting"),
    NodeState.RUNNING: QT_TR_NOOP("Running"),
    NodeState.STOPPING: QT_TR_NOOP("Stopping"),
    NodeState.FAILED: QT_TR_NOOP("Failed"),
}


class Header(QFrame):
    """Icon, name, node state, address, unsaved changes, Review, Save, menu, Start/Stop."""

    review_wanted = Signal()
    """The user asked to see the unsaved changes."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self.setObjectName("header")
        self.setFixedHeight(theme.HEADER_HEIGHT)
        self._address = ""
        mark = QLabel()
        mark.setPixmap(icons.app_pixmap(24))
        name = label(tr("Laya Desktop"), "title")
        self.state = Pill(tr("Stopped"))
        self.address = Pill("", clickable=True, mono=True)
        self.address.dot.hide()
        self.address.setToolTip(tr("Click to copy the address"))
        self.address.clicked.connect(self._copy_address)
        self.unsaved = Pill("", "accent", clickable=True)
        self.unsaved.clicked.connect(self.review_wanted)
        self.review = button(tr("Review"), on_click=self.review_wanted.emit)
        self.save = _action_button(actions, "save", "primary")
        self.start_stop = _action_button(actions, "start_stop", "secondary")
        self._actions = actions
        self.menu_button = self._menu(actions)
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.setInterval(_COPIED_MS)
        self._copied.timeout.connect(lambda: self.address.set_state(self._address, dot=False))
        layout = row(
            mark, name, 4, self.state, self.address, None, self.unsaved, self.review, self.save, self.start_stop,
            self.menu_button, spacing=10,
        )  # fmt: skip
        layout.setContentsMargins(theme.SPACE_4, 0, theme.SPACE_3, 0)
        self.setLayout(layout)

    def _menu(self, actions: Actions) -> QToolButton:
        result = QToolButton()
        result.setProperty("role", "ghost")
        result.setToolTip(tr("File"))
        result.setAccessibleName(tr("File menu"))
        result.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        result.setFixedSize(QSize(30, 30))
        result.setIcon(icons.icon("more"))
        result.setIconSize(QSize(18, 18))
        menu = QMenu(result)
        menu.addActions([actions.open, actions.save, actions.save_as, actions.export, actions.reveal])
        menu.addSeparator()
        menu.addAction(actions.revert)
        menu.addSeparator()
        menu.addAction(actions.quit)
        result.setMenu(menu)
        return result

    def update_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show the node's state and the file's."""
        node = snapshot.node
        words = tr(_STATES[node.state])
        self.state.set_state(words, theme.node_tone(node.state))
        self.state.setToolTip(node.error or "")
        self._address = f"{node.host}:{node.port}" if node.host else ""
        if not self._copied.isActive():
            self.address.set_state(self._address, dot=False)
        self.address.setVisible(bool(self._address))
        unsaved = len(snapshot.config_status.unsaved)
        self.unsaved.set_state(fmt.counted(unsaved, "unsaved change"), "accent")
        self.unsaved.setVisible(unsaved > 0)
        self.review.setVisible(unsaved > 0)

    def _copy_address(self) -> None:
        QGuiApplication.clipboard().setText(self._address)
        self.address.set_state(tr("Copied"), dot=False)
        self._copied.start()

    def changeEvent(self, event: QEvent) -> None:
        """Draw the menu's icon in the new theme's colour."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "menu_button"):
            self.menu_button.setIcon(icons.icon("more"))


def _action_button(actions: Actions, name: str, role: str) -> IconButton:
    """A button that mirrors an action's text and enabled state."""
    action = getattr(actions, name)
    result = button(action.text(), role, on_click=action.trigger)

    def mirror() -> None:
        result.setText(action.text())
        result.setEnabled(action.isEnabled())
        shortcut = action.shortcut().toString()
        result.setToolTip(f"{action.text()} ({shortcut})" if shortcut else "")

    action.changed.connect(mirror)
    mirror()
    return result


def title_of(snapshot: NodeSnapshot, *, name: str = "Laya Desktop") -> str:
    """The window's title: file first, and a dot while there are unsaved changes."""
    path = snapshot.config_status.path
    file = path.replace("\\", "/").rsplit("/", 1)[-1] if path else tr("new configuration")
    return f"{'• ' if snapshot.config_status.unsaved else ''}{file} – {name}"


def align_below(popup: QWidget, anchor: QWidget) -> None:
    """Put a child popup under an anchor, right edges aligned, inside their window."""
    window = anchor.window()
    corner = anchor.mapTo(window, anchor.rect().bottomRight())
    popup.adjustSize()
    popup.move(max(8, min(corner.x() - popup.width(), window.width() - popup.width() - 8)), theme.HEADER_HEIGHT + 4)
    popup.raise_()
