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
from laya_desktop.node.measured import MeasuredLoads, key_of
from laya_desktop.node.model_finder import ModelFinder
from laya_desktop.node.model_places import places
from laya_desktop.node.params import params_at

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.state.snapshot import Capability, FoundModel, MachineSnapshot, MemoryEstimate, ModelFileInfo

MEASURED_FILE = "measured-loads.json"
"""In the state folder."""


class ModelTools:
    """What the node and the command line ask about files and devices."""

    def __init__(self, executor: Executor, measured: Path | None = None) -> None:
        """Remember where things are.

        Args:
            executor: for reading files.
            measured: the file of what workers were seen to hold; None: remembered by this process only.
        """
        self._executor = executor
        self._measured = MeasuredLoads(measured)
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
        measured = None if device != "cpu" else await self._seen(model, path)
        return await memory.estimate(model, path, device, free, self._dry_runs, measured)

    async def remember(self, model: ModelConfig, path: str, held_bytes: int) -> None:
        """Note what one worker of the model on the CPU holds after it has decoded."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._note, model, path, held_bytes)

    def _note(self, model: ModelConfig, path: str, held_bytes: int) -> None:
        self._measured.add(key_of(params_at(model, path, "cpu"), file_identity(path)), held_bytes)

    async def _seen(self, model: ModelConfig, path: Path) -> int | None:
        def look() -> int | None:
            return self._measured.get(key_of(params_at(model, str(path), "cpu"), file_identity(str(path))))

        return await asyncio.get_running_loop().run_in_executor(self._executor, look)

    async def identify(self, path: str) -> Hashable:
        """What tells a model file from another, or from its next version."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, file_identity, path)


def free_bytes(machine: MachineSnapshot, device: str, *, reserve_bytes: int) -> int | None:
    """Memory that a model may take on a device: what is free less the reserve; None where no sensor tells.

    ``auto`` counts the first GPU where one has memory of its own, else RAM.
    """
    if device.startswith("gpu") or (device == "auto" and any(g.vram_total_bytes for g in machine.gpus)):
        index = int(device.partition(":")[2] or 0)
        gpu = next((g for g in machine.gpus if g.index == index), None)
        if gpu is None or gpu.vram_total_bytes is None or gpu.vram_used_bytes is None:
            return None
        return max(0, gpu.vram_total_bytes - gpu.vram_used_bytes - reserve_bytes)
    free = machine.ram_available_bytes
    return None if free is None else max(0, free - reserve_bytes)
