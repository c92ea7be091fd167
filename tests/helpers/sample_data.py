"""Plausible snapshots for pictures, demonstrations and tests of the window: a workstation that is busy.

``sample_config`` is the configuration of the pictures; ``sample_snapshot(t_s)`` is the node at a moment of a made-up
minute; every value is a pure function of ``t_s``.
"""

from __future__ import annotations

import math
from typing import Any

from laya_desktop.config.schema import NodeConfig
from laya_desktop.state.enums import Level, ModelState, Phase, Priority
from laya_desktop.state.snapshot import (
    Capability,
    ConfigStatus,
    Forecast,
    GpuSnapshot,
    LatencyStats,
    LatencyWindow,
    MachineSnapshot,
    ModelSnapshot,
    NodeSnapshot,
    RequestSnapshot,
    RouteSnapshot,
    SlotSnapshot,
    UpstreamSnapshot,
)
from tests.helpers.fake_service import GB, running

UNSAVED = ("route fast lane: priority normal → interactive", "model my-llm-7b: batch_size 1 → 4")


def sample_config(**changes: Any) -> NodeConfig:
    """Four models, one upstream, five routes."""
    data: dict[str, Any] = {
        "models": [
            {
                "name": "my-llm-7b",
                "path": "/data/models/my-llm-7b-q4_k_m.gguf",
                "batch_size": 4,
                "device": "gpu",
                "queue": {"policy": "priority"},
            },
            {"name": "smollm2-135m", "path": "/data/models/SmolLM2-135M-Instruct.Q4_1.gguf", "device": "cpu"},
            {"name": "qwen3-32b", "path": "/data/models/qwen3-32b-q6_k.gguf", "device": "gpu"},
            {"name": "embed-mini", "path": "/data/models/embed-mini-f16.gguf", "idle_unload": "10m"},
        ],
        "upstreams": [{"name": "big-box", "url": "http://192.168.1.20:5292/v1"}],
        "routes": [
            {"name": "health-check", "match": {"path": "/ping"}, "target": "smollm2-135m"},
            {"name": "chat", "match": {"prefix": "/v1/model"}, "target": "my-llm-7b"},
            {
                "name": "fast lane",
                "match": {"prefix": "/v1/model", "headers": {"X-Tier": "pro"}},
                "target": "my-llm-7b",
                "priority": "interactive",
            },
            {"name": "big box", "match": {"prefix": "/v1", "model": "qwen3-32b"}, "target": "big-box"},
            {
                "name": "users",
                "match": {"regex": "/u/(?P<id>[0-9]+)/chat", "use_regex": True},
                "target": "big-box",
                "priority": "batch",
                "enabled": False,
            },
        ],
    }
    return NodeConfig.model_validate(data | changes)


def _noise(t_s: float, seed: float) -> float:
    """-1 to 1, without a random generator, so that pictures are the same each time."""
    return math.sin(t_s * 7.1 + seed) * math.sin(t_s * 3.3 + 2 * seed) * math.cos(t_s * 11.7 + 3 * seed)


def sample_machine(t_s: float, *, gpu: bool = True) -> MachineSnapshot:
    """16 cores, 64 GB filling up, a 24 GB card."""
    used = 19 * GB + 22.2 * GB * (t_s / 60) ** 2
    card = GpuSnapshot(
        index=0,
        name="NVIDIA GeForce RTX 3090",
        vram_total_bytes=24 * GB,
        vram_used_bytes=int(7.4 * GB + 0.05 * GB * _noise(t_s, 1)),
        utilisation_percent=88.0,
        temperature_c=62.0,
        power_w=240.0,
    )
    return MachineSnapshot(
        cpu_percent=71 + 5 * _noise(t_s, 2),
        cpu_per_core_percent=(71.0,) * 16,
        cores_physical=16,
        cores_logical=16,
        load_1min=11.2,
        ram_total_bytes=64 * GB,
        ram_used_bytes=int(used),
        ram_available_bytes=int(64 * GB - used),
        own_rss_bytes=240_000_000,
        disk_free_bytes=512 * GB,
        cpu_temperature_c=62.0,
        gpus=(card,) if gpu else (),
        gpu_reason=None if gpu else "No NVIDIA GPU found: the driver library is not installed.",
    )


def sample_models(t_s: float) -> tuple[ModelSnapshot, ...]:
    """Ready, unloaded, failed and loading."""
    waiting = max(0, min(6, round(t_s / 9 + _noise(t_s, 3))))
    return (
        ModelSnapshot(
            name="my-llm-7b",
            state=ModelState.READY,
            device="CUDA0 NVIDIA GeForce RTX 3090",
            offloaded_layers=33,
            total_layers=33,
            slots=(
                SlotSnapshot(0, Phase.DECODE, "req-11", 212),
                SlotSnapshot(1, Phase.DECODE, "req-12", 87),
                SlotSnapshot(2, Phase.PREFILL, "req-13", 1200),
                SlotSnapshot(3),
            ),
            waiting=waiting,
            running=3,
            queue_limit=64,
            max_seq_len=4096,
            prefill_tokens_per_s=412 + 40 * _noise(t_s, 4),
            decode_tokens_per_s=70 + 14 * math.sin(t_s / 7) + 3 * _noise(t_s, 5),
            pid=4242,
            cpu_percent=980 + 40 * _noise(t_s, 6),
            rss_bytes=int(6 * GB + 20 * GB * (t_s / 60) ** 2),
            vram_bytes=int(7.4 * GB),
            load_s=4.2,
            requests_total=3418,
        ),
        ModelSnapshot(name="smollm2-135m", queue_limit=64),
        ModelSnapshot(
            name="qwen3-32b",
            state=ModelState.FAILED,
            error="Out of memory: needs 27.9 GB VRAM, 16.6 GB were free. 41 of 65 layers on the GPU would fit.",
            log_tail=("ggml_cuda: allocating 27.9 GB on device 0", "cudaMalloc failed: out of memory"),
            queue_limit=64,
        ),
        ModelSnapshot(name="embed-mini", state=ModelState.LOADING, progress=0.64, queue_limit=64),
    )


