"""The least window with alerts and banners open: plots keep a height at which they say something."""

from __future__ import annotations

from PySide6.QtWidgets import QScrollArea

from laya_desktop.gui import window as windows
from laya_desktop.gui.messages import Message
from laya_desktop.gui.views.main_window import LEAST_SIZE
from laya_desktop.gui.views.plot_grid import LEAST_PLOT_PX
from laya_desktop.logs import LogRing
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import ConfigStatus, GuardAlert, GuardSnapshot


def test_plots_are_not_flat_in_the_least_window(qtbot, bridge, dialogs, service):
    window, habits = windows.assemble(bridge, LogRing(), dialogs)
    qtbot.addWidget(
        window, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    qtbot.addWidget(habits.mini)
    window.resize(*LEAST_SIZE)
    window.show()
    alert = GuardAlert("a", "ram", Level.CRITICAL, Level.CRITICAL, "RAM full in about 12 s", 1.0)
    service.publish(guard=GuardSnapshot(level=Level.CRITICAL, text=alert.text, alerts=(alert,)))
    bridge.poll()
    for i in range(3):
        window.show_message(Message("warning", f"Something to know, number {i}."))
    page = window.pages["Overview"]
    qtbot.waitUntil(lambda: page.plots is not None)
    qtbot.waitUntil(lambda: min(plot.height() for plot in page.plots.plots) >= LEAST_PLOT_PX)
    area = page.layout().itemAt(0).widget()
    assert isinstance(area, QScrollArea)
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    window.banners.hide()
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: bar.maximum() == 0)  # with room enough nothing scrolls
    habits.close()
