"""The icon in the tray, and what the desktop is told. Qt main thread; passes wishes on as signals.

The state is a shape as well as a colour: nothing while calm, a hollow triangle, a filled one, a diamond; the mark is
grey while the node does not run.
"""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import QObject, QPointF, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.actions import Actions
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.qtmodels.notifier import Note, Notifier
from laya_desktop.gui.qtmodels.tray_state import TrayState, tray_state
from laya_desktop.gui.views import icons
from laya_desktop.state.enums import Level, ModelState
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import NodeSnapshot

_SIZES = (16, 22, 24, 32, 48, 64)
_NOTE_MS = 10_000
_SHAPES = {
    Level.WATCH: ((0.5, 0.05), (0.97, 0.95), (0.03, 0.95)),
    Level.WARN: ((0.5, 0.05), (0.97, 0.95), (0.03, 0.95)),
    Level.CRITICAL: ((0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)),
}


def state_icon(state: TrayState) -> QIcon:
    """The mark with the sign of the state in its corner."""
    result = QIcon()
    for size in _SIZES:
        pixmap = icons.app_pixmap(size, 1.0)
        if not state.on:
            pixmap = QIcon(pixmap).pixmap(size, size, QIcon.Mode.Disabled)
        if state.level in _SHAPES:
            painter = QPainter(pixmap)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            _paint_sign(painter, state.level, size)
            painter.end()
        result.addPixmap(pixmap)
    return result


def _paint_sign(painter: QPainter, level: Level, size: int) -> None:
    side = size * 0.56
    shape = QPolygonF([QPointF(size - side + x * side, size - side + y * side) for x, y in _SHAPES[level]])
    colour, paper = theme.color(theme.level_role(level)), QColor("white")
    edge = QPen(paper, max(1.0, size / 14), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
    painter.setPen(edge)
    painter.setBrush(paper)
    painter.drawPolygon(shape)
    hollow = level is Level.WATCH
    painter.setPen(QPen(colour, max(1.5, size / 10)) if hollow else Qt.PenStyle.NoPen)
    painter.setBrush(paper if hollow else colour)
    painter.drawPolygon(shape)


class Tray(QObject):
    """The icon and its menu. Without a tray the icon is not shown and notifications are dropped."""

    show_wanted = Signal(str)
    """Bring the window to the front; the page to show, or empty."""
    mini_wanted = Signal()

    def __init__(self, bridge: NodeBridge, actions: Actions, preferences: Preferences, window: QWidget) -> None:
        super().__init__(window)
        self._bridge, self._actions, self._preferences, self._window = bridge, actions, preferences, window
        self._notifier, self._page = Notifier(), ""
        self._state: TrayState | None = None
        self.icon = QSystemTrayIcon(self)
        self.menu = QMenu(window)
        self.menu.aboutToShow.connect(self.fill_menu)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._on_activated)
        self.icon.messageClicked.connect(lambda: self.show_wanted.emit(self._page))
        bridge.snapshot_changed.connect(self.set_snapshot)
        bridge.event_received.connect(self._on_event)
        self.set_snapshot(bridge.snapshot)
        self.fill_menu()
        if self.available:
            self.icon.show()

    @property
    def available(self) -> bool:
        """True where the desktop has a tray."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot; what is the same is not touched."""
        state, old = tray_state(snapshot), self._state
        if old is None or (old.level, old.on) != (state.level, state.on):
            self.icon.setIcon(state_icon(state))
        if old is None or old.tip != state.tip:
            self.icon.setToolTip(state.tip)
        self._state = state

    def fill_menu(self) -> None:
        """Make the menu from what is there now."""
        self.menu.clear()
        self.menu.addAction(tr("Show Laya Desktop"), lambda: self.show_wanted.emit(""))
        self.menu.addAction(tr("Mini view"), self.mini_wanted.emit)
        self.menu.addSeparator()
        self.menu.addAction(self._actions.start_stop)
        models = self.menu.addMenu(tr("Models"))
        snapshot = self._bridge.snapshot
        for model in snapshot.models:
            if model.state in (ModelState.READY, ModelState.UNLOADED, ModelState.FAILED):
                loaded = model.state is ModelState.READY
                text = tr("Unload {name}", name=model.name) if loaded else tr("Load {name}", name=model.name)
                act = self._bridge.unload_model if loaded else self._bridge.load_model
                models.addAction(text, partial(act, model.name))
            else:
                models.addAction(tr("{name}: busy", name=model.name)).setEnabled(False)
        models.setEnabled(bool(snapshot.models))
        self.menu.addSeparator()
        self.menu.addAction(self._actions.quit)

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Trigger:
            self.show_wanted.emit("")

    def _on_event(self, event: Event) -> None:
        if not self._preferences.notifications or self._window.isActiveWindow():
            return  # who looks at the window sees it there
        note = self._notifier.take(event, time.monotonic())
        if note is not None:
            self.notify(note)

    def notify(self, note: Note) -> None:
        """Tell the desktop; a click leads to the note's page."""
        self._page = note.page
        kind = QSystemTrayIcon.MessageIcon.Critical if note.critical else QSystemTrayIcon.MessageIcon.Warning
        self.icon.showMessage(note.title, note.text, kind, _NOTE_MS)
