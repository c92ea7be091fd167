"""Embeddings with a loaded llama.cpp model. Worker only; advanced step by step beside the answers.

A context of its own, made with the first request: answers keep their cells, and a model that is never asked for vectors
pays nothing. It gives the last layer's output for every token; pooling is done here, as the model's file says
(``pooling_type``), else as the mean over the tokens, which is what language models without training for it are used
with. Several texts share a decode call.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import llama_cpp.llama_cpp as lib
import numpy as np

from laya_desktop.node.engines.base import Finished, Generate, Prefilled, Refused, RequestEvent, Started, Vector
from laya_desktop.node.engines.llama_batch import Batch
from laya_desktop.node.engines.llama_model import OpenModel
from laya_desktop.node.engines.llama_slots import Slot
from laya_desktop.node.engines.llama_vocab import Vocab
from laya_desktop.node.engines.side_tasks import embedding_refusal

_BATCH_TOKENS = 128
"""Every token of a batch gets a row of logits too, which nobody reads: 128 of them take 25 to 130 MB."""
_SEQUENCES = 16
Pooling = Literal["mean", "first", "last"]
_POOLINGS: dict[str, Pooling] = {"1": "mean", "2": "first", "3": "last"}
_RANK = "4"


@dataclass(eq=False)
class _Text:
    """One input on its way: its tokens, how many are in, and the pooled rows so far."""

    job: _Job
    index: int
    tokens: list[int]
    sequence: int = -1
    done: int = 0
    pooled: Any = None

    def pool(self, rows: Any, pooling: Pooling) -> None:
        """Take in the rows (tokens, values) that follow."""
        if pooling == "mean":
            total = rows.sum(axis=0, dtype=np.float64)
            self.pooled = total if self.pooled is None else self.pooled + total
        elif pooling == "last" or self.pooled is None:
            self.pooled = rows[-1 if pooling == "last" else 0].astype(np.float64)
        self.done += len(rows)

    @property
    def vector(self) -> bytes:
        """The pooled row with length 1; the mean needs no division before that."""
        length = float(np.linalg.norm(self.pooled))
        return bytes((self.pooled / (length or 1.0)).astype("<f4").tobytes())


@dataclass(eq=False)
class _Job:
    request: Generate
    slot: Slot
    prompt_tokens: int
    began_s: float = field(default_factory=time.monotonic)
    missing: int = 0
    vectors: list[RequestEvent] = field(default_factory=list)


class Embedder:
    """Makes vectors; the engine gives it slots and asks it for steps."""

    def __init__(self, opened: OpenModel, vocab: Vocab, threads: int, max_seq_len: int) -> None:
        self._opened, self._vocab, self._threads, self._max_seq_len = opened, vocab, threads, max_seq_len
        self._model = model = opened.model
        self._context: Any = None
        self._waiting: list[_Text] = []
        self._running: list[_Text] = []
        self.prefill_tokens = 0
        """Tokens computed since the load."""
        kind = _meta(model, f"{_meta(model, 'general.architecture')}.pooling_type")
        self._ranks = kind == _RANK
        self._pooling: Pooling = _POOLINGS.get(kind, "mean")

    @property
    def busy(self) -> bool:
        """True while there is work."""
        return bool(self._waiting or self._running)

    def submit(self, request: Generate, slot: Slot) -> list[RequestEvent]:
        """Take a request; it holds the slot until its last vector."""
        if self._ranks:
            text = "This model ranks texts and makes no vectors."
            return [Refused(request.request_id, text, "Choose a model for embeddings.", code="not_supported")]
        texts = [self._tokens(one) for one in request.inputs]
        if (refused := embedding_refusal(request, [len(t) for t in texts], self._max_seq_len)) is not None:
            return [refused]
        strange = next((t for tokens in texts for t in tokens if not 0 <= t < self._vocab.size), None)
        if strange is not None:
            text = f"input has token {strange}; this model's tokens are 0 to {self._vocab.size - 1}."
            return [Refused(request.request_id, text, param="input")]
        if not self._open():
            text = "There is too little memory for a second context, which embeddings need."
            hint = "Lower the model's max_seq_len, or raise its mem_fraction."
            return [Refused(request.request_id, text, hint, code="out_of_memory", status=503)]
        job = _Job(request, slot, sum(len(t) for t in texts), missing=len(texts))
        slot.busy = True
        self._waiting += [_Text(job, i, tokens) for i, tokens in enumerate(texts)]
        return [Started(request.request_id, slot.slot_id, job.prompt_tokens)]

    def _tokens(self, one: str | list[int]) -> list[int]:
        return self._vocab.tokenize(one, parse_special=True, add_special=True) if isinstance(one, str) else list(one)

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Forget a request; empty where it is none of these."""
        mine = [t for t in (*self._running, *self._waiting) if t.job.request.request_id == request_id]
        if not mine:
            return []
        job = mine[0].job
        self._forget(job)
        return [Finished(request_id, "cancelled", job.prompt_tokens, 0)]

    def step(self) -> list[RequestEvent]:
        """Decode at most one batch."""
        if not self.busy:
            return []
        self._admit()
        batch, taken = self._batch, []
        batch.clear()
        for text in self._running:
            tokens = text.tokens[text.done : text.done + batch.room]
            if not tokens:
                break
            start = batch.size
            batch.add(text.sequence, text.done, tokens, output=True, every=True)
            taken.append((text, start, batch.size))
        if (failure := batch.decode(self._context)) != 0:
            return self._fail(failure)
        self.prefill_tokens += batch.size
        width = int(lib.llama_model_n_embd(self._model))
        rows = np.ctypeslib.as_array(lib.llama_get_embeddings(self._context), shape=(batch.size, width))
        events: list[RequestEvent] = []
        for text, start, end in taken:
            text.pool(rows[start:end], self._pooling)
            if text.done == len(text.tokens):
                events += self._finish(text)
        return events

    def close(self) -> None:
        """Free the context."""
        if self._context is not None:
            lib.llama_free(self._context)
            self._context = None

    def _finish(self, text: _Text) -> list[RequestEvent]:
        job, request_id = text.job, text.job.request.request_id
        self._running.remove(text)
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._context), text.sequence, -1, -1)
        job.missing -= 1
        job.vectors.append(Vector(request_id, text.index, text.vector))
        if job.missing:
            return []
        job.slot.busy = False
        took_s = time.monotonic() - job.began_s
        finished = Finished(request_id, "stop", job.prompt_tokens, 0, prefill_s=took_s)
        return [Prefilled(request_id, took_s, job.prompt_tokens), *job.vectors, finished]

    def _admit(self) -> None:
        """Give sequences to texts that wait, as far as sequences and cells go."""
        free = set(range(_SEQUENCES)) - {t.sequence for t in self._running}
        cells = self._cells - sum(len(t.tokens) for t in self._running)
        while self._waiting and free and len(self._waiting[0].tokens) <= cells:
            text = self._waiting.pop(0)
            text.sequence = free.pop()
            cells -= len(text.tokens)
            self._running.append(text)

    def _fail(self, failure: int) -> list[RequestEvent]:
        """llama.cpp could not decode: the requests that took part end."""
        events: list[RequestEvent] = []
        for job in dict.fromkeys(t.job for t in self._running):
            self._forget(job)
            text = f"llama.cpp could not decode the batch (code {failure})."
            events.append(Refused(job.request.request_id, text, "Send it again.", code="decode_failed", status=500))
        return events

    def _forget(self, job: _Job) -> None:
        for text in [t for t in self._running if t.job is job]:
            lib.llama_memory_seq_rm(lib.llama_get_memory(self._context), text.sequence, -1, -1)
        self._running = [t for t in self._running if t.job is not job]
        self._waiting = [t for t in self._waiting if t.job is not job]
        job.slot.busy = False

    def _open(self) -> bool:
        """Make the context, once; False where there is no memory for it."""
        if self._context is not None:
            return True
        params = lib.llama_context_default_params()
        params.n_ctx = self._max_seq_len
        params.n_seq_max = _SEQUENCES
        params.n_batch = params.n_ubatch = params.n_outputs_max = _BATCH_TOKENS
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
        self._opened.adapters.apply(self._context)
        self._cells = int(lib.llama_n_ctx(self._context))
        self._batch = Batch(_BATCH_TOKENS, _SEQUENCES)
        return True


def _meta(model: Any, key: str) -> str:
    """A value of the model file's metadata as text; empty where there is none."""
    buffer = ctypes.create_string_buffer(256)
    size = lib.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") if size >= 0 else ""
