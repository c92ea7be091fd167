"""The Settings page: valid values act at once, wrong ones stay with their error, appearance switches live."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.views.settings_page import SettingsPage
from tests.helpers.sample_data import sample_config


@pytest.fixture
def page(qtbot, bridge, settings, dialogs):
    bridge.snapshot_changed.connect(lambda snapshot: result.set_snapshot(snapshot))
    result = SettingsPage(bridge, settings, dialogs)
    qtbot.addWidget(result)
    result.resize(1104, 724)
    result.show()
    return result


def write(form, key, text):
    """As a person does: type, and press Enter."""
    field = form.fields[key]
    field.editor.set_value(text)
    field.editor.edited.emit()
    form.apply()


def applied(service):
    return service.called("apply_config")[-1].args[0]


def test_shows_what_is_in_force(page):
    assert page.server.value("port") == "5292"
    assert page.guard.value("mem_fraction") == "90 %"
    assert page.guard.value("reserve_ram") == "2GiB"
    assert page.log.value("level") == "info"


@pytest.mark.parametrize(
    ("form", "key", "text", "value"),
    [
        ("server", "port", "8080", 8080),
        ("server", "max_body", "64 MiB", 64 * 1024**2),
        ("guard", "mem_fraction", "85", 0.85),
        ("guard", "mem_fraction", "70 %", 0.7),
        ("guard", "reserve_vram", "512MiB", 512 * 1024**2),
        ("guard", "mode", "warn", "warn"),
        ("log", "keep", "30", 30),
        ("log", "level", "debug", "debug"),
    ],
)
def test_a_valid_value_acts_and_changes_nothing_else(page, service, bridge, form, key, text, value):
    before = service.snapshot.config
    write(getattr(page, form), key, text)
    bridge.poll()
    after = applied(service)
    assert getattr(getattr(after, form), key) == value
    section = getattr(before, form).model_copy(update={key: value})
    assert after == before.model_copy(update={form: section})
    assert not getattr(page, form).dirty


@pytest.mark.parametrize(
    ("form", "key", "text"),
    [
        ("server", "port", "http"),
        ("server", "port", "70000"),
        ("guard", "mem_fraction", "190 %"),
        ("guard", "mem_fraction", "much"),
        ("guard", "reserve_ram", "2 parsecs"),
        ("log", "keep", "0"),
    ],
)
def test_a_wrong_value_stays_with_its_error_and_changes_nothing(page, service, bridge, form, key, text):
    section = getattr(page, form)
    write(section, key, text)
    assert section.fields[key].row.error
    assert section.fields[key].editor.property("invalid") is True
    assert not service.called("apply_config")
    service.publish()
    bridge.poll()
    assert section.value(key) == text
    write(section, key, section.fields[key].write(getattr(getattr(service.snapshot.config, form), key)))
    assert section.fields[key].row.error is None
    assert not section.dirty


def test_edits_act_after_a_short_rest(qtbot, page, service):
    editor = page.server.fields["port"].editor
    editor.setFocus()
    editor.selectAll()
    qtbot.keyClicks(editor, "8099")
    assert not service.called("apply_config")
    qtbot.waitUntil(lambda: bool(service.called("apply_config")))
    assert applied(service).server.port == 8099


def test_a_refused_change_says_why_and_keeps_what_was_typed(page, service, bridge):
    service.answers["apply_config"] = LayaError("Port 80 is not ours.", hint="Choose one above 1023.")
    write(page.server, "port", "80")
    bridge.poll()
    assert page.server.failure == "Port 80 is not ours. Choose one above 1023."
    service.publish()
    bridge.poll()
    assert page.server.value("port") == "80"


def test_changes_from_elsewhere_are_shown(page, service, bridge):
    service.publish(config=sample_config(server={"port": 6000}))
    bridge.poll()
    assert page.server.value("port") == "6000"


def test_log_folder_can_be_chosen(page, service, bridge, dialogs, tmp_path):
    dialogs.path = tmp_path
    page.browse.click()
    page.log.apply()
    bridge.poll()
    assert applied(service).log.dir == tmp_path
    write(page.log, "dir", "")
    bridge.poll()
    assert applied(service).log.dir is None


def test_appearance_switches_live_and_is_kept(qtbot, qapp, page, settings):
    before = page.grab().toImage().pixelColor(2, 2)
    qtbot.mouseClick(page.schemes.button(2), Qt.MouseButton.LeftButton)
    assert theme.is_dark()
    assert settings.value("appearance") == "dark"
    assert page.server.grab().toImage().pixelColor(4, 100).lightness() < 80 < before.lightness()


def test_places_are_shown(page, dialogs, service):
    assert page.place("config") == service.snapshot.config_status.path
    page.show_place("window")
    assert dialogs.opened
