"""Back-off, circuit, loads that are never repeated, and sleep, on a simulated clock."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.survival import (
    BACK_OFF_S,
    MOST_DEATHS,
    REMEMBERED,
    STABLE_S,
    WINDOW_S,
    HopelessLoads,
    Restarts,
    SleepWatch,
    boot_s,
)


def test_restarts_come_later_each_time_and_end_with_the_third_death_in_five_minutes() -> None:
    restarts = Restarts()
    assert restarts.on_death(0.0) == 1.0
    assert restarts.on_death(10.0) == 2.0
    assert not restarts.is_open(10.0)
    assert restarts.on_death(20.0) is None
    assert restarts.is_open(20.0)
    assert restarts.recent(20.0) == 3


def test_deaths_far_apart_never_open_the_circuit_and_the_back_off_ends_at_thirty_seconds() -> None:
    restarts = Restarts()
    delays = [restarts.on_death(death * WINDOW_S / 2) for death in range(10)]
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]


def test_a_worker_that_served_for_long_starts_the_back_off_anew() -> None:
    restarts = Restarts()
    restarts.on_death(0.0)
    restarts.on_ready(2.0)
    assert restarts.on_death(2.0 + STABLE_S) == BACK_OFF_S[0]


def test_the_circuit_closes_with_time_or_by_hand() -> None:
    restarts = Restarts()
    for now_s in (0.0, 1.0, 2.0):
        restarts.on_death(now_s)
    assert restarts.is_open(WINDOW_S - 1)
    assert restarts.closes_in_s(100.0) == WINDOW_S - 100.0
    assert not restarts.is_open(WINDOW_S + 1)
    assert restarts.closes_in_s(WINDOW_S + 1) == 0.0
    restarts.on_death(WINDOW_S + 1)
    restarts.reset()
    assert not restarts.is_open(WINDOW_S + 2)
    assert restarts.on_death(WINDOW_S + 3) == BACK_OFF_S[0]


@given(st.lists(st.floats(0.1, 400.0), max_size=40))
def test_never_more_than_three_deaths_in_any_five_minutes_without_a_person(gaps: list[float]) -> None:
    restarts, now_s, started = Restarts(), 0.0, []
    for gap_s in gaps:
        now_s += gap_s
        if restarts.is_open(now_s):
            continue
        if restarts.on_death(now_s) is not None:
            started.append(now_s)
    for first in started:
        assert sum(first <= s < first + WINDOW_S for s in started) < MOST_DEATHS


def test_hopeless_loads_are_remembered_forgotten_and_bounded() -> None:
    loads = HopelessLoads()
    loads.add(("m", 1), "too big")
    assert loads.reason(("m", 1)) == "too big"
    assert loads.reason(("m", 2)) is None
    loads.forget(("m", 1))
    assert loads.reason(("m", 1)) is None
    for number in range(REMEMBERED + 5):
        loads.add(number, "x")
    assert loads.reason(4) is None
    assert loads.reason(5) == "x"


def test_sleep_is_told_once_and_a_slow_drift_or_a_clock_set_back_is_none() -> None:
    watch = SleepWatch()
    assert watch.slept_s(100.0, 5000.0) is None
    assert watch.slept_s(100.25, 5000.3) is None
    assert watch.slept_s(100.5, 8600.55) == pytest.approx(3600.0)
    assert watch.slept_s(100.75, 8600.75) is None
    assert watch.slept_s(101.0, 5000.0) is None


def test_where_both_clocks_went_on_an_overdue_tick_tells() -> None:
    watch = SleepWatch()
    watch.slept_s(100.0, 5000.0)
    assert watch.slept_s(105.0, 5005.0) is None
    assert watch.slept_s(3705.0, 8605.0) == pytest.approx(3600.0)


def test_the_clock_that_goes_on_is_not_behind_the_monotonic_one() -> None:
    first, started = boot_s(), time.monotonic()
    assert boot_s() - first >= 0
    assert boot_s() - first == pytest.approx(time.monotonic() - started, abs=1.0)
