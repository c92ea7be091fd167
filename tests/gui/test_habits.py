"""The window as a neighbour on the desktop: tray, notifications, closing, palette, drops, mini view, second starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui import window as windows
from laya_desktop.gui.qtmodels.notifier import MOST, Notifier
from laya_desktop.gui.views.tray import state_icon
from laya_desktop.logs import LogRing
from laya_desktop.state.enums import Level, ModelState, NodeState
from laya_desktop.state.events import AlertRaised, ModelFailed
from laya_desktop.state.snapshot import ConfigStatus, Forecast


@pytest.fixture
def both(qtbot, bridge, dialogs, service):
    window, habits = windows.assemble(bridge, LogRing(), dialogs)
    qtbot.addWidget(
        window, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    qtbot.addWidget(habits.mini)
    window.show()
    yield window, habits
    habits.close()
    habits.preferences.close_to_tray = False


@pytest.fixture
def window(both):
    return both[0]


@pytest.fixture
def habits(both):
    return both[1]


def saved(service, bridge):
    service.publish(config_status=replace(service.snapshot.config_status, unsaved=()))
    bridge.poll()


def with_tray(monkeypatch):
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))


def test_closing_hides_the_window_only_where_the_user_chose_that(window, habits, service, bridge, monkeypatch):
    saved(service, bridge)
    with_tray(monkeypatch)
    ends = []
    window.closed.connect(lambda: ends.append(True))
    habits.preferences.close_to_tray = True
    window.close()
    assert window.isHidden()
    assert ends == []
    habits.tray.show_wanted.emit("Models")
    assert window.isVisible()
    assert window.page == "Models"
    habits.preferences.close_to_tray = False
    window.close()
    assert ends == [True]


def test_closing_to_a_tray_that_is_not_there_closes(window, habits, service, bridge, monkeypatch):
    saved(service, bridge)
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: False))
    habits.preferences.close_to_tray = True
    with_closed = []
    window.closed.connect(lambda: with_closed.append(True))
    window.close()
    assert with_closed == [True]


def test_quit_really_quits_from_the_tray(window, habits, service, bridge, dialogs, monkeypatch):
    with_tray(monkeypatch)
    habits.preferences.close_to_tray = True
    window.close()
    assert window.isHidden()
    assert dialogs.asked == []  # nothing is lost by hiding
    ends = []
    window.closed.connect(lambda: ends.append(True))
    dialogs.unsaved = "cancel"
    window.actions_.quit.trigger()
    assert dialogs.asked == ["unsaved"]
    assert ends == []
    dialogs.unsaved = "discard"
    window.actions_.quit.trigger()
    assert ends == [True]


def test_the_tray_menu_loads_and_unloads(habits, service):
    habits.tray.fill_menu()
    models = next(a.menu() for a in habits.tray.menu.actions() if a.menu() is not None)
    texts = {a.text(): a for a in models.actions()}
    ready = next(m.name for m in service.snapshot.models if m.state is ModelState.READY)
    other = next(m.name for m in service.snapshot.models if m.state in (ModelState.UNLOADED, ModelState.FAILED))
    texts[f"Unload {ready}"].trigger()
    texts[f"Load {other}"].trigger()
    assert service.called("unload_model")[0].args == (ready,)
    assert service.called("load_model")[0].args[0] == other


def test_the_tray_says_state_models_and_speed(habits, service, bridge):
    tip = habits.tray.icon.toolTip()
    assert "Running at 127.0.0.1:5292" in tip
    assert "tokens/s" in tip
    service.publish(
        forecasts=(Forecast("ram", Level.CRITICAL, 5e8, 9.0, "RAM full in about 9 s"),),
        node=replace(service.snapshot.node, state=NodeState.STOPPED),
    )
    bridge.poll()
    assert "The node is stopped" in habits.tray.icon.toolTip()
    assert "RAM full in about 9 s" in habits.tray.icon.toolTip()


def test_each_level_has_a_shape_of_its_own(habits, qapp):
    """In grey, so that colour cannot be what tells them apart."""
    grey = qapp.style()
    pictures = set()
    state = habits.tray._state
    for level in Level:
        picture = state_icon(replace(state, level=level)).pixmap(32, 32).toImage()
        pictures.add(bytes(picture.convertToFormat(picture.Format.Format_Grayscale8).constBits()))
    assert len(pictures) == len(Level)
    assert grey is not None


def alert(level, number=1):
    return AlertRaised(f"a{number}", f"resource{number}", level, "RAM full in about 45 s")


def test_only_what_matters_is_said_once_and_not_too_often():
    notifier = Notifier()
    assert notifier.take(alert("watch"), 0.0) is None
    first = notifier.take(alert("warn"), 0.0)
    assert first is not None
    assert first.page == "Overview"
    assert not first.critical
    assert notifier.take(alert("warn"), 59.0) is None
    worse = notifier.take(alert("critical"), 1.0)
    assert worse is not None
    assert worse.critical
    failed = notifier.take(ModelFailed("m", "Out of memory."), 2.0)
    assert failed is not None
    assert (failed.page, failed.text) == ("Models", "Out of memory.")
    assert MOST == 3
    assert notifier.take(alert("critical", 9), 3.0) is None
    assert notifier.take(alert("critical", 9), 61.0) is not None


def test_notifications_have_an_off_switch(habits, service, bridge, monkeypatch):
    told = []
    monkeypatch.setattr(habits.tray.icon, "showMessage", lambda *args: told.append(args[:2]))
    monkeypatch.setattr(habits.tray._window, "isActiveWindow", lambda: False)
    habits.preferences.notifications = False
    service.emit(ModelFailed("m", "Out of memory."))
    bridge.poll()
    assert told == []
    habits.preferences.notifications = True
    service.emit(ModelFailed("m", "Out of memory."))
    bridge.poll()
    assert told == [("Model m failed", "Out of memory.")]
    habits.tray.icon.messageClicked.emit()
    assert habits.tray._window.page == "Models"


def type_command(qtbot, window, habits, text):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(habits.palette.field.hasFocus)
    qtbot.keyClicks(habits.palette.field, text)


def test_the_palette_goes_anywhere_by_the_keyboard_alone(qtbot, window, habits):
    type_command(qtbot, window, habits, "goset")
    assert habits.palette.texts[0] == "Go to Settings"
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Return)
    assert window.page == "Settings"
    assert habits.palette.isHidden()
    type_command(qtbot, window, habits, "xyzzy")
    assert habits.palette.texts == []
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Escape)
    assert habits.palette.isHidden()


def test_the_palette_has_every_page_model_and_action(habits, window, service):
    texts = [c.text for c in habits.commands()]
    assert len(texts) == len(set(texts))
    for name in window.pages:
        assert f"Go to {name}" in texts
    for model in service.snapshot.models:
        assert any(text.endswith(model.name) for text in texts) or model.state not in (
            ModelState.READY,
            ModelState.UNLOADED,
            ModelState.FAILED,
        )
    for text in (
        "Stop",
        "Open…",
        "Quit",
        "Appearance: dark",
        "Copy the address",
        "Mini view",
        "Find models on this machine",
    ):
        assert text in texts


def test_commands_of_the_palette_do_what_they_say(qtbot, window, habits, dialogs, service, qapp):
    commands = {c.text: c for c in habits.commands()}
    commands["Copy the address"].act()
    assert QGuiApplication.clipboard().text() == service.snapshot.node.url
    commands["Open the folder of logs"].act()
    assert len(dialogs.opened) == 1
    with qtbot.waitSignal(window.pages["Settings"].language_chosen) as chosen:
        commands["Language: 简体中文"].act()
    assert chosen.args == ["zh_CN"]
    assert habits.preferences.language == window.pages["Settings"].language.value() == "zh_CN"
    commands["Appearance: dark"].act()
    assert theme.chosen_scheme() is theme.Scheme.DARK
    theme.apply_theme(qapp, theme.Scheme.LIGHT)


def test_arrows_choose_in_the_palette(qtbot, window, habits):
    type_command(qtbot, window, habits, "")
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Up)
    qtbot.keyClick(habits.palette.field, Qt.Key.Key_Return)
    assert window.page == list(window.pages)[1]


def test_f1_lists_the_shortcuts_and_ctrl_comma_opens_settings(qtbot, window, habits):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert habits.shortcuts.isVisible()
    lines = dict(habits.shortcut_lines())
    assert lines["Ctrl+S"] == "Save"
    assert lines["F11"] == "Overview on a whole screen"
    qtbot.keyClick(habits.shortcuts, Qt.Key.Key_Escape)
    assert habits.shortcuts.isHidden()
    qtbot.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert window.page == "Settings"


def test_the_mini_view_follows_and_leads_back(qtbot, window, habits, service, bridge):
    habits.toggle_mini()
    assert habits.mini.isVisible()
    assert habits.mini.figures["ram"].text().endswith("free")
    service.publish(forecasts=(Forecast("ram", Level.WARN, 5e8, 44.0, "RAM full in about 45 s"),))
    bridge.poll()
    assert habits.mini.figures["ram"].text().startswith("▲ ")
    window.hide()
    qtbot.mouseClick(habits.mini.open_button, Qt.MouseButton.LeftButton)
    assert window.isVisible()
    qtbot.keyClick(habits.mini, Qt.Key.Key_Escape)
    assert habits.mini.isHidden()


def test_overview_fills_a_screen_and_escape_leaves(qtbot, window, habits):
    habits.toggle_big()
    assert habits.big.isFullScreen()
    qtbot.waitUntil(lambda: habits.big.page.plots is not None)
    habits.big.activateWindow()
    qtbot.waitUntil(habits.big.isActiveWindow)
    qtbot.keyClick(habits.big, Qt.Key.Key_Escape)
    assert habits.big.isHidden()
    qtbot.addWidget(habits.big)


def drop(window, *paths):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left, no_keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(50, 50), copy, mime, left, no_keys)
    enter.ignore()
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(50, 50), copy, mime, left, no_keys))
    return enter.isAccepted()


def test_a_dropped_gguf_becomes_a_model_without_a_question(window, service, bridge, dialogs, tmp_path):
    file = tmp_path / "qwen3-0.6b-q4.gguf"
    assert drop(window, file)
    bridge.poll()
    bridge.poll()
    assert window.page == "Models"
    added = service.called("apply_config")[0].args[0]
    assert isinstance(added, NodeConfig)
    assert added.models[-1].path == file
    assert dialogs.asked == []


def test_a_model_that_is_here_already_is_shown(window, service, bridge):
    model = service.snapshot.config.models[0]
    assert drop(window, Path("/") / model.path) or True
    window.show_page("Logs")
    known = replace_path(service, bridge, "/models/known.gguf")
    assert drop(window, Path("/models/known.gguf"))
    assert window.page == "Models"
    assert known in window.banners.banners[0].message.text


def replace_path(service, bridge, path):
    config = service.snapshot.config
    models = (config.models[0].model_copy(update={"path": Path(path)}), *config.models[1:])
    service.publish(config=config.model_copy(update={"models": models}))
    bridge.poll()
    return models[0].name


def test_a_dropped_file_that_is_no_model_says_why(window, service, bridge, tmp_path):
    service.answers["inspect_model"] = LayaError("broken.gguf is no GGUF file.", hint="Download it again.")
    assert drop(window, tmp_path / "broken.gguf")
    bridge.poll()
    assert window.banners.banners[0].message.text == "broken.gguf is no GGUF file. Download it again."
    assert not service.called("apply_config")


def test_a_dropped_yaml_file_is_opened_after_a_question_where_changes_would_be_lost(window, service, dialogs, tmp_path):
    dialogs.revert = False
    assert drop(window, tmp_path / "b.yaml")
    assert not service.called("open_config")
    dialogs.revert = True
    assert drop(window, tmp_path / "b.yaml")
    assert service.called("open_config")[0].args == (tmp_path / "b.yaml",)


def test_other_files_are_not_taken(window, tmp_path):
    assert not drop(window, tmp_path / "notes.txt")


def test_a_second_start_raises_the_window_opens_its_file_and_loads_its_model(window, habits, service, bridge):
    saved(service, bridge)
    window.hide()
    habits.on_wish("", "")
    assert window.isVisible()
    assert not service.called("open_config")
    habits.on_wish("/etc/other.yaml", "some-model")
    bridge.poll()
    assert service.called("open_config")[0].args == (Path("/etc/other.yaml"),)
    assert service.called("load_model")[0].args[0] == "some-model"


def test_the_file_is_shown_in_its_folder(window, dialogs, service, bridge):
    service.publish(config_status=ConfigStatus(path="/etc/laya/app.yaml"))
    bridge.poll()
    window.actions_.reveal.trigger()
    assert dialogs.opened == [Path("/etc/laya")]
    service.publish(config_status=ConfigStatus())
    bridge.poll()
    assert not window.actions_.reveal.isEnabled()


def test_a_place_on_a_screen_that_is_gone_is_corrected(qtbot, window, habits):
    far = QWidget()
    qtbot.addWidget(far)
    far.setGeometry(9000, 9000, 1000, 620)
    habits._settings.setValue("geometry", far.saveGeometry())
    window._restore()
    assert window.screen().availableGeometry().intersects(window.frameGeometry())


def test_chat_on_a_models_card_opens_the_playground_with_it(window):
    window.pages["Models"].chat_wanted.emit("smollm2-135m")
    assert window.page == "Playground"
    assert window.pages["Playground"].destination.value() == "model:smollm2-135m"
