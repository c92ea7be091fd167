"""Scales: readable maxima that do not jump, ticks inside the range."""

from __future__ import annotations

import numpy as np
import pytest

from laya_desktop.gui.views.plot_scale import Scale, dashes, in_dash, next_maximum, nice_step, time_ticks, value_ticks

LOG = Scale("log", low=10, least=10_000)
ZERO_LOG = Scale("log", low=0, least=100)


@pytest.mark.parametrize(("value", "step"), [(0, 1), (4, 1), (8, 2), (100, 25), (64, 20), (24, 6), (7, 2), (410, 150)])
def test_nice_step(value, step):
    assert nice_step(value) == pytest.approx(step)


def test_maximum_covers_the_data_and_is_at_least_the_least():
    assert next_maximum(Scale(), None, None) == 4
    assert next_maximum(Scale(), 6, None) == 8
    assert next_maximum(Scale(), 100, None) >= 100


def test_maximum_grows_at_once_and_shrinks_late():
    scale = Scale()
    shown = next_maximum(scale, 90, None)
    assert next_maximum(scale, shown * 0.41, shown) == shown
    assert next_maximum(scale, shown * 0.39, shown) < shown
    assert next_maximum(scale, shown * 1.2, shown) > shown


def test_maximum_is_quiet_under_noise():
    scale, shown, seen = Scale(), next_maximum(Scale(), 100, None), set()
    for i in range(400):
        shown = next_maximum(scale, 80 + (i % 21), shown)
        seen.add(shown)
    assert len(seen) == 1


def test_fixed_maximum_stays():
    assert next_maximum(Scale(top=100), 250, 100) == 100


def test_log_maximum_is_a_power_of_ten():
    assert next_maximum(LOG, 341, None) == 10_000
    assert next_maximum(LOG, 20_000, 10_000) == 100_000


@pytest.mark.parametrize("scale", [LOG, ZERO_LOG])
@pytest.mark.parametrize("value", [10, 55.5, 9999])
def test_heights_invert(scale, value):
    assert scale.value(scale.height(value)) == pytest.approx(value)


def test_ticks():
    assert [text for _, text in value_ticks(Scale(top=100), 100)] == ["0", "25", "50", "75", "100"]
    assert [text for _, text in value_ticks(Scale(top=67.4), 67.4)] == ["0", "20", "40", "60"]
    assert [text for _, text in value_ticks(LOG, 10_000)] == ["10", "100", "1k", "10k"]
    assert [text for _, text in value_ticks(ZERO_LOG, 1000)] == ["0", "1", "10", "100", "1k"]


@pytest.mark.parametrize("scale", [Scale(), LOG, ZERO_LOG])
@pytest.mark.parametrize("value", [1, 17, 333, 86_000, 2.4e6])
def test_ticks_stay_inside_and_are_few(scale, value):
    maximum = next_maximum(scale, value, None)
    ticks = value_ticks(scale, maximum)
    assert 3 <= len(ticks) <= 7
    assert all(scale.bottom <= height <= scale.height(maximum) * 1.0001 for height, _ in ticks)


@pytest.mark.parametrize(("window_s", "first"), [(60, "-60 s"), (300, "-5 min"), (1800, "-30 min")])
def test_time_ticks(window_s, first):
    ticks = time_ticks(window_s)
    assert ticks[0] == (-window_s, first)
    assert ticks[-1] == (0.0, "now")


def test_dashes_leave_out_gaps_and_go_by_the_points_numbers():
    assert list(dashes(np.array([True] * 16), np.arange(16))) == [1, 1, 1, 1, 1, 0, 0, 0] * 2
    assert list(dashes(np.array([True] * 8), np.arange(3, 11))) == [1, 1, 0, 0, 0, 1, 1, 1]
    assert list(dashes(np.array([True, True, False, True, True]), np.arange(5))) == [1, 0, 0, 1, 1]
    assert [in_dash(place) for place in range(3, 11)] == [1, 1, 0, 0, 0, 1, 1, 1]
