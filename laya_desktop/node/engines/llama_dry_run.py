"""What a load would take, and what the machine offers, without loading. Worker only.

llama.cpp's own dry run (``no_alloc``) makes the same decisions as a real load and allocates nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import gguf, llama_library, worker_os
from laya_desktop.node.engines.auto_device import Needs, decide
from laya_desktop.node.engines.base import DryRunDone, EngineParams, Probed
from laya_desktop.node.engines.llama_context import BATCH_TOKENS
from laya_desktop.node.engines.llama_model import OpenModel, Placement, open_model, place
from laya_desktop.node.engines.llama_repack import repacked_bytes, repacked_types

Rate = Callable[[EngineParams, Placement], "float | None"]
"""Tokens per second of a placement; None: it cannot be measured."""

_HALF_BYTES = 2
_ENTRY_BYTES, _ID_BYTES = 12, 4
"""Of a token of the vocabulary where one is drawn: each slot's samplers have a buffer for all, the engine one more."""


def probe() -> Probed:
    """The build and the devices.

    Raises:
        EngineLoadError: another version of llama-cpp-python is installed.
    """
    llama_library.initialise()
    devices = tuple(device for _, device in llama_library.devices())
    return Probed(llama_library.version(), bool(lib.llama_supports_gpu_offload()), devices)


def dry_run(params: EngineParams) -> DryRunDone:
    """What loading would allocate, by llama.cpp's own account.

    Raises:
        EngineLoadError: the load would fail; the same error as the load's.
    """
    llama_library.initialise()
    opened = open_model(params, place_where_it_fits(params), dry=True)
    return DryRunDone(
        device=opened.device_name,
        weights_bytes=opened.weights_bytes - (0 if opened.placement.devices else opened.adapters.size_bytes),
        kv_cache_bytes=opened.kv_cache_bytes,
        compute_bytes=opened.compute_bytes,
        offloaded_layers=opened.offloaded_layers,
        total_layers=opened.total_layers,
        gpu_bytes=opened.gpu_bytes,
        gpu_free_bytes=opened.gpu_free_bytes,
        other_bytes=_other_bytes(params, opened),
    )


def _other_bytes(params: EngineParams, opened: OpenModel) -> int | None:
    """RAM of a worker on the CPU besides weights, cache and buffers. Adapters are in it: replicas do not share them.

    Program, vocabulary and graphs are what this very process holds after the dry run, as a worker does after a load.
    """
    if opened.placement.devices:
        return None
    copies = repacked_bytes(gguf.check(params.path).headers, repacked_types(lib.llama_print_system_info().decode()))
    worker_os.return_memory()
    tokens = int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(opened.model)))
    drawing = tokens * (_ENTRY_BYTES * (params.slots + 1) + _ID_BYTES)
    return _resident_bytes() + copies + drawing + opened.adapters.size_bytes + _work_bytes(params, opened)


def _work_bytes(params: EngineParams, opened: OpenModel) -> int:
    """What the CPU backend takes for itself and llama.cpp does not account for.

    It converts one side of a product to the other's type. Without flash attention that is every head's attention over
    the whole context, for one batch; everything else is small.
    """
    if params.flash_attention != "off" or params.kv_type == "f32":
        return 0
    cells = min(params.max_seq_len, opened.context_tokens)
    return BATCH_TOKENS * cells * int(lib.llama_model_n_head(opened.model)) * _HALF_BYTES


def _resident_bytes() -> int:
    if sys.platform == "linux":  # psutil would be the larger part of what it measures: a worker has no need of it
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return int(psutil.Process().memory_info().rss)


def place_where_it_fits(params: EngineParams, measure: Rate | None = None) -> Placement:
    """The placement for a real load; ``auto`` is decided here, by dry runs.

    Args:
        params: how to load.
        measure: how fast a placement decodes; decides where only a part fits on the GPU. None: the part is taken.

    Raises:
        EngineLoadError: as ``place``.
    """
    placement = place(params)
    if params.device != "auto" or not placement.handles:
        return placement

    def needs(layers: int) -> Needs:
        opened = open_model(params, replace(placement, gpu_layers=layers), dry=True)
        try:
            scratch = sum(opened.log.compute_of(device.name) for device in placement.devices)
            return Needs(opened.offloaded_layers, opened.total_layers, opened.gpu_bytes, scratch, opened.gpu_free_bytes)
        finally:
            opened.close()

    def rate(layers: int) -> float | None:
        assert measure is not None
        return measure(params, replace(placement, gpu_layers=layers) if layers else Placement())

    decision = decide(needs(placement.gpu_layers), needs, rate if measure else None)
    if not decision.layers:
        return Placement(note=decision.note)
    return replace(placement, gpu_layers=decision.layers, note=decision.note)
