"""The verdict on a dry run's figures: words, numbers and the way out; what is not known stays unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import DryRunDone
from laya_desktop.node.memory import estimate, judge
from laya_desktop.state.enums import Verdict

GIB = 2**30
CPU_RUN = DryRunDone("CPU", 4 * GIB, 2 * GIB, GIB, 0, 33)
GPU_RUN = DryRunDone("CUDA0 X", 4 * GIB, 2 * GIB, GIB, 33, 33, gpu_bytes=6 * GIB, gpu_free_bytes=8 * GIB)


@pytest.mark.parametrize(
    ("free_gib", "verdict"), [(20, Verdict.FITS), (7.5, Verdict.TIGHT), (7, Verdict.TIGHT), (6, Verdict.WILL_NOT_FIT)]
)
def test_the_verdict(free_gib: float, verdict: Verdict) -> None:
    found = judge(CPU_RUN, 4, 4096, int(free_gib * GIB))
    assert found.verdict is verdict
    assert found.total_bytes == 7 * GIB
    assert "7.0 GiB" in found.reason
    assert "KV cache 2.0 GiB" in found.reason


def test_the_way_out_is_the_context_that_fits() -> None:
    reason = judge(CPU_RUN, 4, 4096, 6 * GIB).reason
    assert "max_seq_len 2,048 instead of 4,096" in reason
    assert judge(CPU_RUN, 4, 2048, 6 * GIB).verdict is Verdict.WILL_NOT_FIT


def test_a_quantised_cache_is_offered_where_it_is_enough() -> None:
    enough, short = int(6.1 * GIB), int(6.0 * GIB)
    assert "with kv_type q8_0, or with max_seq_len" in judge(CPU_RUN, 4, 4096, enough, can_quantise=True).reason
    assert "kv_type" not in judge(CPU_RUN, 4, 4096, enough).reason
    assert "kv_type" not in judge(CPU_RUN, 4, 4096, short, can_quantise=True).reason, "saves 0.94 of 1 GiB"


def test_too_large_without_any_context() -> None:
    reason = judge(CPU_RUN, 4, 4096, 3 * GIB).reason
    assert "smaller model" in reason
    assert "max_seq_len" not in reason


def test_on_a_gpu_its_own_part_counts() -> None:
    assert judge(GPU_RUN, 4, 4096, None).verdict is Verdict.FITS
    assert judge(GPU_RUN, 4, 4096, None).free_bytes == 8 * GIB
    worse = judge(GPU_RUN, 4, 4096, 3 * GIB)
    assert worse.verdict is Verdict.WILL_NOT_FIT
    assert "gpu_layers" in worse.reason
    assert "33 of 33 layers" in worse.reason


@pytest.mark.parametrize("run", [CPU_RUN, DryRunDone("CPU"), DryRunDone("CPU", 4 * GIB)])
def test_unknown_stays_unknown(run: DryRunDone) -> None:
    found = judge(run, 4, 4096, None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason
    if run is not CPU_RUN:
        assert found.total_bytes is None


def test_a_file_that_cannot_be_read_is_unknown_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    found = asyncio.run(estimate(ModelConfig(name="m", path=path), path, "cpu", GIB))
    assert found.verdict is Verdict.UNKNOWN
    assert str(path) in found.reason
    assert found.total_bytes is None


def test_the_fake_takes_nothing() -> None:
    path = Path("fake:tokens=3")
    found = asyncio.run(estimate(ModelConfig(name="m", path=path, engine="fake"), path, "auto", None))
    assert (found.verdict, found.total_bytes, found.device) == (Verdict.FITS, None, "fake")
