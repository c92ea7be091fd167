"""Two or more results side by side: the figures of the levels that they share, and by how much they differ. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from laya_desktop.bench.results import BenchResult, Point, Quantiles, Scenario

Figure = Callable[[Point], float | None]


def _of(name: str, rank: str) -> Figure:
    def figure(point: Point) -> float | None:
        found: Quantiles | None = getattr(point, name)
        return None if found is None else float(getattr(found, rank))

    return figure


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a level. ``unit``: ms, us, per_s, tokens_per_s, percent, bytes or count."""

    key: str
    unit: str
    figure: Figure
    more_is_better: bool = False


METRICS = (
    Metric("requests_per_s", "per_s", lambda p: p.requests_per_s, more_is_better=True),
    Metric("tokens_per_s", "tokens_per_s", lambda p: p.tokens_per_s, more_is_better=True),
    Metric("latency_p50", "ms", _of("latency_ms", "p50")),
    Metric("latency_p95", "ms", _of("latency_ms", "p95")),
    Metric("latency_p99", "ms", _of("latency_ms", "p99")),
    Metric("ttft_p50", "ms", _of("ttft_ms", "p50")),
    Metric("ttft_p99", "ms", _of("ttft_ms", "p99")),
    Metric("itl_p50", "ms", _of("itl_ms", "p50")),
    Metric("itl_p99", "ms", _of("itl_ms", "p99")),
    Metric("routing_p50", "us", _of("routing_us", "p50")),
    Metric("routing_p99", "us", _of("routing_us", "p99")),
    Metric("failed", "count", lambda p: float(p.failed)),
    Metric("cpu", "percent", lambda p: p.cpu_percent),
    Metric("ram", "bytes", lambda p: p.ram_peak_bytes),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure at one level in every result; ``changes`` are against the first (0.1: 10 % more)."""

    scenario: Scenario
    concurrency: int
    metric: Metric
    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]

    def better(self, place: int) -> bool | None:
        """Is that result better than the first? None: no difference that says anything."""
        change = self.changes[place]
        if change is None or abs(change) < 0.03:
            return None
        return (change > 0) is self.metric.more_is_better


def levels(results: Sequence[BenchResult], scenario: Scenario) -> tuple[int, ...]:
    """Every level of a scenario in any result."""
    return tuple(sorted({p.concurrency for r in results if (s := r.of(scenario)) for p in s.points}))


def compare(results: Sequence[BenchResult], scenario: Scenario) -> tuple[Row, ...]:
    """All figures of a scenario that at least one of the results has, level by level."""
    rows = []
    for level in levels(results, scenario):
        points = [s.at(level) if (s := r.of(scenario)) else None for r in results]
        for metric in METRICS:
            values = tuple(None if p is None else metric.figure(p) for p in points)
            if any(v is not None for v in values) and not (metric.key == "failed" and not any(values)):
                changes = tuple(_change(values[0], v) for v in values)
                rows.append(Row(scenario, level, metric, values, changes))
    return tuple(rows)


def _change(first: float | None, value: float | None) -> float | None:
    return None if not first or value is None else round(value / first - 1, 4)
