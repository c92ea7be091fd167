"""One model's kept answers: exact matches, bounded by number, bytes and age. Pure: time comes in; node thread only.

An answer is the events that made it, so that it is replayed as a stream or whole, with everything the engine said. Only
answers that ended by themselves are kept. Who may see an answer is part of its key: callers never share any.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from laya_desktop.node.engines.base import Finished, Generate, RequestEvent
from laya_desktop.state.snapshot import CacheSnapshot

if TYPE_CHECKING:
    from laya_desktop.config.schema import CacheConfig
    from laya_desktop.node.records import CacheMode

ENTRY_OVERHEAD_BYTES = 512
"""Of an entry beside its answer: key, figures, the table's own memory (measured at about 400)."""

_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(list[RequestEvent])


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What a request may do with the cache."""

    read: bool
    keep: bool


def allowed(request: Generate, mode: CacheMode) -> CacheUse:
    """Deterministic requests (temperature 0, or a seed) use the cache; others when the caller forces it."""
    if mode == "no_store" or request.task != "answer":
        return CacheUse(read=False, keep=False)
    sampling = request.sampling
    fit = mode == "force" or sampling.temperature <= 0 or sampling.seed is not None
    return CacheUse(read=fit and mode != "refresh", keep=fit)


def request_key(request: Generate, caller: str) -> bytes:
    """A digest of everything that shapes the answer (all fields but the id) and of who asks."""
    canonical = msgspec.structs.replace(request, request_id="")
    digest = hashlib.sha256(_encode(canonical, order="deterministic"))
    digest.update(b"\0" + caller.encode())
    return digest.digest()


@dataclass(frozen=True, slots=True)
class _Entry:
    events: bytes
    took_s: float
    kept_s: float

    @property
    def size_bytes(self) -> int:
        return len(self.events) + ENTRY_OVERHEAD_BYTES


class ResponseCache:
    """Answers by key, the least recently used first to go."""

    def __init__(self, config: CacheConfig) -> None:
        self._config = config
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._bytes = 0
        self._hits = self._misses = 0
        self._saved_s = 0.0

    @property
    def enabled(self) -> bool:
        """False: nothing is looked up or kept."""
        return self._config.enabled

    def __len__(self) -> int:
        return len(self._entries)

    def configure(self, config: CacheConfig) -> None:
        """Follow the configuration; a smaller bound acts at once, switching off forgets everything."""
        self._config = config
        if not config.enabled:
            self.clear()
        self._shrink()

    def get(self, key: bytes, request_id: str, now_s: float) -> list[RequestEvent] | None:
        """The answer as events of the request of that id, or None; counts a hit or a miss."""
        entry = self._entries.get(key)
        if entry is not None and now_s - entry.kept_s >= self._config.ttl:
            self._drop(key)
            entry = None
        if entry is None:
            self._misses += 1
            return None
        self._entries.move_to_end(key)
        self._hits += 1
        self._saved_s += entry.took_s
        return [_as_answer_to(event, request_id) for event in _decoder.decode(entry.events)]

    def put(self, key: bytes, events: Sequence[RequestEvent], took_s: float, now_s: float) -> None:
        """Keep an answer that took so many seconds to generate; one that was cut or is too large is not kept."""
        last = events[-1] if events else None
        if not isinstance(last, Finished) or last.finish_reason == "cancelled":
            return
        entry = _Entry(_encode(events), took_s, now_s)
        if entry.size_bytes > self._config.max_bytes:
            return
        if key in self._entries:
            self._drop(key)
        self._entries[key] = entry
        self._bytes += entry.size_bytes
        self._shrink()

    def expire(self, now_s: float) -> None:
        """Forget what is too old."""
        for key in [k for k, e in self._entries.items() if now_s - e.kept_s >= self._config.ttl]:
            self._drop(key)

    def clear(self) -> None:
        """Forget all answers; the counters stay."""
        self._entries.clear()
        self._bytes = 0

    def snapshot(self) -> CacheSnapshot | None:
        """A frozen picture; None while it is off."""
        config = self._config
        if not config.enabled:
            return None
        return CacheSnapshot(
            enabled=True,
            entries=len(self._entries),
            bytes=self._bytes,
            max_entries=config.max_entries,
            max_bytes=config.max_bytes,
            hits=self._hits,
            misses=self._misses,
            saved_s=self._saved_s,
        )

    def _shrink(self) -> None:
        while self._entries and (len(self._entries) > self._config.max_entries or self._bytes > self._config.max_bytes):
            self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        self._bytes -= self._entries.pop(key).size_bytes


def _as_answer_to(event: RequestEvent, request_id: str) -> RequestEvent:
    if isinstance(event, Finished):
        return msgspec.structs.replace(event, request_id=request_id, prefill_s=None, decode_s=None)
    return msgspec.structs.replace(event, request_id=request_id)
