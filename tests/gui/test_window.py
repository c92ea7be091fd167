"""The window around the pages: navigation, header, save and its ways out, banners, closing, geometry."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.messages import Message
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views.benchmark_page import BenchmarkPage
from laya_desktop.gui.views.main_window import MainWindow, restore_scheme
from laya_desktop.gui.views.models_page import ModelsPage
from laya_desktop.gui.views.routes_page import RoutesPage
from laya_desktop.state.enums import Level, NodeState
from laya_desktop.state.events import (
    ConfigChangedOnDisk,
    ConfigSaved,
    ModelFailed,
    ModelLoaded,
    NodeStateChanged,
    Notice,
)
from laya_desktop.state.snapshot import ConfigStatus, Forecast
from tests.helpers.fake_service import changed_on_disk
from tests.helpers.sample_data import UNSAVED, sample_snapshot

PAGES = {"Routes": RoutesPage, "Models": ModelsPage}
NAMES = ("Overview", "Routes", "Models", "Requests", "Logs", "Settings")


class RecordingPage(QWidget):
    """Counts the snapshots it is shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def set_snapshot(self, snapshot):
        self.seen.append(snapshot.seq)


@pytest.fixture
def pages():
    return {name: RecordingPage() for name in NAMES}


@pytest.fixture
def window(qtbot, bridge, dialogs, settings, pages, service):
    result = MainWindow(bridge, pages, History(), dialogs, settings)
    qtbot.addWidget(
        result, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    result.show()
    return result


def saved(service, bridge, **changes):
    service.publish(config_status=replace(service.snapshot.config_status, unsaved=(), **changes))
    bridge.poll()


def test_navigation_shows_pages(qtbot, window):
    assert window.page == "Overview"
    qtbot.mouseClick(window.navigation.buttons["Models"], Qt.MouseButton.LeftButton)
    assert window.page == "Models"
    assert window.navigation.buttons["Models"].isChecked()
    assert not window.navigation.buttons["Overview"].isChecked()


@pytest.mark.parametrize(("digit", "name"), list(zip("123456", NAMES, strict=True)))
def test_ctrl_digit_shows_a_page(qtbot, window, digit, name):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, digit, Qt.KeyboardModifier.ControlModifier)
    assert window.page == name


def test_only_the_visible_page_is_given_snapshots(window, service, bridge, pages):
    window.show_page("Routes")
    for page in pages.values():
        page.seen.clear()
    seq = service.publish().seq
    bridge.poll()
    assert pages["Routes"].seen == [seq]
    assert not any(page.seen for name, page in pages.items() if name != "Routes")
    window.show_page("Logs")
    assert pages["Logs"].seen == [seq]


def test_header_follows_the_node(window, service, bridge):
    assert window.header.state.text == "Running"
    assert window.header.address.text == "127.0.0.1:5292"
    assert window.header.start_stop.text() == "Stop"
    service.publish(node=replace(service.snapshot.node, state=NodeState.STARTING))
    bridge.poll()
    assert window.header.state.text == "Starting"
    assert not window.header.start_stop.isEnabled()
    service.publish(node=replace(service.snapshot.node, state=NodeState.FAILED, error="Port 5292 is taken."))
    bridge.poll()
    assert window.header.state.text == "Failed"
    assert window.header.state.toolTip() == "Port 5292 is taken."
    assert window.header.start_stop.text() == "Start"


def test_start_and_stop_are_requests(qtbot, window, service, bridge):
    service.manual = True
    qtbot.mouseClick(window.header.start_stop, Qt.MouseButton.LeftButton)
    assert len(service.called("stop_node")) == 1
    bridge.poll()
    assert window.header.state.text == "Running"  # until a snapshot says otherwise
    service.settle("stop_node")
    service.publish(node=replace(service.snapshot.node, state=NodeState.STOPPED))
    bridge.poll()
    assert window.header.start_stop.text() == "Start"


