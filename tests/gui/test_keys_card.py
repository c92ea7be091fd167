"""The Keys card: keys with names and dates, a new one shown once, revoking, and no network without a key."""

from __future__ import annotations

from datetime import date

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from laya_desktop.config.keys import ApiKey
from laya_desktop.errors import LayaError
from laya_desktop.gui.qtmodels.key_rows import KeysState, is_this_machine
from laya_desktop.gui.views.settings_page import SettingsPage
from laya_desktop.gui.views.widgets import CopyButton
from tests.helpers.sample_data import sample_config

HASH = "sha256:" + "ab" * 32
LAPTOP = ApiKey(name="laptop", hash=HASH, created=date(2026, 12, 1))


@pytest.fixture
def card(qtbot, bridge, settings, dialogs):
    bridge.snapshot_changed.connect(lambda snapshot: page.set_snapshot(snapshot))
    page = SettingsPage(bridge, settings, dialogs)
    qtbot.addWidget(page)
    page.resize(1104, 900)
    page.show()
    return page.keys


def put(service, bridge, **server):
    service.publish(config=sample_config(server=server))
    bridge.poll()


def click(qtbot, widget):
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def test_keys_are_listed_by_name_and_date_and_never_shown(card, service, bridge):
    put(service, bridge, api_keys=[LAPTOP, HASH, "hunter2-hunter2"], admin_key=HASH)
    assert card.lines[0].text[0] == "laptop"
    assert [line.text[1] for line in card.lines] == [
        "made 2026-12-01",
        "kept as a hash",
        "plain text in the file: replace it by a new key",
    ]
    assert card.admin.text == ("Admin", "kept as a hash")
    shown = repr([line.text for line in card.lines])
    assert "hunter2" not in shown
    assert HASH not in shown


def test_a_new_key_is_shown_once_with_a_copy_button(qtbot, card, service, bridge):
    card.name.set_value("  laptop ")
    click(qtbot, card.new)
    bridge.poll()
    assert service.called("create_api_key")[0].args == ("laptop",)
    assert card.new_key.isVisible()
    assert card.new_key.key.value() == service.answers["create_api_key"]
    assert [line.text[0] for line in card.lines] == ["laptop"]
    click(qtbot, card.new_key.findChild(CopyButton))
    assert QGuiApplication.clipboard().text() == service.answers["create_api_key"]
    click(qtbot, card.new_key.done)
    assert not card.new_key.isVisible()
    assert card.new_key.key.value() == ""
    assert card.name.value() == ""


def test_a_key_needs_a_name_and_a_refusal_is_said(qtbot, card, service, bridge):
    click(qtbot, card.new)
    assert "name" in card.failure
    assert not service.called("create_api_key")
    service.answers["create_api_key"] = LayaError("There is a key named 'laptop' already.", hint="Take another name.")
    card.name.set_value("laptop")
    qtbot.keyClick(card.name, Qt.Key.Key_Return)
    bridge.poll()
    assert card.failure == "There is a key named 'laptop' already. Take another name."
    assert card.name.value() == "laptop"
    assert not card.new_key.isVisible()


def test_revoking_asks_on_the_spot(card, service, bridge):
    put(service, bridge, api_keys=[LAPTOP])
    line = card.lines[0]
    line.ask.click()
    assert line.revoke.isVisible()
    line.keep.click()
    assert not line.revoke.isVisible()
    assert not service.called("revoke_api_key")
    line.ask.click()
    line.revoke.click()
    bridge.poll()
    assert service.called("revoke_api_key")[0].args == ("laptop",)
    assert card.lines == []


def test_the_admin_key_is_made_replaced_and_revoked(qtbot, card, service, bridge):
    assert "this machine" in card.admin.text[1]
    assert not card.admin.ask.isVisible()
    click(qtbot, card.new_admin)
    bridge.poll()
    assert card.new_key.key.value() == service.answers["create_admin_key"]
    assert card.new_admin.text() == "Replace"
    click(qtbot, card.admin.ask)
    click(qtbot, card.admin.revoke)
    bridge.poll()
    assert len(service.called("revoke_admin_key")) == 1
    assert not card.admin.ask.isVisible()


def test_the_network_is_refused_without_a_key_which_is_offered(qtbot, card, service, bridge):
    put(service, bridge)
    card.network.click()
    assert not card.network.value()
    assert card.offers_key
    assert not service.called("apply_config")
    card.not_now.click()
    assert not card.offers_key
    card.network.click()
    card.make_and_open.click()
    bridge.poll()
    assert service.called("create_api_key")[0].args == ("network",)
    config = service.called("apply_config")[0].args[0]
    assert config.server.host == "0.0.0.0"
    assert len(config.server.api_keys) == 1
    bridge.poll()
    assert card.network.value()
    assert card.new_key.isVisible()
    assert "every address" in card.reach


def test_the_switch_moves_between_this_machine_and_the_network(card, service, bridge):
    put(service, bridge, api_keys=[LAPTOP])
    card.network.click()
    assert not card.network.value()  # until the node says so
    bridge.poll()
    assert card.network.value()
    assert service.snapshot.config.server.host == "0.0.0.0"
    card.network.click()
    bridge.poll()
    assert service.snapshot.config.server.host == "127.0.0.1"
    assert not card.network.value()


def test_a_node_that_cannot_move_says_why_and_the_switch_stays(card, service, bridge):
    put(service, bridge, api_keys=[LAPTOP])
    service.answers["apply_config"] = LayaError("Port 5292 is taken on 0.0.0.0.", hint="Set server.port to 5293.")
    card.network.click()
    bridge.poll()
    assert card.failure == "Port 5292 is taken on 0.0.0.0. Set server.port to 5293."
    assert not card.network.value()


def test_other_settings_of_the_server_leave_keys_alone(card, service, bridge):
    put(service, bridge, api_keys=[LAPTOP, HASH], cors_origins=["https://a.example"])
    before = service.snapshot.config
    page = card.parent()
    while not isinstance(page, SettingsPage):
        page = page.parent()
    page.server.fields["port"].editor.set_value("8080")
    page.server.fields["port"].editor.edited.emit()
    page.server.apply()
    bridge.poll()
    after = service.called("apply_config")[-1].args[0]
    assert after == before.model_copy(update={"server": before.server.model_copy(update={"port": 8080})})


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("box", False),
    ],
)
def test_reach(host, own):
    assert is_this_machine(host) is own
    state = KeysState.of(sample_config(server={"host": host}))
    assert state.open is not own
    assert ("this machine reach" in state.reach) is own
