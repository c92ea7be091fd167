"""Opening a model and its context, really or as a dry run. Worker only.

On the CPU the device list is empty rather than the layers zero: a GPU build would otherwise still send large products
to the GPU.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import gguf, llama_adapters, llama_context, llama_library
from laya_desktop.node.engines.advice import GET_BACKEND, GET_GPU, NO_BACKEND, NO_GPU, OR_CPU
from laya_desktop.node.engines.base import Device, EngineLoadError, EngineParams, ProgressSink
from laya_desktop.node.engines.llama_adapters import Adapters
from laya_desktop.node.engines.llama_log import LoadLog

_ALL_LAYERS = -1
_MOST_CELLS = 2**26
"""llama.cpp's bookkeeping alone takes some 50 bytes a cell, in a dry run too; beyond this it asks for gigabytes."""


_LOAD_MODES = {
    (True, False): lib.LLAMA_LOAD_MODE_AUTO,
    (True, True): lib.LLAMA_LOAD_MODE_MMAP_MLOCK,
    (False, False): lib.LLAMA_LOAD_MODE_NONE,
    (False, True): lib.LLAMA_LOAD_MODE_MLOCK,
}
"""By (mmap, mlock). AUTO is llama.cpp's own default, which maps where the device can."""


@dataclass(frozen=True)
class Placement:
    """Where a model goes. An empty device list is the CPU."""

    handles: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()
    gpu_layers: int = 0
    note: str | None = None


@dataclass
class OpenModel:
    """A model with its context, and what the log said. ``close`` frees both."""

    model: ctypes.c_void_p
    context: ctypes.c_void_p
    placement: Placement
    log: LoadLog
    adapters: Adapters = field(default_factory=Adapters)
    encodes: bool = False
    """It makes vectors of whole texts and can do nothing else."""

    def close(self) -> None:
        """Free the context, then the model."""
        lib.llama_free(self.context)
        lib.llama_model_free(self.model)

    @property
    def context_tokens(self) -> int:
        """What one sequence may hold."""
        if not self.encodes:
            return int(lib.llama_n_ctx_seq(self.context))
        return min(int(lib.llama_n_ubatch(self.context)), int(lib.llama_model_n_ctx_train(self.model)))

    @property
    def kv_cache_bytes(self) -> int | None:
        """Of all sequences; none for an encoder."""
        return self.log.kv_cache_bytes or (0 if self.encodes else None)

    @property
    def compute_bytes(self) -> int | None:
        """Scratch and output buffers.

        An encoder's first text makes llama.cpp give each of its tokens a row of logits, which nobody reads and no log
        line tells before: 60 MB for BERT's 512 tokens, gigabytes for thousands of tokens and a large vocabulary.
        """
        told = self.log.compute_bytes
        if not self.encodes or told is None:
            return told
        return told + self.context_tokens * int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))) * 4

    @property
    def weights_bytes(self) -> int:
        """All tensors, wherever they lie, and the adapters.

        The buffers in the log add up to more than is needed: mapped ranges reach from the first tensor to the last, and
        what was repacked for the CPU counts in both forms, though its mapped pages can go.
        """
        return int(lib.llama_model_size(self.model)) + self.adapters.size_bytes

    @property
    def offloaded_layers(self) -> int:
        """As llama.cpp reports it, not as requested."""
        return self.log.offloaded_layers or 0

    @property
    def total_layers(self) -> int:
        """Layers that could be offloaded: the model's, and the output layer."""
        return self.log.offloadable_layers or int(lib.llama_model_n_layer(self.model)) + 1

    @property
    def gpu_bytes(self) -> int | None:
        """Memory needed on the GPUs together, None without one; for a dry run, whose log does not tell where what lies.

        A little too much: llama.cpp keeps the input embedding in RAM.
        """
        if not self.placement.devices:
            return None
        share = self.offloaded_layers / self.total_layers
        cache = self.log.kv_cache_bytes or 0
        scratch = sum(self.log.compute_of(d.name) for d in self.placement.devices)
        return round(share * (self.weights_bytes + cache)) + scratch

    @property
    def gpu_free_bytes(self) -> int | None:
        """Free on those GPUs together, None where one of them does not tell."""
        free = [d.free_bytes for d in self.placement.devices]
        return sum(f for f in free if f) if free and all(free) else None

    @property
    def device_name(self) -> str:
        """The devices that hold weights, e.g. ``CUDA0 NVIDIA GeForce RTX 3090``; ``CPU`` where none does."""
        used = [d for d in self.placement.devices if d.name in self.log.weights] if self.offloaded_layers else []
        return " + ".join(f"{d.name} {d.description}" for d in used) or "CPU"


