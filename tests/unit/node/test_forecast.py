"""Forecasts as stories told in samples, and properties that hold for any samples."""

import math
import random
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laya_desktop.config.schema import GuardConfig
from laya_desktop.node.forecast import Forecaster, about, memory_limit
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import Forecast, GpuSnapshot, MachineSnapshot

GB = 1_000_000_000
TOTAL = 64 * GB
GUARD = GuardConfig(mem_fraction=0.9, reserve_ram=2 * GB, reserve_vram=GB)
LIMIT = 57_600_000_000
RANK = {level: rank for rank, level in enumerate((Level.CALM, Level.WATCH, Level.WARN, Level.CRITICAL))}


def machine(used: float | None, gpus: tuple[GpuSnapshot, ...] = ()) -> MachineSnapshot:
    return MachineSnapshot(ram_total_bytes=TOTAL, ram_used_bytes=None if used is None else int(used), gpus=gpus)


def gpu(index: int, used: float | None, total: int | None = 24 * GB) -> GpuSnapshot:
    return GpuSnapshot(index, "G", total, None if used is None else int(used))


class Story:
    """Feeds one figure at 4 Hz."""

    def __init__(self, resource: str = "ram", limit: int = 64) -> None:
        self.forecaster = Forecaster()
        self.now = 1000.0
        self.resource = resource
        self.limit = limit

    def step(self, value: float) -> Forecast:
        self.now += 0.25
        if self.resource == "ram":
            self.forecaster.update(self.now, machine(value), {}, GUARD)
        elif self.resource.startswith("vram"):
            self.forecaster.update(self.now, machine(GB, (gpu(0, value),)), {}, GUARD)
        else:
            self.forecaster.update(self.now, machine(GB), {"m": (int(value), self.limit)}, GUARD)
        return next(f for f in self.forecaster.forecasts if f.resource == self.resource)

    def run(self, seconds: float, start: float, per_s: float = 0.0) -> list[Forecast]:
        return [self.step(start + per_s * i / 4) for i in range(int(seconds * 4))]


def test_the_limit_is_the_smaller_of_fraction_and_reserve():
    assert memory_limit(100, 0.9, 5) == 90
    assert memory_limit(100, 0.9, 30) == 70
    assert memory_limit(100, 1.0, 0) == 100
    assert memory_limit(100, 0.5, 200) == 0
    assert memory_limit(None, 0.9, 0) is None


def test_flat_memory_is_steady_and_calm():
    found = Story().run(30, 40 * GB)
    assert found[0].slope_per_s is None
    assert found[0].text == ""
    assert replace(found[-1], headroom=None) == Forecast("ram", Level.CALM, 0.0, None, "steady", "calm")


def test_a_steady_rise_is_told_in_seconds_and_warned_of_in_time():
    story = Story()
    story.run(20, 20 * GB)
    found = story.run(60, 20 * GB, per_s=0.5 * GB)
    assert found[-1].slope_per_s == pytest.approx(0.5 * GB, rel=0.01)
    for i, forecast in enumerate(found[40:], start=40):
        left_s = (LIMIT - 20 * GB) / (0.5 * GB) - i / 4
        assert forecast.time_to_full_s == pytest.approx(left_s, abs=4)
    at_45 = next(f for f in found if f.time_to_full_s is not None and 43 < f.time_to_full_s < 47)
    assert at_45.text == "RAM full in about 45 s at this rate"
    assert at_45.level is Level.WARN
    first = {level: next(i / 4 for i, f in enumerate(found) if f.level is level) for level in list(RANK)[1:3]}
    assert first[Level.WATCH] < 8
    assert first[Level.WARN] == pytest.approx((LIMIT - 20 * GB) / (0.5 * GB) - 60, abs=4)


def test_memory_that_fills_in_twenty_seconds_is_critical_before_it_is_full():
    story = Story()
    story.run(60, 10 * GB)
    found = story.run(24, 10 * GB, per_s=2 * GB)
    full_s = (LIMIT - 10 * GB) / (2 * GB)
    critical_s = next(i / 4 for i, f in enumerate(found) if f.level is Level.CRITICAL)
    warn_s = next(i / 4 for i, f in enumerate(found) if f.level is Level.WARN)
    assert warn_s <= 7
    assert full_s - 11 <= critical_s <= full_s - 6


