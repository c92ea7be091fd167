"""The node's figures for Prometheus, through its client library. Reads a snapshot and the metrics, changes nothing.

The figures are kept by the node already, so that counting costs the request's path next to nothing; the library shapes
and writes them when ``/metrics`` is read. Unknown figures are left out. Labels come from the configuration and the
hardware only, and of routes the 200 with the most requests, so that no caller can make the answer grow.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from laya_desktop.node.latency import LatencyHistogram
    from laya_desktop.node.metrics import Metrics
    from laya_desktop.state.snapshot import MachineSnapshot, ModelSnapshot, NodeSnapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_ROUTES = 200
_ROUTING_POWERS = range(4, 21)
"""Routing latency: 16 µs to 1 s, as powers of two in microseconds, which are edges of the node's own buckets."""
_PHASE_POWERS = range(10, 30)
"""Phases of a request: 1 ms to 9 min."""

_Labels = tuple[str, ...]
_Samples = Iterable[tuple[_Labels, float | int | None]]


def render(snapshot: NodeSnapshot, metrics: Metrics, connections: int) -> str:
    """All figures as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(snapshot, metrics, connections))
    return generate_latest(registry).decode()


class _Figures(Collector):
    def __init__(self, snapshot: NodeSnapshot, metrics: Metrics, connections: int) -> None:
        self._snapshot, self._metrics, self._connections = snapshot, metrics, connections

    def collect(self) -> Iterator[Metric]:
        metrics, snapshot = self._metrics, self._snapshot
        yield from _routing(metrics)
        yield _gauge("laya_connections", "Open client connections.", (), [((), self._connections)])
        classes = [((name,), count) for name, count in sorted(metrics.responses.items())]
        yield _counter("laya_responses", "Answers by status class.", ("class",), classes)
        phases = HistogramMetricFamily(
            "laya_request_phase_seconds",
            "Time of finished requests by target and phase (queue, ttft, decode, total).",
            labels=("target", "phase"),
        )
        for (target, phase), histogram in sorted(metrics.phases.items()):
            _add(phases, (target, phase), histogram, _PHASE_POWERS)
        yield phases
        requests = [((t, s), n) for (t, s), n in sorted(metrics.requests.items())]
        yield _counter("laya_requests", "Finished requests by target and status.", ("target", "status"), requests)
        yield from _models(snapshot.models)
        yield from _upstreams(snapshot)
        yield from _machine(snapshot.machine)
        yield from _gpus(snapshot.machine)


def _routing(metrics: Metrics) -> Iterator[Metric]:
    text = "Routing latency: from the last byte that the decision needs to the hand-over."
    whole = HistogramMetricFamily("laya_routing_seconds", text)
    _add(whole, (), metrics.routing_histogram, _ROUTING_POWERS)
    yield whole
    per_route = HistogramMetricFamily("laya_route_routing_seconds", f"{text} By route.", labels=("route",))
    busiest = heapq.nlargest(MOST_ROUTES, metrics.route_histograms.items(), key=lambda item: item[1].count)
    for name, histogram in sorted(busiest):
        _add(per_route, (name,), histogram, _ROUTING_POWERS)
    yield per_route


def _add(family: HistogramMetricFamily, labels: _Labels, histogram: LatencyHistogram, powers: range) -> None:
    """The histogram's lifetime counts below each power of two, microseconds told in seconds."""
    counts = histogram.below_powers(powers)
    buckets = [(f"{2**power / 1e6:g}", float(count)) for power, count in zip(powers, counts, strict=True)]
    family.add_metric(labels, [*buckets, ("+Inf", float(histogram.count))], sum_value=histogram.sum_us / 1e6)


