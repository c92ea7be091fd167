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
from laya_desktop.node.measured import corrected
from laya_desktop.node.params import params_at
from laya_desktop.node.proposal import Shape, candidates
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import MemoryEstimate, Proposal

TIGHT_FRACTION = 0.9
"""Above this share of what is free a load is called tight: other programs move, and estimates leave out some MB."""
MOST_TRIALS = 6
"""Candidates of a proposal that are estimated; each may take a dry run."""


async def estimate(
    model: ModelConfig,
    path: Path,
    device: str,
    free_bytes: int | None,
    dry_run: Ask = ask_worker,
    measured_bytes: int | None = None,
) -> MemoryEstimate:
    """Estimate a load.

    Args:
        model: its settings; ``path`` and ``device`` win over the model's own.
        path: the resolved model file.
        device: ``auto``, ``cpu``, ``gpu`` or ``gpu:N``.
        free_bytes: what it may take on that device; None: unknown.
        dry_run: asks llama.cpp.
        measured_bytes: the most that one worker was seen to hold with this file and these settings.
    """
    if model.engine == "fake":
        return _of_fake(str(path), free_bytes)
    try:
        answer = await dry_run(params_at(model, str(path), device))
    except LayaError as error:
        verdict = Verdict.WILL_NOT_FIT if error.code == "too_large" else Verdict.UNKNOWN
        return MemoryEstimate(verdict, str(error), device, free_bytes=free_bytes)
    run = for_replicas(corrected(answer, measured_bytes), model.replicas)
    found = replace(judge(run, free_bytes), measured_bytes=measured_bytes)
    if found.verdict is not Verdict.WILL_NOT_FIT:
        return found
    proposal = await _proposal(model, path, device, run, found.free_bytes or 0, dry_run)
    way_out = f"It would fit with {proposal.text}." if proposal else no_way_out(run)
    return replace(found, proposal=proposal, reason=f"{found.reason} {way_out}")


async def _proposal(
    model: ModelConfig, path: Path, device: str, run: DryRunDone, free_bytes: int, dry_run: Ask
) -> Proposal | None:
    """The first candidate that holds when it is estimated itself."""
    shape = shape_of(run, model)
    tried = 0
    for limit in (int(TIGHT_FRACTION * free_bytes), free_bytes):
        for candidate in candidates(shape, limit):
            tried += 1
            if tried > MOST_TRIALS:
                return None
            try:
                other = await dry_run(params_at(with_proposal(model, candidate), str(path), device))
            except LayaError:
                continue
            verdict = judge(for_replicas(other, model.replicas), free_bytes).verdict
            if verdict in (Verdict.FITS, Verdict.TIGHT):
                return candidate
    return None


def with_proposal(model: ModelConfig, proposal: Proposal) -> ModelConfig:
    """The model with the proposed settings."""
    keys = ("kv_type", "max_seq_len", "batch_size", "gpu_layers")
    return model.model_copy(update={k: v for k in keys if (v := getattr(proposal, k)) is not None})


def shape_of(run: DryRunDone, model: ModelConfig) -> Shape:
    """What the load is made of: on a GPU only the part that lies there."""
    cache, weights = run.kv_cache_bytes or 0, run.weights_bytes or 0
    if run.kv_cache_bytes == 0 and run.gpu_bytes is None:  # an encoder: its scratch grows with its longest text
        return Shape(1, model.max_seq_len, weights + (run.other_bytes or 0), run.compute_bytes or 0)
    can_quantise = model.engine == "llama_cpp" and model.kv_type == "f16" and model.flash_attention != "off"
    if run.gpu_bytes is None:
        fixed = weights + (run.compute_bytes or 0) + (run.other_bytes or 0)
        return Shape(model.batch_size, model.max_seq_len, fixed, cache, can_quantise)
    layers, total = run.offloaded_layers or 0, run.total_layers or 1
    there = round(layers / total * cache)
    layer = (weights + cache) // total
    return Shape(model.batch_size, model.max_seq_len, run.gpu_bytes - there, there, can_quantise, layers, layer)


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
        other_bytes=_times(run.other_bytes, replicas),
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


def judge(run: DryRunDone, free_bytes: int | None) -> MemoryEstimate:
    """The verdict on a dry run's figures.

    On a GPU the part that lies there counts, and its driver's figure stands in where ``free_bytes`` is unknown.
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
        total_bytes=sum(known) + (run.other_bytes or 0) if len(known) == len(parts) else None,
        free_bytes=free_bytes,
        other_bytes=run.other_bytes,
    )
    needed = run.gpu_bytes if on_gpu else found.total_bytes
    if needed is None:
        return replace(found, reason="llama.cpp did not say how much memory the model takes.")
    text = f"Needs {size(needed)} ({_parts_in_words(run)})"
    if free_bytes is None:
        return replace(found, reason=f"{text}; how much is free is not known.")
    if needed > free_bytes:
        over = f"{text}, {size(needed - free_bytes)} more than the {size(free_bytes)} that are free."
        return replace(found, verdict=Verdict.WILL_NOT_FIT, reason=over)
    left = f"{text}; {size(free_bytes)} are free."
    if needed > TIGHT_FRACTION * free_bytes:
        return replace(found, verdict=Verdict.TIGHT, reason=f"{left} Little is left for anything else.")
    return replace(found, verdict=Verdict.FITS, reason=left)


def size(count_bytes: int) -> str:
    """Bytes for people: ``285 MiB``, ``3.4 GiB``."""
    return f"{count_bytes / 2**30:.1f} GiB" if count_bytes >= 2**30 else f"{count_bytes / 2**20:.0f} MiB"


def _parts_in_words(run: DryRunDone) -> str:
    named = (
        ("weights", run.weights_bytes),
        ("KV cache", run.kv_cache_bytes),
        ("compute", run.compute_bytes),
        ("the worker itself", run.other_bytes),
    )
    words = ", ".join(f"{name} {size(value)}" for name, value in named if value is not None)
    if run.gpu_bytes is None:
        return words
    return f"of {words}, with {run.offloaded_layers} of {run.total_layers} layers on the GPU"


def no_way_out(run: DryRunDone) -> str:
    """What to do where no settings would fit."""
    if run.gpu_bytes is not None:
        return "No settings would make it fit: load on the CPU, or choose a smaller model or quantisation."
    return "No settings would make it fit: choose a smaller model or quantisation, or close other programs."
