"""Embeddings with a PyTorch language model: the mean of the last layer's output. Worker only; one text a step."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from laya_desktop.node.engines.base import Finished, Generate, Prefilled, RequestEvent, Started, Vector
from laya_desktop.node.engines.side_tasks import unit_vector


@dataclass(eq=False)
class _Job:
    request: Generate
    slot: Any
    texts: list[list[int]]
    vectors: list[bytes] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)

    @property
    def tokens(self) -> int:
        return sum(len(t) for t in self.texts)


class Embedder:
    """Requests in the order they came; each holds a slot until its last vector."""

    def __init__(self, model: Any, device: Any) -> None:
        self._model, self._device = model, device
        self._jobs: list[_Job] = []
        self.width = int(model.config.get_text_config(decoder=True).hidden_size)
        self.prefill_tokens = 0
        """Tokens computed since the load."""

    @property
    def busy(self) -> bool:
        """True while there is work."""
        return bool(self._jobs)

    def submit(self, request: Generate, slot: Any, texts: list[list[int]]) -> list[RequestEvent]:
        """Take a request; ``slot.run`` is set while it lasts."""
        job = _Job(request, slot, texts)
        slot.run = job
        self._jobs.append(job)
        return [Started(request.request_id, slot.slot_id, job.tokens)]

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Forget a request; empty where it is none of these."""
        job = next((j for j in self._jobs if j.request.request_id == request_id), None)
        if job is None:
            return []
        self.drop(job)
        return [Finished(request_id, "cancelled", job.tokens, 0)]

    def drop(self, job: Any) -> None:
        """Its slot is free."""
        self._jobs.remove(job)
        job.slot.run = None

    @property
    def first(self) -> Any:
        """The job that ``step`` works for."""
        return self._jobs[0]

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def step(self) -> list[RequestEvent]:
        """One text."""
        job = self._jobs[0]
        tokens = job.texts[len(job.vectors)]
        ids = torch.tensor([tokens], device=self._device)
        out = self._model(input_ids=ids, output_hidden_states=True, use_cache=False, return_dict=True)
        pooled = out.hidden_states[-1][0].float().mean(dim=0)
        job.vectors.append(unit_vector(pooled.cpu().tolist(), job.request.dimensions))
        self.prefill_tokens += len(tokens)
        if len(job.vectors) < len(job.texts):
            return []
        self.drop(job)
        request_id, took_s = job.request.request_id, time.monotonic() - job.began_s
        vectors = [Vector(request_id, i, values) for i, values in enumerate(job.vectors)]
        finished = Finished(request_id, "stop", job.tokens, 0, prefill_s=took_s)
        return [Prefilled(request_id, took_s, job.tokens), *vectors, finished]
