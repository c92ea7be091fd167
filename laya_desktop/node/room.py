"""How much memory a model may take on a device, and what sets that limit. Pure.

Three limits, and the lowest counts: what is free less the guard's reserve; what the guard's ``mem_fraction`` leaves of
the device beside everything else in use; and the model's own ``mem_fraction`` of the device, its ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.config.schema import GuardConfig, ModelConfig
    from laya_desktop.state.snapshot import MachineSnapshot


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a model may take; None where no sensor tells."""

    free_bytes: int | None
    limit: str = ""
    """In words, where a mem_fraction sets the limit: "mem_fraction 0.5 allows this model 12.0 GiB of 24.0 GiB"."""


def gpu_index(device: str, machine: MachineSnapshot) -> int | None:
    """The GPU that a device means (``auto``: the first, where one has memory of its own); None: the CPU."""
    if device.startswith("gpu") or (device == "auto" and any(g.vram_total_bytes for g in machine.gpus)):
        return int(device.partition(":")[2] or 0)
    return None


def room_for(model: ModelConfig, machine: MachineSnapshot, device: str, guard: GuardConfig) -> Room:
    """What the model may take on that device now.

    Args:
        model: its ``mem_fraction`` counts.
        machine: the sensors.
        device: ``auto``, ``cpu``, ``gpu`` or ``gpu:N``.
        guard: fraction and reserves in force.
    """
    index = gpu_index(device, machine)
    if index is None:
        total, free, reserve = machine.ram_total_bytes, machine.ram_available_bytes, guard.reserve_ram
    else:
        gpu = next((g for g in machine.gpus if g.index == index), None)
        total = gpu.vram_total_bytes if gpu else None
        used = gpu.vram_used_bytes if gpu else None
        free = None if total is None or used is None else total - used
        reserve = guard.reserve_vram
    if free is None or total is None:
        return Room(None)
    fraction = model.mem_fraction or guard.mem_fraction
    limits = (
        (free - reserve, ""),
        (int(total * guard.mem_fraction) - (total - free), f"mem_fraction {guard.mem_fraction:g} of the guard"),
        (int(total * fraction), f"mem_fraction {fraction:g} of this model" if model.mem_fraction else ""),
    )
    room, limit = min(limits, key=lambda one: one[0])
    return Room(max(0, room), limit)


def most_bytes(model: ModelConfig, machine: MachineSnapshot, guard: GuardConfig, *, gpu: bool) -> int | None:
    """What the model's fraction and the guard's allow it on the first GPU or in RAM, were all of it free."""
    total = (machine.gpus[0].vram_total_bytes if machine.gpus else None) if gpu else machine.ram_total_bytes
    return None if total is None else int(total * min(model.mem_fraction or 1.0, guard.mem_fraction))


def ceiling_bytes(model: ModelConfig, machine: MachineSnapshot, guard: GuardConfig, *, override: bool) -> int | None:
    """RAM that one worker of the model may hold: its fraction of the machine; all of it where a person insists."""
    total = machine.ram_total_bytes
    if total is None:
        return None
    return total if override else int(total * (model.mem_fraction or guard.mem_fraction))
