"""Prometheus text: labels are escaped, unknown figures are left out, each name is declared once."""

from __future__ import annotations

from laya_desktop.node.metrics import Metrics
from laya_desktop.node.server.metrics_text import render
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot, ModelSnapshot, NodeSnapshot, UpstreamSnapshot


def test_nothing_known_yet_is_still_valid() -> None:
    lines = render(NodeSnapshot(), Metrics(), 0).splitlines()
    assert "laya_routing_latency_microseconds_count 0" in lines
    assert not [line for line in lines if "None" in line]


def test_labels_are_escaped() -> None:
    text = render(NodeSnapshot(models=(ModelSnapshot('a"b\\c'),)), Metrics(), 0)
    assert 'laya_model_ready{model="a\\"b\\\\c"} 0' in text


def test_unknown_is_left_out_and_known_is_there() -> None:
    gpus = (GpuSnapshot(0, "A", vram_used_bytes=5), GpuSnapshot(1, "B"))
    snapshot = NodeSnapshot(
        machine=MachineSnapshot(gpus=gpus),
        upstreams=(UpstreamSnapshot("u", healthy=True), UpstreamSnapshot("v", healthy=None)),
    )
    lines = render(snapshot, Metrics(), 0).splitlines()
    assert 'laya_gpu_vram_used_bytes{gpu="0",name="A"} 5' in lines
    assert not [line for line in lines if 'gpu="1"' in line or 'upstream="v"' in line]
    assert 'laya_upstream_healthy{upstream="u"} 1' in lines


def test_quantiles_and_classes() -> None:
    metrics = Metrics()
    metrics.tick(1.0)
    metrics.record_routing(None, 20.0)
    metrics.count_response(200)
    lines = render(NodeSnapshot(), metrics, 3).splitlines()
    assert 'laya_responses_total{class="2xx"} 1' in lines
    assert "laya_routing_latency_microseconds_sum 20.0" in lines
    assert [line for line in lines if line.startswith('laya_routing_latency_microseconds{quantile="0.5"}')]
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
