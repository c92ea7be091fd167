"""Embeddings with a loaded llama.cpp model. Worker only; advanced step by step beside the answers.

Requests, their texts and who is next; how a text goes through llama.cpp is ``llama_vectors``'s business. Several texts
share a call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from laya_desktop.node.engines.base import (
    EngineParams,
    Finished,
    Generate,
    Prefilled,
    Refused,
    RequestEvent,
    Started,
    Vector,
)
from laya_desktop.node.engines.llama_model import OpenModel
from laya_desktop.node.engines.llama_slots import Slot
from laya_desktop.node.engines.llama_vectors import SEQUENCES, AtOnce, InPieces, Text, Vectors, pooling_of
from laya_desktop.node.engines.llama_vocab import Vocab
from laya_desktop.node.engines.side_tasks import embedding_refusal, unit_vector

_NO_VECTORS = {
    "rank": ("This model ranks texts (a reranker) and makes no vectors.", "Choose a model for embeddings."),
    "none": ("This model's pooling is none: its tokens become no vector of a text.", "Set pooling to auto or mean."),
}


@dataclass(eq=False)
class _Job:
    request: Generate
    slot: Slot
    texts: list[Text]
    vectors: list[Vector] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)

    @property
    def tokens(self) -> int:
        return sum(len(text.tokens) for text in self.texts)


class Embedder:
    """Makes vectors; the engine gives it slots and asks it for steps."""

    def __init__(self, opened: OpenModel, vocab: Vocab, params: EngineParams, max_seq_len: int) -> None:
        self._vocab, self._max_seq_len = vocab, max_seq_len
        self._pooling = pooling_of(opened.model, params.pooling)
        self._vectors: Vectors = (
            AtOnce(opened.model, opened.context, max_seq_len)
            if opened.encodes
            else InPieces(opened.model, opened.adapters, self._pooling, params.threads, max_seq_len)
        )
        self._jobs: dict[Text, _Job] = {}
        self._waiting: list[Text] = []
        self._running: list[Text] = []
        self.prefill_tokens = 0
        """Tokens computed since the load."""

    @property
    def busy(self) -> bool:
        """True while there is work."""
        return bool(self._waiting or self._running)

    def submit(self, request: Generate, slot: Slot) -> list[RequestEvent]:
        """Take a request; it holds the slot until its last vector."""
        if (why := _NO_VECTORS.get(self._pooling)) is not None:
            return [Refused(request.request_id, *why, code="not_supported")]
        inputs = [self._tokens(one) for one in request.inputs]
        lengths = [len(tokens) for tokens in inputs]
        if (refused := embedding_refusal(request, lengths, self._max_seq_len, self._vectors.width)) is not None:
            return [refused]
        strange = next((t for tokens in inputs for t in tokens if not 0 <= t < self._vocab.size), None)
        if strange is not None:
            text = f"input has token {strange}; this model's tokens are 0 to {self._vocab.size - 1}."
            return [Refused(request.request_id, text, param="input")]
        if not self._vectors.open():
            text = "There is too little memory for a second context, which embeddings need."
            hint = "Lower the model's max_seq_len, or raise its mem_fraction."
            return [Refused(request.request_id, text, hint, code="out_of_memory", status=503)]
        job = _Job(request, slot, [Text(i, tokens) for i, tokens in enumerate(inputs)])
        slot.busy = True
        self._waiting += job.texts
        self._jobs |= dict.fromkeys(job.texts, job)
        return [Started(request.request_id, slot.slot_id, job.tokens)]

    def _tokens(self, one: str | list[int]) -> list[int]:
        return self._vocab.tokenize(one, parse_special=True, add_special=True) if isinstance(one, str) else list(one)

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Forget a request; empty where it is none of these."""
        job = next((j for j in self._jobs.values() if j.request.request_id == request_id), None)
        if job is None:
            return []
        self._drop(job)
        return [Finished(request_id, "cancelled", job.tokens, 0)]

    def step(self) -> list[RequestEvent]:
        """At most one call of llama.cpp."""
        if not self.busy:
            return []
        self._admit()
        if (computed := self._vectors.step(self._running)) < 0:
            return self._fail(-computed)
        self.prefill_tokens += computed
        return [event for text in [t for t in self._running if t.complete] for event in self._finish(text)]

    def close(self) -> None:
        """Free what was made for vectors."""
        self._vectors.close()

    def _finish(self, text: Text) -> list[RequestEvent]:
        job = self._jobs[text]
        request_id = job.request.request_id
        self._running.remove(text)
        self._vectors.forget(text)
        values = unit_vector(text.pooled.tolist(), job.request.dimensions)
        job.vectors.append(Vector(request_id, text.index, values))
        if len(job.vectors) < len(job.texts):
            return []
        self._drop(job)
        took_s = time.monotonic() - job.began_s
        finished = Finished(request_id, "stop", job.tokens, 0, prefill_s=took_s)
        return [Prefilled(request_id, took_s, job.tokens), *job.vectors, finished]

    def _admit(self) -> None:
        """Give sequences to texts that wait, as far as sequences and room go."""
        free = set(range(SEQUENCES)) - {t.sequence for t in self._running}
        room = self._vectors.room - sum(len(t.tokens) for t in self._running)
        while self._waiting and free and len(self._waiting[0].tokens) <= room:
            text = self._waiting.pop(0)
            text.sequence = free.pop()
            room -= len(text.tokens)
            self._running.append(text)

    def _fail(self, failure: int) -> list[RequestEvent]:
        """llama.cpp could not compute: the requests that took part end."""
        events: list[RequestEvent] = []
        for job in dict.fromkeys(self._jobs[text] for text in self._running):
            self._drop(job)
            text = f"llama.cpp could not decode the batch (code {failure})."
            events.append(Refused(job.request.request_id, text, "Send it again.", code="decode_failed", status=500))
        return events

    def _drop(self, job: _Job) -> None:
        """Nothing of the job is left, and its slot is free."""
        for text in job.texts:
            if text in self._running:
                self._vectors.forget(text)
                self._running.remove(text)
            self._jobs.pop(text, None)
        self._waiting = [t for t in self._waiting if t in self._jobs]
        job.slot.busy = False
