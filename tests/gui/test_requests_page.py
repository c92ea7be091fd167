"""The Requests page and its table: many rows change by difference, and Cancel asks the node."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt
from PySide6.QtGui import QGuiApplication

from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.qtmodels import request_rows
from laya_desktop.gui.qtmodels.request_table import RequestColumn, RequestTableModel
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE, TONE_ROLE
from laya_desktop.gui.views.requests_page import RequestsPage
from laya_desktop.state.enums import Phase
from laya_desktop.state.snapshot import RequestSnapshot
from tests.helpers.fake_service import FakeService
from tests.helpers.sample_data import sample_snapshot


def request(number: int, phase: Phase = Phase.DONE, **values) -> RequestSnapshot:
    return RequestSnapshot(
        f"r{number}", 1_796_100_000.0 + number, "chat", "m", "POST", "/v1/model/chat/completions", phase, **values
    )


class Desk:
    def __init__(self, qtbot, **changes) -> None:
        self.qtbot = qtbot
        self.service = FakeService(sample_snapshot(**changes))
        self.bridge = NodeBridge(self.service)
        self.page = RequestsPage(self.bridge)
        self.bridge.snapshot_changed.connect(self.page.set_snapshot)
        qtbot.addWidget(self.page)
        self.page.resize(1104, 724)
        self.page.show()

    def publish(self, requests: list[RequestSnapshot]) -> None:
        self.service.publish(requests=tuple(requests))
        self.bridge.poll()

    def ids(self) -> list[str]:
        return [r.request_id for r in self.page.model.rows]


@pytest.fixture
def desk(qtbot) -> Desk:
    return Desk(qtbot)


def shown_ids(model: QAbstractItemModel) -> list[str]:
    return [model.index(i, 0).data(ROW_ROLE).request_id for i in range(model.rowCount())]


def test_the_table_becomes_any_sequence_by_difference(qtmodeltester) -> None:
    model = RequestTableModel()
    qtmodeltester.check(model)
    resets: list[int] = []
    model.modelReset.connect(lambda: resets.append(1))
    dice = random.Random(7)
    for _ in range(60):
        numbers = dice.sample(range(30), dice.randint(0, 30))
        rows = [request(n, completion_tokens=dice.randint(0, 2)) for n in numbers]
        model.update_rows(rows)
        assert list(model.rows) == rows
        assert shown_ids(model) == [r.request_id for r in rows]
    assert resets == []


def test_only_changed_rows_are_repainted(qtbot) -> None:
    model = RequestTableModel()
    model.update_rows([request(n) for n in range(200)])
    changed, moved = [], []
    model.dataChanged.connect(lambda a, b, _roles: changed.append((a.row(), b.row())))
    model.rowsMoved.connect(lambda *_: moved.append(1))
    model.update_rows([request(n, status=200 if n == 150 else None) for n in range(200)])
    assert changed == [(150, 150)]
    assert moved == []


def test_cells_say_what_is_known() -> None:
    model = RequestTableModel()
    model.update_rows([request(1, Phase.QUEUED, queue_place=3), request(2, Phase.FAILED, status=503, error="Gone.")])
    waiting = [model.index(0, c).data() for c in range(model.columnCount())]
    assert waiting[RequestColumn.PHASE] == "◷ queued"
    assert waiting[RequestColumn.PLACE] == "3"
    assert waiting[RequestColumn.TTFT] == "–"
    assert model.index(1, RequestColumn.ERROR).data() == "Gone."
    assert model.index(1, RequestColumn.STATUS).data(TONE_ROLE) == "critical"
    assert model.index(1, RequestColumn.PHASE).data(Qt.ItemDataRole.AccessibleTextRole) == "failed"


def test_selection_stays_on_its_request_while_others_come_and_go(desk: Desk) -> None:
    desk.publish([request(n) for n in range(200, 0, -1)])
    desk.page.table.selectRow(50)
    chosen = desk.page.selected.request_id
    desk.publish([request(n) for n in range(205, 5, -1)])
    assert desk.page.selected.request_id == chosen
    assert desk.page.details.request_id.text() == chosen


def test_lines_in_sight_stay_while_new_ones_arrive_above(desk: Desk) -> None:
    desk.publish([request(n) for n in range(200, 0, -1)])
    bar = desk.page.table.verticalScrollBar()
    desk.qtbot.waitUntil(lambda: bar.maximum() > 1400)
    bar.setValue(1400)
    top = desk.page.table.indexAt(desk.page.table.viewport().rect().topLeft()).data(ROW_ROLE).request_id
    desk.publish([request(n) for n in range(207, 0, -1)])
    assert desk.page.table.indexAt(desk.page.table.viewport().rect().topLeft()).data(ROW_ROLE).request_id == top
    bar.setValue(0)
    desk.publish([request(n) for n in range(208, 0, -1)])
    assert bar.value() == 0


def test_cancel_asks_for_live_requests_only(desk: Desk) -> None:
    desk.publish([request(2, Phase.DECODE), request(1)])
    desk.page.table.selectRow(1)
    assert not desk.page.cancel_button.isEnabled()
    assert not desk.page.details.cancel_button.isVisible()
    desk.qtbot.keyClick(desk.page.table, Qt.Key.Key_Delete)
    assert desk.service.called("cancel_request") == []
    desk.page.table.selectRow(0)
    desk.qtbot.mouseClick(desk.page.cancel_button, Qt.MouseButton.LeftButton)
    desk.qtbot.mouseClick(desk.page.details.cancel_button, Qt.MouseButton.LeftButton)
    desk.qtbot.keyClick(desk.page.table, Qt.Key.Key_Delete)
    assert [call.args for call in desk.service.called("cancel_request")] == [("r2",)] * 3
    desk.publish([request(2, Phase.CANCELLED), request(1)])
    assert not desk.page.cancel_button.isEnabled()
    assert "cancelled" in desk.page.details.pill.text


def test_filters(desk: Desk) -> None:
    desk.publish([request(4, Phase.DECODE), request(3), request(2, Phase.FAILED, error="Gone."), request(1)])
    assert [b.text() for b in desk.page.filters.values()] == ["All 4", "Live 1", "Failed 1"]
    desk.page.filters["failed"].click()
    assert desk.ids() == ["r2"]
    desk.page.filters["live"].click()
    assert desk.ids() == ["r4"]
    desk.page.filters["all"].click()
    desk.qtbot.keyClicks(desk.page.search, "gone")
    assert desk.ids() == ["r2"]


def test_details_and_copied_id(desk: Desk) -> None:
    desk.publish([request(1, Phase.FAILED, routing_us=182.0, ttft_s=0.33, status=503, error="Gone. Load it again.")])
    assert not desk.page.details.isVisible()
    desk.page.table.selectRow(0)
    details = desk.page.details
    assert details.path.full_text == "POST /v1/model/chat/completions"
    assert details.error.text() == "Gone. Load it again."
    desk.qtbot.mouseClick(details.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "r1"


def test_every_detail_is_in_words() -> None:
    found = dict(
        request_rows.details(
            request(1, routing_us=182.0, queue_s=0.4, ttft_s=0.33, prompt_tokens=120, cached_tokens=64,
                    completion_tokens=1, decode_tokens_per_s=40.2, duration_s=6.4, status=200, stream=True,
                    finish_reason="stop")
        )
    )  # fmt: skip
    assert list(found) == list(request_rows.DETAILS)
    assert found["Routing"] == "182 µs"
    assert found["Queue"] == "400 ms"
    assert found["Prompt"] == "120 tokens (64 cached)"
    assert found["Answer"] == "1 token"
    assert found["Reply"] == "200, streamed"
    unknown = dict(request_rows.details(request(2)))
    assert {unknown[k] for k in ("Reply", "Routing", "Queue", "First token", "Prompt", "Speed", "Finish")} == {"–"}


def test_empty_pages_say_why(desk: Desk) -> None:
    desk.publish([])
    assert desk.page.empty.isVisible()
    assert desk.page.empty.title.text() == "No requests yet"
    desk.page.filters["failed"].click()
    assert desk.page.empty.title.text() == "No failed requests"
    desk.publish([replace(request(1), request_id="x")])
    desk.page.filters["all"].click()
    desk.qtbot.keyClicks(desk.page.search, "zzz")
    assert desk.page.empty.text.text() == "None of 1 request mentions “zzz”."


def test_two_hundred_rows_update_within_a_frame(desk: Desk) -> None:
    desk.publish([request(n) for n in range(250, 0, -1)])
    started_s = time.thread_time()
    for step in range(10):
        desk.page.model.update_rows([request(n, completion_tokens=step) for n in range(250 + step, step, -1)])
    assert (time.thread_time() - started_s) / 10 < 0.05
    assert desk.page.model.rowCount(QModelIndex()) == 250


def test_a_narrow_table_leaves_columns_out_and_takes_them_back(desk: Desk) -> None:
    table = desk.page.table

    def hidden() -> list[int]:
        return [c for c in RequestColumn if table.isColumnHidden(c)]

    assert hidden() == []
    desk.page.resize(824, 544)
    desk.qtbot.waitUntil(lambda: RequestColumn.PROMPT in hidden())
    assert not table.isColumnHidden(RequestColumn.PHASE)
    assert table.horizontalHeader().length() <= table.viewport().width()
    desk.page.resize(1104, 724)
    desk.qtbot.waitUntil(lambda: hidden() == [])
