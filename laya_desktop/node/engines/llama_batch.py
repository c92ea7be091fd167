"""The batch of one decode call: tokens of several sequences at their positions. Worker only; reused every step."""

from __future__ import annotations

import ctypes

import llama_cpp.llama_cpp as lib


class Batch:
    """Arrays that llama.cpp reads in place, filled by slices: per-element writes would cost a millisecond a chunk."""

    def __init__(self, capacity: int, sequences: int) -> None:
        self.capacity = capacity
        self.size = 0
        self._token = (lib.llama_token * capacity)()
        self._pos = (lib.llama_pos * capacity)()
        self._one = (ctypes.c_int32 * capacity)(*[1] * capacity)
        self._ids = (lib.llama_seq_id * sequences)(*range(sequences))
        id_pointer = ctypes.POINTER(lib.llama_seq_id)
        width = ctypes.sizeof(lib.llama_seq_id)
        base = ctypes.addressof(self._ids)
        self._id_pointers = [ctypes.cast(base + i * width, id_pointer) for i in range(sequences)]
        self._seq = (id_pointer * capacity)()
        self._output = (ctypes.c_int8 * capacity)()
        self._raw = lib.llama_batch(
            n_tokens=0,
            token=ctypes.cast(self._token, ctypes.POINTER(lib.llama_token)),
            embd=None,
            pos=ctypes.cast(self._pos, ctypes.POINTER(lib.llama_pos)),
            n_seq_id=ctypes.cast(self._one, ctypes.POINTER(ctypes.c_int32)),
            seq_id=ctypes.cast(self._seq, ctypes.POINTER(id_pointer)),
            logits=ctypes.cast(self._output, ctypes.POINTER(ctypes.c_int8)),
        )

    @property
    def room(self) -> int:
        """Tokens that still fit."""
        return self.capacity - self.size

    def clear(self) -> None:
        """Begin a new batch."""
        self.size = 0

    def add(self, sequence: int, position: int, tokens: list[int], *, output: bool, every: bool = False) -> int:
        """Add consecutive tokens of a sequence; with ``output``, logits are made for the last one, or for ``every``.

        Returns the index of the last token, by which its logits are asked for.
        """
        start, end = self.size, self.size + len(tokens)
        self._token[start:end] = tokens  # type: ignore[assignment]
        self._pos[start:end] = [*range(position, position + len(tokens))]
        self._seq[start:end] = [self._id_pointers[sequence]] * len(tokens)
        self._output[start:end] = [int(every)] * len(tokens)
        self._output[end - 1] = output
        self.size = end
        return end - 1

    def encode(self, context: ctypes.c_void_p) -> int:
        """The same for an encoder, which keeps nothing in cells."""
        self._raw.n_tokens = self.size
        return int(lib.llama_encode(context, self._raw))

    def decode(self, context: ctypes.c_void_p) -> int:
        """llama.cpp's result: 0 is success, anything else a failure."""
        self._raw.n_tokens = self.size
        return int(lib.llama_decode(context, self._raw))
