"""Making room before a load: which loaded models give way, and waiting until they have. Node thread only.

Acts only where the guard sheds (``guard.mode: shed``). A model gives way once its running answers are done; requests
that wait for it stay and have it loaded again. Where room cannot be made, or nobody knows how much is needed, the load
goes ahead: an estimate never refuses one. The choice itself is pure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.memory import size
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import Loaded
    from laya_desktop.node.runtime import ModelRuntime
    from laya_desktop.state.snapshot import MemoryEstimate

log = logging.getLogger(__name__)

SETTLE_S, SETTLE_STEP_S = 2.0, 0.1
"""How long freed memory may take to show at the sensors, and how often they are asked."""

Estimate = Callable[["ModelConfig", str], Awaitable["MemoryEstimate"]]
FreeBytes = Callable[["ModelConfig", bool], Awaitable["int | None"]]
"""What a model may take on the GPU (True) or in RAM (False), measured now; None: unknown."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A loaded model that might give way."""

    name: str
    last_used_s: float
    running: int
    waiting: int


def next_to_go(residents: Sequence[Resident]) -> Resident | None:
    """Idle ones first, then by the time of their last answer, the oldest first."""
    return min(residents, key=lambda r: (r.running + r.waiting > 0, r.last_used_s), default=None)


def on_gpu(loaded: Loaded) -> bool:
    """True for a model with layers on a GPU."""
    return bool(loaded.offloaded_layers)


def mapped_bytes(loaded: Loaded) -> int:
    """Weights in RAM that the system counts as available although the model needs them there (mapped file pages)."""
    layers = loaded.total_layers or 0
    share = 1.0 - (loaded.offloaded_layers or 0) / layers if layers else 1.0
    return int((loaded.weights_bytes or 0) * max(0.0, share))


class RoomMaker:
    """Satisfies ``runtime.MakeRoom``."""

    def __init__(
        self,
        runtimes: Callable[[], Sequence[ModelRuntime]],
        waiting: Callable[[str], int],
        estimate: Estimate,
        free: FreeBytes,
        enabled: Callable[[], bool],
        ceiling: Callable[[ModelConfig, bool], int | None] = lambda _config, _gpu: None,
    ) -> None:
        """Remember whom to ask.

        Args:
            runtimes: all models.
            waiting: requests that wait for a model.
            estimate: what a model would take on a device.
            free: what is free.
            enabled: whether the guard sheds.
            ceiling: what the model may hold on the GPU (True) or in RAM however much is free; None: unknown.
        """
        self._runtimes = runtimes
        self._waiting = waiting
        self._estimate = estimate
        self._free = free
        self._enabled = enabled
        self._ceiling = ceiling
        self._promised: dict[str, int] = {}
        """Bytes of the loads under way, so that two of them do not count on the same memory."""

    async def make_room(self, runtime: ModelRuntime, device: str) -> None:
        """Unload others until the model fits, or none is left that may go."""
        if not self._enabled() or not self._candidates(runtime, gpu=None):
            return
        runtime.load_note = "the memory estimate"
        try:
            estimate = await self._estimate(runtime.config, device)
        except LayaError as error:
            log.info("Nobody knows what '%s' needs: %s", runtime.name, error)
            return
        needed = estimate.total_bytes
        if needed is None:
            return
        gpu = estimate.device.lower() not in ("cpu", "fake")
        ceiling = self._ceiling(runtime.config, gpu)
        if ceiling is not None and needed > ceiling:
            return  # no room that others make would be enough
        self._promised[runtime.name] = needed
        try:
            await self._free_up(runtime, needed, gpu=gpu)
        finally:
            del self._promised[runtime.name]

    async def _free_up(self, runtime: ModelRuntime, needed: int, *, gpu: bool) -> None:
        while True:
            spare = await self._spare(runtime, gpu=gpu)
            if spare is None or needed <= spare:
                return
            goes = next_to_go([self._resident(r) for r in self._candidates(runtime, gpu=gpu)])
            if goes is None:
                log.warning("'%s' needs %s, %s are free; loading it anyway", runtime.name, size(needed), size(spare))
                return
            victim = next(r for r in self._runtimes() if r.name == goes.name)
            runtime.load_note = _note(goes)
            text = "'%s' makes room for '%s': %s needed, %s free"
            log.info(text, goes.name, runtime.name, size(needed), size(spare))
            going = victim.unload(f"its memory is needed for '{runtime.name}'", keep_waiting=True)
            await asyncio.shield(
                spawn(going, f"unload {goes.name}")
            )  # once begun it ends, whatever becomes of the load
            await self._settle(runtime, spare, needed, gpu=gpu)

    async def _settle(self, runtime: ModelRuntime, before: int, needed: int, *, gpu: bool) -> None:
        """Wait until the sensors show what was freed."""
        runtime.load_note = "memory to be freed"
        for _ in range(int(SETTLE_S / SETTLE_STEP_S)):
            spare = await self._spare(runtime, gpu=gpu)
            if spare is None or spare > before or needed <= spare:
                return
            await asyncio.sleep(SETTLE_STEP_S)

    async def _spare(self, runtime: ModelRuntime, *, gpu: bool) -> int | None:
        free = await self._free(runtime.config, gpu)
        if free is None:
            return None
        taken = sum(promised for name, promised in self._promised.items() if name != runtime.name)
        if not gpu:
            taken += sum(mapped_bytes(r.loaded) for r in self._runtimes() if r.loaded is not None and r is not runtime)
        return max(0, free - taken)

    def _candidates(self, runtime: ModelRuntime, *, gpu: bool | None) -> list[ModelRuntime]:
        """Loaded, unpinned models other than this one, on that side (None: either)."""
        return [
            r
            for r in self._runtimes()
            if r is not runtime
            and r.state is ModelState.READY
            and not r.config.pin
            and r.loaded is not None
            and (gpu is None or not gpu or on_gpu(r.loaded))
        ]

    def _resident(self, runtime: ModelRuntime) -> Resident:
        return Resident(runtime.name, runtime.last_used_s, runtime.running, self._waiting(runtime.name))


def _note(goes: Resident) -> str:
    if not goes.running:
        return f"memory: '{goes.name}' is unloaded"
    return f"memory: '{goes.name}' finishes {goes.running} answer{'s' if goes.running > 1 else ''}"
