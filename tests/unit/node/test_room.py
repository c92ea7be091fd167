"""The lowest of three limits, and its name."""

from __future__ import annotations

import pytest

from laya_desktop.config.schema import GuardConfig, ModelConfig
from laya_desktop.node.room import Room, ceiling_bytes, most_bytes, room_for
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot

GIB = 2**30
GUARD = GuardConfig(mem_fraction=0.9, reserve_ram=2 * GIB, reserve_vram=GIB)
MACHINE = MachineSnapshot(ram_total_bytes=20 * GIB, ram_available_bytes=15 * GIB)
WITH_GPU = MachineSnapshot(
    ram_total_bytes=20 * GIB, ram_available_bytes=15 * GIB, gpus=(GpuSnapshot(0, "X", 10 * GIB, 4 * GIB),)
)


def model(mem_fraction: float | None = None) -> ModelConfig:
    return ModelConfig(name="m", path="fake:", engine="fake", mem_fraction=mem_fraction)


@pytest.mark.parametrize(
    ("machine", "device", "fraction", "guard", "gib", "limit"),
    [
        (MACHINE, "cpu", None, GUARD, 13, ""),
        (MACHINE, "auto", None, GUARD, 13, ""),
        (MACHINE, "cpu", 0.5, GUARD, 10, "mem_fraction 0.5 of this model"),
        (MACHINE, "cpu", None, GuardConfig(mem_fraction=0.5, reserve_ram=0), 5, "mem_fraction 0.5 of the guard"),
        (MACHINE, "cpu", None, GuardConfig(mem_fraction=0.1, reserve_ram=0), 0, "mem_fraction 0.1 of the guard"),
        (MACHINE, "cpu", None, GuardConfig(mem_fraction=1.0, reserve_ram=30 * GIB), 0, ""),
        (WITH_GPU, "gpu", None, GUARD, 5, ""),
        (WITH_GPU, "auto", 0.3, GUARD, 3, "mem_fraction 0.3 of this model"),
        (WITH_GPU, "cpu", None, GUARD, 13, ""),
    ],
)
def test_the_lowest_limit_counts(
    machine: MachineSnapshot, device: str, fraction: float | None, guard: GuardConfig, gib: float, limit: str
) -> None:
    assert room_for(model(fraction), machine, device, guard) == Room(gib * GIB, limit)


@pytest.mark.parametrize(("machine", "device"), [(MachineSnapshot(), "cpu"), (MACHINE, "gpu"), (WITH_GPU, "gpu:3")])
def test_what_no_sensor_tells_is_unknown(machine: MachineSnapshot, device: str) -> None:
    assert room_for(model(), machine, device, GUARD).free_bytes is None


def test_what_no_freed_memory_can_exceed() -> None:
    assert most_bytes(model(0.25), WITH_GPU, GUARD, gpu=False) == 5 * GIB
    assert most_bytes(model(), WITH_GPU, GUARD, gpu=True) == 9 * GIB
    assert most_bytes(model(), MACHINE, GUARD, gpu=True) is None


def test_a_workers_ceiling_is_its_fraction_of_the_machine() -> None:
    assert ceiling_bytes(model(0.25), MACHINE, GUARD, override=False) == 5 * GIB
    assert ceiling_bytes(model(), MACHINE, GUARD, override=False) == 18 * GIB
    assert ceiling_bytes(model(0.25), MACHINE, GUARD, override=True) == 20 * GIB
    assert ceiling_bytes(model(), MachineSnapshot(), GUARD, override=False) is None
