"""The Logs page: filter, follow, copy, bounds, and its pace."""

from __future__ import annotations

import statistics
import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from laya_desktop.gui.qtmodels.log_table import MAX_ROWS, LogTableModel
from laya_desktop.gui.views.logs_page import LogsPage
from laya_desktop.logs import LogLine, LogRing

LINES = (
    ("debug", "laya_desktop.node.routing", "table rebuilt"),
    ("info", "laya_desktop.node.pool", "my-llm-7b ready"),
    ("warn", "laya_desktop.node.forecast", "RAM full in about 45 s"),
    ("error", "laya_desktop.node.pool", "qwen3-32b failed\nTraceback\n  line 1"),
)


@pytest.fixture
def ring():
    result = LogRing()
    for i in range(40):
        result.append(1_796_100_000 + i, *LINES[i % 4])
    return result


@pytest.fixture
def page(qtbot, bridge, ring, dialogs):
    result = LogsPage(bridge, ring, dialogs)
    qtbot.addWidget(result)
    result.resize(1104, 724)
    result.show()
    return result


def messages(page):
    return [page.model.line(i).message for i in range(page.model.rowCount())]


def test_model_keeps_qts_rules(qtmodeltester):
    model = LogTableModel()
    model.take(LogLine(i, 1_796_100_000.0 + i, *LINES[i % 4]) for i in range(1, 20))
    qtmodeltester.check(model)
    model.take([LogLine(20, 1_796_100_020.0, *LINES[0])])
    model.set_filter("warn", "")


def test_level_filter(page):
    assert page.model.rowCount() == 30
    page.level.set_value("error")
    page.level.edited.emit()
    assert page.model.rowCount() == 10
    assert page.count.text() == "10 of 40 lines"
    page.level.set_value("debug")
    page.level.edited.emit()
    assert page.model.rowCount() == 40
    assert page.count.text() == "40 lines"


def test_text_filter_ignores_case_and_looks_at_the_source_too(qtbot, page):
    page.text.setText("QWEN3")
    qtbot.waitUntil(lambda: page.model.rowCount() == 10)
    page.text.setText("node.forecast")
    qtbot.waitUntil(lambda: set(messages(page)) == {"RAM full in about 45 s"})


def test_a_filter_that_lets_nothing_through_says_so(page):
    page.text.setText("no such thing")
    page.apply_filter()
    assert page.empty.isVisible()
    assert page.table.isHidden()
    page.text.setText("")
    page.apply_filter()
    assert page.table.isVisible()


def test_new_lines_pass_the_filter_too(page, ring):
    page.level.set_value("error")
    page.apply_filter()
    ring.append(1_796_200_000, "info", "x", "quiet")
    ring.append(1_796_200_001, "error", "x", "loud")
    page.read()
    assert messages(page)[-1] == "loud"
    assert page.model.rowCount() == 11


def test_follow_stays_at_the_end_and_stops_when_one_scrolls_up(qtbot, page, ring):
    bar = page.table.verticalScrollBar()
    for i in range(200):
        ring.append(1_796_200_000 + i, "info", "x", f"line {i}")
    page.read()
    assert bar.maximum() > 0
    assert bar.value() == bar.maximum()
    bar.triggerAction(bar.SliderAction.SliderToMinimum)
    qtbot.waitUntil(lambda: not page.follow.isChecked())
    ring.append(1_796_300_000, "info", "x", "later")
    page.read()
    assert bar.value() == 0
    qtbot.mouseClick(page.follow, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()


def test_copy_takes_the_selected_lines_or_all(page):
    page.table.selectRow(1)
    page.copy()
    text = QGuiApplication.clipboard().text()
    assert text.endswith("WARN  laya_desktop.node.forecast: RAM full in about 45 s")
    page.table.clearSelection()
    page.copy()
    assert QGuiApplication.clipboard().text().count("my-llm-7b ready") == 10


def test_a_selected_line_is_shown_whole(qtbot, page):
    assert page.detail.isHidden()
    page.table.selectRow(2)
    assert "Traceback" in page.detail.toPlainText()
    assert page.model.index(2, 3).data() == "qwen3-32b failed  (+2 lines)"


def test_folder_is_that_of_the_configuration_or_the_platforms(page, dialogs, tmp_path):
    page.open_folder.click()
    assert dialogs.opened == [tmp_path / "home" / "logs"]


def test_clear_empties_the_page_only(page, ring):
    page.clear()
    assert page.model.rowCount() == 0
    assert ring.last_seq == 40


def test_rows_are_bounded_and_a_lapped_ring_is_no_fault(page, ring):
    for i in range(25_000):
        ring.append(1_796_200_000, "info", "x", f"line {i}")
    page.read()
    assert page.model.rowCount() == MAX_ROWS
    assert messages(page)[-1] == "line 24999"
    assert messages(page)[0] == "line 15000"


def test_ten_thousand_lines_a_second_never_hold_the_window_for_50_ms(qapp, page, ring):
    taken_s = []
    for _ in range(8):
        for i in range(2_500):
            ring.append(1_796_200_000, "info", "laya_desktop.node.server", f"POST /v1/chat/completions 200 {i}")
        start_s = time.thread_time()  # the thread's own time: another program's load is not the page's fault
        page.read()
        qapp.processEvents()
        taken_s.append(time.thread_time() - start_s)
    assert statistics.median(taken_s) < 0.05


def test_a_hidden_page_reads_nothing(qtbot, page, ring):
    page.hide()
    rows = page.model.rowCount()
    ring.append(1_796_200_000, "error", "x", "unseen")
    qtbot.wait(300)
    assert page.model.rowCount() == rows
    page.show()
    assert messages(page)[-1] == "unseen"
