"""What llama.cpp says while it loads: the figures in it, and which lines are worth keeping. Pure; knows no llama_cpp.

llama.cpp reports what it really allocates and offloads only in its log. The patterns are of the pinned release; the
contract test compares the sums with the process's own growth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEBUG, INFO, WARN, ERROR, CONT = 1, 2, 3, 4, 5
_MIB = 1024**2
_BUFFER = re.compile(r":\s+(\S.*?)\s+(model|KV|RS|output|compute) buffer size\s*=\s*([\d.]+) MiB")
_CACHE = re.compile(r"^llama_(?:kv_cache|memory_recurrent)\w*: size =\s*([\d.]+) MiB \(")
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_CAUSAL = re.compile(r"\bcausal_attn\s*=\s*([01])")
_NOISE = re.compile(r"^(llama_model_loader: - (kv|type)|print_info: |load:   - |\.+$)|resolve_fused_ops: .*DeepSeek")


@dataclass
class LoadLog:
    """Figures and errors gathered from log lines."""

    weights: dict[str, float] = field(default_factory=dict)
    kv_cache: dict[str, float] = field(default_factory=dict)
    compute: dict[str, float] = field(default_factory=dict)
    output: dict[str, float] = field(default_factory=dict)
    cache_sizes: list[float] = field(default_factory=list)
    offloaded_layers: int | None = None
    offloadable_layers: int | None = None
    causal: bool = True
    """False: each token of the model sees those after it too."""
    errors: list[str] = field(default_factory=list)

    def note(self, line: str, *, error: bool) -> None:
        """Take what a line says. Sizes are per buffer, e.g. ``CPU_Mapped``, ``CUDA0``, in MiB."""
        if error:
            self.errors.append(line)
        if (match := _OFFLOADED.search(line)) is not None:
            self.offloaded_layers, self.offloadable_layers = int(match[1]), int(match[2])
        if (match := _CAUSAL.search(line)) is not None:
            self.causal = match[1] == "1"
        if (match := _CACHE.search(line)) is not None:
            self.cache_sizes.append(float(match[1]))
        if (match := _BUFFER.search(line)) is None:
            return
        name, kind, size = match[1], match[2], float(match[3])
        if kind in ("compute", "output"):  # said again when the graph is reserved again: the last one counts
            (self.compute if kind == "compute" else self.output)[name] = size
        else:  # a cache may have several parts on one device
            sizes = self.weights if kind == "model" else self.kv_cache
            sizes[name] = sizes.get(name, 0.0) + size

    @property
    def kv_cache_bytes(self) -> int | None:
        """Over all devices. A dry run has no buffers; there the caches' own sizes count."""
        return _total(self.kv_cache) or _total(dict(enumerate(self.cache_sizes)))

    @property
    def compute_bytes(self) -> int | None:
        """Scratch and output buffers over all devices."""
        return _total(self.compute, self.output)

    def compute_of(self, name: str) -> int:
        """Scratch buffer in the device's own memory (``CUDA0``; not ``CUDA_Host``, which is RAM)."""
        return round(self.compute.get(name, 0.0) * _MIB)

    @property
    def reason(self) -> str | None:
        """The most telling error line, without the function's name before it."""
        for line in self.errors:
            if "error loading model" in line or "unable to allocate" in line or "failed to allocate" in line:
                return line.partition(": ")[2].removeprefix("error loading model: ")
        return self.errors[0].partition(": ")[2] if self.errors else None


def worth_keeping(line: str) -> bool:
    """False for the dump of metadata and for progress dots: the tail that people see is 50 lines long."""
    return bool(line.strip()) and _NOISE.search(line) is None


def _total(*parts: Mapping[Any, float]) -> int | None:
    sizes = [v for part in parts for v in part.values()]
    return round(sum(sizes) * _MIB) if sizes else None


class LineJoiner:
    """Joins the pieces of llama.cpp's log into lines; a piece of level CONT continues the one before."""

    def __init__(self) -> None:
        self._pending = ""
        self._level = INFO

    def feed(self, level: int, text: str) -> list[tuple[int, str]]:
        """Lines that are complete now, with their level."""
        out: list[tuple[int, str]] = []
        if level != CONT:
            if self._pending:
                out.append((self._level, self._pending))
                self._pending = ""
            self._level = level
        *lines, self._pending = (self._pending + text).split("\n")
        out += [(self._level, line) for line in lines]
        return out
