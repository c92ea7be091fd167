"""What Prometheus reads: labels are escaped, unknown figures are left out, nothing grows with what callers send."""

from __future__ import annotations

import json
import re

from prometheus_client.parser import text_string_to_metric_families

from laya_desktop import paths
from laya_desktop.node.metrics import Metrics
from laya_desktop.node.records import RequestRecord
from laya_desktop.node.server.metrics_export import MOST_ROUTES, render
from laya_desktop.state.enums import Phase
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot, ModelSnapshot, NodeSnapshot, UpstreamSnapshot

DASHBOARD = paths.find_shipped("resources").parent / "packaging" / "grafana" / "laya-node.json"


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def busy() -> tuple[NodeSnapshot, Metrics]:
    """A node of which everything is known."""
    metrics = Metrics()
    metrics.tick(1.0)
    metrics.record_routing("r", 20.0)
    metrics.record_routing(None, 200.0)
    metrics.count_response(200)
    record = RequestRecord("r", "POST", "/x", "r", "m", received_s=10.0, dispatched_s=10.1)
    record.first_token_s, record.last_token_s, record.completion_tokens = 10.2, 10.9, 5
    record.finish(Phase.DONE, status=200)
    metrics.record_request(record)
    numbers = dict.fromkeys(
        [
            "cpu_percent",
            "load_1min",
            "ram_total_bytes",
            "ram_used_bytes",
            "ram_available_bytes",
            "swap_used_bytes",
            "own_rss_bytes",
            "disk_free_bytes",
            "cpu_temperature_c",
            "memory_some_avg10_percent",
            "memory_full_avg10_percent",
            "swap_in_bytes_per_s",
            "swap_out_bytes_per_s",
            "major_faults_per_s",
            "log_write_bytes_per_s",
        ],
        1,
    )
    gpu = GpuSnapshot(0, "A", 2, 1, 50.0, 60.0, 70.0, "")
    model = ModelSnapshot("m", rss_bytes=1, vram_bytes=1, cpu_percent=1.0, prefill_tokens_per_s=1.0, ceiling_bytes=1)
    snapshot = NodeSnapshot(
        models=(model,),
        machine=MachineSnapshot(gpus=(gpu,), cpu_throttle="heat", **numbers),
        upstreams=(UpstreamSnapshot("u", healthy=True),),
    )
    return snapshot, metrics


def test_nothing_known_yet_is_still_valid() -> None:
    found = samples(render(NodeSnapshot(), Metrics(), 0))
    assert found["laya_routing_seconds_count", ()] == 0
    assert not [name for name, _ in found if name.startswith(("laya_machine", "laya_gpu", "laya_model"))]


def test_labels_are_escaped() -> None:
    found = samples(render(NodeSnapshot(models=(ModelSnapshot('a"b\\c\n'),)), Metrics(), 0))
    assert found["laya_model_ready", (("model", 'a"b\\c\n'),)] == 0


def test_unknown_is_left_out_and_known_is_there() -> None:
    gpus = (GpuSnapshot(0, "A", vram_used_bytes=5), GpuSnapshot(1, "B"))
    upstreams = (UpstreamSnapshot("u", healthy=True), UpstreamSnapshot("v", healthy=None))
    found = samples(render(NodeSnapshot(machine=MachineSnapshot(gpus=gpus), upstreams=upstreams), Metrics(), 0))
    assert found["laya_gpu_vram_used_bytes", (("gpu", "0"), ("name", "A"))] == 5
    assert found["laya_upstream_healthy", (("upstream", "u"),)] == 1
    assert not [labels for _, labels in found if ("gpu", "1") in labels or ("upstream", "v") in labels]


def test_histograms_are_cumulative_and_in_seconds() -> None:
    found = samples(render(*busy(), 3))
    bounds = {dict(labels)["le"]: v for (name, labels), v in found.items() if name == "laya_routing_seconds_bucket"}
    assert (bounds["1.6e-05"], bounds["3.2e-05"], bounds["0.000256"], bounds["+Inf"]) == (0, 1, 2, 2)
    assert found["laya_routing_seconds_sum", ()] == 0.00022
    assert found["laya_route_routing_seconds_count", (("route", "r"),)] == 1
    phases = {dict(labels)["phase"] for name, labels in found if name == "laya_request_phase_seconds_count"}
    assert phases == {"queue", "ttft", "decode", "total"}
    assert found["laya_requests_total", (("status", "200"), ("target", "m"))] == 1


def test_throttling_is_one_or_nought_and_left_out_where_unknown() -> None:
    found = samples(render(*busy(), 3))
    assert found["laya_machine_cpu_throttled", ()] == 1
    assert found["laya_gpu_throttled", (("gpu", "0"), ("name", "A"))] == 0
    assert ("laya_machine_cpu_throttled", ()) not in samples(render(NodeSnapshot(), Metrics(), 0))


def test_many_routes_do_not_make_it_grow_without_end() -> None:
    metrics = Metrics()
    for i in range(MOST_ROUTES * 2):
        for _ in range(1 + (i == 7)):
            metrics.record_routing(f"r{i}", 10.0)
    found = samples(render(NodeSnapshot(), metrics, 0))
    counted = [labels for name, labels in found if name == "laya_route_routing_seconds_count"]
    assert len(counted) == MOST_ROUTES
    assert (("route", "r7"),) in counted


def test_the_dashboard_asks_only_for_what_is_there() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = {name for expression in expressions for name in re.findall(r"\blaya_\w+", expression)}
    there = {name for name, _ in samples(render(*busy(), 3))}
    assert len(expressions) > 10
    assert asked - there == set()
