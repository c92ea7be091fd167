"""Small adapters (LoRA) made for tests, by default for the demo model: noise in some of its attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.gguf_writer import write_gguf

DEMO_WIDTH = 576
_F32 = 0


def write_adapter(
    path: Path,
    tensors: tuple[str, ...] = ("blk.0.attn_q.weight", "blk.0.attn_output.weight", "blk.3.attn_output.weight"),
    *,
    architecture: str = "llama",
    width: int = DEMO_WIDTH,
    rank: int = 2,
    metadata: dict[str, object] | None = None,
) -> Path:
    """Write an adapter of square matrices of that width, each as two thin ones of random numbers."""
    values = {"general.type": "adapter", "general.architecture": architecture, "adapter.type": "lora"}
    names = [f"{name}.lora_{side}" for name in tensors for side in "ab"]
    shapes = [(width, rank) if name.endswith("a") else (rank, width) for name in names]
    size = 4 * width * rank
    told = tuple((name, shape, _F32, size) for name, shape in zip(names, shapes, strict=True))
    write_gguf(path, values | {"adapter.lora.alpha": float(rank)} | (metadata or {}), told, data_bytes=0)
    path.write_bytes(path.read_bytes() + _values(len(names), rank * width).tobytes())
    return path


def change(tensors: int, *, width: int, rank: int = 2) -> list[Any]:
    """What such an adapter adds to each of its matrices (outputs, inputs) at scale 1."""
    values = _values(2 * tensors, rank * width)
    pairs = zip(values[::2], values[1::2], strict=True)
    return [b.reshape(width, rank) @ a.reshape(rank, width) for a, b in pairs]


def _values(count: int, size: int) -> Any:
    return np.random.default_rng(7).standard_normal((count, size)).astype("<f4")
