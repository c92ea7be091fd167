"""What a load would take, and what the machine offers, without loading. Worker only.

llama.cpp's own dry run (``no_alloc``) makes the same decisions as a real load and allocates nothing.
"""

from __future__ import annotations

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import llama_library
from laya_desktop.node.engines.base import DryRunDone, EngineParams, Probed
from laya_desktop.node.engines.llama_model import OpenModel, Placement, open_model, place


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
    opened = open_model(params, place(params), dry=True)
    log = opened.log
    return DryRunDone(
        device=opened.device_name,
        weights_bytes=opened.weights_bytes,
        kv_cache_bytes=log.kv_cache_bytes,
        compute_bytes=log.compute_bytes,
        offloaded_layers=opened.offloaded_layers,
        total_layers=opened.total_layers,
        gpu_bytes=opened.gpu_bytes,
        gpu_free_bytes=opened.gpu_free_bytes,
    )


def place_where_it_fits(params: EngineParams) -> Placement:
    """The placement for a real load: ``auto`` takes the GPU only if everything fits into its free memory.

    Raises:
        EngineLoadError: as ``place``.
    """
    placement = place(params)
    if params.device != "auto" or not placement.handles:
        return placement
    opened = open_model(params, placement, dry=True)
    try:
        short = _short_of_memory(opened)
    finally:
        opened.close()
    if short is None:
        return placement
    return Placement(note=f"{short}, so auto chose the CPU.")


def _short_of_memory(opened: OpenModel) -> str | None:
    needed, free = opened.gpu_bytes, opened.gpu_free_bytes
    if needed is None or free is None or needed <= free:
        return None
    return f"The GPU has {free / 2**30:.1f} GiB free and the model needs {needed / 2**30:.1f} GiB"
