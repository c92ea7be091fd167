"""The Benchmark page: a run against a real node with the fake engine, cancelled, kept, compared; Tune and Apply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from laya_desktop.bench import tune
from laya_desktop.bench.results import (
    BenchResult,
    Fault,
    Machine,
    Point,
    Quantiles,
    Scenario,
    Series,
    Setting,
    Trial,
    TuneResult,
)
from laya_desktop.bench.store import ResultStore
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.qtmodels import bench_charts
from laya_desktop.gui.qtmodels.bench_charts import Cell, Figures
from laya_desktop.gui.qtmodels.figures_table import FiguresTable
from laya_desktop.gui.views.benchmark_page import BenchmarkPage
from tests.helpers.session import running

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=400,itl_ms=2", engine: fake, batch_size: 2, max_seq_len: 4096}
"""


@pytest.fixture
def node(tmp_path):
    with running(tmp_path / "node.yaml", CONFIG) as session:
        yield session


@pytest.fixture
def make(qtbot, dialogs):
    made = []

    def show(bridge: NodeBridge) -> BenchmarkPage:
        page = BenchmarkPage(bridge, dialogs)
        qtbot.addWidget(page)
        page.show()
        made.append(page)
        return page

    yield show
    for page in made:
        page.runner.shutdown()
        page.hide()


def kept(name: str, rate: float, created: float, *faults: Fault) -> BenchResult:
    same = Quantiles(100.0, 120.0, 150.0, 200.0)
    points = tuple(Point(n, 32, 10.0, 3.2, same, same, same, same, None, 64.0, 640, rate * n, faults) for n in (1, 2))
    routing = Point(1, 200, 0.1, 2000.0, same, routing_us=same)
    series = (Series(Scenario.ROUTING, "/health", (routing,)), Series(Scenario.SMALL, "quick", points))
    return BenchResult(name, created, Machine("Linux", "x", 2, 4, 8), {}, 64, 20, 32, None, series)


def quick(page: BenchmarkPage, levels: str = "1, 2", answer: int = 8) -> None:
    page.form.levels.set_value(levels)
    page.form.requests.setValue(4)
    page.form.answer.setValue(answer)


def test_a_run_shows_its_levels_and_recommendation_and_is_kept(qtbot, node, make):
    page = make(NodeBridge(node.service))
    assert page.right.currentWidget() is page.empty
    quick(page)
    qtbot.mouseClick(page.empty.action, Qt.MouseButton.LeftButton)
    assert page.runner.busy
    assert not page.run_button.isEnabled()
    with qtbot.waitSignal(page.runner.ended, timeout=30_000):
        pass
    assert page.hint.text() == ""
    assert page.right.currentWidget() is page.report
    (result,) = ResultStore().load()
    assert [s.target for s in result.series] == ["/health", "quick"]
    assert page.saved.selected == (result,)
    assert any("requests a second" in line for line in page.report.said)
    qtbot.mouseClick(page.report.scenario_buttons[Scenario.SMALL], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(page.report.plots) == 4)
    assert page.report.plots[1].chart.unit == "tokens/s"
    assert [name for name, _ in page.report.plots[1].chart.curves[0].points] == [1, 2]
    assert len(page.report.table.figures.figures.rows) == 2
    assert page.run_button.isEnabled()


def test_cancel_hangs_up_at_once_and_keeps_nothing(qtbot, node, make):
    page = make(NodeBridge(node.service))
    page.form.routing.set_value(False)
    quick(page, "2", answer=4000)
    page.start()
    qtbot.waitUntil(lambda: node.snapshot.running == 2, timeout=15_000)
    qtbot.waitUntil(lambda: "2 at once" in page.stage.text())
    with qtbot.waitSignal(page.runner.ended, timeout=10_000):
        qtbot.mouseClick(page.cancel_button, Qt.MouseButton.LeftButton)
    assert "Nothing was saved" in page.hint.text()
    assert ResultStore().load() == ()
    node.until(lambda s: s.running == 0)
    assert page.run_button.isEnabled()


def test_what_is_missing_is_said_before_anything_runs(qtbot, make, bridge, service):
    page = make(bridge)
    page.form.levels.set_value("1, none")
    page.form.levels.edited.emit()
    assert not page.form.levels_error.isHidden()
    assert not page.run_button.isEnabled()
    page.form.levels.set_value("1")
    page.form.levels.edited.emit()
    service.publish(node=replace(service.snapshot.node, url=None))
    bridge.poll()
    page.start()
    assert "Press Start" in page.hint.text()
    assert not page.runner.busy


