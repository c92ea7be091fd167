"""The node's figures in Prometheus' text format. Pure; reads a snapshot and the metrics, changes nothing.

Written by hand: the format is one line per figure, and the figures are kept by the node already, so a client library
would only hold them a second time. Unknown figures are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from laya_desktop.node.metrics import Metrics
    from laya_desktop.state.snapshot import ModelSnapshot, NodeSnapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[dict[str, str], float | int | None]


def render(snapshot: NodeSnapshot, metrics: Metrics, connections: int) -> str:
    """All figures."""
    lines: list[str] = []
    _routing(lines, snapshot, metrics)
    _one(lines, "laya_connections", "gauge", "Open client connections.", connections)
    _many(
        lines,
        "laya_responses_total",
        "counter",
        "Answers by status class.",
        [({"class": name}, count) for name, count in sorted(metrics.responses.items())],
    )
    _models(lines, snapshot.models)
    _machine(lines, snapshot)
    return "\n".join(lines) + "\n"


def _routing(lines: list[str], snapshot: NodeSnapshot, metrics: Metrics) -> None:
    stats = metrics.routing
    name = "laya_routing_latency_microseconds"
    _head(lines, name, "summary", "From the last byte read to the hand-over; quantiles over ten seconds.")
    for quantile, value in (("0.5", stats.p50_us), ("0.95", stats.p95_us), ("0.99", stats.p99_us)):
        if value is not None:
            lines.append(_line(name, {"quantile": quantile}, value))
    lines.append(_line(f"{name}_sum", {}, metrics.routing_sum_us))
    lines.append(_line(f"{name}_count", {}, stats.count))
    routes = [(r.name, *metrics.route_stats(r.name)) for r in snapshot.routes]
    _many(
        lines, "laya_route_requests_total", "counter", "Requests by route.", [({"route": r[0]}, r[1]) for r in routes]
    )
    _many(
        lines,
        "laya_route_routing_p99_microseconds",
        "gauge",
        "Routing latency by route over ten seconds.",
        [({"route": r[0]}, r[3]) for r in routes],
    )


def _models(lines: list[str], models: Iterable[ModelSnapshot]) -> None:
    kept = tuple(models)

    def each(name: str, kind: str, text: str, values: Iterable[float | int | None]) -> None:
        _many(lines, name, kind, text, [({"model": m.name}, v) for m, v in zip(kept, values, strict=True)])

    each("laya_model_ready", "gauge", "1 while the model is loaded.", [int(m.state == ModelState.READY) for m in kept])
    each("laya_model_waiting", "gauge", "Requests in the queue.", [m.waiting for m in kept])
    each("laya_model_running", "gauge", "Requests that hold a slot.", [m.running for m in kept])
    each("laya_model_requests_total", "counter", "Requests of the model.", [m.requests_total for m in kept])
    each("laya_model_prefill_tokens_per_second", "gauge", "Prompt tokens read.", [m.prefill_tokens_per_s for m in kept])
    each("laya_model_decode_tokens_per_second", "gauge", "Tokens generated.", [m.decode_tokens_per_s for m in kept])
    each("laya_model_resident_bytes", "gauge", "RAM of the worker.", [m.rss_bytes for m in kept])
    each("laya_model_vram_bytes", "gauge", "GPU memory of the worker.", [m.vram_bytes for m in kept])


def _machine(lines: list[str], snapshot: NodeSnapshot) -> None:
    machine = snapshot.machine
    _one(lines, "laya_machine_cpu_percent", "gauge", "Of the whole machine.", machine.cpu_percent)
    _one(lines, "laya_machine_ram_used_bytes", "gauge", "RAM in use.", machine.ram_used_bytes)
    _one(lines, "laya_machine_ram_available_bytes", "gauge", "RAM left.", machine.ram_available_bytes)
    gpus = [({"gpu": str(g.index), "name": g.name}, g) for g in machine.gpus]
    _many(lines, "laya_gpu_vram_used_bytes", "gauge", "GPU memory in use.", [(k, g.vram_used_bytes) for k, g in gpus])
    _many(lines, "laya_gpu_vram_total_bytes", "gauge", "GPU memory.", [(k, g.vram_total_bytes) for k, g in gpus])
    _many(
        lines,
        "laya_upstream_healthy",
        "gauge",
        "1 while the upstream answers.",
        [({"upstream": u.name}, None if u.healthy is None else int(u.healthy)) for u in snapshot.upstreams],
    )


def _one(lines: list[str], name: str, kind: str, text: str, value: float | None) -> None:
    _many(lines, name, kind, text, [({}, value)])


def _many(lines: list[str], name: str, kind: str, text: str, samples: Iterable[_Sample]) -> None:
    known = [_line(name, labels, value) for labels, value in samples if value is not None]
    if known:
        _head(lines, name, kind, text)
        lines += known


def _head(lines: list[str], name: str, kind: str, text: str) -> None:
    lines.append(f"# HELP {name} {text}")
    lines.append(f"# TYPE {name} {kind}")


def _line(name: str, labels: dict[str, str], value: float | int) -> str:
    shown = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
