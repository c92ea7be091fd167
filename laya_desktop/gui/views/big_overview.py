"""Overview alone on a whole screen, for a second monitor. Qt main thread; F11 or Escape leaves."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views import icons
from laya_desktop.gui.views.overview import OverviewPage
from laya_desktop.state.snapshot import NodeSnapshot


class BigOverview(QWidget):
    """A window of its own with a second Overview on the same history."""

    def __init__(self, bridge: NodeBridge, history: History, dialogs: Dialogs) -> None:
        super().__init__(None, Qt.WindowType.Window)
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowIcon(icons.app_icon())
        self.setWindowTitle(tr("Overview – Laya Desktop"))
        self.page = OverviewPage(bridge, history, dialogs)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.page)
        bridge.snapshot_changed.connect(self._on_snapshot)
        for keys in (Qt.Key.Key_Escape, Qt.Key.Key_F11):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.activated.connect(self.close)

    def open_beside(self, window: QWidget) -> None:
        """Fill another screen than the window's, or the same where there is one alone."""
        here = window.screen()
        other = next((screen for screen in QGuiApplication.screens() if screen is not here), here)
        self.setGeometry(other.geometry())
        self.showFullScreen()
        self.raise_()
        self.activateWindow()

    def _on_snapshot(self, snapshot: NodeSnapshot) -> None:
        if self.isVisible():
            self.page.set_snapshot(snapshot)
