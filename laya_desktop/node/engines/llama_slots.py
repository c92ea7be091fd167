"""Which slot a request takes, and what it need not compute again: the prefix cache. Worker only.

Each slot keeps the cells of its last request. A request continues in the free slot that shares the longest beginning
with it; where another slot holds more of it, in use or not, those cells are copied. Each slot has cells of its own
(``kv_unified`` is off), so a copy moves memory, all the slot's cells at the next decode: it pays from some tens of
tokens on. A sliding window or a recurrent state cannot be cut at the end of a prefix, so there nothing is copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import llama_cpp.llama_cpp as lib

COPY_GAIN_TOKENS, CELLS_PER_GAIN = 32, 256
"""Copying pays beyond so many tokens, and one more for so many cells of a slot: measured, a cell costs about 1/1000 of
the computation of its token."""


@dataclass(eq=False)
class Slot:
    """A sequence of the context. ``held`` are the tokens in its cells, in use or kept for reuse."""

    slot_id: int
    held: list[int] = field(default_factory=list)
    busy: bool = False
    freed_at: int = 0


@dataclass(frozen=True)
class Plan:
    """A request's slot, how many tokens it keeps, and the slot they are copied from where they are not its own."""

    slot: Slot
    keep: int
    donor: Slot | None = None


def shared(held: Sequence[int], tokens: Sequence[int]) -> int:
    """Length of the common prefix, at most all but one of ``tokens``: the last must be decoded for its logits."""
    most = min(len(held), len(tokens) - 1)
    if held[:most] == tokens[:most]:
        return most
    return next(i for i in range(most) if held[i] != tokens[i])


def plan(slots: Sequence[Slot], tokens: Sequence[int], gain: int | None, *, fresh: bool = False) -> Plan:
    """Choose. At least one slot must be free.

    Args:
        slots: all of them.
        tokens: the prompt.
        gain: tokens from which on a copy pays; None: copies are impossible.
        fresh: nothing may be kept.
    """
    free = [s for s in slots if not s.busy]
    spare = min(free, key=lambda s: (bool(s.held), s.freed_at))
    if fresh:
        return Plan(spare, 0)
    lengths = {s.slot_id: shared(s.held, tokens) for s in slots}
    own = max(free, key=lambda s: (lengths[s.slot_id], not s.held, -s.freed_at))
    keep = lengths[own.slot_id]
    if gain is None:
        return Plan(own, keep)
    donor = max(slots, key=lambda s: lengths[s.slot_id])
    most = lengths[donor.slot_id]
    if donor.busy and most - keep >= gain:
        return Plan(spare, most, donor)
    goes_on = 2 * (len(own.held) - keep) <= keep
    if not goes_on and keep >= gain and spare is not own:
        return Plan(spare, keep, own)  # another conversation with the same beginning: both are kept
    return Plan(own, keep)


class Cells:
    """The context's memory: trims and copies what slots hold."""

    def __init__(self, model: ctypes.c_void_p, context: ctypes.c_void_p, slots: int, max_seq_len: int) -> None:
        self._memory = lib.llama_get_memory(context)
        self._window = int(lib.llama_model_n_swa(model))
        stateful = bool(lib.llama_model_is_recurrent(model)) or bool(lib.llama_model_is_hybrid(model))
        can_cut = not self._window and not stateful and slots > 1
        self.gain = COPY_GAIN_TOKENS + max_seq_len // CELLS_PER_GAIN if can_cut else None
        """Tokens from which on a copy pays; None: prefixes cannot be copied."""

    def settle(self, made: Plan) -> None:
        """Bring the plan's slot into the state that it says; it may keep less."""
        if made.donor is not None:
            self.fork(made.donor, made.slot)
        self._trim(made.slot, made.keep)

    def fork(self, source: Slot, target: Slot) -> None:
        """Copy everything that a slot holds. The memory itself moves at the next decode."""
        lib.llama_memory_seq_rm(self._memory, target.slot_id, -1, -1)
        lib.llama_memory_seq_cp(self._memory, source.slot_id, target.slot_id, -1, -1)
        target.held = list(source.held)

    def empty(self, slot: Slot) -> None:
        """Forget what a slot holds."""
        lib.llama_memory_seq_rm(self._memory, slot.slot_id, -1, -1)
        slot.held.clear()

    def clear(self) -> None:
        """Forget everything."""
        lib.llama_memory_clear(self._memory, True)

    def _trim(self, slot: Slot, keep: int) -> None:
        """Keep the first ``keep`` cells of the slot, or none where its memory cannot go back to there.

        A sliding window has forgotten what lies before it, and a recurrent state cannot be rewound at all.
        """
        if not slot.held:
            return
        first = int(lib.llama_memory_seq_pos_min(self._memory, slot.slot_id))
        reachable = first <= max(0, keep - self._window - 1) if self._window else first == 0
        if not (keep and reachable and lib.llama_memory_seq_rm(self._memory, slot.slot_id, keep, -1)):
            self.empty(slot)
        del slot.held[keep:]
