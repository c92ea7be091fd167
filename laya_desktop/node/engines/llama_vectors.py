"""How texts go through llama.cpp to become vectors. Worker only; which texts when is ``llama_embedder``'s business.

Two kinds of model, one interface. A language model reads from left to right, so a long text comes in pieces of a batch
and only its last layer's rows are pooled, here: its own cells are left to the answers, and a context of its own is made
with the first request. An encoder (BERT and its kin) sees a whole text at once and keeps no cells; its only context is
the one it was opened with, and llama.cpp pools.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import llama_cpp.llama_cpp as lib
import numpy as np

from laya_desktop.node.engines.llama_batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laya_desktop.node.engines.llama_adapters import Adapters

SEQUENCES = 16
"""Texts that share a decode call."""
_PIECE_TOKENS = 128
"""Every token of a batch gets a row of logits too, which nobody reads: 128 of them take 25 to 130 MB."""
Pooling = Literal["none", "mean", "cls", "last", "rank"]
_POOLINGS: dict[str, Pooling] = {"1": "mean", "2": "cls", "3": "last", "4": "rank"}
"""By llama.cpp's numbers, as a model's file has them."""


@dataclass(eq=False)
class Text:
    """One input on its way: its tokens, how many are in, and the pooled rows so far."""

    index: int
    tokens: list[int]
    sequence: int = -1
    done: int = 0
    pooled: Any = None

    @property
    def complete(self) -> bool:
        """Its row is there."""
        return self.done == len(self.tokens)

    def pool(self, rows: Any, pooling: Pooling) -> None:
        """Take in the rows (tokens, values) that follow; the mean is divided by nobody: its length does not matter."""
        if pooling == "mean":
            total = rows.sum(axis=0, dtype=np.float64)
            self.pooled = total if self.pooled is None else self.pooled + total
        elif pooling == "last" or self.pooled is None:
            self.pooled = rows[-1 if pooling == "last" else 0].astype(np.float64)
        self.done += len(rows)


class Vectors(Protocol):
    """Computes the rows of texts that hold a sequence."""

    def open(self) -> bool:
        """Make ready, once; False where there is no memory for it."""
        ...

    @property
    def room(self) -> int:
        """Tokens of texts that may be on their way together."""
        ...

    @property
    def width(self) -> int:
        """Values of a vector."""
        ...

    def step(self, texts: Sequence[Text]) -> int:
        """One call of llama.cpp; returns the tokens computed, or less than 0 where it failed."""
        ...

    def forget(self, text: Text) -> None:
        """The text's sequence is free."""
        ...

    def close(self) -> None:
        """Free what was made here."""
        ...


class InPieces:
    """A language model's vectors; see the module."""

    def __init__(
        self, model: ctypes.c_void_p, adapters: Adapters, pooling: Pooling, threads: int, max_seq_len: int
    ) -> None:
        self._model, self._adapters, self._pooling = model, adapters, pooling
        self._threads, self._max_seq_len = threads, max_seq_len
        self._context: Any = None
        self.width = int(lib.llama_model_n_embd(model))
        self.room = 0

    def open(self) -> bool:
        """Make the context."""
        if self._context is not None:
            return True
        params = lib.llama_context_default_params()
        params.n_ctx = self._max_seq_len
        params.n_seq_max = SEQUENCES
        params.n_batch = params.n_ubatch = params.n_outputs_max = _PIECE_TOKENS
        params.n_threads = params.n_threads_batch = self._threads
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO
        params.kv_unified = True
        params.swa_full = False
        params.no_perf = True
        params.embeddings = True
        params.pooling_type = lib.LLAMA_POOLING_TYPE_NONE
        self._context = lib.llama_init_from_model(self._model, params) or None
        if self._context is None:
            return False
        self._adapters.apply(self._context)
        self.room = int(lib.llama_n_ctx(self._context))
        self._batch = Batch(_PIECE_TOKENS, SEQUENCES)
        return True

    def step(self, texts: Sequence[Text]) -> int:
        """As many tokens as a batch takes, of the first texts."""
        batch = self._batch
        batch.clear()
        taken: list[tuple[Text, int, int]] = []
        for text in texts:
            tokens = text.tokens[text.done : text.done + batch.room]
            if not tokens:
                break
            start = batch.size
            batch.add(text.sequence, text.done, tokens, output=True, every=True)
            taken.append((text, start, batch.size))
        if (failure := batch.decode(self._context)) != 0:
            return -abs(failure)
        rows = np.ctypeslib.as_array(lib.llama_get_embeddings(self._context), shape=(batch.size, self.width))
        for text, start, end in taken:
            text.pool(rows[start:end], self._pooling)
        return batch.size

    def forget(self, text: Text) -> None:
        """Empty its cells."""
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._context), text.sequence, -1, -1)

    def close(self) -> None:
        """Free the context."""
        if self._context is not None:
            lib.llama_free(self._context)
            self._context = None


class AtOnce:
    """An encoder's vectors; see the module."""

    def __init__(self, model: ctypes.c_void_p, context: ctypes.c_void_p, max_seq_len: int) -> None:
        self._context, self.room = context, max_seq_len
        self._memory = lib.llama_get_memory(context)
        self._batch = Batch(max_seq_len, SEQUENCES)
        self.width = int(lib.llama_model_n_embd_out(model))

    def open(self) -> bool:
        """It is open."""
        return True

    def step(self, texts: Sequence[Text]) -> int:
        """All of the texts: ``room`` keeps them within a batch."""
        batch = self._batch
        batch.clear()
        for text in texts:
            batch.add(text.sequence, 0, text.tokens, output=True, every=True)
        run = batch.decode if self._memory else batch.encode
        if (failure := run(self._context)) != 0:
            return -abs(failure)
        for text in texts:
            row = lib.llama_get_embeddings_seq(self._context, text.sequence)
            text.pooled = np.ctypeslib.as_array(row, shape=(self.width,)).astype(np.float64)
            text.done = len(text.tokens)
        if self._memory:
            lib.llama_memory_clear(self._memory, False)
        return batch.size

    def forget(self, text: Text) -> None:
        """Nothing is kept of a text."""

    def close(self) -> None:
        """The context belongs to the model."""


def pooling_of(model: ctypes.c_void_p, wanted: str) -> Pooling:
    """``wanted``; for ``auto`` what the model's file says, else the mean, which suits those not trained for it."""
    if wanted != "auto":
        return wanted  # type: ignore[return-value]
    return _POOLINGS.get(meta(model, f"{meta(model, 'general.architecture')}.pooling_type"), "mean")


def meta(model: ctypes.c_void_p, key: str) -> str:
    """A value of the model file's metadata as text; empty where there is none."""
    buffer = ctypes.create_string_buffer(256)
    size = lib.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") if size >= 0 else ""
