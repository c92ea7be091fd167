"""The response caches of all models beside the running answers: look up, record, forget. Node thread only.

An answer belongs to the model file and the settings it came from. The files' identities (path, size, time of change)
are read in the thread pool before each load and looked at once a second; a change forgets the model's answers, and
nothing is kept from a model whose file changed under it until it is loaded again. What is kept for how long is
``cache``'s matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laya_desktop.errors import LayaError
from laya_desktop.node.cache import CacheUse, ResponseCache, allowed, request_key
from laya_desktop.node.params import changed_load_keys

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import EngineParams, Generate, RequestEvent
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.state.snapshot import CacheSnapshot

LOOK_S = 1.0

FileIdentity = tuple[tuple[str, int, int], ...]
"""Path, bytes and time of change of every file that a load reads."""
OffLoop = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a blocking call in the thread pool."""


@dataclass(eq=False)
class _Kept:
    config: ModelConfig
    cache: ResponseCache
    files: FileIdentity | None = None
    loaded: bool = False
    suspended: bool = False
    """The file changed under the loaded model: its answers belong to neither."""


@dataclass(eq=False)
class _Recording:
    key: bytes
    kept: _Kept
    files: FileIdentity | None
    events: list[RequestEvent] = field(default_factory=list)


class AnswerCaches:
    """Looks answers up and keeps them."""

    def __init__(self, params: Callable[[ModelConfig], EngineParams], off_loop: OffLoop) -> None:
        self._params = params
        self._off_loop = off_loop
        self._models: dict[str, _Kept] = {}
        self._recordings: dict[str, _Recording] = {}
        self._looked_s = 0.0
        self._looking = asyncio.Lock()

    def configure(self, models: Iterable[ModelConfig]) -> None:
        """Follow the configuration; a setting that acts on loading forgets the model's answers."""
        wanted = {m.name: m for m in models}
        for name in self._models.keys() - wanted.keys():
            del self._models[name]
        for name, config in wanted.items():
            kept = self._models.get(name)
            if kept is None:
                self._models[name] = _Kept(config, ResponseCache(config.cache))
                continue
            if changed_load_keys(kept.config, config):
                kept.cache.clear()
            kept.config = config
            kept.cache.configure(config.cache)

    def find(self, record: RequestRecord, model: str, request: Generate, now_s: float) -> list[RequestEvent] | None:
        """The kept answer, or None; then the coming one is recorded where it may be kept. Sets ``record.cache``."""
        kept = self._models.get(model)
        if kept is None or not kept.cache.enabled:
            record.cache = None if record.cache_mode == "auto" else "bypass"
            return None
        use = CacheUse(read=False, keep=False) if kept.suspended else allowed(request, record.cache_mode)
        record.cache = "miss" if use.read else "bypass"
        if not use.read and not use.keep:
            return None
        key = request_key(request, record.caller)
        if use.read and (events := kept.cache.get(key, request.request_id, now_s)) is not None:
            record.cache = "hit"
            return events
        self._recordings[request.request_id] = _Recording(key, kept, kept.files)
        return None

    def note(self, request_id: str, event: RequestEvent) -> None:
        """An event of a running answer."""
        if (recording := self._recordings.get(request_id)) is not None:
            if not recording.events:
                recording.files = recording.kept.files  # a load may have come between admission and start
            recording.events.append(event)

    def finish(self, request_id: str, took_s: float, now_s: float) -> None:
        """The answer is over; keep it where it is whole and its model is still what it was."""
        recording = self._recordings.pop(request_id, None)
        if recording is None or not recording.kept.cache.enabled:
            return
        kept = recording.kept
        if not kept.suspended and recording.files == kept.files:
            kept.cache.put(recording.key, recording.events, took_s, now_s)

    def forget(self, request_id: str) -> None:
        """The request failed or was cancelled."""
        self._recordings.pop(request_id, None)

    async def before_load(self, model: str, params: EngineParams) -> None:
        """The model is about to be loaded with these files."""
        if (kept := self._models.get(model)) is None:
            return
        files = await self._off_loop(lambda: identity(params))
        if kept.suspended or files != kept.files:
            kept.cache.clear()
        kept.files, kept.suspended, kept.loaded = files, False, True

    def on_gone(self, model: str) -> None:
        """The model is not loaded any more."""
        if (kept := self._models.get(model)) is not None:
            kept.loaded = False

    async def look(self, now_s: float) -> None:
        """Once a second: forget what is too old, and the answers of models whose files changed."""
        if now_s - self._looked_s < LOOK_S or self._looking.locked():
            return
        async with self._looking:
            self._looked_s = now_s
            for kept in list(self._models.values()):
                kept.cache.expire(now_s)
                if kept.cache.enabled and (len(kept.cache) or kept.loaded):
                    await self._compare(kept)

    def clear(self, model: str) -> None:
        """Forget a model's answers."""
        if (kept := self._models.get(model)) is not None:
            kept.cache.clear()

    def snapshot(self, model: str) -> CacheSnapshot | None:
        """A picture of a model's cache; None while it is off."""
        kept = self._models.get(model)
        return kept.cache.snapshot() if kept is not None else None

    async def _compare(self, kept: _Kept) -> None:
        before = kept.files
        try:
            params = self._params(kept.config)
        except LayaError:
            return
        files = await self._off_loop(lambda: identity(params))
        if kept.files is not before or files == before:
            return
        kept.cache.clear()
        if kept.loaded:
            kept.suspended = True
        else:
            kept.files = files


def identity(params: EngineParams) -> FileIdentity:
    """What the model's files are now. Blocking; a missing file counts as one of its own kind."""
    return tuple(_stat(path) for path in _paths(params))


def _paths(params: EngineParams) -> list[str]:
    return [params.path, *(adapter.path for adapter in params.lora)]


def _stat(path: str) -> tuple[str, int, int]:
    try:
        status = Path(path).stat()
    except OSError:
        return path, -1, -1
    return path, status.st_size, status.st_mtime_ns
