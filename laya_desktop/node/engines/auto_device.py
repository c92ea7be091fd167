"""``device: auto``: all layers on the GPU, else as many as fit if that is measured faster, else the CPU.

Pure; decided once, at the load. What a number of layers takes and how fast it decodes is asked of the caller, who has
llama.cpp; this chooses and says why. A few layers alone are not even tried: every token would wait for both devices
and the way between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SAFE_SHARE = 0.95
"""Of a GPU's free memory: the driver takes some for itself, and other programs move."""
LEAST_SHARE = 0.2
"""Of the layers; fewer stay on the CPU."""
_MOST_TRIALS = 4


@dataclass(frozen=True, slots=True)
class Needs:
    """What a load with that many layers on the GPU takes there, and what is free there."""

    layers: int
    total_layers: int
    gpu_bytes: int | None
    scratch_bytes: int = 0
    """The part of it that does not depend on the layers."""
    free_bytes: int | None = None

    @property
    def fits(self) -> bool:
        """True also where nobody knows what is free."""
        if self.gpu_bytes is None or self.free_bytes is None:
            return True
        return self.gpu_bytes <= SAFE_SHARE * self.free_bytes


@dataclass(frozen=True, slots=True)
class Decision:
    """Layers on the GPU (0: none, so the CPU alone), and why."""

    layers: int
    note: str


Measure = Callable[[int], "float | None"]
"""Tokens per second with so many layers on the GPU, 0 for the CPU alone; None where it cannot be measured."""


def decide(wanted: Needs, ask: Callable[[int], Needs], measure: Measure | None = None) -> Decision:
    """Choose.

    Args:
        wanted: with all the layers that were asked for.
        ask: what fewer layers would take.
        measure: decides between a part on the GPU and the CPU; None: the part that fits counts as faster.
    """
    if not wanted.layers:
        return Decision(0, "No layers may go to the GPU, so auto chose the CPU.")
    if wanted.fits:
        if wanted.gpu_bytes is None or wanted.free_bytes is None:
            return Decision(wanted.layers, "auto chose the GPU.")
        return Decision(wanted.layers, f"auto chose the GPU: {_numbers(wanted)}.")
    short = f"The GPU has {_gib(wanted.free_bytes)} free and the model needs {_gib(wanted.gpu_bytes)}"
    layers = _fitting(wanted)
    for _ in range(_MOST_TRIALS):
        if layers < max(1, LEAST_SHARE * wanted.total_layers):
            break
        found = ask(layers)
        if found.fits:
            return _faster(short, layers, wanted.total_layers, measure)
        layers = min(layers - 1, _fitting(found))
    return Decision(0, f"{short}, so auto chose the CPU.")


def _faster(short: str, layers: int, total: int, measure: Measure | None) -> Decision:
    """The part or the CPU, by their rates; the one that has none loses, and the part where both have none."""
    put = f"so auto put {layers} of {total} layers on the GPU and the rest on the CPU."
    if measure is None:
        return Decision(layers, f"{short}, {put}")
    part, cpu = measure(layers), measure(0)
    why = f"{short}; not both could be measured"
    if part is not None and cpu is not None:
        why = f"{short}; {layers} of {total} layers there make {part:.1f} tokens/s and the CPU alone {cpu:.1f}"
    if part is not None and part > (cpu or 0.0):
        return Decision(layers, f"{why}, {put}")
    return Decision(0, f"{why}, so auto chose the CPU.")


def _fitting(needs: Needs) -> int:
    """Layers that fit, by proportion."""
    of_layers = (needs.gpu_bytes or 0) - needs.scratch_bytes
    room = SAFE_SHARE * (needs.free_bytes or 0) - needs.scratch_bytes
    if of_layers <= 0 or room <= 0:
        return 0
    return min(needs.layers - 1, int(needs.layers * room / of_layers))


def _numbers(needs: Needs) -> str:
    return f"the model needs {_gib(needs.gpu_bytes)} of {_gib(needs.free_bytes)} that are free"


def _gib(size_bytes: int | None) -> str:
    return f"{(size_bytes or 0) / 2**30:.1f} GiB"
