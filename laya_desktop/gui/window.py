"""Builds the window and runs Qt's loop. Qt main thread; the only place that joins pages, bridge and theme."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication

from laya_desktop import __version__
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.messages import Dialogs, QtDialogs
from laya_desktop.gui.qtmodels.history import History
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
    """The window with all its pages on a bridge; ``dialogs`` answers questions in a test."""
    settings, history = main_window.window_settings(), History()
    dialogs = dialogs or QtDialogs()
    pages = {
        "Overview": OverviewPage(bridge, history, dialogs),
        "Routes": RoutesPage(bridge),
        "Models": ModelsPage(bridge),
        "Requests": RequestsPage(bridge),
        "Playground": PlaygroundPage(bridge),
        "Benchmark": BenchmarkPage(bridge, dialogs),
        "Logs": LogsPage(bridge, ring, dialogs),
        "Settings": SettingsPage(bridge, settings, dialogs),
    }
    return main_window.MainWindow(bridge, pages, history, dialogs, settings)


def run(service: NodeServiceApi, ring: LogRing) -> int:
    """Show the window until it is closed. SIGINT and SIGTERM close it without asking."""
    app = make_application()
    theme.apply_theme(app, main_window.restore_scheme(main_window.window_settings()))
    bridge = NodeBridge(service)
    window = build(bridge, ring)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        app.quit()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    bridge.start()
    window.show()
    try:
        return app.exec()
    finally:
        bridge.stop()
