"""The PyTorch engine: Hugging Face models, several slots decoded together. Runs in the worker, on its main thread only.

The same promises as the llama.cpp engine's, kept with simpler means: every step decodes one token for all slots whose
prompt is in (as one batch where the model's cache allows it) and prefills at most 512 prompt tokens, each prompt by
itself. A slot that falls free keeps its cache for the next request that begins alike; a request with a seed starts from
an empty one.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from laya_desktop.node.engines import transformers_sampler, worker_os
from laya_desktop.node.engines.base import (
    EngineParams,
    Finished,
    Generate,
    Loaded,
    NoFreeSlotError,
    ProgressSink,
    Refused,
    RequestEvent,
    Stats,
)
from laya_desktop.node.engines.lane import Lane, refusal, reply_of
from laya_desktop.node.engines.llama_template import Prompt
from laya_desktop.node.engines.side_tasks import detokenized, embedding_refusal, tokenized
from laya_desktop.node.engines.transformers_cache import JoinedCache, SlotCache
from laya_desktop.node.engines.transformers_embedder import Embedder
from laya_desktop.node.engines.transformers_limits import refuse_unknown
from laya_desktop.node.engines.transformers_model import OpenModel, open_model, place
from laya_desktop.node.engines.transformers_prompt import Detokenizer, Prompts
from laya_desktop.node.engines.transformers_sampler import Sampler

STEP_TOKENS = 512
"""Tokens of one step: prompts fill what the decoding slots leave."""


@dataclass(eq=False)
class _Slot:
    """A lane with its cache. ``held`` are the tokens in the cache, in use or kept for reuse."""

    slot_id: int
    cache: SlotCache
    held: list[int] = field(default_factory=list)
    run: object | None = None
    """What holds it."""
    freed_at: int = 0

    def clear(self) -> None:
        self.cache.clear()
        self.held.clear()


class _Run(Lane):
    """A request in its slot: its tokens so far, and how they become text."""

    def __init__(self, request: Generate, slot: _Slot, prompt: Prompt, max_seq_len: int, words: Detokenizer) -> None:
        tokens = prompt.tokens
        reply = reply_of(request, prompt.dialect, thinking=prompt.thinking)
        super().__init__(request, slot.slot_id, len(tokens), max_seq_len, cached_tokens=len(slot.held), reply=reply)
        self.slot = slot
        self.tokens = tokens
        self.words = words
        self.sampler = Sampler(request.sampling, tokens)

    @property
    def decoding(self) -> bool:
        return self.completion_tokens > 0

    @property
    def waiting(self) -> list[int]:
        """Tokens that are not in the cache yet."""
        return self.tokens[len(self.slot.held) :]


class TransformersEngine:
    """See the module. Not usable before ``load``."""

    def __init__(self) -> None:
        self._open: OpenModel | None = None
        self._slots: list[_Slot] = []
        self._active: list[_Run] = []
        self._joined: tuple[JoinedCache, list[_Slot]] | None = None
        self._max_seq_len = 0
        self._vocab_size = 0
        self._prefill_tokens = 0
        self._decode_tokens = 0
        self._steps = 0

    def load(self, params: EngineParams, progress: ProgressSink) -> Loaded:
        """Load the model and warm up.

        Raises:
            EngineLoadError: with the reason and the way out.
        """
        began_s = time.monotonic()
        progress(0.0)
        placement = place(params)
        if placement.device.type == "cpu":
            worker_os.limit_memory(params.memory_limit_bytes)
        opened = self._open = open_model(params, placement, progress)
        self._vocab_size = int(opened.config.vocab_size)
        self._prompts = Prompts(opened.tokenizer, self._vocab_size)
        self._ends = opened.end_tokens
        assert opened.cache_argument is not None
        self._cache_argument = opened.cache_argument
        self._options: dict[str, Any] = {"logits_to_keep": 1} if opened.takes("logits_to_keep") else {}
        self._takes_positions = opened.takes("position_ids")
        trained = opened.trained_tokens
        self._max_seq_len = min(params.max_seq_len, trained or params.max_seq_len)
        self._slots = [_Slot(i, SlotCache(opened.config)) for i in range(params.slots)]
        self._embedder = Embedder(opened.model, opened.placement.device)
        if params.warmup:
            self._forward([[self._first_token()]], [0], SlotCache(opened.config).past)
        progress(1.0)
        on_gpu = opened.placement.device.type != "cpu"
        per_token = opened.kv_bytes_per_token
        return Loaded(
            device=opened.placement.name,
            slots=params.slots,
            max_seq_len=self._max_seq_len,
            device_note=opened.placement.note,
            offloaded_layers=opened.layers if on_gpu else 0,
            total_layers=opened.layers,
            weights_bytes=opened.weights_bytes,
            kv_cache_bytes=per_token * params.slots * self._max_seq_len if per_token else None,
            load_s=time.monotonic() - began_s,
            has_chat_template=self._prompts.has_template,
            notes=(*self._prompts.notes, *opened.notes, *_context_notes(params.max_seq_len, trained)),
        )

    def _first_token(self) -> int:
        assert self._open is not None
        return int(self._open.tokenizer.bos_token_id or 0)

    @property
    def free_slots(self) -> int:
        """Slots that a ``submit`` may take now."""
        return sum(s.run is None for s in self._slots)

    @property
    def busy(self) -> bool:
        """True while any slot has work."""
        return bool(self._active) or self._embedder.busy

    def submit(self, request: Generate) -> list[RequestEvent]:
        """Tokenise, choose a slot, keep what it shares with the prompt."""
        assert self._open is not None
        if not self.free_slots:
            raise NoFreeSlotError("No slot is free.")
        if (unknown := refuse_unknown(request)) is not None:
            return [unknown]
        if request.task == "embed":
            return self._embed(request)
        prompt = self._prompts.read(request)
        if isinstance(prompt, Refused):
            return [prompt]
        tokens = prompt.tokens
        if request.task == "tokenize":
            return tokenized(request, self._choose_slot([]).slot_id, tokens, self._prompts.piece)
        if request.task == "detokenize":
            return detokenized(request, self._choose_slot([]).slot_id, len(tokens), self._prompts.text(tokens))
        if (refused := refusal(request, len(tokens), self._max_seq_len)) is not None:
            return [refused]
        if (wrong := transformers_sampler.complaint(request.sampling, self._vocab_size)) is not None:
            return [Refused(request.request_id, wrong[1], param=wrong[0])]
        slot = self._choose_slot(tokens)
        keep = 0 if request.sampling.seed is not None else _shared(slot.held, tokens)
        if keep < len(slot.held) and not slot.cache.trim(keep):
            keep = 0
        del slot.held[keep:]
        words = Detokenizer(self._open.tokenizer, tokens)
        run = slot.run = _Run(request, slot, prompt, self._max_seq_len, words)
        self._active.append(run)
        return [run.started()]

    def _embed(self, request: Generate) -> list[RequestEvent]:
        texts = self._prompts.inputs(request)
        if (
            refused := embedding_refusal(request, [len(t) for t in texts], self._max_seq_len, self._embedder.width)
        ) is not None:
            return [refused]
        strange = next((t for tokens in texts for t in tokens if not 0 <= t < self._vocab_size), None)
        if strange is not None:
            text = f"input has token {strange}; this model's tokens are 0 to {self._vocab_size - 1}."
            return [Refused(request.request_id, text, param="input")]
        return self._embedder.submit(request, self._choose_slot([]), texts)

    def _choose_slot(self, tokens: list[int]) -> _Slot:
        """The free slot with the longest shared prefix; among equals an empty one, then the one freed longest ago."""
        free = (s for s in self._slots if s.run is None)
        return max(free, key=lambda s: (_shared(s.held, tokens), not s.held, -s.freed_at))

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Free the request's slot at once; what is in its cache stays for reuse."""
        if events := self._embedder.cancel(request_id):
            return events
        for run in self._active:
            if run.request.request_id == request_id:
                self._release(run)
                return run.end("cancelled")
        return []

    def _release(self, run: _Run) -> None:
        self._part()
        self._active.remove(run)
        run.slot.run = None
        run.slot.freed_at = self._steps

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def step(self) -> list[RequestEvent]:
        """One token for every slot whose prompt is in, then a piece of the waiting prompts; a text to embed before."""
        vectors = self._embed_one() if self._embedder.busy else []
        return [*vectors, *self._step()] if self._active else vectors

    def _embed_one(self) -> list[RequestEvent]:
        job = self._embedder.first
        try:
            events: list[RequestEvent] = self._embedder.step()
            return events
        except Exception as error:  # whatever a model's code raises must not take the other slots down
            self._embedder.drop(job)
            return [_refusal(job.request.request_id, error)]

    def _step(self) -> list[RequestEvent]:
        self._steps += 1
        decoding = [r for r in self._active if r.decoding]
        prefilling = [r for r in self._active if not r.decoding]
        events = self._decode(decoding) if decoding else []
        budget = STEP_TOKENS - len(decoding)
        for run in prefilling:
            if budget <= 0:
                break
            piece = run.waiting[:budget]
            budget -= len(piece)
            events += self._prefill(run, piece)
        return events

    def _prefill(self, run: _Run, piece: list[int]) -> list[RequestEvent]:
        """A piece of one prompt; its first token where that completes it."""
        slot = run.slot
        logits = self._guarded([run], lambda: self._forward([piece], [len(slot.held)], slot.cache.past))
        if isinstance(logits, list):
            return logits
        slot.held += piece
        self._prefill_tokens += len(piece)
        return [] if run.waiting else [run.prefilled(), *self._take(run, logits[0])]

    def _decode(self, runs: list[_Run]) -> list[RequestEvent]:
        """The next token of each run: together where their caches can be joined, else one after the other."""
        if len(runs) == 1 or not self._can_join(runs):
            self._part()
            return [e for run in runs for e in self._decode_group([run])]
        return self._decode_group(runs)

    def _can_join(self, runs: list[_Run]) -> bool:
        if self._joined is not None and self._joined[1] == [r.slot for r in runs]:
            return True
        self._part()
        return self._takes_positions and all(r.slot.cache.plain for r in runs)

    def _decode_group(self, runs: list[_Run]) -> list[RequestEvent]:
        def work() -> Any:
            tokens, places = [r.waiting for r in runs], [len(r.slot.held) for r in runs]
            if len(runs) == 1:
                return self._forward(tokens, places, runs[0].slot.cache.past)
            joined = self._join(runs)
            return self._forward(tokens, places, joined.past, joined.grown())

        logits = self._guarded(runs, work)
        if isinstance(logits, list):
            return logits
        for run in runs:
            run.slot.held += run.waiting
        return [e for run, row in zip(runs, logits, strict=True) for e in self._take(run, row)]

    def _join(self, runs: list[_Run]) -> JoinedCache:
        slots = [r.slot for r in runs]
        if self._joined is None:
            self._joined = (JoinedCache([s.cache for s in slots], [len(s.held) for s in slots]), slots)
        return self._joined[0]

    def _part(self) -> None:
        """Give joined rows back to their slots."""
        if self._joined is not None:
            joined, slots = self._joined
            self._joined = None
            joined.part([s.cache for s in slots])

    def _take(self, run: _Run, logits: Any) -> list[RequestEvent]:
        token = run.sampler.sample(logits)
        self._decode_tokens += 1
        if token in self._ends:
            events = run.end("stop")
        else:
            run.tokens.append(token)
            events = run.take(run.words.push(token))
        if events and isinstance(events[-1], Finished):
            self._release(run)
        return events

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _forward(self, tokens: Sequence[Sequence[int]], places: Sequence[int], past: Any, mask: Any = None) -> Any:
        """Logits of each row's last token, 32-bit on the CPU; ``past`` grows by the tokens.

        Args:
            tokens: rows of equal length.
            places: the position of each row's first token.
            past: the cache of these rows.
            mask: which cached tokens each row may see; None: all.
        """
        assert self._open is not None
        device = self._open.placement.device
        ids = torch.tensor(tokens, device=device)
        options: dict[str, Any] = self._options | {self._cache_argument: past}
        if self._takes_positions:
            options["position_ids"] = torch.tensor([list(range(p, p + ids.shape[1])) for p in places], device=device)
        out = self._open.model(input_ids=ids, attention_mask=mask, use_cache=True, return_dict=True, **options)
        return out.logits[:, -1].float().cpu()

    def _guarded(self, runs: list[_Run], work: Callable[[], Any]) -> Any:
        """The result of ``work``, or the refusals of these runs where PyTorch failed; the others go on."""
        try:
            return work()
        except Exception as error:  # whatever a model's code raises must not take the other slots down
            failure = error
        if self._joined is not None and len(runs) > 1:
            self._joined = None  # its rows may be half grown; all of them belong to these runs
        for run in runs:
            self._release(run)
            run.slot.clear()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return [_refusal(r.request.request_id, failure) for r in runs]

    def stats(self) -> Stats:
        """Totals since the load."""
        computed = self._prefill_tokens + self._embedder.prefill_tokens
        return Stats(computed, self._decode_tokens, tuple(len(s.held) for s in self._slots))

    def close(self) -> None:
        """Free everything."""
        self._joined, self._open = None, None
        self._active, self._slots = [], []


def _refusal(request_id: str, error: Exception) -> Refused:
    """The end of a request on which PyTorch failed."""
    if isinstance(error, torch.OutOfMemoryError):
        hint = "Lower max_seq_len or batch_size, or load the model on the CPU."
        return Refused(request_id, "The GPU ran out of memory.", hint, code="out_of_memory", status=500)
    traceback.print_exception(error, file=sys.stderr)
    hint = "Send it again; if that repeats, reload the model and look at its log lines."
    return Refused(request_id, f"PyTorch could not decode: {error}", hint, code="decode_failed", status=500)


def _shared(held: list[int], tokens: list[int]) -> int:
    """Length of the common prefix, at most all but one of ``tokens``: the last must be decoded for its logits."""
    most = min(len(held), len(tokens) - 1)
    return next((i for i in range(most) if held[i] != tokens[i]), most)


def _context_notes(wanted: int, trained: int | None) -> list[str]:
    if trained is None or wanted <= trained:
        return []
    return [f"max_seq_len is {wanted:,}, but the model holds {trained:,} tokens; it was loaded with {trained:,}."]