def sample_requests(now_unix_s: float) -> tuple[RequestSnapshot, ...]:
    """Two that decode, one in prefill, six that wait, and finished ones with every outcome."""
    live = [
        RequestSnapshot(
            f"req-{11 + i}", now_unix_s - 4 + i, "chat", "my-llm-7b", "POST", "/v1/model/chat/completions", phase,
            stream=True, prompt_tokens=prompt, completion_tokens=tokens, routing_us=174.0 + i, queue_s=0.02,
            ttft_s=0.21 if tokens else None, decode_tokens_per_s=41.5 if tokens else None, duration_s=4.0 - i,
        )
        for i, (phase, prompt, tokens) in enumerate(
            ((Phase.DECODE, 96, 212), (Phase.DECODE, 31, 87), (Phase.PREFILL, 1200, None))
        )
    ]  # fmt: skip
    waiting = [
        RequestSnapshot(
            f"req-{20 + i}", now_unix_s - 2 + i / 5, "fast lane" if i < 2 else "chat", "my-llm-7b", "POST",
            "/v1/model/chat/completions", Phase.QUEUED, Priority.INTERACTIVE if i < 2 else Priority.NORMAL,
            queue_place=i + 1, routing_us=190.0 + 3 * i, duration_s=2.0 - i / 5,
        )
        for i in range(6)
    ]  # fmt: skip
    ends = (
        (Phase.DONE, 200, None, "stop"), (Phase.DONE, 200, None, "length"), (Phase.CANCELLED, 499, None, "cancelled"),
        (Phase.FAILED, 503, "The worker of 'qwen3-32b' is gone.", None), (Phase.DONE, 200, None, "stop"),
    )  # fmt: skip
    recent = [
        RequestSnapshot(
            f"req-{10 - i}", now_unix_s - 10 - 7 * i, "chat", "my-llm-7b", "POST", "/v1/model/chat/completions",
            phase, stream=i % 2 == 0, prompt_tokens=120 + i, completion_tokens=256 - 31 * i, routing_us=182.0,
            queue_s=0.4, ttft_s=0.33, decode_tokens_per_s=40.2, duration_s=6.4, status=status, error=error,
            finish_reason=reason,
        )
        for i, (phase, status, error, reason) in enumerate(ends)
    ]  # fmt: skip
    return (*waiting[::-1], *live[::-1], *recent)


def sample_snapshot(t_s: float = 60.0, *, seq: int = 1, gpu: bool = True, **changes: Any) -> NodeSnapshot:
    """The busy node at second ``t_s`` (0 to 60) of its minute."""
    unix_s = 1_796_100_000.0 + t_s
    machine = sample_machine(t_s, gpu=gpu)
    slope = 2 * 22.2 * GB * t_s / 3600
    headroom = max(0.0, 57.6 * GB - (machine.ram_used_bytes or 0))
    left_s = headroom / slope if slope > 0.05 * GB else None
    level = Level.WARN if left_s is not None and left_s < 60 else Level.CALM
    text = f"RAM full in about {left_s:.0f} s at this rate" if level is Level.WARN and left_s else "steady"
    waiting = sample_models(t_s)[0].waiting
    values: dict[str, Any] = {
        "seq": seq,
        "monotonic_s": 1000.0 + t_s,
        "unix_s": unix_s,
        "node": running(),
        "config": sample_config(),
        "config_status": ConfigStatus(path="/home/ada/.config/laya-desktop/app.yaml", revision=7, unsaved=UNSAVED),
        "routing_windows": (
            LatencyWindow(60, 9_312, 172.0, 268.0, 351.0, 1_204.0),
            LatencyWindow(300, 48_904, 174.0, 271.0, 364.0, 2_311.0),
            LatencyWindow(1800, 204_118, 171.0, 266.0, 349.0, 4_870.0),
        ),
        "routing": LatencyStats(
            count=16_410,
            rate_per_s=212.0,
            p50_us=182 + 25 * _noise(t_s, 7),
            p95_us=290.0,
            p99_us=341 + 90 * _noise(t_s, 8),
            max_us=1200.0,
        ),
        "models": sample_models(t_s),
        "routes": (
            RouteSnapshot("health-check", 12_904, 61.0, 96.0),
            RouteSnapshot("chat", 3_211, 182.0, 341.0),
            RouteSnapshot("fast lane", 207, 184.0, 352.0),
            RouteSnapshot("big box", 88, 240.0, 610.0),
            RouteSnapshot("users"),
        ),
        "upstreams": (UpstreamSnapshot("big-box", True, in_flight=1),),
        "requests": sample_requests(unix_s),
        "machine": machine,
        "forecasts": (
            Forecast("ram", level, slope, left_s, text),
            *((Forecast("vram:0", Level.CALM, 0.0, None, "steady"),) if gpu else ()),
            Forecast("queue:my-llm-7b", Level.CALM, 0.1, None, "next answer in about 3 s" if waiting else ""),
        ),
        "capability": Capability(
            probed=True,
            gpu_available=gpu,
            reason=None if gpu else "No NVIDIA GPU found.",
            devices=("CUDA0",) if gpu else (),
            llama_version="0.3.36",
        ),
    }
    return NodeSnapshot(**(values | changes))
