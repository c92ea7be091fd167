"""The tokens that may be drawn, with their logits: one buffer for all requests, in llama.cpp's own layout. Worker only.

Needed where a request asks for more than a chain of samplers can do alone: grammars, least lengths, probabilities.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp.llama_cpp as lib
import numpy as np

from laya_desktop.node.engines.base import TokenLogprob
from laya_desktop.node.engines.llama_vocab import Vocab

LEAST_LOGPROB = -9999.0
"""What OpenAI's API says for "impossible"; JSON knows no infinity."""
_LAYOUT = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
assert _LAYOUT.itemsize == ctypes.sizeof(lib.llama_token_data)


class Candidates:
    """Filled anew for every draw."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._ids = np.arange(vocab.size, dtype=np.int32)
        self._entries = np.zeros(vocab.size, _LAYOUT)
        self._data = self._entries.ctypes.data_as(ctypes.POINTER(lib.llama_token_data))
        self.array = lib.llama_token_data_array(self._data, vocab.size, -1, False)

    def fill(self, context: ctypes.c_void_p, output: int) -> None:
        """All tokens with the logits of the batch's entry ``output``."""
        entries = self._entries
        entries["id"], entries["logit"], entries["p"] = self._ids, self._row(context, output), 0
        array = self.array
        array.data = self._data  # type: ignore[assignment]  # samplers move the beginning
        array.size, array.selected, array.sorted = len(entries), -1, False

    def forbid(self, tokens: Sequence[int] | np.ndarray[Any, Any]) -> None:
        """Make tokens impossible; right after ``fill`` only."""
        if len(tokens):
            self._entries["logit"][tokens] = -np.inf

    def drop_impossible(self) -> int:
        """Keep what is possible, because some samplers divide by its absence. Returns how many are left.

        Right after ``fill``, ``forbid`` and a grammar only.
        """
        size = int(self.array.size)
        kept = self._entries[:size][self._entries["logit"][:size] > -np.inf]
        self._entries[: len(kept)] = kept
        self.array.size = len(kept)
        return len(kept)

    @property
    def selected(self) -> int:
        """The token that a chain chose."""
        return int(self.array.data[self.array.selected].id)

    def logprob(self, context: ctypes.c_void_p, output: int, token: int, count: int) -> TokenLogprob:
        """A token's natural log probability, with those of the ``count`` most likely ones."""
        row = self._row(context, output)
        most = row.max()
        total = float(most + np.log(np.exp(row - most).sum(dtype=np.float64)))
        top: list[int] = []
        if count:
            best = np.argpartition(row, -count)[-count:]
            top = best[np.argsort(-row[best], kind="stable")].tolist()

        def log_of(index: int) -> float:
            return max(LEAST_LOGPROB, float(row[index]) - total)

        return TokenLogprob(
            token,
            self._vocab.spelling(token),
            log_of(token),
            tuple((self._vocab.spelling(i), log_of(i)) for i in top),
        )

    def _row(self, context: ctypes.c_void_p, output: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        pointer = lib.llama_get_logits_ith(context, output)
        return np.ctypeslib.as_array(pointer, (self._vocab.size,))