def test_two_results_are_compared_with_differences_and_overlaid_curves(qtbot, make, bridge):
    store = ResultStore()
    store.save(kept("a1", 50.0, 1000.0))
    store.save(kept("a2", 65.0, 2000.0))
    page = make(bridge)
    page.saved.select(("a1", "a2"))
    assert [r.result_id for r in page.saved.selected] == ["a1", "a2"]
    qtbot.mouseClick(page.report.scenario_buttons[Scenario.SMALL], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(page.report.plots) == 4)
    curves = page.report.plots[1].chart.curves
    assert [c.name for c in curves] == ["A", "B"]
    assert curves[0].role != curves[1].role
    assert curves[1].dashed
    rows = {(r[0].text, r[1].text): r for r in page.report.table.figures.figures.rows}
    assert rows["1", "Tokens per second"][3] == Cell("65  +30 % ▲", "calm")
    assert page.report.said == ()


def test_results_are_exported_and_deleted(qtbot, make, bridge, dialogs, tmp_path):
    ResultStore().save(kept("a1", 50.0, 1000.0))
    page = make(bridge)
    dialogs.path = tmp_path / "out.csv"
    qtbot.mouseClick(page.report.export_button, Qt.MouseButton.LeftButton)
    assert dialogs.path.read_text().count("\n") == 4
    assert str(dialogs.path) in page.hint.text()
    qtbot.mouseClick(page.report.delete_button, Qt.MouseButton.LeftButton)
    assert ResultStore().load() == ()
    assert page.right.currentWidget() is page.empty


def test_a_run_that_was_shed_is_reported_with_the_reason(make, bridge):
    shed = Fault(503, "overloaded", 3, "The machine is short of memory.")
    ResultStore().save(kept("a1", 50.0, 1000.0, shed))
    page = make(bridge)
    assert "short of memory" in page.report.said[0]
    assert page.report.lines[0].property("tone") == "warn"


def test_tune_refuses_while_models_are_loaded_unless_it_is_wanted(qtbot, make, bridge):
    page = make(bridge)
    qtbot.mouseClick(page.tune_tab, Qt.MouseButton.LeftButton)
    assert "my-llm-7b" in page.hint.text()
    assert not page.run_button.isEnabled()
    assert "on a node of its own" in page.tune_form.explanation.text()
    page.tune_form.anyway.click()
    assert page.hint.text() == ""
    assert page.run_button.isEnabled()


def test_tunes_recommendation_is_applied_as_an_edit_of_the_configuration(qtbot, make, bridge, service):
    page = make(bridge)
    qtbot.mouseClick(page.tune_tab, Qt.MouseButton.LeftButton)
    same = Quantiles(100.0, 120.0, 150.0, 200.0)
    trials = tuple(
        Trial(Setting(b, w), Point(8, 32, 10.0, 3.2, same, same, tokens_per_s=rate))
        for b, w, rate in ((4, 1, 83.0), (2, 3, 70.0), (8, 3, 109.0))
    )
    page._tuned = TuneResult("my-llm-7b", 8, trials, *tune.choose(trials))
    page.runner.tuned.emit(page._tuned)
    assert page.report.said == ("• batch_size 8, num_worker 3: +31 % tokens a second with 8 at once.",)
    qtbot.mouseClick(page.report.apply_button, Qt.MouseButton.LeftButton)
    bridge.poll()
    (call,) = service.called("apply_config")
    model = call.args[0].model("my-llm-7b")
    assert (model.batch_size, model.num_worker) == (8, 3)
    assert "when my-llm-7b is loaded again" in page.hint.text()
    assert service.snapshot.config_status.unsaved


def test_tune_runs_in_the_helper_and_shows_every_setting(qtbot, node, make):
    page = make(NodeBridge(node.service))
    qtbot.mouseClick(page.tune_tab, Qt.MouseButton.LeftButton)
    page.tune_form.at_once.setValue(1)
    page.tune_form.answer.setValue(4)
    page.tune_form.seconds.setValue(2)
    with qtbot.waitSignal(page.runner.tuned, timeout=60_000) as said:
        qtbot.mouseClick(page.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not page.runner.busy)
    rows = page.report.table.figures.figures.rows
    assert len(rows) == len(said.args[0].trials) == page.tune_form.settings
    assert rows[0][-1].text == "now"
    assert page.report.said


def test_charts_leave_out_what_was_not_measured():
    result = kept("a1", 50.0, 1000.0)
    charts = bench_charts.charts([result], Scenario.ROUTING)
    assert [bool(c.curves) for c in charts] == [True, True, True, False]
    assert bench_charts.scenarios([result]) == (Scenario.ROUTING, Scenario.SMALL)


def test_the_figures_table_is_a_sound_qt_model(qtmodeltester):
    table = FiguresTable()
    table.set_figures(Figures(("a", ""), ((Cell("1"), Cell("x", "warn")),)), 0)
    qtmodeltester.check(table)
    table.set_figures(Figures())
    assert table.rowCount() == 0
