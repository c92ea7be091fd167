"""Looking at models and devices without loading anything into this process. Any event loop.

Files are read in a thread pool; llama.cpp is asked in throwaway processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Hashable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop import paths
from laya_desktop.node import memory, memory_torch
from laya_desktop.node.dry_runs import DryRuns, file_identity
from laya_desktop.node.engines import model_file, probe
from laya_desktop.node.model_finder import ModelFinder
from laya_desktop.node.model_places import places

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.state.snapshot import Capability, FoundModel, MachineSnapshot, MemoryEstimate, ModelFileInfo


class ModelTools:
    """What the node and the command line ask about files and devices."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._finder = ModelFinder()
        self._dry_runs = DryRuns(executor)

    async def probe(self) -> Capability:
        """What this machine and this llama.cpp build can do with GPUs."""
        return await probe.probe()

    async def inspect(self, path: Path) -> ModelFileInfo:
        """Metadata of a model file or folder. Raises LayaError: missing, no model, cut off, and so on."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, model_file.inspect, path)

    async def find(self, folders: Sequence[Path]) -> tuple[FoundModel, ...]:
        """Models on this machine: in our own folder, in these, and where other programs keep theirs."""
        own = paths.data_dir() / "models"
        where = places(own, folders, Path.home(), os.environ, sys.platform)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._finder.find, where)

    async def estimate(self, model: ModelConfig, path: Path, device: str, free: int | None) -> MemoryEstimate:
        """What a model would take on a device against ``free`` bytes (None: unknown)."""
        if model.engine == "transformers":
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, memory_torch.estimate, model, path, device, free)
        return await memory.estimate(model, path, device, free, self._dry_runs)

    async def identify(self, path: str) -> Hashable:
        """What tells a model file from another, or from its next version."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, file_identity, path)


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
