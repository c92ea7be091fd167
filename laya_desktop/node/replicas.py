"""The worker processes of one model as one: requests go to the least busy, and one may die alone. Node thread only.

Slots are numbered through: those of the second replica follow those of the first.
It decides nothing about queues; it says which requests a dead replica took with it, and starts it again when told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Finished, Refused, Started, Stats

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import EngineParams, Generate, Loaded, RequestEvent


class EngineHandle(Protocol):
    """The parent's end of a worker process."""

    @property
    def pid(self) -> int | None:
        """The worker's process id while it runs."""
        ...

    @property
    def stats(self) -> Stats | None:
        """Totals the worker last reported."""
        ...

    @property
    def log_tail(self) -> tuple[str, ...]:
        """The last lines the worker printed."""
        ...

    @property
    def ceiling(self) -> tuple[str, int, str] | None:
        """What keeps it below its share of RAM: kind, bytes, and why it is no stronger one."""
        ...

    async def start(self, params: EngineParams, on_progress: Callable[[float], None]) -> Loaded:
        """Start the worker and load. Raises LayaError."""
        ...

    def generate(self, request: Generate, sink: Callable[[RequestEvent], None]) -> None:
        """Give a request to a free slot; its events go to the sink."""
        ...

    def cancel(self, request_id: str) -> None:
        """Stop a request."""
        ...

    async def stop(self, grace_s: float) -> None:
        """End the worker."""
        ...


HandleFactory = Callable[[str, Callable[[LayaError | None], None]], EngineHandle]
"""Makes a handle for the model of that name; its second argument is called once when the worker dies unasked."""


@dataclass(eq=False)
class _Replica:
    handle: EngineHandle
    ready: bool = False
    progress: float = 0.0
    death: LayaError | None = None
    """Why it ended unasked."""
    running: dict[str, int] = field(default_factory=dict)
    """Slots taken, by request."""

    @property
    def used(self) -> int:
        """Slots that are taken."""
        return sum(self.running.values())


