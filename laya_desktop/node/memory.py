"""What a model would take before it is loaded, and whether that fits. Any event loop; llama.cpp runs elsewhere.

The figures are llama.cpp's own, from a dry run in a throwaway process. The verdict is pure. An estimate that nobody
can make is ``unknown`` with the reason, never a number.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from laya_desktop.config.schema import ModelConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.dry_runs import Ask, ask_worker
from laya_desktop.node.engines.base import DryRunDone, EngineLoadError
from laya_desktop.node.engines.fake import parse_path
from laya_desktop.node.params import params_at
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import MemoryEstimate

TIGHT_FRACTION = 0.9
"""Above this share of what is free a load is called tight: other programs move, and estimates leave out some MB."""
_CONTEXT_STEP = 256
_Q8_SHARE = 34 / 64
"""Of f16: ggml's q8_0 stores 32 values in 34 bytes."""


async def estimate(
    model: ModelConfig, path: Path, device: str, free_bytes: int | None, dry_run: Ask = ask_worker
) -> MemoryEstimate:
    """Estimate a load.

    Args:
        model: its settings; ``path`` and ``device`` win over the model's own.
        path: the resolved model file.
        device: ``auto``, ``cpu``, ``gpu`` or ``gpu:N``.
        free_bytes: what it may take on that device; None: unknown.
        dry_run: asks llama.cpp.
    """
    if model.engine == "fake":
        return _of_fake(str(path), free_bytes)
    try:
        answer = await dry_run(params_at(model, str(path), device))
    except LayaError as error:
        verdict = Verdict.WILL_NOT_FIT if error.code == "too_large" else Verdict.UNKNOWN
        return MemoryEstimate(verdict, str(error), device, free_bytes=free_bytes)
    can_quantise = model.engine == "llama_cpp" and model.kv_type == "f16" and model.flash_attention != "off"
    run = for_replicas(answer, model.replicas)
    return judge(run, model.batch_size, model.max_seq_len, free_bytes, can_quantise=can_quantise)


def for_replicas(run: DryRunDone, replicas: int) -> DryRunDone:
    """The figures of several processes: in RAM they share the mapped weights, on a GPU each holds its own."""
    if replicas == 1:
        return run
    weights = replicas if run.gpu_bytes is not None else 1
    return msgspec.structs.replace(
        run,
        weights_bytes=_times(run.weights_bytes, weights),
        kv_cache_bytes=_times(run.kv_cache_bytes, replicas),
        compute_bytes=_times(run.compute_bytes, replicas),
        gpu_bytes=_times(run.gpu_bytes, replicas),
    )


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _of_fake(path: str, free_bytes: int | None) -> MemoryEstimate:
    try:
        claimed = parse_path(path).memory_mib * 2**20
    except EngineLoadError as error:
        return MemoryEstimate(Verdict.UNKNOWN, error.message, "fake", free_bytes=free_bytes)
    if not claimed:
        return MemoryEstimate(Verdict.FITS, "The fake engine loads no model.", "fake", free_bytes=free_bytes)
    fits = free_bytes is None or claimed <= free_bytes
    verdict = Verdict.FITS if fits else Verdict.WILL_NOT_FIT
    free = "" if free_bytes is None else f"; {size(free_bytes)} are free"
    reason = f"The fake engine claims {size(claimed)}{free}."
    return MemoryEstimate(verdict, reason, "fake", weights_bytes=claimed, total_bytes=claimed, free_bytes=free_bytes)


def judge(
    run: DryRunDone, slots: int, max_seq_len: int, free_bytes: int | None, *, can_quantise: bool = False
) -> MemoryEstimate:
    """The verdict on a dry run's figures.

    On a GPU the part that lies there counts, and its driver's figure stands in where ``free_bytes`` is unknown.
    ``can_quantise``: the KV cache is f16 and may be q8_0 instead.
    """
    parts = (run.weights_bytes, run.kv_cache_bytes, run.compute_bytes)
    known = [p for p in parts if p is not None]
    on_gpu = run.gpu_bytes is not None
    if free_bytes is None and on_gpu:
        free_bytes = run.gpu_free_bytes
    found = MemoryEstimate(
        device=run.device,
        weights_bytes=run.weights_bytes,
        kv_cache_bytes=run.kv_cache_bytes,
        compute_bytes=run.compute_bytes,
        total_bytes=sum(known) if len(known) == len(parts) else None,
        free_bytes=free_bytes,
    )
    needed = run.gpu_bytes if on_gpu else found.total_bytes
    if needed is None:
        return replace(found, reason="llama.cpp did not say how much memory the model takes.")
    text = f"Needs {size(needed)} ({_parts_in_words(run)})"
    if free_bytes is None:
        return replace(found, reason=f"{text}; how much is free is not known.")
    if needed > free_bytes:
        over = f"{text}, {size(needed - free_bytes)} more than the {size(free_bytes)} that are free."
        way_out = _way_out(run, needed, slots, max_seq_len, free_bytes, can_quantise)
        return replace(found, verdict=Verdict.WILL_NOT_FIT, reason=f"{over} {way_out}")
    left = f"{text}; {size(free_bytes)} are free."
    if needed > TIGHT_FRACTION * free_bytes:
        return replace(found, verdict=Verdict.TIGHT, reason=f"{left} Little is left for anything else.")
    return replace(found, verdict=Verdict.FITS, reason=left)


def size(count_bytes: int) -> str:
    """Bytes for people: ``285 MiB``, ``3.4 GiB``."""
    return f"{count_bytes / 2**30:.1f} GiB" if count_bytes >= 2**30 else f"{count_bytes / 2**20:.0f} MiB"


def _parts_in_words(run: DryRunDone) -> str:
    named = (("weights", run.weights_bytes), ("KV cache", run.kv_cache_bytes), ("compute", run.compute_bytes))
    words = ", ".join(f"{name} {size(value)}" for name, value in named if value is not None)
    if run.gpu_bytes is None:
        return words
    return f"of {words}, with {run.offloaded_layers} of {run.total_layers} layers on the GPU"


def _way_out(run: DryRunDone, needed: int, slots: int, max_seq_len: int, free_bytes: int, can_quantise: bool) -> str:
    """What to change: a quantised cache, the largest context that would fit, else another model or device."""
    cache = run.kv_cache_bytes or 0
    share = 1.0 if run.gpu_bytes is None else (run.offloaded_layers or 0) / (run.total_layers or 1)
    per_token = share * cache / max_seq_len
    room = free_bytes - (needed - share * cache)
    fitting = int(room / per_token) // _CONTEXT_STEP * _CONTEXT_STEP if per_token > 0 and room > 0 else 0
    if fitting >= _CONTEXT_STEP:
        if can_quantise and needed - share * cache * (1 - _Q8_SHARE) <= free_bytes:
            other = f"or with max_seq_len {fitting:,} instead of {max_seq_len:,} for its {slots} slots"
            return f"It would fit with kv_type q8_0, {other}."
        return f"It would fit with max_seq_len {fitting:,} instead of {max_seq_len:,} for its {slots} slots."
    if run.gpu_bytes is not None:
        return "Offload fewer layers (gpu_layers), load on the CPU, or choose a smaller model or quantisation."
    return "Choose a smaller model or quantisation, or close other programs."
