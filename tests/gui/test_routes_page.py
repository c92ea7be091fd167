"""The Routes page with real widgets on a fake service: edits act, wrong ones stay and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt

from laya_desktop.errors import ConfigError, Problem
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.qtmodels.route_table import RouteColumn, RouteTableModel
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE
from laya_desktop.gui.views.routes_page import RoutesPage
from tests.helpers.fake_service import FakeService
from tests.helpers.sample_data import sample_config, sample_snapshot


class Desk:
    """A page, its bridge and the service behind it."""

    def __init__(self, qtbot, **changes) -> None:
        self.qtbot = qtbot
        self.service = FakeService(sample_snapshot(**changes))
        self.bridge = NodeBridge(self.service)
        self.page = RoutesPage(self.bridge)
        self.bridge.snapshot_changed.connect(self.page.set_snapshot)
        qtbot.addWidget(self.page)
        self.page.resize(1104, 724)
        self.page.show()

    @property
    def config(self):
        return self.service.snapshot.config

    @property
    def form(self):
        return self.page.form

    def until(self, condition: Callable[[], bool]) -> None:
        def met() -> bool:
            self.bridge.poll()
            return bool(condition())

        self.qtbot.waitUntil(met, timeout=3000)

    def select(self, name: str) -> None:
        source = self.page.model.index(self.page.model.row_of(name), 0)
        self.page.table.selectRow(self.page.proxy.mapFromSource(source).row())

    def retype(self, editor, text: str) -> None:
        editor.setFocus()
        editor.selectAll()
        self.qtbot.keyClicks(editor, text)

    def click_cell(self, name: str, column: RouteColumn) -> None:
        index = self.page.proxy.mapFromSource(self.page.model.index(self.page.model.row_of(name), column))
        view = self.page.table
        self.qtbot.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center() - QPoint(4, 0)
        )


@pytest.fixture
def desk(qtbot) -> Desk:
    return Desk(qtbot)


def test_the_first_route_is_shown_at_once(desk: Desk) -> None:
    assert desk.form.name.text() == "health-check"
    assert desk.page.panel.preview.toPlainText().startswith("- name: health-check")


def test_an_edit_acts_when_the_keyboard_rests(desk: Desk) -> None:
    desk.select("chat")
    desk.retype(desk.form.timeout, "5s")
    desk.until(lambda: desk.config.route("chat").timeout == 5.0)
    assert desk.form.timeout.text() == "5s"
    assert len(desk.service.called("apply_config")) == 1


def test_a_bad_timeout_changes_nothing_and_says_what_to_write(desk: Desk) -> None:
    desk.select("chat")
    desk.retype(desk.form.timeout, "300 parsecs")
    desk.until(lambda: desk.form.rows["timeout"].error == "Not a duration. Write 300s, 5m or 1h.")
    assert desk.service.called("apply_config") == []
    assert "timeout: 300 parsecs" in desk.page.panel.preview.toPlainText()

    desk.service.publish()
    desk.bridge.poll()
    assert desk.form.timeout.text() == "300 parsecs"

    desk.retype(desk.form.timeout, "20s")
    desk.until(lambda: desk.config.route("chat").timeout == 20.0)
    assert desk.form.rows["timeout"].error is None


def test_wrong_edits_are_kept_while_another_route_is_edited(desk: Desk) -> None:
    desk.select("chat")
    desk.retype(desk.form.timeout, "soon")
    desk.until(lambda: desk.form.rows["timeout"].error)
    desk.select("big box")
    assert desk.form.timeout.text() == "5m"
    desk.service.publish()
    desk.bridge.poll()
    rows = {row.name: row for row in desk.page.model.rows}
    assert rows["chat"].notes == ("edits not in force",)
    desk.select("chat")
    assert desk.form.timeout.text() == "soon"
    assert desk.form.rows["timeout"].error
    desk.page.panel.discard_button.click()
    assert desk.form.timeout.text() == "5m"
    assert desk.form.rows["timeout"].error is None


def test_a_half_typed_name_waits_until_the_field_is_left(desk: Desk) -> None:
    desk.select("chat")
    desk.retype(desk.form.name, "talk")
    desk.qtbot.wait(400)
    desk.bridge.poll()
    assert desk.service.called("apply_config") == []
    desk.qtbot.keyClick(desk.form.name, Qt.Key.Key_Return)
    desk.until(lambda: desk.config.route("talk") is not None)
    assert desk.config.route("chat") is None
    assert desk.page.table.currentIndex().data(ROW_ROLE).name == "talk"


def test_a_snapshot_from_elsewhere_updates_the_form(desk: Desk) -> None:
    desk.select("chat")
    config = desk.config
    moved = config.route("chat").model_copy(update={"target": "smollm2-135m"})
    desk.service.publish(config=config.with_route(moved, "chat"))
    desk.bridge.poll()
    assert desk.form.target.value() == "smollm2-135m"


def test_a_refusal_by_the_node_stands_under_its_field(desk: Desk) -> None:
    desk.select("chat")
    problem = Problem("Same match as 'fast lane'.", ("routes", 1, "match", "prefix"))
    desk.service.answers["apply_config"] = ConfigError("form", [problem])
    desk.retype(desk.form.path, "/v2")
    desk.until(lambda: desk.form.rows["path"].error == "Same match as 'fast lane'.")
    assert desk.form.path.text() == "/v2"
    desk.service.answers["apply_config"] = None
    desk.retype(desk.form.path, "/v3")
    desk.until(lambda: desk.config.route("chat").match.prefix == "/v3")
    assert desk.form.rows["path"].error is None


def test_a_refusal_that_concerns_another_part_is_shown_above_the_form(desk: Desk) -> None:
    desk.select("chat")
    desk.service.answers["apply_config"] = ConfigError("form", [Problem("Too small.", ("models", 0, "batch_size"))])
    desk.retype(desk.form.path, "/v2")
    desk.until(lambda: desk.page.panel.error.text() == "models[0].batch_size: Too small.")


def test_the_switch_is_a_request_and_follows_the_node(desk: Desk) -> None:
    desk.click_cell("chat", RouteColumn.ON)
    desk.until(lambda: not desk.config.route("chat").enabled)
    assert not desk.page.model.rows[1].enabled
    desk.page.table.setFocus()
    desk.select("chat")
    desk.qtbot.keyClick(desk.page.table, Qt.Key.Key_Space)
    desk.until(lambda: desk.config.route("chat").enabled)


def test_two_quick_switches_do_not_undo_each_other(qtbot) -> None:
    desk = Desk(qtbot)
    desk.service.manual = True
    for name in ("chat", "big box"):
        desk.page.model.enabled_requested.emit(name, False)
    first, second = (call.args[0] for call in desk.service.called("apply_config"))
    assert [r.enabled for r in first.routes] == [True, False, True, True, False]
    assert [r.enabled for r in second.routes] == [True, False, True, False, False]


def test_undo_and_redo(desk: Desk) -> None:
    desk.select("chat")
    assert not desk.page.undo_button.isEnabled()
    desk.retype(desk.form.timeout, "5s")
    desk.until(lambda: desk.config.route("chat").timeout == 5.0)
    desk.until(desk.page.undo_button.isEnabled)
    desk.page.undo_button.click()
    desk.until(lambda: desk.config.route("chat").timeout == 300.0)
    assert desk.form.timeout.text() == "5m"
    desk.page.history.stack.redo()
    desk.until(lambda: desk.config.route("chat").timeout == 5.0)
    assert desk.form.timeout.text() == "5s"


def test_undo_keeps_a_model_edited_in_between(desk: Desk) -> None:
    desk.click_cell("chat", RouteColumn.ON)
    desk.until(lambda: desk.page.history.stack.canUndo())
    model = desk.config.models[0].model_copy(update={"batch_size": 9})
    desk.bridge.apply_config(desk.config.with_model(model, model.name))
    desk.bridge.poll()
    desk.page.history.stack.undo()
    desk.until(lambda: desk.config.route("chat").enabled)
    assert desk.config.models[0].batch_size == 9


def test_routes_changed_elsewhere_end_the_history(desk: Desk) -> None:
    desk.click_cell("chat", RouteColumn.ON)
    desk.until(lambda: desk.page.history.stack.canUndo())
    desk.service.publish(config=sample_config(routes=[]))
    desk.bridge.poll()
    assert not desk.page.history.stack.canUndo()
    assert desk.page.empty.isVisible()


def test_delete_and_bring_back(desk: Desk) -> None:
    desk.select("chat")
    desk.page.delete_button.click()
    desk.until(lambda: desk.config.route("chat") is None)
    desk.until(desk.page.undo_button.isEnabled)
    assert desk.form.name.text() == "fast lane"
    desk.page.undo_button.click()
    desk.until(lambda: desk.config.route("chat") is not None)
    assert [r.name for r in desk.config.routes][1] == "chat"


def test_a_new_route_is_a_draft_until_it_is_added(desk: Desk) -> None:
    desk.page.add_button.click()
    assert desk.form.target.value() == "my-llm-7b"
    desk.retype(desk.form.name, "mine")
    desk.retype(desk.form.path, "/mine")
    desk.qtbot.wait(400)
    desk.bridge.poll()
    assert desk.service.called("apply_config") == []
    desk.page.panel.add_button.click()
    desk.until(lambda: desk.config.route("mine") is not None)
    assert desk.config.route("mine").match.prefix == "/mine"
    assert desk.page.table.currentIndex().data(ROW_ROLE).name == "mine"
    assert not desk.page.panel.add_button.isVisible()


def test_a_wrong_draft_is_not_added_and_is_kept(desk: Desk) -> None:
    desk.page.add_button.click()
    desk.retype(desk.form.name, "chat")
    desk.page.panel.add_button.click()
    assert "taken" in desk.form.rows["name"].error
    assert desk.service.called("apply_config") == []
    desk.select("chat")
    assert not desk.page.panel.add_button.isVisible()
    desk.page.add_button.click()
    assert desk.form.name.text() == "chat"
    assert desk.page.editor.is_draft
    desk.page.panel.discard_button.click()
    assert not desk.page.editor.is_draft


def test_duplicate_starts_a_draft_with_the_same_values(desk: Desk) -> None:
    desk.select("fast lane")
    desk.page.copy_button.click()
    assert desk.form.name.text() == "fast lane 2"
    assert desk.form.headers.value() == (("X-Tier", "pro"),)
    assert desk.page.editor.is_draft


def test_header_conditions(desk: Desk) -> None:
    desk.select("chat")
    desk.form.headers.add_button.click()
    name, value = desk.form.headers.lines[0]
    desk.retype(name, "X-Team")
    desk.retype(value, "blue")
    desk.until(lambda: desk.config.route("chat").match.headers == {"X-Team": "blue"})


def test_a_regex_explains_its_switch(desk: Desk) -> None:
    desk.select("chat")
    assert not desk.form.rows["use_regex"].isVisible()
    desk.form.kind.setCurrentIndex(desk.form.kind.findData("regex"))
    desk.form.kind.activated.emit(desk.form.kind.currentIndex())
    desk.retype(desk.form.path, "/x/[0-9]+")
    desk.until(lambda: desk.form.rows["use_regex"].error)
    assert desk.form.rows["use_regex"].isVisible()
    assert desk.service.called("apply_config") == []
    desk.form.use_regex.click()
    desk.until(lambda: desk.config.route("chat").match.regex == "/x/[0-9]+")


def test_the_filter_shows_what_mentions_it(desk: Desk) -> None:
    desk.qtbot.keyClicks(desk.page.filter, "big-box")
    shown = [desk.page.proxy.index(i, 0).data(ROW_ROLE).name for i in range(desk.page.proxy.rowCount())]
    assert shown == ["big box", "users"]


def test_the_tester_names_the_winner_and_why_others_lost(desk: Desk) -> None:
    tester = desk.page.tester
    tester.headers.set_value("X-Tier: pro")
    desk.qtbot.keyClick(tester.path, Qt.Key.Key_Return)
    desk.until(lambda: "chat" in tester.verdict.text())
    (call,) = desk.service.called("explain_route")
    assert call.args == ("POST", "/v1/model/chat/completions", {"X-Tier": "pro"}, None)
    assert "✕ users: the regex does not match" in tester.losers.text()
    assert {c.name for c in desk.service.calls} == {"explain_route"}


def test_the_tester_asks_again_when_the_routes_change(desk: Desk) -> None:
    desk.page.tester.ask_button.click()
    desk.click_cell("chat", RouteColumn.ON)
    desk.until(lambda: len(desk.service.called("explain_route")) == 2)


def test_the_tester_refuses_what_is_no_header(desk: Desk) -> None:
    desk.page.tester.headers.set_value("pro")
    desk.page.tester.ask_button.click()
    assert desk.service.called("explain_route") == []
    assert "is not a header" in desk.page.tester.verdict.text()


def test_live_numbers_change_cells_only(desk: Desk) -> None:
    desk.select("big box")
    resets, changed = [], []
    desk.page.model.modelReset.connect(lambda: resets.append(1))
    desk.page.model.dataChanged.connect(lambda a, b, _r: changed.append((a.row(), b.row())))
    routes = desk.service.snapshot.routes
    desk.service.publish(routes=(replace(routes[0], hits=99), *routes[1:]))
    desk.bridge.poll()
    assert changed == [(0, 0)]
    assert resets == []
    assert desk.page.table.currentIndex().data(ROW_ROLE).name == "big box"


def test_no_routes_says_what_to_do(qtbot) -> None:
    desk = Desk(qtbot, config=sample_config(routes=[]))
    assert desk.page.empty.isVisible()
    desk.page.empty.action.click()
    assert desk.page.editor.is_draft


def test_the_table_model_is_sound(qtmodeltester, desk: Desk) -> None:
    qtmodeltester.check(desk.page.model)
    qtmodeltester.check(desk.page.proxy)
    qtmodeltester.check(RouteTableModel())


def test_alt_and_arrows_move_a_route_in_the_file(desk: Desk) -> None:
    desk.select("chat")
    before = [r.name for r in desk.config.routes]
    at = before.index("chat")
    desk.page.move_route(1)
    desk.until(lambda: desk.config.routes[at + 1].name == "chat")
    desk.until(desk.page.undo_button.isEnabled)
    desk.page.undo_button.click()
    desk.until(lambda: [r.name for r in desk.config.routes] == before)
    desk.page.move_route(-100)
    desk.until(lambda: desk.config.routes[0].name == "chat")
    desk.page.move_route(-1)
    assert desk.config.routes[0].name == "chat"


def test_the_form_edits_shares_rewrite_and_answer_headers(desk: Desk) -> None:
    desk.select("chat")
    assert not desk.form.rows["shares"].isVisible()
    desk.form.advanced.setChecked(True)
    names = desk.config.target_names
    desk.retype(desk.form.shares, f"{names[0]} ×3, {names[1]}")
    desk.retype(desk.form.rewrite, "/v1")
    desk.until(lambda: desk.config.route("chat").rewrite == "/v1")
    route = desk.config.route("chat")
    assert [(t.name, t.weight) for t in route.targets] == [(names[0], 3), (names[1], 1)]
    assert not desk.form.target.isEnabled()
    desk.retype(desk.form.shares, "nobody ×2")
    desk.until(lambda: "nobody" in (desk.form.rows["shares"].error or ""))


def test_a_template_is_a_draft(desk: Desk) -> None:
    desk.page.start_template("rewrite")
    assert (desk.form.path.value(), desk.form.rewrite.value()) == ("/api/v2", "/v1")
    assert desk.form.advanced.isChecked()
