"""What a probe found, in words."""

from __future__ import annotations

import asyncio

from laya_desktop.node.engines.base import Device, Probed
from laya_desktop.node.engines.probe import describe, probe

CPU = Device("CPU", "Some CPU", "cpu")
GPU = Device("CUDA0", "NVIDIA H200", "gpu", 100 * 2**30, 139 * 2**30)


def test_a_build_without_gpu_says_how_to_get_one() -> None:
    found = describe(Probed("1", False, (CPU,)))
    assert not found.gpu_available
    assert found.reason is not None
    assert "no GPU backend" in found.reason
    assert "GGML_CUDA=on" in found.reason
    assert "GGML_VULKAN=on" in found.reason


def test_a_gpu_build_without_gpu_says_so() -> None:
    found = describe(Probed("1", True, (CPU,)))
    assert not found.gpu_available
    assert "found no GPU" in (found.reason or "")


def test_a_gpu_is_available() -> None:
    found = describe(Probed("1", True, (GPU, CPU)))
    assert (found.gpu_available, found.reason) == (True, None)
    assert found.devices == ("CUDA0 NVIDIA H200 (139.0 GiB)", "CPU Some CPU")


def test_this_machine_is_probed() -> None:
    found = asyncio.run(probe())
    assert found.probed
    assert any(d.startswith("CPU") for d in found.devices)
    assert "0.3.36" in (found.llama_version or "")
    assert found.gpu_available == (found.reason is None)