def _models(models: tuple[ModelSnapshot, ...]) -> Iterator[Metric]:
    def each(name: str, text: str, values: Iterable[float | int | None]) -> Metric:
        return _gauge(f"laya_model_{name}", text, ("model",), _named(models, values))

    yield each("ready", "1 while the model is loaded.", (int(m.state == ModelState.READY) for m in models))
    yield each("waiting", "Requests in the queue.", (m.waiting for m in models))
    yield each("running", "Requests that hold a slot.", (m.running for m in models))
    yield each("prefill_tokens_per_second", "Prompt tokens read.", (m.prefill_tokens_per_s for m in models))
    yield each("decode_tokens_per_second", "Tokens generated.", (m.decode_tokens_per_s for m in models))
    yield each("resident_bytes", "RAM of the workers.", (m.rss_bytes for m in models))
    yield each("vram_bytes", "GPU memory of the workers.", (m.vram_bytes for m in models))
    yield each("cpu_percent", "CPU of the workers; 100 is one core.", (m.cpu_percent for m in models))
    yield each("ceiling_bytes", "RAM that each worker may hold, by the system.", (m.ceiling_bytes for m in models))
    totals = _named(models, (m.requests_total for m in models))
    yield _counter("laya_model_requests", "Requests admitted by model.", ("model",), totals)


def _named(models: tuple[ModelSnapshot, ...], values: Iterable[float | int | None]) -> _Samples:
    return [((m.name,), value) for m, value in zip(models, values, strict=True)]


def _upstreams(snapshot: NodeSnapshot) -> Iterator[Metric]:
    healthy = [((u.name,), None if u.healthy is None else int(u.healthy)) for u in snapshot.upstreams]
    yield _gauge("laya_upstream_healthy", "1 while the upstream answers.", ("upstream",), healthy)


def _machine(machine: MachineSnapshot) -> Iterator[Metric]:
    for name, text, value in (
        ("cpu_percent", "CPU of the whole machine.", machine.cpu_percent),
        ("load1", "Load over one minute.", machine.load_1min),
        ("ram_total_bytes", "RAM, or the cgroup's limit where that is lower.", machine.ram_total_bytes),
        ("ram_used_bytes", "RAM in use.", machine.ram_used_bytes),
        ("ram_available_bytes", "RAM left.", machine.ram_available_bytes),
        ("swap_used_bytes", "Swap in use.", machine.swap_used_bytes),
        ("swap_in_bytes_per_second", "Read from swap.", machine.swap_in_bytes_per_s),
        ("swap_out_bytes_per_second", "Written to swap.", machine.swap_out_bytes_per_s),
        ("major_faults_per_second", "Pages read from a disk before a program could go on.", machine.major_faults_per_s),
        ("memory_pressure_some_percent", "PSI: some task waited for memory.", machine.memory_some_avg10_percent),
        ("memory_pressure_full_percent", "PSI: all tasks waited for memory.", machine.memory_full_avg10_percent),
        ("cpu_temperature_celsius", "CPU temperature.", machine.cpu_temperature_c),
        ("log_disk_free_bytes", "Free on the volume of the logs.", machine.disk_free_bytes),
        ("log_write_bytes_per_second", "Growth of the log's files.", machine.log_write_bytes_per_s),
        ("cpu_throttled", "1 while heat slows the CPU down.", _slowed(machine.cpu_throttle)),
        ("node_resident_bytes", "RAM of the node's own process.", machine.own_rss_bytes),
    ):
        yield _gauge(f"laya_machine_{name}", text, (), [((), value)])


def _gpus(machine: MachineSnapshot) -> Iterator[Metric]:
    gpus = [((str(g.index), g.name), g) for g in machine.gpus]
    for name, text, values in (
        ("vram_used_bytes", "GPU memory in use.", [(k, g.vram_used_bytes) for k, g in gpus]),
        ("vram_total_bytes", "GPU memory.", [(k, g.vram_total_bytes) for k, g in gpus]),
        ("utilisation_percent", "GPU utilisation.", [(k, g.utilisation_percent) for k, g in gpus]),
        ("power_watts", "GPU power.", [(k, g.power_w) for k, g in gpus]),
        ("temperature_celsius", "GPU temperature.", [(k, g.temperature_c) for k, g in gpus]),
        ("throttled", "1 while heat or power slow the GPU down.", [(k, _slowed(g.throttle)) for k, g in gpus]),
    ):
        yield _gauge(f"laya_gpu_{name}", text, ("gpu", "name"), values)


def _slowed(reason: str | None) -> int | None:
    return None if reason is None else int(bool(reason))


def _gauge(name: str, text: str, labels: _Labels, samples: _Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(values, value)
    return family


def _counter(name: str, text: str, labels: _Labels, samples: _Samples) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(values, value)
    return family