@pytest.mark.parametrize("fills_in_s", [20, 30, 60, 120])
@pytest.mark.parametrize("resource", ["ram", "vram:0"])
def test_a_warning_comes_ten_seconds_before_the_limit_at_the_least(fills_in_s, resource):
    start = 4 * GB
    limit = LIMIT if resource == "ram" else memory_limit(24 * GB, GUARD.mem_fraction, GUARD.reserve_vram)
    story = Story(resource)
    story.run(30, start)
    found = story.run(fills_in_s, start, per_s=(limit - start) / fills_in_s)
    warned = next(i for i, f in enumerate(found) if f.level in (Level.WARN, Level.CRITICAL))
    assert fills_in_s - warned / 4 >= 10
    told_s = found[warned].time_to_full_s
    assert told_s is not None
    assert told_s >= 10
    assert "full in about" in found[warned].text


@pytest.mark.parametrize("seconds", [0.25, 1, 2])
@pytest.mark.parametrize("size", [0.5 * GB, 4 * GB, 20 * GB])
def test_a_model_that_is_loaded_at_once_is_no_trend(seconds, size):
    story = Story()
    story.run(30, 10 * GB)
    found = story.run(seconds, 10 * GB, per_s=size / seconds) + story.run(40, 10 * GB + size)
    assert {f.level for f in found} == {Level.CALM}
    assert found[-1].text == "steady"


def test_a_rise_that_ends_is_forgotten_at_once_and_the_level_falls_with_it():
    story = Story()
    story.run(20, 20 * GB)
    story.run(30, 20 * GB, per_s=0.8 * GB)
    found = story.run(30, 44 * GB)
    assert found[0].level is Level.WARN
    assert next(i / 4 for i, f in enumerate(found) if f.time_to_full_s is None) <= 7
    assert next(i / 4 for i, f in enumerate(found) if f.level is Level.CALM) <= 14


def test_falling_memory_has_no_time_to_full():
    story = Story()
    found = story.run(30, 50 * GB, per_s=-0.5 * GB)[-1]
    assert found.slope_per_s == pytest.approx(-0.5 * GB, rel=0.01)
    assert (found.time_to_full_s, found.text) == (None, "falling")


@pytest.mark.parametrize(
    ("used", "level", "text"),
    [
        (LIMIT * 0.80, Level.CALM, "steady"),
        (LIMIT * 0.93, Level.WATCH, "4.0 GB to the limit, steady"),
        (LIMIT * 0.97, Level.WARN, "1.7 GB to the limit, steady"),
        (LIMIT, Level.CRITICAL, "RAM is at the limit"),
        (LIMIT + 0.8 * GB, Level.CRITICAL, "RAM is 0.8 GB over the limit"),
    ],
)
def test_how_near_the_limit_is_matters_without_a_trend_too(used, level, text):
    found = Story().run(20, used)
    assert (found[-1].level, found[-1].text) == (level, text)
    assert found[0].level is Level.CALM, "one sample raises nothing"
    assert found[-1].time_to_full_s is None


def test_one_odd_sample_changes_nothing():
    story = Story()
    story.run(30, 30 * GB)
    found = [story.step(TOTAL), *story.run(20, 30 * GB)]
    assert {f.level for f in found} == {Level.CALM}
    assert {f.time_to_full_s for f in found} == {None}


def test_after_a_sleep_the_past_is_forgotten():
    story = Story()
    story.run(30, 20 * GB, per_s=0.5 * GB)
    story.now += 3600
    found = story.step(40 * GB)
    assert (found.slope_per_s, found.time_to_full_s) == (None, None)
    story.now -= 7200
    assert story.step(40 * GB).slope_per_s is None
    assert story.run(30, 40 * GB)[-1].text == "steady"


