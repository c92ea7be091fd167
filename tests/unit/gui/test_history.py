"""The rings behind the plots: windows, thinning that keeps peaks, gaps, export."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from laya_desktop.gui.qtmodels.history import MAX_POINTS, History
from tests.helpers.sample_data import sample_snapshot


def filled(samples, value=lambda i: float(i)):
    history = History()
    for i in range(samples):
        history.append(i * 0.25, {"a": value(i)})
    return history


def test_empty_history_has_no_points():
    x, y = History().view("a", 60)
    assert len(x) == len(y) == 0
    assert History().now_s is None


def test_one_minute_is_shown_sample_by_sample():
    x, y = filled(400).view("a", 60)
    assert x[-1] == 0.0
    assert y[-1] == 399.0
    assert x[0] == pytest.approx(-61, abs=1)
    assert np.all(np.diff(y) == 1.0)


@pytest.mark.parametrize("window_s", [60, 300, 1800])
@pytest.mark.parametrize("samples", [1, 7, 250, 1300, 7200, 7311, 9000])
def test_never_more_than_300_points_and_always_the_newest(window_s, samples):
    x, y = filled(samples).view("a", window_s)
    assert 1 <= len(x) <= MAX_POINTS
    assert x[-1] == 0.0
    assert y[-1] == samples - 1
    assert np.all(np.diff(x) >= 0)


def test_half_an_hour_reaches_back_half_an_hour():
    x, _ = filled(9000).view("a", 1800)
    assert x[0] < -1750


@pytest.mark.parametrize("window_s", [300, 1800])
def test_thinning_keeps_a_single_peak_wherever_it_is(window_s):
    for moment in range(6000, 6060):
        history = filled(7000, lambda i, m=moment: 500.0 if i == m else 1.0)
        _, y = history.view("a", window_s)
        assert (y.max() == 500.0) == (7000 - moment <= window_s * 4)


def test_a_peak_keeps_its_place_while_the_curve_moves():
    history = filled(7000, lambda i: 500.0 if i == 6500 else 1.0)
    places = []
    for i in range(7000, 7040):
        history.append(i * 0.25, {"a": 1.0})
        x, y = history.view("a", 1800)
        places.append(float(x[np.argmax(y)]) + history.now_s)
    assert max(places) - min(places) < 1e-6


def test_unknown_is_a_gap():
    history = History()
    for i in range(10):
        history.append(i * 0.25, {"a": None if i == 5 else 1.0})
    _, y = history.view("a", 60)
    assert np.isnan(y[5])
    assert np.isfinite(np.delete(y, 5)).all()


def test_a_series_that_appears_late_has_a_gap_before():
    history = filled(10)
    history.append(10 * 0.25, {"a": 1.0, "b": 2.0})
    _, y = history.view("b", 60)
    assert np.isnan(y[:-1]).all()
    assert y[-1] == 2.0


def test_a_pause_is_a_gap_not_a_line():
    history = filled(10)
    history.append(60.0, {"a": 1.0})
    _, y = history.view("a", 300)
    assert np.isnan(y).sum() == 1


def test_samples_in_quick_succession_count_once():
    history = History()
    assert history.append(1.0, {"a": 1.0})
    assert not history.append(1.05, {"a": 2.0})
    assert history.append(1.25, {"a": 3.0})
    assert list(history.view("a", 60)[1]) == [1.0, 3.0]


def test_a_clock_that_goes_back_starts_over():
    history = filled(100)
    history.append(1.0, {"a": 7.0})
    assert list(history.view("a", 60)[1]) == [7.0]


def test_feed_takes_what_is_plotted():
    history = History()
    history.feed(sample_snapshot())
    assert history.view("ram", 60)[1][-1] == pytest.approx(41.2)
    assert history.view("cpu:my-llm-7b", 60)[1][-1] == pytest.approx(61, abs=4)
    assert history.view("vram:0", 60)[1][-1] == pytest.approx(7.4, abs=0.1)
    assert np.isnan(history.view("decode:smollm2-135m", 60)[1][-1])


def test_export_writes_every_sample_of_the_range(tmp_path):
    history = filled(1000)
    path = history.export_csv(tmp_path / "values.csv", 60)
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 241
    assert lines[-1]["a"] == "999"
    assert lines[0]["age_s"] == "60.00"
    assert lines[0]["time_utc"].endswith("+00:00")


def test_the_export_has_every_sensor(tmp_path):
    history, snapshot = History(), sample_snapshot()
    history.feed(snapshot)
    with history.export_csv(tmp_path / "x.csv", 60).open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    gpus, models = [g.index for g in snapshot.machine.gpus], [m.name for m in snapshot.models]
    wanted = {f"{kind}:{i}" for kind in ("vram", "gpu", "gpu_c", "gpu_w") for i in gpus}
    wanted |= {f"{kind}:{name}" for kind in ("cpu", "ram", "decode", "vram_of") for name in models}
    wanted |= {f"cpu_core:{i}" for i in range(len(snapshot.machine.cpu_per_core_percent))}
    wanted |= {"load_1min", "swap", "pressure.full_percent", "major_faults_per_s", "cpu_c", "disk.free"}
    wanted |= {"log.written_bytes_per_s", "swap.in_bytes_per_s", "swap.out_bytes_per_s", "ram.available"}
    assert wanted <= row.keys()
    assert float(row["disk.free"]) == pytest.approx(snapshot.machine.disk_free_bytes / 1e9, rel=1e-5)