def test_address_is_copied(qtbot, window):
    qtbot.mouseClick(window.header.address, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "127.0.0.1:5292"
    assert window.header.address.text == "Copied"
    qtbot.waitUntil(lambda: window.header.address.text == "127.0.0.1:5292", timeout=3000)


def test_unsaved_changes_are_shown_and_gone_when_saved(qtbot, window, service, bridge):
    assert window.header.unsaved.text == "2 unsaved changes"
    assert window.windowTitle() == "• app.yaml – Laya Desktop"
    qtbot.mouseClick(window.header.save, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert service.called("save_config")[0].args == (None, False)
    assert window.header.unsaved.isHidden()
    assert window.header.review.isHidden()
    assert not window.header.save.isEnabled()
    assert window.windowTitle() == "app.yaml – Laya Desktop"


def test_review_lists_the_changes(qtbot, window):
    qtbot.mouseClick(window.header.review, Qt.MouseButton.LeftButton)
    assert window.review.isVisible()
    assert window.review.changes == UNSAVED
    qtbot.keyClick(window.review, Qt.Key.Key_Escape)
    assert window.review.isHidden()


def test_review_closes_on_a_click_elsewhere_and_when_all_is_saved(qtbot, window, service, bridge):
    qtbot.mouseClick(window.header.review, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(window.pages["Overview"], Qt.MouseButton.LeftButton)
    assert window.review.isHidden()
    qtbot.mouseClick(window.header.review, Qt.MouseButton.LeftButton)
    saved(service, bridge)
    assert window.review.isHidden()


def test_revert_asks_first(window, service, dialogs):
    dialogs.revert = False
    window.actions_.revert.trigger()
    assert dialogs.asked == ["revert"]
    assert not service.called("revert_config")
    dialogs.revert = True
    window.actions_.revert.trigger()
    assert len(service.called("revert_config")) == 1


def test_save_without_a_file_asks_where(window, service, bridge, dialogs, tmp_path):
    service.publish(config_status=ConfigStatus(unsaved=("model a: new",)))
    bridge.poll()
    window.actions_.save.trigger()
    assert dialogs.asked == ["save"]
    assert not service.called("save_config")
    dialogs.path = tmp_path / "mine.yaml"
    window.actions_.save.trigger()
    assert service.called("save_config")[0].args == (tmp_path / "mine.yaml", True)


def test_export_writes_a_copy_and_keeps_the_unsaved_state(window, service, bridge, dialogs, tmp_path):
    dialogs.path = tmp_path / "copy.yaml"
    window.actions_.export.trigger()
    bridge.poll()
    assert service.called("export_config")[0].args == (tmp_path / "copy.yaml",)
    assert Path(dialogs.suggested).name == "app-copy.yaml"
    assert window.header.unsaved.isVisible()
    assert "Exported a copy" in window.banners.banners[0].message.text


def test_open_asks_before_it_throws_changes_away(window, service, dialogs, tmp_path):
    dialogs.revert, dialogs.path = False, tmp_path / "other.yaml"
    window.actions_.open.trigger()
    assert not service.called("open_config")
    dialogs.revert = True
    window.actions_.open.trigger()
    assert service.called("open_config")[0].args == (tmp_path / "other.yaml",)


@pytest.mark.parametrize(
    ("choice", "command", "args"),
    [("Reload", "revert_config", ()), ("Overwrite", "save_config", (None, True)), ("Save as…", "save_config", None)],
)
def test_a_file_changed_on_disk_leaves_the_choice_to_the_user(
    qtbot, window, service, bridge, dialogs, tmp_path, choice, command, args
):
    service.answers["save_config"] = changed_on_disk()
    window.actions_.save.trigger()
    bridge.poll()
    banner = window.banners.banners[0]
    assert banner.message.severity == "warning"
    assert [b.text() for b in banner.buttons] == ["Reload", "Overwrite", "Save as…"]
    service.calls.clear()
    service.answers["save_config"] = Path("app.yaml")
    dialogs.path = tmp_path / "new.yaml"
    qtbot.mouseClick(banner.buttons[[b.text() for b in banner.buttons].index(choice)], Qt.MouseButton.LeftButton)
    assert [c.name for c in service.calls] == [command]
    assert service.calls[0].args == (args if args is not None else (tmp_path / "new.yaml", True))
    assert not window.banners.banners


def test_events_become_banners_once(window, service, bridge):
    event = ConfigChangedOnDisk("/etc/app.yaml")
    service.emit(event, event, Notice("warning", "The disk is nearly full."))
    bridge.poll()
    texts = [b.message.text for b in window.banners.banners]
    assert texts == ["The disk is nearly full.", "app.yaml has changed on disk since it was read."]
    service.emit(ConfigSaved("/etc/app.yaml"))
    bridge.poll()
    assert [b.message.key for b in window.banners.banners] == ["config:saved", ""]


def test_a_failed_model_leads_to_its_page_and_a_load_settles_it(qtbot, window, service, bridge):
    service.emit(ModelFailed("qwen3-32b", "Out of memory."))
    bridge.poll()
    banner = window.banners.banners[0]
    assert banner.message.severity == "error"
    qtbot.mouseClick(banner.buttons[0], Qt.MouseButton.LeftButton)
    assert window.page == "Models"
    service.emit(ModelFailed("qwen3-32b", "Out of memory."), ModelLoaded("qwen3-32b", 4.0, "CPU"))
    bridge.poll()
    assert not window.banners.banners


def test_a_node_that_cannot_start_says_so_until_it_runs(window, service, bridge):
    service.emit(NodeStateChanged("failed", error="Port 5292 is taken. Set server.port to 5293."))
    bridge.poll()
    assert "Port 5292 is taken" in window.banners.banners[0].message.text
    service.emit(NodeStateChanged("running", url="http://127.0.0.1:5292"))
    bridge.poll()
    assert not window.banners.banners


def test_a_failed_command_is_a_banner_with_its_hint(qtbot, window, service, bridge):
    service.answers["stop_node"] = LayaError("The node hangs.", hint="Wait a little.")
    window.actions_.start_stop.trigger()
    bridge.poll()
    banner = window.banners.banners[0]
    assert banner.message.text == "The node hangs. Wait a little."
    qtbot.mouseClick(banner.close_button, Qt.MouseButton.LeftButton)
    assert window.banners.isHidden()


def test_at_most_three_banners(window):
    for i in range(5):
        window.show_message(Message("warning", f"message {i}"))
    assert [b.message.text for b in window.banners.banners] == ["message 4", "message 3", "message 2"]


def test_closing_with_unsaved_changes_can_be_cancelled(window, dialogs, service):
    dialogs.unsaved = "cancel"
    assert not window.close()
    assert window.isVisible()
    assert not service.called("save_config")


def test_closing_can_discard(window, dialogs, service):
    dialogs.unsaved = "discard"
    assert window.close()
    assert not service.called("save_config")


def test_closing_can_save_and_closes_only_once_it_is_written(window, dialogs, service, bridge):
    dialogs.unsaved, service.manual = "save", True
    assert not window.close()
    assert window.isVisible()
    service.settle("save_config", Path("app.yaml"))
    bridge.poll()
    assert window.isHidden()
    assert dialogs.asked == ["unsaved"]


def test_a_failed_save_keeps_the_window_open(window, dialogs, service, bridge):
    dialogs.unsaved = "save"
    service.answers["save_config"] = LayaError("The disk is full.")
    assert not window.close()
    bridge.poll()
    assert window.isVisible()
    assert window.banners.banners[0].message.text == "The disk is full."


def test_closing_without_changes_asks_nothing(window, dialogs, service, bridge):
    saved(service, bridge)
    assert window.close()
    assert dialogs.asked == []


def test_geometry_and_page_come_back(qtbot, window, bridge, dialogs, settings, service):
    saved(service, bridge)
    window.resize(1111, 640)
    window.show_page("Logs")
    window.close()
    again = MainWindow(bridge, {name: QWidget() for name in NAMES}, None, dialogs, settings)
    qtbot.addWidget(again)
    assert again.page == "Logs"
    assert again.height() == 640  # the width is cut to the offscreen platform's small screen


def test_status_bar_says_the_worst_in_seconds(window, service, bridge):
    forecast = Forecast("ram", Level.WARN, 5e8, 44.0, "RAM full in about 45 s at this rate")
    service.publish(forecasts=(forecast,))
    bridge.poll()
    assert window.status.items["ram"].text() == "RAM 22.8 GB free ▲ 45 s"
    assert window.status.items["ram"].property("tone") == "warn"
    assert window.status.file.text() == "app.yaml"


def test_status_bar_without_a_gpu_hides_vram(window, service, bridge):
    service.publish(sample_snapshot(gpu=False))
    bridge.poll()
    assert window.status.items["vram"].isHidden()
    assert window.status.items["cpu"].text().startswith("CPU 7")


def test_unknown_sensors_are_dashes(window, service, bridge):
    service.publish(machine=type(service.snapshot.machine)())
    bridge.poll()
    assert window.status.items["cpu"].text() == "CPU –"
    assert window.status.items["ram"].text() == "RAM –"


def test_history_is_fed_whatever_page_is_shown(qtbot, bridge, service, dialogs, settings):
    history = History()
    window = MainWindow(bridge, {"Routes": QWidget(), "Overview": QWidget()}, history, dialogs, settings)
    qtbot.addWidget(window)
    service.publish(sample_snapshot(60.5))
    bridge.poll()
    assert len(history.view("cpu", 60)[0]) == 2
    saved(service, bridge)


def test_theme_switches_while_the_window_is_shown(qapp, window):
    theme.apply_theme(qapp, "dark")
    assert theme.is_dark()
    dark = window.grab().toImage().pixelColor(600, 400)
    theme.apply_theme(qapp, "light")
    light = window.grab().toImage().pixelColor(600, 400)
    assert dark.lightness() < 60 < 200 < light.lightness()


def test_an_unknown_stored_scheme_means_system(settings):
    settings.setValue("appearance", "sepia")
    assert restore_scheme(settings) is theme.Scheme.SYSTEM
    settings.setValue("appearance", "dark")
    assert restore_scheme(settings) is theme.Scheme.DARK


@pytest.mark.parametrize("page", ["Routes", "Models", "Benchmark"])
def test_a_page_that_is_styled_once_looks_like_one_that_is_styled_while_it_is_built(qtbot, bridge, dialogs, page):
    pictures = []
    for while_built in (nullcontext(), theme.styled_once()):
        with while_built:
            built = BenchmarkPage(bridge, dialogs) if page == "Benchmark" else PAGES[page](bridge)
        qtbot.addWidget(built)
        built.resize(1104, 724)
        built.show()
        for _ in range(4):
            bridge.poll()
            built.set_snapshot(bridge.snapshot)
            QCoreApplication.processEvents()
        pictures.append(built.grab().toImage())
        built.hide()
    assert pictures[0] == pictures[1]
