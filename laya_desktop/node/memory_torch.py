"""What a model would take in PyTorch, from its files' headers. Blocking file reads, so a pool thread; no PyTorch here.

Weights and a full KV cache are counted. What PyTorch needs while it computes is not known before it does, so the
verdict leaves a fifth for it and says so.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines import gguf, hf_folder
from laya_desktop.node.engines.advice import GET_TORCH, TORCH_MISSING
from laya_desktop.node.engines.base import EngineLoadError
from laya_desktop.node.memory import size
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import MemoryEstimate

_MARGIN = 1.2
_UNPACKED_CPU, _UNPACKED_GPU = 4, 2
"""Bytes of one parameter of a GGUF, which transformers unpacks."""


@dataclass(frozen=True)
class Needs:
    """Bytes for the weights and for one token of context; None: unknown."""

    weights_bytes: int
    token_bytes: int | None
    context_length: int | None


def installed() -> bool:
    """True where PyTorch and transformers are there; neither is imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


def estimate(model: ModelConfig, path: Path, device: str, free_bytes: int | None) -> MemoryEstimate:
    """Estimate a load on a device against what is free there."""
    if not installed():
        reason = f"{TORCH_MISSING} {GET_TORCH}"
        return MemoryEstimate(Verdict.UNKNOWN, reason, device, free_bytes=free_bytes)
    try:
        needs = _of_gguf(path, device) if path.suffix.lower() == ".gguf" else _of_folder(path)
    except EngineLoadError as error:
        return MemoryEstimate(Verdict.UNKNOWN, f"{error.message} {error.hint or ''}".strip(), device)
    return judge(needs, model.batch_size, model.max_seq_len, device, free_bytes)


def judge(needs: Needs, slots: int, max_seq_len: int, device: str, free_bytes: int | None) -> MemoryEstimate:
    """The verdict, in words."""
    tokens = slots * min(max_seq_len, needs.context_length or max_seq_len)
    cache = needs.token_bytes * tokens if needs.token_bytes is not None else None
    total = needs.weights_bytes + (cache or 0)
    found = MemoryEstimate(
        device=device,
        weights_bytes=needs.weights_bytes,
        kv_cache_bytes=cache,
        total_bytes=total if cache is not None else None,
        free_bytes=free_bytes,
    )
    full = "a KV cache of unknown size" if cache is None else f"at most {size(cache)} of KV cache"
    text = f"Weights take {size(needs.weights_bytes)} and {full}; PyTorch's own working memory comes on top"
    if free_bytes is None:
        return replace(found, reason=f"{text}. How much is free is not known.")
    free = f"{size(free_bytes)} are free."
    if total > free_bytes:
        way_out = "Lower max_seq_len or batch_size, or choose a smaller model or a quantised GGUF."
        return replace(found, verdict=Verdict.WILL_NOT_FIT, reason=f"{text}. Only {free} {way_out}")
    if cache is None:
        return replace(found, reason=f"{text}. {free}")
    verdict = Verdict.TIGHT if total * _MARGIN > free_bytes else Verdict.FITS
    return replace(found, verdict=verdict, reason=f"{text}. {free}")


def _of_folder(path: Path) -> Needs:
    folder = hf_folder.check(path)
    elements = folder.elements
    weights = sum(count * hf_folder.DTYPE_BYTES.get(dtype, 4) for dtype, count in elements.items())
    return Needs(weights, folder.kv_bytes_per_token, folder.context_length)


def _of_gguf(path: Path, device: str) -> Needs:
    found = gguf.check(path)
    head = found.head
    width = _UNPACKED_GPU if device.startswith("gpu") else _UNPACKED_CPU
    layers, heads = head.of_architecture("block_count"), head.of_architecture("attention.head_count")
    kv_heads = head.of_architecture("attention.head_count_kv") or heads
    embedding = head.of_architecture("embedding_length")
    token = None
    if layers and heads and kv_heads and embedding:
        token = 2 * layers * kv_heads * (embedding // heads) * width
    parameters = sum(h.parameters for h in found.headers)
    return Needs(parameters * width, token, head.of_architecture("context_length"))
