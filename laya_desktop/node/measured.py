"""What workers were seen to hold, to correct later estimates of the same file and parameters.

The memory is a small file of JSON: versioned, bounded, replaced in one piece. A file that cannot be read counts as
none: it is a convenience, and the next measurement writes it anew. Pool threads read and write it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from laya_desktop.node.engines.base import DryRunDone, EngineParams

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.runtime import ModelRuntime
    from laya_desktop.state.snapshot import ModelSnapshot

log = logging.getLogger(__name__)

VERSION = 1
KEPT = 256
LEAST, MOST = 0.97, 2.0
"""Shares of the computed figure between which a measurement is believed. Little is taken off: a worker that has not
met its longest prompt yet holds less than it will."""
NEWS = 1.01
"""Growth by which a worker's peak is worth writing down again."""
_MOST_FILE_BYTES = 1_000_000


def corrected(run: DryRunDone, measured_bytes: int | None) -> DryRunDone:
    """The figures with the worker's own part such that all of them come to what was measured, within bounds."""
    parts = (run.weights_bytes, run.kv_cache_bytes, run.compute_bytes, run.other_bytes)
    if measured_bytes is None or run.gpu_bytes is not None or any(part is None for part in parts):
        return run
    computed = sum(part or 0 for part in parts)
    believed = min(max(measured_bytes, round(LEAST * computed)), round(MOST * computed))
    return msgspec.structs.replace(run, other_bytes=max(0, (run.other_bytes or 0) + believed - computed))


def key_of(params: EngineParams, identity: Hashable) -> str:
    """Names a load on the CPU by the file's identity and what decides how much memory it takes."""
    plain = msgspec.structs.replace(
        params, name="", path="", device="cpu", gpu_layers=None, threads=1, warmup=True, memory_limit_bytes=None
    )
    text = msgspec.json.encode(plain) + repr(identity).encode()
    return hashlib.sha256(text).hexdigest()[:32]


class MeasuredLoads:
    """Peaks by key, the newest last. Blocking; any thread."""

    def __init__(self, path: Path | None) -> None:
        """Remember where; None: for this process only."""
        self._path = path
        self._lock = threading.Lock()
        self._known: OrderedDict[str, int] | None = None

    def get(self, key: str) -> int | None:
        """The most that such a worker held."""
        with self._lock:
            return self._read().get(key)

    def add(self, key: str, held_bytes: int) -> None:
        """Note what a worker holds; the most counts."""
        with self._lock:
            known = self._read()
            known[key] = max(held_bytes, known.get(key, 0))
            known.move_to_end(key)
            while len(known) > KEPT:
                known.popitem(last=False)
            self._write(known)

    def _read(self) -> OrderedDict[str, int]:
        if self._known is None:
            self._known = OrderedDict()
            if self._path is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._known.update(_parse(self._path))
        return self._known

    def _write(self, known: OrderedDict[str, int]) -> None:
        if self._path is None:
            return
        beside = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"version": VERSION, "peaks": known}), encoding="utf-8")
            beside.replace(self._path)
        except OSError as error:
            log.info("What a worker holds is not remembered beyond this run: %s", error)
            self._path = None


def _parse(path: Path) -> dict[str, int]:
    if path.stat().st_size > _MOST_FILE_BYTES:
        raise ValueError("too large")
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("version") != VERSION or not isinstance(data.get("peaks"), dict):
        raise ValueError("another version")
    peaks = data["peaks"].items()
    found = [(k, v) for k, v in peaks if isinstance(k, str) and type(v) is int and v > 0]
    return dict(found[-KEPT:])


class PeakWatch:
    """Tells which workers' peaks are news: on the CPU, idle, and with tokens in their cache, so that they decoded.

    Several replicas share the mapped weights, so that their sum says little; they are left out.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, int]] = {}

    def news(self, runtimes: Iterable[ModelRuntime], models: Iterable[ModelSnapshot]) -> list[tuple[ModelConfig, int]]:
        """Settings as loaded, with the bytes that one worker holds."""
        by_name = {runtime.name: runtime for runtime in runtimes}
        found = []
        for model in models:
            runtime = by_name.get(model.name)
            config, loaded = (runtime.loaded_config, runtime.loaded) if runtime else (None, None)
            if config is None or loaded is None or loaded.device != "CPU" or config.engine != "llama_cpp":
                continue
            decoded = any(slot.kv_cache_tokens for slot in model.slots)
            if config.replicas != 1 or model.running or not decoded or model.pid is None or not model.rss_bytes:
                continue
            pid, told_bytes = self._told.get(model.name, (0, 0))
            if pid != model.pid or model.rss_bytes >= NEWS * told_bytes:
                self._told[model.name] = (model.pid, model.rss_bytes)
                found.append((config, model.rss_bytes))
        return found
