"""The Overview: cards in words, plots that follow the models, pause, ranges, hover, export."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage

from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views import gauge_card
from laya_desktop.gui.views.overview import OverviewPage
from laya_desktop.gui.views.plot_grid import PlotGrid, ram_forecast
from laya_desktop.gui.views.plot_scale import time_ticks
from laya_desktop.state.enums import Level, ModelState
from laya_desktop.state.snapshot import (
    Forecast,
    GpuSnapshot,
    LatencyWindow,
    MachineSnapshot,
    ModelSnapshot,
    NodeSnapshot,
)
from tests.helpers.fake_service import GB
from tests.helpers.sample_data import sample_snapshot


@pytest.fixture
def history():
    result = History()
    for i in range(241):
        result.feed(sample_snapshot(i / 4))
    return result


@pytest.fixture
def page(qtbot, bridge, history, dialogs):
    result = OverviewPage(bridge, history, dialogs)
    qtbot.addWidget(result)
    result.resize(1104, 724)
    result.show()
    qtbot.waitUntil(lambda: result.plots is not None)
    result.draw()
    return result


def legend(plot):
    return [item.text for item in plot.legend.items]


def test_cards_say_number_use_and_outlook(page):
    ram, vram, cpu, queue = page.cards
    assert ram.figure.text() == "22.8 GB free"
    assert ram.note.text() == "41.2 of 64 GB"
    assert ram.text.full_text == "▲ full in about 22 s at this rate"
    assert ram.text.property("tone") == "warn"
    assert vram.caption.full_text == "VRAM · RTX 3090"
    assert vram.figure.text() == "16.6 GB free"
    assert vram.text.property("tone") == "secondary"
    assert cpu.note.text() == "16 cores"
    assert cpu.text.full_text.endswith("cores · 62 °C")
    assert queue.figure.text() == "6 waiting"
    assert queue.note.text() == "4 running · limit 64"


def test_cards_of_a_machine_that_says_nothing_show_dashes():
    empty = NodeSnapshot()
    for gauge in (gauge_card.ram, gauge_card.vram, gauge_card.cpu):
        assert gauge(empty).figure == "–"
        assert gauge(empty).parts == ()
    assert gauge_card.queue(empty).figure == "0 waiting"
    assert gauge_card.ram(empty).text == "measuring …"


def test_without_a_gpu_card_and_plot_say_why(page):
    page.plots.draw(sample_snapshot(gpu=False), History(), 60)
    page.set_snapshot(sample_snapshot(gpu=False))
    assert page.cards[1].figure.text() == "no GPU"
    assert "driver library is not installed" in page.cards[1].text.full_text
    assert page.plots.vram.empty_text == ("No GPU to plot", "No NVIDIA GPU found: the driver library is not installed.")
    page.draw()
    assert page.plots.vram.empty_text is None


def test_the_gpu_with_the_least_room_is_shown():
    gpus = (
        GpuSnapshot(0, "NVIDIA A", 24 * GB, 2 * GB),
        GpuSnapshot(1, "NVIDIA B", 24 * GB, 20 * GB),
        GpuSnapshot(2, "NVIDIA C", None, None),
    )
    gauge = gauge_card.vram(sample_snapshot(machine=MachineSnapshot(gpus=gpus)))
    assert gauge.caption == "VRAM 1 · B"
    assert gauge.figure == "4 GB free"


def test_ram_bar_shows_models_and_the_limit_of_the_guard():
    gauge = gauge_card.ram(sample_snapshot())
    assert [p.name for p in gauge.parts] == ["other programs", "my-llm-7b"]
    assert sum(p.share for p in gauge.parts) == pytest.approx(41.2 / 64, abs=0.01)
    assert gauge.limit == pytest.approx(0.9)


def test_forecast_line_ends_at_the_limit_or_at_the_edge():
    snapshot = sample_snapshot(forecasts=(Forecast("ram", Level.WARN, 1.0 * GB, 16.4, "x"),))
    assert ram_forecast(snapshot, 8)[1] == pytest.approx((8, 49.2))
    assert ram_forecast(snapshot, 100)[1] == pytest.approx((16.4, 57.6))
    assert ram_forecast(replace(snapshot, forecasts=(Forecast("ram"),)), 8) is None


def test_legends_show_live_values(page):
    assert legend(page.plots.ram) == ["used 41.2", "my-llm-7b 26.0"]
    assert [text.split()[0] for text in legend(page.plots.tokens)] == ["decode", "prefill"]
    assert legend(page.plots.queue) == ["waiting 6", "running 4"]


def test_several_loaded_models_get_their_own_curves(page, service, bridge, history):
    models = tuple(
        ModelSnapshot(f"m{i}", ModelState.READY, pid=100 + i, cpu_percent=80.0, rss_bytes=GB, decode_tokens_per_s=i)
        for i in range(5)
    )
    service.publish(sample_snapshot(60.5, models=models))
    bridge.poll()
    history.feed(service.snapshot)
    page.draw()
    assert legend(page.plots.tokens) == ["m0 0", "m1 1.0", "m2 2.0", "prefill 0"]
    assert [s.key for s in page.plots.cpu.series] == ["cpu", "cpu:m0", "cpu:m1", "cpu:m2"]
    looks = {(s.role, s.dashed) for s in page.plots.tokens.series}
    assert len(looks) == 4


def test_drawing_adds_what_is_new(page, history):
    before = legend(page.plots.ram)
    for i in range(1, 5):
        history.feed(sample_snapshot(60 + i / 4))
    page.draw()
    assert legend(page.plots.ram) != before
    assert 230 < max(page.plots.latency.points.values()) <= 300


@pytest.mark.parametrize("window_s", [60.0, 300.0, 1800.0])
def test_curves_that_grow_are_those_that_are_drawn_whole(qtbot, window_s):
    rng = np.random.default_rng(7)
    history, grown, whole = History(), PlotGrid(), PlotGrid()
    for grid in (grown, whole):
        qtbot.addWidget(grid)
    snapshot = sample_snapshot()
    grown.draw(snapshot, history, window_s)
    keys = [series.key for plot in grown.plots for series in plot.series]
    time_s = 1000.0
    for i in range(306):
        time_s += 10.0 if i == 150 else 0.25 + rng.uniform(-0.02, 0.02)  # asleep for a while in between
        values = {key: float(value) for key, value in zip(keys, rng.uniform(1, 500, len(keys)), strict=True)}
        history.append(time_s, values | {"routing.p99": None} if i % 40 == 20 else values)
        if i % 7:  # now and then two samples at once
            grown.draw(snapshot, history, window_s)
    grown.draw(snapshot, history, window_s)
    whole.draw(snapshot, history, window_s)
    for plot, other in zip(grown.plots, whole.plots, strict=True):
        assert legend(plot) == legend(other)
        for key in (series.key for series in plot.series):
            assert len(plot.lines(key)) <= 300
            if window_s == 60.0:  # nothing is thinned out
                lines = [line for line in plot.lines(key) if line[0] > -window_s]
                assert len(lines) > 100
                expected = [line for line in other.lines(key) if line[0] > -window_s]
                assert np.array(lines) == pytest.approx(np.array(expected), abs=1e-6)


def test_pause_stops_the_plots_and_not_the_history(qtbot, page, history, service, bridge):
    qtbot.mouseClick(page.pause, Qt.MouseButton.LeftButton)
    assert page.paused
    assert page.pause.text() == "Resume"
    shown = legend(page.plots.ram)
    service.publish(sample_snapshot(30.0, monotonic_s=1061.0))
    bridge.poll()
    history.feed(service.snapshot)
    page.draw()
    assert legend(page.plots.ram) == shown
    qtbot.mouseClick(page.pause, Qt.MouseButton.LeftButton)
    assert not page.paused
    assert legend(page.plots.ram) != shown


@pytest.mark.parametrize(("index", "window_s", "tick"), [(0, 60, "-60 s"), (1, 300, "-5 min"), (2, 1800, "-30 min")])
def test_ranges(qtbot, page, index, window_s, tick):
    qtbot.mouseClick(page.ranges.button(index), Qt.MouseButton.LeftButton)
    assert page.window_s == window_s
    assert page.plots.cpu.time_range == pytest.approx((-window_s, window_s / 7))
    assert time_ticks(page.window_s)[0][1] == tick


def test_hidden_page_draws_nothing(page, history):
    page.hide()
    before = legend(page.plots.latency)
    history.append(1060.5, {"routing.p50": 1.0})
    page.draw()
    assert legend(page.plots.latency) == before
    page.show()
    page.draw()
    assert legend(page.plots.latency)[0] == "p50 1.0"


def test_hover_is_shared_and_shows_the_values_of_that_moment(page):
    page.plots.cpu.hovered.emit(-60.0)
    assert legend(page.plots.ram)[0] == "used 19.0"
    assert all(plot.hover_s == -60.0 for plot in page.plots.plots)
    page.plots.cpu.hovered.emit(None)
    assert legend(page.plots.ram)[0] == "used 41.2"


def test_routing_latency_over_the_whole_window_is_said_on_its_plot(qtbot, page):
    windows = (LatencyWindow(60, 9, 2.5, 4.0, 80.0, 1234.0), LatencyWindow(300, 9, 3.5, 5.0, 90.0, 2345.0))
    snapshot = replace(sample_snapshot(seq=99), routing_windows=(*windows, LatencyWindow(1800)))
    page.plots.draw(snapshot, page._history, 60.0)
    assert page.plots.latency.note == "1 min: p50 2.5 · p95 4.0 · p99 80 · max 1,234"
    page.plots.draw(snapshot, page._history, 300.0)
    assert page.plots.latency.note.startswith("5 min: p50 3.5")
    page.plots.draw(snapshot, page._history, 1800.0)
    assert page.plots.latency.note == ""


def test_fixed_ranges(page):
    assert page.plots.cpu.maximum == 100
    assert page.plots.ram.maximum == 64
    assert page.plots.latency.maximum == 10_000


def test_gaps_are_not_drawn_across(page):
    x = np.array([-3.0, -2.0, -1.0, 0.0])
    page.plots.cpu.draw(60, {"cpu": (x, np.array([10.0, np.nan, 30.0, np.nan]))})
    assert legend(page.plots.cpu)[0] == "machine –"


def test_export_picture(page, dialogs, tmp_path):
    dialogs.path = tmp_path / "plots.png"
    page.export_png.trigger()
    image = QImage(str(dialogs.path))
    assert image.width() > 1000
    assert len({image.pixel(x, 100) for x in range(0, image.width(), 3)}) > 3


def test_export_values(page, dialogs, tmp_path):
    dialogs.path = tmp_path / "values.csv"
    page.export_csv.trigger()
    with dialogs.path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 241
    assert float(lines[-1]["ram"]) == pytest.approx(41.2)


def test_an_export_that_fails_says_so(page, dialogs, tmp_path):
    dialogs.path = tmp_path / "no such folder" / "values.csv"
    page.export_csv.trigger()
    assert page.state_text.startswith("Could not write")


def test_theme_switch_recolours_the_plots(qapp, page):
    theme.apply_theme(qapp, "dark")
    page.draw()
    assert page.plots.cpu.grab().toImage().pixelColor(60, 60).lightness() < 80
    theme.apply_theme(qapp, "light")
    page.draw()
    assert page.plots.cpu.grab().toImage().pixelColor(60, 60).lightness() > 200


def test_a_click_on_a_name_hides_its_curve_and_the_last_one_stays(page, qtbot):
    page.make_plots()
    plot = page.plots.queue
    page.draw()
    plot.legend.grab()  # places are known once it is painted
    left, right, key = plot.legend._places[0]
    qtbot.mouseClick(plot.legend, Qt.MouseButton.LeftButton, pos=QPoint(int((left + right) / 2), 9))
    assert key == "queue.waiting"
    assert not plot._plot.curve_visible("queue.waiting")
    assert [item.hidden for item in plot.legend.items] == [True, False]
    plot.toggle("queue.running")
    assert plot._plot.curve_visible("queue.running")
    plot.toggle("queue.waiting")
    assert plot._plot.curve_visible("queue.waiting")
