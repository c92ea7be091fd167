"""Which of the models that were found suits this machine for a start. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from laya_desktop.state.snapshot import FoundModel, NodeSnapshot

_OVERHEAD = 1.3
"""A loaded model takes about so much of its file's size: weights, a context of 4096 tokens, buffers."""
_SHARE_OF_RAM = 0.5
"""On the CPU a larger model is slow, and other programs need the memory."""


def room_bytes(snapshot: NodeSnapshot) -> int:
    """What a first model may take: what is free on the best GPU, else half of the free RAM; 0: not known yet."""
    machine = snapshot.machine
    free = [
        gpu.vram_total_bytes - gpu.vram_used_bytes
        for gpu in machine.gpus
        if snapshot.capability.gpu_available and gpu.vram_total_bytes is not None and gpu.vram_used_bytes is not None
    ]
    reserve = snapshot.config.guard.reserve_vram if snapshot.config else 0
    on_gpu = max(free, default=0) - reserve
    on_cpu = int((machine.ram_available_bytes or 0) * _SHARE_OF_RAM)
    return max(on_gpu, on_cpu, 0)


def first_model(found: Iterable[FoundModel], snapshot: NodeSnapshot) -> FoundModel | None:
    """The largest chat model that fits with ease; None: there is none."""
    room = room_bytes(snapshot)
    fitting = [
        m
        for m in found
        if m.problem is None
        and m.engine == "llama_cpp"
        and m.size_bytes * _OVERHEAD <= room
        and (m.info is None or m.info.has_chat_template)
    ]
    return max(fitting, key=lambda m: m.size_bytes, default=None)


def places(found: Iterable[FoundModel]) -> list[tuple[str, int]]:
    """(program, how many of its models can be loaded), most first."""
    return Counter(m.source for m in found if m.problem is None).most_common()
