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
    found = judge(CPU_RUN, int(free_gib * GIB))
    assert found.verdict is verdict
    assert found.total_bytes == 7 * GIB
    assert "7.0 GiB" in found.reason
    assert "KV cache 2.0 GiB" in found.reason


def test_the_worker_itself_counts() -> None:
    found = judge(DryRunDone("CPU", 4 * GIB, 2 * GIB, GIB, 0, 33, other_bytes=GIB), 20 * GIB)
    assert (found.total_bytes, found.other_bytes) == (8 * GIB, GIB)
    assert "the worker itself 1.0 GiB" in found.reason


def test_on_a_gpu_its_own_part_counts() -> None:
    assert judge(GPU_RUN, None).verdict is Verdict.FITS
    assert judge(GPU_RUN, None).free_bytes == 8 * GIB
    worse = judge(GPU_RUN, 3 * GIB)
    assert worse.verdict is Verdict.WILL_NOT_FIT
    assert "33 of 33 layers" in worse.reason


@pytest.mark.parametrize("run", [CPU_RUN, DryRunDone("CPU"), DryRunDone("CPU", 4 * GIB)])
def test_unknown_stays_unknown(run: DryRunDone) -> None:
    found = judge(run, None)
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
