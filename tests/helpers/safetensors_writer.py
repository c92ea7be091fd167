"""Hugging Face model folders made for tests, without PyTorch: headers are real, tensors are zeros."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

_BYTES = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}


def write_safetensors(path: Path, tensors: dict[str, tuple[str, tuple[int, ...]]], *, cut_bytes: int = 0) -> Path:
    """Write a file of zeros.

    Args:
        path: where.
        tensors: dtype and shape by name.
        cut_bytes: bytes missing at the end.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = math.prod(shape) * _BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at - cut_bytes))
    return path


def write_model_folder(folder: Path, config: dict[str, object] | None = None, *, parts: int = 1) -> Path:
    """Write a whole model folder; ``parts``: files that the weights are in."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA | (config or {})))
    (folder / "tokenizer.json").write_text("{}")
    tensors = {"embed": ("BF16", (100, 64)), "norm": ("F32", (64,))}
    if parts == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    names = [f"model-{i:05d}-of-{parts:05d}.safetensors" for i in range(1, parts + 1)]
    for name in names:
        write_safetensors(folder / name, tensors)
    index = {"weight_map": {f"t{i}": name for i, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