def test_each_gpu_is_followed_by_its_own_limit():
    forecaster = Forecaster()
    for i in range(120):
        gpus = (gpu(0, 10 * GB), gpu(1, (10 + i / 40) * GB), gpu(2, None), gpu(3, GB, None))
        found = forecaster.update(i / 4, machine(None, gpus), {}, GUARD)
    by_name = {f.resource: f for f in found}
    assert list(by_name) == ["ram", "vram:0", "vram:1", "vram:2", "vram:3"]
    assert by_name["ram"] == Forecast("ram", text="RAM unknown")
    assert by_name["vram:0"].text == "steady"
    assert by_name["vram:1"].text == "VRAM of GPU 1 full in about 85 s at this rate"
    assert by_name["vram:2"] == Forecast("vram:2", text="VRAM of GPU 2 unknown")
    assert by_name["vram:3"].level is Level.CALM


def test_a_single_gpu_needs_no_number():
    story = Story("vram:0")
    assert story.run(30, GB, per_s=0.2 * GB)[-1].text.startswith("VRAM full in about")


def test_a_queue_that_grows():
    story = Story("queue:m", limit=128)
    found = story.run(30, 4, per_s=2)[-1]
    assert found.slope_per_s == pytest.approx(2, rel=0.1)
    assert found.time_to_full_s == pytest.approx(32, abs=4)
    assert found.text.startswith("queue grows by 2 a second, full in about ")
    assert found.level is Level.WATCH


def test_a_full_queue_is_said_until_it_is_clearly_not():
    story = Story("queue:m")
    found = story.run(10, 64)[-1]
    assert (found.level, found.text) == (Level.CRITICAL, "queue full: new requests are refused")
    assert {f.level for f in story.run(20, 62)} == {Level.CRITICAL}
    assert story.run(40, 3)[-1].level is Level.CALM


@pytest.mark.parametrize(("waiting", "text"), [(0, "empty"), (5, "steady")])
def test_a_quiet_queue(waiting, text):
    found = Story("queue:m").run(30, waiting)[-1]
    assert (found.level, found.text) == (Level.CALM, text)


def test_a_queue_that_shrinks_and_slow_rates_in_minutes():
    story = Story("queue:m")
    assert story.run(20, 40, per_s=-1)[-1].text == "queue shrinks by 1 a second"
    slow = Story("queue:m", limit=20)
    assert slow.run(40, 0, per_s=0.5)[-1].text.startswith("queue grows by 30 a minute")


def test_a_model_without_a_queue_and_a_queue_of_one():
    assert Story("queue:m", limit=0).run(5, 0)[-1] == Forecast("queue:m", text="no queue", kind="calm")
    assert Story("queue:m", limit=1).run(10, 0)[-1].level is Level.CALM
    assert Story("queue:m", limit=1).run(10, 1)[-1].level is Level.CRITICAL


def test_resources_that_are_gone_are_forgotten():
    forecaster = Forecaster()
    for i in range(40):
        forecaster.update(i / 4, machine(GB, (gpu(0, GB),)), {f"m{i}": (1, 10)}, GUARD)
    forecaster.update(20, machine(GB), {}, GUARD)
    assert list(forecaster._followed) == ["ram"]
    assert [f.resource for f in forecaster.forecasts] == ["ram"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "a second"),
        (7.6, "about 8 s"),
        (12.4, "about 10 s"),
        (44, "about 45 s"),
        (119, "about 2 min"),
        (250, "about 4 min"),
        (3599, "over an hour"),
        (1e12, "over an hour"),
    ],
)
def test_time_is_rounded(seconds, text):
    assert about(seconds) == text


def test_strong_random_noise_does_not_flip_levels():
    noise = random.Random(7)
    story = Story()
    found = [story.step(noise.gauss(35 * GB, 0.01 * TOTAL)) for _ in range(4 * 3600)]
    levels = [f.level for f in found]
    assert sum(a is not b for a, b in pairwise(levels)) == 0
    assert sum(f.time_to_full_s is not None for f in found) < len(found) * 0.002


def test_a_rise_is_seen_through_noise():
    noise = random.Random(8)
    story = Story()
    story.run(20, 20 * GB)
    found = [story.step(20 * GB + 0.4 * GB * i / 4 + noise.gauss(0, 0.3 * GB)) for i in range(4 * 60)]
    assert found[-1].slope_per_s == pytest.approx(0.4 * GB, rel=0.2)
    assert sum(f.time_to_full_s is None for f in found[60:]) == 0


