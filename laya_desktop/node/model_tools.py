"""Looking at models and devices without loading anything into this process. Any event loop.

Files are read in a thread pool; llama.cpp is asked in throwaway processes.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop.node import memory
from laya_desktop.node.engines import gguf, probe

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.state.snapshot import Capability, MachineSnapshot, MemoryEstimate, ModelFileInfo


class ModelTools:
    """What the node and the command line ask about files and devices."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def probe(self) -> Capability:
        """What this machine and this llama.cpp build can do with GPUs."""
        return await probe.probe()

    async def inspect(self, path: Path) -> ModelFileInfo:
        """Metadata of a model file. Raises LayaError: missing, a directory, not a GGUF, truncated …"""
        return await asyncio.get_running_loop().run_in_executor(self._executor, gguf.inspect, path)

    async def estimate(self, model: ModelConfig, path: Path, device: str, free: int | None) -> MemoryEstimate:
        """What a model would take on a device against ``free`` bytes (None: unknown)."""
        return await memory.estimate(model, path, device, free)


def free_bytes(machine: MachineSnapshot, device: str, *, reserve_bytes: int) -> int | None:
    """Memory that a model may take on a device: what is free less the reserve; None where no sensor tells.

    ``auto`` counts the first GPU where there is one, else RAM.
    """
    if device.startswith("gpu") or (device == "auto" and machine.gpus):
        index = int(device.partition(":")[2] or 0)
        gpu = next((g for g in machine.gpus if g.index == index), None)
        if gpu is None or gpu.vram_total_bytes is None or gpu.vram_used_bytes is None:
            return None
        return max(0, gpu.vram_total_bytes - gpu.vram_used_bytes - reserve_bytes)
    free = machine.ram_available_bytes
    return None if free is None else max(0, free - reserve_bytes)
