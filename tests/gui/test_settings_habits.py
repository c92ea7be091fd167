"""Settings of the window as a program, the folders of models, and the density."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSystemTrayIcon

from laya_desktop.gui import theme
from laya_desktop.gui.autostart.linux import DesktopEntry
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.views.folders_card import FoldersCard
from laya_desktop.gui.views.habits_card import HabitsCard
from laya_desktop.gui.views.settings_page import SettingsPage


@pytest.fixture
def preferences(settings):
    return Preferences(settings)


def card_of(qtbot, preferences, place):
    card = HabitsCard(preferences, place)
    qtbot.addWidget(card)
    card.show()
    return card


def press(qtbot, box):
    qtbot.keyClick(box, Qt.Key.Key_Space)


def test_everything_is_off_or_as_the_platform_until_chosen(qtbot, preferences, tmp_path):
    entry = DesktopEntry(tmp_path)
    card = card_of(qtbot, preferences, entry)
    assert not card.start.value()
    assert not card.tray.value()
    assert card.notifications.value()
    assert not entry.path.exists()


def test_start_with_the_session_writes_and_removes_the_entry(qtbot, preferences, tmp_path):
    entry = DesktopEntry(tmp_path)
    card = card_of(qtbot, preferences, entry)
    press(qtbot, card.start)
    assert "--hidden" in entry.path.read_text()
    press(qtbot, card.start)
    assert not entry.path.exists()


def test_a_folder_that_cannot_be_written_is_said_and_the_switch_stays_off(qtbot, preferences, tmp_path):
    (tmp_path / "file").write_text("")
    card = card_of(qtbot, preferences, DesktopEntry(tmp_path / "file"))
    press(qtbot, card.start)
    assert not card.start.value()
    assert "Could not write" in card.failure.text()


def test_the_tray_switch_needs_a_tray(qtbot, preferences, tmp_path, monkeypatch):
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: False))
    assert not card_of(qtbot, preferences, DesktopEntry(tmp_path)).tray.isEnabled()
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    card = card_of(qtbot, preferences, DesktopEntry(tmp_path))
    press(qtbot, card.tray)
    assert preferences.close_to_tray


def test_notifications_can_be_switched_off(qtbot, preferences, settings, tmp_path):
    card = card_of(qtbot, preferences, DesktopEntry(tmp_path))
    press(qtbot, card.notifications)
    settings.sync()
    assert not Preferences(settings).notifications


def test_folders_are_added_and_taken_away(qtbot, bridge, dialogs, service, tmp_path):
    card = FoldersCard(bridge, dialogs)
    qtbot.addWidget(card)
    bridge.snapshot_changed.connect(card.set_snapshot)
    card.set_snapshot(bridge.snapshot)
    before = card.folders
    dialogs.path = tmp_path
    qtbot.mouseClick(card.add, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert card.folders == (*before, tmp_path)
    card.remove(tmp_path)
    bridge.poll()
    assert card.folders == before
    assert [tuple(c.args[0].model_folders) for c in service.called("apply_config")] == [
        (*before, Path(tmp_path)),
        before,
    ]


def test_density_acts_at_once_and_is_kept(qtbot, qapp, bridge, settings, dialogs):
    page = SettingsPage(bridge, settings, dialogs)
    qtbot.addWidget(page)
    page.show()
    tall = page.habits.height(), page.browse.sizeHint().height()
    compact = page.densities.button(1)
    qtbot.mouseClick(compact, Qt.MouseButton.LeftButton)
    assert page.browse.sizeHint().height() < tall[1]
    assert Preferences(settings).density is theme.Density.COMPACT
    qtbot.mouseClick(page.densities.button(0), Qt.MouseButton.LeftButton)
    assert page.browse.sizeHint().height() == tall[1]
