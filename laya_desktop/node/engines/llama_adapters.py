"""Adapters (LoRA) of a llama.cpp model: checked by their headers, loaded with it, set on each context. Worker only.

llama.cpp plans its graphs by the adapters that a model has, so they are loaded before the first context. They belong to
the model, which frees them; a context only says which of them act, and how strongly.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import gguf
from laya_desktop.node.engines.base import Adapter, EngineLoadError

if TYPE_CHECKING:
    from laya_desktop.node.engines.gguf import ModelFile
    from laya_desktop.node.engines.llama_log import LoadLog

_WRONG_BASE = "Take an adapter that was made for this very model, or remove it from lora."


@dataclass(frozen=True)
class Adapters:
    """A model's adapters. ``handles`` is empty in a dry run, which reads no weights."""

    wanted: tuple[Adapter, ...] = ()
    handles: tuple[Any, ...] = ()
    size_bytes: int = 0

    def apply(self, context: ctypes.c_void_p) -> None:
        """Let them act in a context of their model."""
        if not self.handles:
            return
        count = len(self.handles)
        handles = (lib.llama_adapter_lora_p_ctypes * count)(*self.handles)
        scales = (ctypes.c_float * count)(*(adapter.scale for adapter in self.wanted))
        lib.llama_set_adapters_lora(context, handles, count, scales)

    @property
    def notes(self) -> list[str]:
        """For people: which adapters act."""
        return [f"The adapter {a.path} acts with scale {a.scale:g}." for a in self.wanted]


def check(wanted: tuple[Adapter, ...], model: ModelFile) -> Adapters:
    """Every check that needs no weights; the result has no handles yet.

    Raises:
        EngineLoadError: one is missing, no adapter, or made for a model of another architecture or other tensors.
    """
    architecture = model.head.text("general.architecture")
    names = {tensor.name for header in model.headers for tensor in header.tensors}
    total = 0
    for adapter in wanted:
        header = gguf.check_adapter(adapter.path)
        total += sum(tensor.size_bytes or 0 for tensor in header.tensors)
        if (made_for := header.text("general.architecture")) != architecture:
            text = (
                f"{adapter.path} was made for a model of architecture {made_for}; {model.path.name} is {architecture}."
            )
            raise EngineLoadError(text, _WRONG_BASE, "bad_adapter")
        bases = (tensor.name.removesuffix(".lora_a").removesuffix(".lora_b") for tensor in header.tensors)
        if (strange := next((name for name in bases if name not in names), None)) is not None:
            text = f"{adapter.path} changes {strange}, which {model.path.name} does not have."
            raise EngineLoadError(text, _WRONG_BASE, "bad_adapter")
    return Adapters(wanted, (), total)


def load(checked: Adapters, model: ctypes.c_void_p, log: LoadLog) -> Adapters:
    """Read the adapters' weights into the model.

    Raises:
        EngineLoadError: llama.cpp refuses one, mostly because its shapes are those of a model of another size.
    """
    handles = []
    for adapter in checked.wanted:
        seen = len(log.errors)
        handle = lib.llama_adapter_lora_init(model, adapter.path.encode())
        if not handle:
            reason = next((line.partition("lora adapter: ")[2] for line in log.errors[seen:]), "")
            text = f"{adapter.path} cannot be applied: {reason or 'llama.cpp gave no reason'}."
            raise EngineLoadError(text, _WRONG_BASE, "bad_adapter")
        handles.append(handle)
    return Adapters(checked.wanted, tuple(handles), checked.size_bytes)
