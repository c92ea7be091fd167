"""Builds the window and runs Qt's loop. Qt main thread; the only place that joins pages, bridge and theme."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication

from laya_desktop import __version__
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.habits import Habits
from laya_desktop.gui.i18n import QT_TR_NOOP, set_language
from laya_desktop.gui.messages import Dialogs, QtDialogs
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.single import Instance
from laya_desktop.gui.single import claim as claim_name
from laya_desktop.gui.views import main_window
from laya_desktop.gui.views.benchmark_page import BenchmarkPage
from laya_desktop.gui.views.logs_page import LogsPage
from laya_desktop.gui.views.models_page import ModelsPage
from laya_desktop.gui.views.overview import OverviewPage
from laya_desktop.gui.views.playground_page import PlaygroundPage
from laya_desktop.gui.views.requests_page import RequestsPage
from laya_desktop.gui.views.routes_page import RoutesPage
from laya_desktop.gui.views.settings_page import SettingsPage

if TYPE_CHECKING:
    from pathlib import Path

    from laya_desktop.logs import LogRing
    from laya_desktop.service.api import NodeServiceApi


def make_application() -> QApplication:
    """The Qt application with our names; an existing one is taken as it is."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    QApplication.setApplicationName("laya-desktop")
    QApplication.setApplicationDisplayName("Laya Desktop")
    QApplication.setApplicationVersion(__version__)
    QApplication.setDesktopFileName("laya-desktop")
    return QApplication(sys.argv[:1])


def build(bridge: NodeBridge, ring: LogRing, dialogs: Dialogs | None = None) -> main_window.MainWindow:
    """The window alone, as ``assemble`` makes it."""
    return assemble(bridge, ring, dialogs)[0]


def assemble(
    bridge: NodeBridge, ring: LogRing, dialogs: Dialogs | None = None, history: History | None = None
) -> tuple[main_window.MainWindow, Habits]:
    """The window with all its pages on a bridge, and what is around it; ``dialogs`` answers questions in a test."""
    settings, history = main_window.window_settings(), history or History()
    dialogs = dialogs or QtDialogs()
    pages = {
        QT_TR_NOOP("Overview"): OverviewPage(bridge, history, dialogs),
        QT_TR_NOOP("Routes"): RoutesPage(bridge),
        QT_TR_NOOP("Models"): ModelsPage(bridge, preferences=Preferences(settings)),
        QT_TR_NOOP("Requests"): RequestsPage(bridge),
        QT_TR_NOOP("Playground"): PlaygroundPage(bridge),
        QT_TR_NOOP("Benchmark"): BenchmarkPage(bridge, dialogs),
        QT_TR_NOOP("Logs"): LogsPage(bridge, ring, dialogs),
        QT_TR_NOOP("Settings"): SettingsPage(bridge, settings, dialogs),
    }
    window = main_window.MainWindow(bridge, pages, history, dialogs, settings)
    return window, Habits(window, bridge, history, dialogs, settings)


class Shell(QObject):
    """The window that is shown and what is around it; made anew when another language is chosen.

    Attributes:
        window: the present one.
        habits: what is around it.
    """

    def __init__(self, bridge: NodeBridge, ring: LogRing, dialogs: Dialogs | None = None) -> None:
        super().__init__()
        self._bridge, self._ring, self._dialogs = bridge, ring, dialogs
        self._history = History()
        with theme.styled_once():
            self._make()

    def _make(self) -> None:
        self.window, self.habits = assemble(self._bridge, self._ring, self._dialogs, self._history)
        self.window.closed.connect(QApplication.quit)
        settings = self.window.pages["Settings"]
        assert isinstance(settings, SettingsPage)
        settings.language_chosen.connect(self.speak, Qt.ConnectionType.QueuedConnection)  # its sender goes away

    def speak(self, code: str) -> None:
        """Show the window in that language, at its place and on its page; the history goes on."""
        set_language(code)
        old, habits = self.window, self.habits
        visible = old.isVisible()
        old.remember()
        self._make()
        if visible:
            self.window.show()
        habits.close()
        old.hide()
        old.deleteLater()

    def on_wish(self, config: str, model: str) -> None:
        """A second start asks for something."""
        self.habits.on_wish(config, model)


def claim(config: Path | None, load: str | None) -> Instance | None:
    """Become the window of this configuration folder; None: another one took the wish over and came to the front."""
    make_application()
    return claim_name(config, load)


def run(
    service: NodeServiceApi,
    ring: LogRing,
    instance: Instance | None = None,
    *,
    hidden: bool = False,
    first_steps: bool = False,
) -> int:
    """Show the window until it is closed for good. SIGINT and SIGTERM close it without asking.

    Args:
        service: the node.
        ring: the newest lines of the log.
        instance: where a second start is heard.
        hidden: show the tray icon alone, where there is a tray.
        first_steps: offer them to whoever has not seen them.
    """
    app = make_application()
    app.setQuitOnLastWindowClosed(False)  # the mini view is no reason to live on, a hidden window no reason to end
    settings = main_window.window_settings()
    theme.apply_theme(app, main_window.restore_scheme(settings), Preferences(settings).density)
    set_language(Preferences(settings).language)
    bridge = NodeBridge(service)
    shell = Shell(bridge, ring)
    if instance is not None:
        instance.wished.connect(shell.on_wish)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        app.quit()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    bridge.start()
    if not (hidden and shell.habits.tray.available):
        shell.window.show()
        if first_steps:
            shell.habits.welcome_once()
    try:
        return app.exec()
    finally:
        bridge.stop()
        shell.habits.close()
        if instance is not None:
            instance.close()
