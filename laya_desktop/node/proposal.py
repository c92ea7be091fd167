"""Settings under which a model that does not fit would: candidates, the least loss first. Pure.

They are computed from one dry run, by proportion. That is exact enough to choose and not to promise, so whoever asks
has each candidate estimated in its turn and takes the first that holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from laya_desktop.state.snapshot import Proposal

STEP_TOKENS = 256
_Q8_SHARE, _Q4_SHARE = 34 / 64, 18 / 64
"""Of f16: ggml's q8_0 stores 32 values in 34 bytes, its q4_0 in 18."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a load takes, by what it is made of."""

    slots: int
    max_seq_len: int
    fixed_bytes: int
    """What settings do not change."""
    cache_bytes: int
    """The KV cache with all its slots full."""
    can_quantise: bool = False
    """The cache is f16 and may be quantised."""
    gpu_layers: int = 0
    """Layers on the GPU that they may leave; 0: none, or nothing is known of them."""
    layer_bytes: int = 0
    """One of them with its part of the cache."""


def candidates(shape: Shape, limit_bytes: int) -> Iterator[Proposal]:
    """Settings that come to no more than the limit, the least loss first.

    A q8_0 cache costs next to nothing; then up to half of the context, then speed (layers that leave the GPU), then
    slots, and at last both slots and context, with a q4_0 cache if nothing else will do.
    """
    share, kv_type = (_Q8_SHARE, "q8_0") if shape.can_quantise else (1.0, None)
    cache = shape.cache_bytes * share
    room = limit_bytes - shape.fixed_bytes
    if kv_type and cache <= room:
        yield _proposal(shape, kv_type)
    half = shape.max_seq_len / 2
    if half <= (tokens := _tokens(shape, room, cache)) < shape.max_seq_len:
        yield _proposal(shape, kv_type, max_seq_len=tokens)
    if shape.gpu_layers and shape.layer_bytes:
        over = shape.fixed_bytes + cache - limit_bytes
        layers = shape.gpu_layers - int(-(-over // shape.layer_bytes))
        if 0 < layers < shape.gpu_layers:
            yield _proposal(shape, kv_type, gpu_layers=layers)
    slots = int(room * shape.slots / cache) if cache > 0 and room > 0 else 0
    if 1 <= slots < shape.slots:
        yield _proposal(shape, kv_type, batch_size=slots)
    kinds = ((kv_type, share), ("q4_0", _Q4_SHARE)) if shape.can_quantise else ((kv_type, share),)
    for kind, part in kinds:
        one_slot = shape.cache_bytes * part / shape.slots
        if (tokens := _tokens(shape, room, one_slot)) >= STEP_TOKENS:
            yield _proposal(shape, kind, max_seq_len=tokens, batch_size=1)


def _tokens(shape: Shape, room: float, cache: float) -> int:
    """The context for which such a cache has room, at most the present one."""
    if cache <= 0 or room <= 0:
        return 0
    if cache <= room:
        return shape.max_seq_len
    return int(room * shape.max_seq_len / cache) // STEP_TOKENS * STEP_TOKENS


def _proposal(
    shape: Shape,
    kv_type: str | None,
    *,
    max_seq_len: int | None = None,
    batch_size: int | None = None,
    gpu_layers: int | None = None,
) -> Proposal:
    tokens = None if max_seq_len == shape.max_seq_len else max_seq_len
    slots = None if batch_size == shape.slots else batch_size
    words = [
        f"kv_type {kv_type}" if kv_type else "",
        f"max_seq_len {tokens:,} instead of {shape.max_seq_len:,}" if tokens else "",
        f"batch_size {slots} instead of {shape.slots}" if slots else "",
        f"gpu_layers {gpu_layers} instead of {shape.gpu_layers}" if gpu_layers else "",
    ]
    return Proposal(kv_type, tokens, slots, gpu_layers, ", ".join(word for word in words if word))
