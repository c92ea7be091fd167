"""Small adapters (LoRA) made for tests, by default for the demo model: noise in some of its attention."""

from __future__ import annotations

from pathlib import Path

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
    data = np.random.default_rng(7).standard_normal((len(names), rank * width)).astype("<f4")
    path.write_bytes(path.read_bytes() + data.tobytes())
    return path
