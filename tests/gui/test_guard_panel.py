"""The guard on the Overview: hidden while calm, its actions with Undo, the alerts with what was done; Load anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from laya_desktop.gui.messages import message_for, settled_by
from laya_desktop.gui.qtmodels.guard_lines import guard_lines
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.qtmodels.model_cards import card_values, pill_text
from laya_desktop.gui.views.guard_panel import GuardPanel
from laya_desktop.gui.views.model_card import ModelCard
from laya_desktop.gui.views.overview import OverviewPage
from laya_desktop.state.enums import Level, ModelState
from laya_desktop.state.events import AlertCleared, AlertRaised
from laya_desktop.state.snapshot import GuardAction, GuardAlert, GuardSnapshot, ModelSnapshot, NodeSnapshot
from tests.helpers.sample_data import sample_snapshot

NOW = 1_800_000_000.0
RAM = GuardAlert(
    "a3", "ram", Level.WARN, Level.WARN, "RAM full in about 22 s at this rate", NOW - 12,
    actions=("Batch requests wait", "Idle model 'b' is unloaded"),
)  # fmt: skip
QUEUE = GuardAlert("a2", "queue:m", Level.WATCH, Level.WATCH, "'m': queue grows by 2 a second", NOW - 40)
PAST = GuardAlert("a1", "vram:0", Level.WATCH, Level.CRITICAL, "VRAM is at the limit", NOW - 3000, NOW - 2900)
HOLD = GuardAction("g4", "hold_batch", "Batch requests wait", RAM.text, NOW - 12)
UNLOAD = GuardAction("g5", "unload_idle", "Idle model 'b' is unloaded", RAM.text, NOW - 8, model="b")
BUSY = GuardSnapshot("shed", Level.WARN, RAM.text, (RAM, QUEUE, PAST), (UNLOAD, HOLD))


def snapshot(guard: GuardSnapshot) -> NodeSnapshot:
    return replace(sample_snapshot(), guard=guard, unix_s=NOW)


@pytest.fixture
def panel(qtbot) -> GuardPanel:
    result = GuardPanel()
    qtbot.addWidget(result)
    return result


def test_while_calm_there_is_nothing_to_see(panel) -> None:
    panel.set_lines(guard_lines(snapshot(GuardSnapshot())))
    assert panel.isHidden()


def test_alerts_and_actions_in_words(panel) -> None:
    panel.set_lines(guard_lines(snapshot(BUSY)))
    assert not panel.isHidden()
    assert panel.text.full_text == "▲ RAM full in about 22 s at this rate, and 1 other alert."
    assert panel.text.property("tone") == "warn"
    assert [(r.text.full_text, r.undo.text()) for r in panel.action_rows()] == [
        ("Idle model 'b' is unloaded · RAM full in about 22 s at this rate", "Load again"),
        ("Batch requests wait · RAM full in about 22 s at this rate", "Undo"),
    ]
    assert panel.history.isHidden()
    panel.toggle.click()
    assert not panel.history.isHidden()
    assert panel.toggle.text() == "Hide alerts"
    assert [(r.text.full_text, r.done.full_text) for r in panel.alert_rows()] == [
        ("RAM full in about 22 s at this rate", "Batch requests wait; Idle model 'b' is unloaded"),
        ("'m': queue grows by 2 a second", "nothing was done"),
        ("VRAM is at the limit", "nothing was done"),
    ]


def test_past_alerts_keep_their_worst_level_and_how_long_they_were_there() -> None:
    line = guard_lines(snapshot(BUSY)).alerts[2]
    assert line.level is Level.CRITICAL
    assert line.when.endswith(", for 1 min 40 s")


def test_calm_after_an_alert_says_when_and_offers_the_list(panel) -> None:
    panel.set_lines(guard_lines(snapshot(GuardSnapshot(alerts=(PAST,)))))
    assert panel.text.full_text == "Calm again. Last alert: 48 min ago."
    assert not panel.isHidden()
    assert panel.action_rows() == []


def test_a_mode_that_only_says_so_says_so() -> None:
    assert "only says so" in guard_lines(snapshot(replace(BUSY, mode="warn", actions=()))).text


def test_the_same_lines_touch_nothing(panel) -> None:
    panel.set_lines(guard_lines(snapshot(BUSY)))
    rows = panel.action_rows()
    panel.set_lines(guard_lines(replace(snapshot(BUSY), unix_s=NOW + 0.25)))
    assert panel.action_rows() == rows


def test_undo_asks_the_node_and_the_line_goes_with_the_snapshot(qtbot, bridge, service, dialogs) -> None:
    page = OverviewPage(bridge, History(), dialogs)
    qtbot.addWidget(page)
    page.set_snapshot(snapshot(BUSY))
    row = page.guard.action_rows()[1]
    qtbot.mouseClick(row.undo, Qt.MouseButton.LeftButton)
    assert [call.args for call in service.called("undo_guard_action")] == [("g4",)]
    assert len(page.guard.action_rows()) == 2
    page.set_snapshot(snapshot(replace(BUSY, actions=(UNLOAD,))))
    assert [r.undo.text() for r in page.guard.action_rows()] == ["Load again"]


@pytest.mark.parametrize(
    ("code", "offered"),
    [("will_not_fit", True), ("out_of_memory", True), ("overloaded", True), ("model_file", False), (None, False)],
)
def test_a_refused_load_offers_to_load_anyway(qtbot, code: str | None, offered: bool) -> None:
    shown = sample_snapshot()
    failed = replace(
        shown.models[0],
        state=ModelState.FAILED,
        error="'m' will not fit. Needs 9 GiB.",
        error_code=code,
        load_note=None,
    )
    model = shown.config.models[0]
    values = card_values(model, replace(shown, models=(failed, *shown.models[1:])), shown.config)
    card = ModelCard(model.name, lambda _name: "")
    qtbot.addWidget(card)
    card.set_values(values)
    assert card.anyway_button.isHidden() is not offered
    assert card.retry_button.isHidden() is offered
    asked: list[str] = []
    card.load_anyway_clicked.connect(asked.append)
    card.anyway_button.click()
    assert asked == [model.name]


def test_a_planned_restart_stands_in_the_pill() -> None:
    live = ModelSnapshot("m", ModelState.FAILED, error="Killed.", load_note="starts again in 2 s")
    assert pill_text(live) == "Died, starts again in 2 s"


def test_a_critical_alert_is_a_banner_until_it_is_over() -> None:
    shown = message_for(AlertRaised("a3", "ram", "critical", "RAM is at the limit"))
    assert shown is not None
    assert (shown.text, shown.severity) == ("RAM is at the limit.", "warning")
    assert message_for(AlertRaised("a3", "ram", "warn", "RAM full in about 40 s")) is None
    assert settled_by(AlertCleared("a3", "ram")) == shown.identity