class ReplicaSet:
    """The workers of one model. Used once, like a handle: a new load is a new set."""

    def __init__(
        self,
        name: str,
        count: int,
        make_handle: HandleFactory,
        on_exit: Callable[[ReplicaSet, LayaError], None],
        on_lost: Callable[[ReplicaSet, LayaError, tuple[str, ...]], None],
    ) -> None:
        """Make the handles.

        Args:
            name: of the model.
            count: processes.
            make_handle: makes one.
            on_exit: the last one that served is gone.
            on_lost: one is gone with these requests, and others go on.
        """
        self._name = name
        self._make_handle = make_handle
        self._on_exit = on_exit
        self._on_lost = on_lost
        self._replicas = [self._make(i) for i in range(count)]
        self._coming: EngineHandle | None = None
        self._params: EngineParams | None = None
        self._each = 0
        self._tail: tuple[str, ...] = ()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of those that run."""
        return tuple(pid for r in self._replicas if (pid := r.handle.pid) is not None)

    @property
    def ceiling(self) -> tuple[str, int, str] | None:
        """What keeps each of them below its share of RAM: kind, bytes, and why it is no stronger one."""
        return next((c for r in self._replicas if (c := r.handle.ceiling) is not None), None)

    @property
    def log_tail(self) -> tuple[str, ...]:
        """The last lines of the one that died last, else of the first."""
        return self._tail or self._replicas[0].handle.log_tail

    @property
    def slots(self) -> int:
        """Slots of those that serve."""
        return self._each * sum(r.ready for r in self._replicas)

    @property
    def slot_tokens(self) -> dict[int, int]:
        """KV cache tokens held, by slot id, of those that serve."""
        held: dict[int, int] = {}
        for index, replica in enumerate(self._replicas):
            tokens = replica.handle.stats.slot_tokens if replica.ready and replica.handle.stats else ()
            if replica.ready:
                held |= {index * self._each + i: tokens[i] if i < len(tokens) else 0 for i in range(self._each)}
        return held

    @property
    def degraded(self) -> bool:
        """True while one that served is gone and others go on."""
        return not all(r.ready for r in self._replicas)

    async def start(self, params: EngineParams, on_progress: Callable[[float], None]) -> Loaded:
        """Start all of them and load. Raises LayaError when one fails; all are ended then."""
        self._params = params
        try:
            async with asyncio.TaskGroup() as group:
                starts = [group.create_task(self._start(r, params, on_progress)) for r in self._replicas]
        except BaseExceptionGroup as failures:
            await self.stop(0.0)
            raise failures.exceptions[0] from None
        except asyncio.CancelledError:
            await self.stop(0.0)
            raise
        loaded = [start.result() for start in starts]
        if (death := next((r.death for r in self._replicas if r.death is not None), None)) is not None:
            await self.stop(0.0)
            raise death
        first = loaded[0]
        self._each = first.slots
        for replica in self._replicas:
            replica.ready = True
        return msgspec.structs.replace(
            first, slots=self.slots, load_s=max(one.load_s for one in loaded), kv_cache_bytes=_total(loaded)
        )

    def has_room(self, slots: int) -> bool:
        """Whether one of them has so many slots free, or none ever had."""
        return slots > self._each or any(r.ready and self._each - r.used >= slots for r in self._replicas)

    def generate(self, request: Generate, sink: Callable[[RequestEvent], None]) -> None:
        """Give a request to the least busy one."""
        index, replica = min(((i, r) for i, r in enumerate(self._replicas) if r.ready), key=lambda pair: pair[1].used)
        replica.running[request.request_id] = request.n

        def on_event(event: RequestEvent) -> None:
            if isinstance(event, Started) and index:
                first = index * self._each
                more = tuple(slot_id + first for slot_id in event.more_slots)
                event = msgspec.structs.replace(event, slot_id=event.slot_id + first, more_slots=more)
            elif isinstance(event, Finished | Refused):
                replica.running.pop(request.request_id, None)
            sink(event)

        replica.handle.generate(request, on_event)

    def cancel(self, request_id: str) -> None:
        """Stop a request."""
        for replica in self._replicas:
            if request_id in replica.running:
                replica.handle.cancel(request_id)

    async def restore(self) -> None:
        """Start those that died again. Raises LayaError; the others go on."""
        assert self._params is not None
        for index, replica in enumerate(self._replicas):
            if replica.ready:
                continue
            fresh = self._make(index)
            self._coming = fresh.handle
            try:
                await fresh.handle.start(self._params, lambda _progress: None)
            finally:
                self._coming = None
            fresh.ready = True
            self._replicas[index] = fresh

    async def call_off(self) -> None:
        """End what ``restore`` is starting."""
        if self._coming is not None:
            await self._coming.stop(0.0)

    async def stop(self, grace_s: float) -> None:
        """End all of them."""
        for replica in self._replicas:
            replica.ready = False
        await asyncio.gather(*(r.handle.stop(grace_s) for r in self._replicas))

    def _make(self, index: int) -> _Replica:
        return _Replica(self._make_handle(self._name, lambda error: self._on_death(index, error)))

    async def _start(self, replica: _Replica, params: EngineParams, on_progress: Callable[[float], None]) -> Loaded:
        def note(progress: float) -> None:
            replica.progress = progress
            on_progress(sum(r.progress for r in self._replicas) / len(self._replicas))

        return await replica.handle.start(params, note)

    def _on_death(self, index: int, error: LayaError | None) -> None:
        dead = self._replicas[index]
        dead.death = error or LayaError(
            f"The worker of '{self._name}' ended unexpectedly.", hint="Load the model again.", code="worker_died"
        )
        dead.death.status, dead.death.retry_after_s = 503, dead.death.retry_after_s or 5.0
        if not dead.ready:
            return
        dead.ready, self._tail = False, dead.handle.log_tail
        if any(r.ready for r in self._replicas):
            lost, dead.running = tuple(dead.running), {}
            self._on_lost(self, dead.death, lost)
        else:
            self._on_exit(self, dead.death)


def _total(loaded: list[Loaded]) -> int | None:
    known = [one.kv_cache_bytes for one in loaded if one.kv_cache_bytes is not None]
    return sum(known) if len(known) == len(loaded) else None
