"""Latency quantiles, token rates and counters."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.latency import LatencyHistogram
from laya_desktop.node.metrics import Metrics, TokenRate
from laya_desktop.node.records import RequestRecord
from laya_desktop.state.enums import Phase
from laya_desktop.state.snapshot import LatencyStats


def test_nothing_recorded_is_unknown():
    stats = LatencyHistogram().stats()
    assert (stats.count, stats.rate_per_s, stats.p50_us, stats.p99_us, stats.max_us) == (0, 0.0, None, None, None)


def test_quantiles_are_within_a_bucket_of_the_truth():
    rng = random.Random(1)
    values = sorted(rng.lognormvariate(3, 1.5) for _ in range(20_000))
    histogram = LatencyHistogram()
    for value in values:
        histogram.record(value)
    stats = histogram.stats()
    assert stats.p50_us == pytest.approx(values[10_000], rel=0.04)
    assert stats.p95_us == pytest.approx(values[19_000], rel=0.04)
    assert stats.p99_us == pytest.approx(values[19_800], rel=0.04)
    assert stats.max_us == values[-1]
    assert histogram.sum_us == pytest.approx(sum(values))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50))
def test_quantiles_are_ordered_and_never_above_the_largest(values: list[float]):
    histogram = LatencyHistogram()
    for value in values:
        histogram.record(value)
    stats = histogram.stats()
    assert stats.count == len(values)
    assert 0 <= stats.p50_us <= stats.p95_us <= stats.p99_us <= stats.max_us == max(values)


def test_one_value_is_every_quantile():
    histogram = LatencyHistogram()
    histogram.record(12.0)
    stats = histogram.stats()
    assert stats.p50_us == pytest.approx(12.0, rel=0.07)
    assert stats.p99_us == stats.max_us == 12.0


def test_the_window_slides_and_the_count_stays():
    histogram = LatencyHistogram()
    for second in range(100, 112):
        histogram.tick(second + 0.5)
        histogram.record(float(second))
    histogram.tick(111.5)
    stats = histogram.stats()
    assert stats.count == 12
    assert stats.max_us == 111.0
    assert stats.rate_per_s == pytest.approx(10 / 9.5)
    histogram.tick(119.0)
    assert histogram.stats().p50_us == pytest.approx(110.5, rel=0.04)
    histogram.tick(121.0)
    assert histogram.idle
    assert histogram.stats().p50_us is None
    assert histogram.stats().count == 12


def test_a_burst_after_a_pause_is_not_lost():
    histogram = LatencyHistogram()
    histogram.tick(0.0)
    histogram.tick(1000.9)
    histogram.record(5.0)
    histogram.tick(1001.0)
    assert histogram.stats().max_us == 5.0


def test_routes_are_counted_apart():
    metrics = Metrics()
    metrics.tick(50.0)
    metrics.record_routing("chat", 10.0)
    metrics.record_routing("chat", 10.0)
    metrics.record_routing("big", 1000.0)
    metrics.record_routing(None, 20.0)
    assert metrics.routing.count == 4
    assert metrics.routing_histogram.sum_us == 1040.0
    stats = metrics.route_stats("chat")
    ten = pytest.approx(10, rel=0.07)
    assert (stats.count, stats.p50_us, stats.p95_us, stats.p99_us, stats.max_us) == (2, ten, ten, ten, 10.0)
    assert metrics.route_stats("big").count == 1
    assert metrics.route_stats("never") is None
    metrics.tick(70.0)
    assert metrics.route_stats("chat") == LatencyStats(count=2)
    metrics.record_routing("chat", 30.0)
    assert metrics.route_stats("chat").count == 3
    metrics.forget("chat")
    assert metrics.route_stats("chat") is None


def test_the_last_minutes_are_those_of_what_was_recorded_in_them():
    rng = random.Random(2)
    metrics, recorded = Metrics(), []
    for second in range(5_000, 7_400):
        metrics.tick(second + 0.25)
        busy = second < 6_500 or second >= 7_300  # and a long rest
        for value in [rng.lognormvariate(3, 1) for _ in range(5 * busy)]:
            metrics.record_routing(None, value)
            recorded.append((second, value))
        if second % 97 == 0 or second == 7_399:
            metrics.tick(second + 1.0)
            for window in metrics.routing_windows:
                since = (second + 1) // 10 * 10 + 10 - window.window_s  # it moves in steps of ten seconds
                values = sorted(value for at, value in recorded if at >= since)
                assert window.count == len(values)
                if values:
                    assert window.max_us == values[-1]
                    assert window.p50_us == pytest.approx(statistics.median(values), rel=0.06)
                    assert window.p95_us <= window.p99_us <= window.max_us
                else:
                    assert (window.p50_us, window.max_us) == (None, None)
    assert [window.window_s for window in metrics.routing_windows] == [60, 300, 1800]


def test_token_rate_over_two_seconds():
    rate = TokenRate()
    assert rate.per_s(0.0) == 0.0
    for i in range(1, 101):
        rate.add(4, 10 + i * 0.05)
    assert rate.total == 400
    assert rate.per_s(15.0) == pytest.approx(80, rel=0.06)
    assert 0 < rate.per_s(16.0) < 50
    assert rate.per_s(17.1) == 0.0


def test_token_rate_just_after_a_pause_is_not_understated():
    rate = TokenRate()
    rate.add(1, 10.0)
    for i in range(1, 51):
        rate.add(1, 100 + i * 0.01)
    assert rate.per_s(100.5) == pytest.approx(100, rel=0.05)


def test_lifetime_counts_below_powers_of_two_are_exact():
    histogram, values = LatencyHistogram(), [0.3, 1.0, 1.99, 2.0, 15.9, 16.0, 17.0, 1023.0, 1024.0, 5000.0]
    for i, value in enumerate(values):
        histogram.record(value)
        histogram.tick(100.0 + 7 * i)
    powers = range(14)
    assert histogram.below_powers(powers) == [sum(v < 2**power for v in values) for power in powers]


def test_phases_of_finished_requests_are_kept_by_target():
    metrics = Metrics()
    record = RequestRecord("r", "POST", "/x", None, "m", received_s=10.0)
    record.dispatched_s, record.first_token_s, record.last_token_s, record.completion_tokens = 10.5, 11.0, 13.0, 5
    record.finish(Phase.DONE, status=200)
    record.finished_s = 14.0
    metrics.record_request(record)
    assert {key: h.sum_us for key, h in metrics.phases.items()} == {
        ("m", "queue"): 0.5e6,
        ("m", "ttft"): 1e6,
        ("m", "decode"): 2e6,
        ("m", "total"): 4e6,
    }
    assert metrics.requests == {("m", "200"): 1}
    metrics.record_request(RequestRecord("s", "GET", "/y", None, None, finished_s=1.0))
    metrics.forget_target("m")
    assert (metrics.phases, dict(metrics.requests)) == ({}, {})


def test_answers_are_counted():
    metrics = Metrics()
    for status in (200, 204, 404, 503):
        metrics.count_response(status)
    assert metrics.responses == {"2xx": 2, "4xx": 1, "5xx": 1}
