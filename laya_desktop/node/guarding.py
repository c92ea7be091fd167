"""Joins the guard with the models it may unload and the world it tells. Node thread only.

Satisfies ``guard.Effects``; decides nothing itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.guard import Guard, Mode, ModelView
from laya_desktop.node.guard_signs import Signs
from laya_desktop.node.swap import on_gpu
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import Level, ModelState
from laya_desktop.state.events import AlertCleared, AlertRaised, Event, GuardActed

if TYPE_CHECKING:
    from laya_desktop.node.pool import ModelPool
    from laya_desktop.state.snapshot import Forecast, GuardSnapshot, MachineSnapshot

log = logging.getLogger(__name__)


class Guarding:
    """One node's guard at work."""

    def __init__(self, pool: ModelPool, emit: Callable[[Event], None]) -> None:
        self._pool = pool
        self._emit = emit
        self._signs = Signs()
        self._guard = Guard(self)
        pool.refuse_batch = lambda: self._guard.refusal("refuse_batch")

    def update(
        self, now_s: float, unix_s: float, forecasts: Sequence[Forecast], machine: MachineSnapshot, mode: Mode
    ) -> None:
        """Look at a new sample and act."""
        signs = self._signs.read(now_s, forecasts, machine)
        self._guard.update(now_s, unix_s, signs, tuple(self._models()), mode)

    def snapshot(self) -> GuardSnapshot:
        """A frozen picture."""
        return self._guard.snapshot()

    def refuse_loads(self) -> LayaError | None:
        """The 503 for loads, while there is one."""
        return self._guard.refusal("refuse_loads")

    def undo(self, action_id: str) -> str:
        """Take an action back; what it was, in words. Raises LayaError."""
        return self._guard.undo(action_id).text

    # -- guard.Effects

    def set_standing(self, kind: str, *, on: bool) -> None:
        """Batch requests are held by the scheduler; refusals are asked for where they act."""
        if kind == "hold_batch":
            self._pool.hold_batch(on=on)

    def unload(self, model: str, reason: str) -> None:
        """What begins to wait for it in between has it loaded again."""
        spawn(self._pool.unload(model, reason, keep_waiting=True), f"guard unloads {model}")

    def reload(self, model: str) -> None:
        """A failure shows on the model."""
        spawn(self._reload(model), f"undo unload of {model}")

    def say(self, event: Event) -> None:
        """One line in the log for everything the guard says or does."""
        match event:
            case AlertRaised():
                level = logging.WARNING if event.level in (Level.WARN, Level.CRITICAL) else logging.INFO
                log.log(level, "Guard: %s: %s", event.level, event.text)
            case AlertCleared():
                log.info("Guard: %s is calm again", event.resource)
            case GuardActed():
                log.warning("Guard: %s (%s)", event.text, event.reason or "as the mode wants it")
        self._emit(event)

    # -- inside

    async def _reload(self, model: str) -> None:
        try:
            await self._pool.load(model, None, override=True)
        except LayaError as error:
            log.debug("Loading '%s' again failed: %s", model, error)  # told by ModelFailed

    def _models(self) -> Iterator[ModelView]:
        for runtime in self._pool.runtimes:
            loaded = runtime.loaded
            if runtime.state is not ModelState.READY or loaded is None or runtime.retired:
                continue
            vram = on_gpu(loaded)
            yield ModelView(
                runtime.name,
                runtime.last_used_s,
                busy=not runtime.idle or self._pool.waiting(runtime.name) > 0,
                pinned=runtime.config.pin,
                in_vram=vram,
                in_ram=not vram or (loaded.offloaded_layers or 0) < (loaded.total_layers or 0),
            )