def place(params: EngineParams) -> Placement:
    """Decide the device as far as it can be decided without the model. ``auto`` prefers the GPU.

    Raises:
        EngineLoadError: a GPU was asked for and there is none, or not that one.
    """
    if params.device == "cpu":
        return Placement()
    found = llama_library.gpus() if lib.llama_supports_gpu_offload() else []
    if not found:
        why, hint = (NO_GPU, GET_GPU) if lib.llama_supports_gpu_offload() else (NO_BACKEND, GET_BACKEND)
        if params.device == "auto":
            return Placement(note=f"{why}, so auto chose the CPU.")
        message = f"Model '{params.name}' is set to device {params.device}. {why}."
        raise EngineLoadError(message, f"{hint} {OR_CPU}", "no_gpu")
    note = "auto chose the GPU." if params.device == "auto" else None
    if params.device.startswith("gpu:"):
        index = int(params.device[4:])
        if index >= len(found):
            names = ", ".join(f"gpu:{i} is {d.name} {d.description}" for i, (_, d) in enumerate(found))
            raise EngineLoadError(f"There is no {params.device} for model '{params.name}'.", f"{names}.", "no_gpu")
        found = [found[index]]
    layers = _ALL_LAYERS if params.gpu_layers is None else params.gpu_layers
    return Placement(tuple(h for h, _ in found), tuple(d for _, d in found), layers, note)


def open_model(
    params: EngineParams, placement: Placement, progress: ProgressSink | None = None, *, dry: bool = False
) -> OpenModel:
    """Load the model and make its context; a dry run allocates nothing and reads no weights.

    Raises:
        EngineLoadError: with the reason and the way out.
    """
    file = gguf.check(params.path)
    path, adapters = str(file.path), llama_adapters.check(params.lora, file)
    _check_numbers(params)
    with llama_library.recorded_log() as log:
        devices = (ctypes.c_void_p * (len(placement.handles) + 1))(*placement.handles, None)
        model_params = _model_params(params, placement, devices, dry)

        @lib.llama_progress_callback  # type: ignore[untyped-decorator]
        def on_progress(value: float, _user_data: object) -> bool:
            if progress is not None:
                progress(value)
            return True

        model_params.progress_callback = on_progress
        model = lib.llama_model_load_from_file(path.encode(), model_params)
        if not model:
            raise _load_error(path, log)
        if not dry:
            try:
                adapters = llama_adapters.load(adapters, model, log)
            except EngineLoadError:
                lib.llama_model_free(model)
                raise
        try:
            context, encodes = llama_context.open_context(params, model, path, log)
        except EngineLoadError:
            lib.llama_model_free(model)
            raise
        adapters.apply(context)
        return OpenModel(model, context, placement, log, adapters, encodes)


def _model_params(wanted: EngineParams, placement: Placement, devices: ctypes.Array[ctypes.c_void_p], dry: bool) -> Any:
    params = lib.llama_model_default_params()
    params.devices = ctypes.cast(devices, ctypes.c_void_p)
    params.n_gpu_layers = placement.gpu_layers
    params.load_mode = _LOAD_MODES[wanted.mmap, wanted.mlock]
    if dry:
        params.no_alloc = True
        params.load_mode = lib.LLAMA_LOAD_MODE_NONE
    return params


def _check_numbers(params: EngineParams) -> None:
    most = int(lib.llama_max_parallel_sequences())
    if params.slots > most:
        raise EngineLoadError(
            f"Model '{params.name}' wants {params.slots} slots; llama.cpp allows {most}.",
            f"Set batch_size to {most} or less.",
        )
    if params.slots * params.max_seq_len > _MOST_CELLS:
        raise EngineLoadError(
            f"{params.slots} slots of {params.max_seq_len:,} tokens are more than {_MOST_CELLS:,} in all.",
            "Lower max_seq_len or batch_size.",
            "too_large",
        )


def _load_error(path: str, log: LoadLog) -> EngineLoadError:
    reason = log.reason or "llama.cpp gave no reason"
    if "unknown model architecture" in reason:
        return EngineLoadError(
            f"{path} cannot be loaded: {reason}, says llama.cpp {llama_library.version()}.",
            "Take a model of an architecture that this version knows, or update Laya Desktop.",
            "unsupported_architecture",
        )
    if "allocate" in reason:
        return EngineLoadError(
            f"{path} does not fit: {reason}.",
            "Choose a smaller model or quantisation, or offload fewer layers.",
            "too_large",
        )
    return EngineLoadError(f"{path} cannot be loaded: {reason}.", "Download it again, or take another version.")
