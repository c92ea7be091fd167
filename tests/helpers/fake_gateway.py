"""A node without models behind the real HTTP server: generations follow a script that the test controls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from laya_desktop.config.key_edits import with_new_admin_key, with_new_key, without_admin_key, without_key
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.balance import TargetLoad
from laya_desktop.node.engines.base import Delta, Finished, Generate, Prefilled, RequestEvent, Started
from laya_desktop.node.metrics import Metrics
from laya_desktop.node.records import RequestLog, RequestRecord
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState, Verdict
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, ModelSnapshot, NodeSnapshot, Proposal


@dataclass
class Script:
    """What generations do: the texts, and gates that hold them at a point until the test opens them."""

    texts: tuple[str, ...] = ("Hello", ", ", "world")
    finish_reason: str = "stop"
    admit_error: LayaError | None = None
    error_after: int | None = None
    """Fail after so many texts (0: before any, but after Started; -1: before Started)."""
    error: LayaError = field(
        default_factory=lambda: LayaError("The worker died.", hint="Load it again.", code="worker_died", status=503)
    )
    start_gate: asyncio.Event | None = None
    """Held in the queue until this is set."""
    text_gate: asyncio.Event | None = None
    """Held after the first text until this is set."""
    prompt_tokens: int = 7
    cached_tokens: int = 3


class FakeGeneration:
    """Follows the script; ``cancelled`` holds the reason once cancelled."""

    def __init__(self, record: RequestRecord, request: Generate, script: Script) -> None:
        self.record, self.request, self.script = record, request, script
        self.cancelled: str | None = None
        self.sent = 0
        self.over = asyncio.Event()
        self._cancel = asyncio.Event()

    def cancel(self, reason: str) -> None:
        if self.cancelled is None and not self.over.is_set():
            self.cancelled = reason
            self._cancel.set()

    async def _hold(self, gate: asyncio.Event | None) -> None:
        if gate is not None:
            waits = [spawn(gate.wait(), "gate"), spawn(self._cancel.wait(), "cancel")]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        else:
            await asyncio.sleep(0)
        if self.cancelled is not None:
            raise LayaError(f"The request was cancelled: {self.cancelled}.", code="cancelled", status=499)

    async def _events(self) -> AsyncIterator[RequestEvent]:
        s, record, rid = self.script, self.record, self.request.request_id
        try:
            await self._hold(s.start_gate)
            if s.error_after == -1:
                raise s.error
            record.dispatched_s = time.monotonic()
            yield Started(rid, slot_id=0, prompt_tokens=s.prompt_tokens, cached_tokens=s.cached_tokens)
            yield Prefilled(rid, prefill_s=0.01, prompt_tokens=s.prompt_tokens)
            for i, text in enumerate(s.texts):
                if s.error_after == i:
                    raise s.error
                await self._hold(s.text_gate if i == 1 else None)
                now_s = time.monotonic()
                record.first_token_s = record.first_token_s or now_s
                record.last_token_s, record.completion_tokens = now_s, i + 1
                self.sent += 1
                yield Delta(rid, text)
            if s.error_after == len(s.texts):
                raise s.error
            yield Finished(
                rid,
                s.finish_reason,
                prompt_tokens=s.prompt_tokens,
                completion_tokens=len(s.texts),
                cached_tokens=s.cached_tokens,
                prefill_s=0.01,
                decode_s=0.05,
            )
        finally:
            self.over.set()

    def __aiter__(self) -> AsyncIterator[RequestEvent]:
        return self._events()


class FakeGateway:
    """Satisfies ``server.gateway.Gateway``."""

    def __init__(self, config: NodeConfig, upstreams: object = None) -> None:
        self.config = config
        self.table = RoutingTable.compile(config)
        self.metrics = Metrics()
        self.upstreams = upstreams
        self.script = Script()
        self.scripts: dict[str, Script] = {}
        """By model, where one does something else than ``script``."""
        self.loads: dict[str, TargetLoad] = {}
        self.generations: list[FakeGeneration] = []
        self.timeouts_s: list[float] = []
        self.commands: list[tuple[object, ...]] = []
        self.command_error: LayaError | None = None
        self.log = RequestLog()
        self.records: list[RequestRecord] = []
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.subscribers = 0
        self._count = 0

    @property
    def snapshot(self) -> NodeSnapshot:
        models = tuple(ModelSnapshot(m.name, state=ModelState.READY) for m in self.config.models)
        return NodeSnapshot(seq=1, config=self.config, models=models, requests=self.log.snapshot(time.monotonic()))

    def open_record(self, method: str, path: str, route: str | None, target: str | None) -> RequestRecord:
        self._count += 1
        record = RequestRecord(f"req-{self._count}", method, path, route, target)
        self.records.append(record)
        self.log.add(record)
        return record

    def generate(self, record: RequestRecord, model: str, request: Generate, timeout_s: float) -> FakeGeneration:
        script = self.scripts.get(model, self.script)
        if script.admit_error is not None:
            raise script.admit_error
        generation = FakeGeneration(record, request, script)
        self.generations.append(generation)
        self.timeouts_s.append(timeout_s)
        return generation

    def target_load(self, name: str) -> TargetLoad:
        return self.loads.get(name, TargetLoad())

    def _command(self, *command: object) -> None:
        if self.command_error is not None:
            raise self.command_error
        self.commands.append(command)

    def undo_guard_action(self, action_id: str) -> str:
        self._command("undo_guard_action", action_id)
        return "Batch requests wait"

    async def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> None:
        self._command("load", name, device, *((True,) if override else ()))

    async def unload_model(self, name: str) -> None:
        self._command("unload", name)

    async def estimate_model(self, model: ModelConfig, device: str | None) -> MemoryEstimate:
        self._command("estimate", model.name, device, model.max_seq_len)
        return MemoryEstimate(Verdict.WILL_NOT_FIT, "Needs 9 GiB.", proposal=Proposal("q8_0", text="kv_type q8_0"))

    async def clear_cache(self, name: str) -> None:
        self._command("clear_cache", name)

    async def find_models(self) -> tuple[FoundModel, ...]:
        self._command("find_models")
        return (FoundModel("/models/a.gguf", "a", "LM Studio", 1000),)

    def cancel_request(self, request_id: str) -> bool:
        self._command("cancel", request_id)
        found = [g for g in self.generations if g.request.request_id == request_id and not g.over.is_set()]
        for generation in found:
            generation.cancel("cancelled by the user")
        return bool(found)

    async def apply_config(self, config: NodeConfig, source: str) -> None:
        self._command("apply", source)
        self.table = RoutingTable.compile(config)
        self.config = config

    async def create_api_key(self, name: str) -> str:
        self._command("create_api_key", name)
        self.config, key = with_new_key(self.config, name, date(2026, 12, 1))
        return key

    async def revoke_api_key(self, name: str) -> None:
        self._command("revoke_api_key", name)
        self.config = without_key(self.config, name)

    async def create_admin_key(self) -> str:
        self._command("create_admin_key")
        self.config, key = with_new_admin_key(self.config, date(2026, 12, 1))
        return key

    async def revoke_admin_key(self) -> None:
        self._command("revoke_admin_key")
        self.config = without_admin_key(self.config)

    async def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Path:
        self._command("save", overwrite)
        return path or Path("app.yaml")

    async def diff_config(self) -> str:
        self._command("diff")
        return "--- app.yaml\n+++ app.yaml (unsaved)\n"

    async def subscribe(self) -> AsyncIterator[Event]:
        self.subscribers += 1
        try:
            while True:
                yield await self.events.get()
        finally:
            self.subscribers -= 1