@settings(max_examples=60, deadline=None)
@given(
    base=st.floats(0.01, 1.05),
    wobble=st.lists(st.floats(-0.5, 0.5), min_size=50, max_size=400),
)
def test_small_noise_never_lowers_a_level_and_never_looks_like_growth(base, wobble):
    """Any wobble within half a percent of the limit, however placed, even right at a threshold."""
    story = Story()
    found = [story.step((base + 0.0049 * w) * LIMIT) for w in wobble]
    ranks = [RANK[f.level] for f in found]
    assert ranks == sorted(ranks)
    assert {f.time_to_full_s for f in found} == {None}
    assert {f.slope_per_s for f in found} <= {None, 0.0}


SAMPLES = st.tuples(
    st.floats(0, 8) | st.sampled_from([0.25, 1e9, -5.0, math.nan, math.inf]),
    st.none() | st.integers(0, 2**60),
    st.none() | st.integers(0, 2**60),
    st.integers(0, 10**6),
    st.integers(0, 1000),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(SAMPLES, max_size=120),
    st.floats(0.01, 1.0),
    st.integers(0, 2**50),
)
def test_any_samples_give_words_and_sound_numbers(samples, fraction, reserve):
    forecaster = Forecaster()
    guard = GuardConfig(mem_fraction=fraction, reserve_ram=reserve, reserve_vram=reserve)
    now = 0.0
    for step, total, used, waiting, limit in samples:
        now += step if math.isfinite(step) else 0.0
        shown = now if math.isfinite(step) else step
        snapshot = MachineSnapshot(ram_total_bytes=total, ram_used_bytes=used, gpus=(gpu(0, used, total),))
        for forecast in forecaster.update(shown, snapshot, {"m": (waiting, limit)}, guard):
            assert forecast.slope_per_s is None or math.isfinite(forecast.slope_per_s)
            assert forecast.time_to_full_s is None or 0 <= forecast.time_to_full_s < math.inf
            assert not {"nan", "inf", "-"} & set(forecast.text.lower().split())
            assert "-" not in forecast.text
            if forecast.time_to_full_s is not None:
                assert forecast.slope_per_s is not None
                assert forecast.slope_per_s > 0
    assert len(forecaster._followed) <= 3


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 4), st.floats(0.05, 0.5), st.integers(8, 40))
def test_a_clean_rise_is_measured_as_it_is(rate_gb, start, seconds):
    story = Story()
    found = story.run(seconds, start * TOTAL, per_s=rate_gb * GB)
    last = found[-1]
    value = start * TOTAL + rate_gb * GB * (seconds - 0.25)
    if rate_gb * GB * 6 >= LIMIT * 0.006:
        assert last.slope_per_s == pytest.approx(rate_gb * GB, rel=0.02)
        assert last.time_to_full_s == pytest.approx(max(LIMIT - value, 0) / (rate_gb * GB), abs=1.5)


def test_memory_stays_flat_over_a_day():
    noise = random.Random(3)
    forecaster = Forecaster()
    now = 0.0

    def minutes(count: int) -> None:
        nonlocal now
        for i in range(count * 60 * 4):
            now += 0.25
            used = (30 + 5 * math.sin(i / 5000)) * GB + noise.random() * GB
            forecaster.update(now, machine(used), {"m": (i // 40 % 64, 64)}, GUARD)

    def held() -> int:
        ours = [tracemalloc.Filter(True, "*/node/forecast*"), tracemalloc.Filter(True, "*/state/*")]
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(ours).traces)

    minutes(20)
    tracemalloc.start()
    try:
        before = held()
        for i in range(24 * 4):  # a day of quarters of an hour: ten seconds of traffic, then silence
            now += 890
            for _ in range(40):
                now += 0.25
                forecaster.update(now, machine(30 * GB), {f"m{i % 3}": (3, 64)}, GUARD)
        minutes(20)
        after = held()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
