"""The llama.cpp engine: one model, several slots decoded together. Runs in the worker, on its main thread only.

Continuous batching: every step makes one batch of at most 512 tokens. Each decoding slot puts in its last token, then
prompts fill what is left in the order they came. Requests join and leave between two steps. A slot that falls free
keeps its cells, and the next request takes the free slot that shares the longest prefix with it. A request with a seed
starts from an empty slot instead: batches of another shape give slightly other numbers, and it asks for the same ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import llama_library, llama_sampler, worker_os
from laya_desktop.node.engines.base import (
    EngineParams,
    Finished,
    Generate,
    Loaded,
    ProgressSink,
    Refused,
    RequestEvent,
    Stats,
)
from laya_desktop.node.engines.lane import Lane, refusal
from laya_desktop.node.engines.llama_batch import Batch
from laya_desktop.node.engines.llama_dry_run import place_where_it_fits
from laya_desktop.node.engines.llama_model import BATCH_TOKENS, OpenModel, open_model
from laya_desktop.node.engines.llama_prompt import Prompts
from laya_desktop.node.engines.llama_sampler import Sampler
from laya_desktop.node.engines.llama_vocab import Vocab


class _Run(Lane):
    """A request in its slot: its tokens so far, and how many of them are in the cache."""

    def __init__(self, request: Generate, slot: _Slot, tokens: list[int], max_seq_len: int, sampler: Sampler) -> None:
        super().__init__(request, slot.slot_id, len(tokens), max_seq_len, cached_tokens=len(slot.held))
        self.slot = slot
        self.tokens = tokens
        self.sampler = sampler

    @property
    def decoding(self) -> bool:
        return self.completion_tokens > 0


@dataclass
class _Slot:
    """A sequence of the context. ``held`` are the tokens in its cache, in use or kept for reuse."""

    slot_id: int
    held: list[int] = field(default_factory=list)
    run: _Run | None = None
    freed_at: int = 0


class LlamaEngine:
    """See the module. Not usable before ``load``."""

    def __init__(self) -> None:
        self._open: OpenModel | None = None
        self._slots: list[_Slot] = []
        self._active: list[_Run] = []
        self._max_seq_len = 0
        self._prefill_tokens = 0
        self._decode_tokens = 0
        self._steps = 0

    def load(self, params: EngineParams, progress: ProgressSink) -> Loaded:
        """Load the model, make its context and warm up.

        Raises:
            EngineLoadError: with the reason and the way out.
        """
        began_s = time.monotonic()
        llama_library.initialise()
        placement = place_where_it_fits(params)
        if not placement.devices:
            worker_os.limit_memory(params.memory_limit_bytes)
        opened = open_model(params, placement, lambda v: progress(min(v, 0.99)))
        self._open = opened
        self._vocab = Vocab(opened.model)
        self._suppressed = self._vocab.suppressed()
        self._prompts = Prompts(opened.model, self._vocab)
        self._memory = lib.llama_get_memory(opened.context)
        self._window = int(lib.llama_model_n_swa(opened.model))
        self._max_seq_len = min(params.max_seq_len, int(lib.llama_n_ctx_seq(opened.context)))
        self._slots = [_Slot(i) for i in range(params.slots)]
        self._batch = Batch(BATCH_TOKENS, params.slots)
        if params.warmup:
            self._warm_up()
        llama_library.quieten()
        progress(1.0)
        return Loaded(
            device=opened.device_name,
            slots=params.slots,
            max_seq_len=self._max_seq_len,
            device_note=opened.placement.note,
            offloaded_layers=opened.offloaded_layers,
            total_layers=opened.total_layers,
            weights_bytes=opened.weights_bytes,
            kv_cache_bytes=opened.log.kv_cache_bytes,
            compute_bytes=opened.log.compute_bytes,
            load_s=time.monotonic() - began_s,
            has_chat_template=self._prompts.has_template,
            notes=(*self._prompts.notes, *self._context_notes(opened)),
        )

    def _context_notes(self, opened: OpenModel) -> list[str]:
        trained = int(lib.llama_model_n_ctx_train(opened.model))
        if self._max_seq_len <= trained:
            return []
        return [f"max_seq_len is {self._max_seq_len:,}, but the model was trained for {trained:,} tokens only."]

    def _warm_up(self) -> None:
        """One decode, so that the first request finds weights and buffers in memory; then forgotten."""
        assert self._open is not None
        lib.llama_set_warmup(self._open.context, True)
        self._batch.clear()
        self._batch.add(0, 0, [max(self._vocab.bos, 0)], output=True)
        self._batch.decode(self._open.context)
        lib.llama_synchronize(self._open.context)
        lib.llama_memory_clear(self._memory, True)
        lib.llama_set_warmup(self._open.context, False)

    @property
    def free_slots(self) -> int:
        """Slots that a ``submit`` may take now."""
        return sum(s.run is None for s in self._slots)

    @property
    def busy(self) -> bool:
        """True while any slot has work."""
        return bool(self._active)

    def submit(self, request: Generate) -> list[RequestEvent]:
        """Tokenise, choose a slot, keep what it shares with the prompt."""
        if not self.free_slots:
            raise RuntimeError("No slot is free.")
        tokens = self._prompts.tokens(request)
        if isinstance(tokens, Refused):
            return [tokens]
        if (refused := refusal(request, len(tokens), self._max_seq_len)) is not None:
            return [refused]
        if (wrong := llama_sampler.complaint(request.sampling, self._vocab.size)) is not None:
            return [Refused(request.request_id, wrong[1], param=wrong[0])]
        slot = self._choose_slot(tokens)
        self._trim(slot, 0 if request.sampling.seed is not None else _shared(slot.held, tokens))
        sampler = Sampler(request.sampling, self._vocab.size, self._suppressed)
        sampler.see_prompt(tokens)
        run = slot.run = _Run(request, slot, tokens, self._max_seq_len, sampler)
        self._active.append(run)
        return [run.started()]

    def _choose_slot(self, tokens: list[int]) -> _Slot:
        """The free slot with the longest shared prefix; among equals an empty one, then the one freed longest ago."""
        free = (s for s in self._slots if s.run is None)
        return max(free, key=lambda s: (_shared(s.held, tokens), not s.held, -s.freed_at))

    def _trim(self, slot: _Slot, keep: int) -> None:
        """Keep the first ``keep`` cells of the slot, or none where its memory cannot go back to there.

        A sliding window has forgotten what lies before it, and a recurrent state cannot be rewound at all.
        """
        if not slot.held:
            return
        first = int(lib.llama_memory_seq_pos_min(self._memory, slot.slot_id))
        reachable = first <= max(0, keep - self._window - 1) if self._window else first == 0
        if not (keep and reachable and lib.llama_memory_seq_rm(self._memory, slot.slot_id, keep, -1)):
            keep = 0
            lib.llama_memory_seq_rm(self._memory, slot.slot_id, -1, -1)
        del slot.held[keep:]

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Free the request's slot at once; what is in its cache stays for reuse."""
        for run in self._active:
            if run.request.request_id == request_id:
                self._release(run)
                return run.end("cancelled")
        return []

    def _release(self, run: _Run) -> None:
        self._active.remove(run)
        run.sampler.close()
        run.slot.run = None
        run.slot.freed_at = self._steps

    def step(self) -> list[RequestEvent]:
        """Decode one batch and sample a token for every slot whose prompt is in."""
        assert self._open is not None
        self._steps += 1
        batch = self._batch
        batch.clear()
        taken: list[tuple[_Run, int, int | None]] = []
        for run in sorted(self._active, key=lambda r: not r.decoding):  # stable: prompts in the order they came
            waiting = run.tokens[len(run.slot.held) : len(run.slot.held) + batch.room]
            if not waiting:
                break
            complete = len(run.slot.held) + len(waiting) == len(run.tokens)
            at = batch.add(run.slot_id, len(run.slot.held), waiting, output=complete)
            taken.append((run, len(waiting), at if complete else None))
        if (failure := batch.decode(self._open.context)) != 0:
            return self._fail([run for run, _, _ in taken], failure)
        events: list[RequestEvent] = []
        for run, count, output in taken:
            held = run.slot.held
            held += run.tokens[len(held) : len(held) + count]
            if not run.decoding:
                self._prefill_tokens += count
            if output is not None:
                events += self._sample(run, output)
        return events

    def _sample(self, run: _Run, output: int) -> list[RequestEvent]:
        assert self._open is not None
        events: list[RequestEvent] = [] if run.decoding else [run.prefilled()]
        token = run.sampler.sample(self._open.context, output)
        self._decode_tokens += 1
        if self._vocab.ends(token):
            events += run.end("stop")
        else:
            run.tokens.append(token)
            events += run.take(self._vocab.piece(token))
        if events and isinstance(events[-1], Finished):
            self._release(run)
        return events

    def _fail(self, runs: list[_Run], failure: int) -> list[RequestEvent]:
        """llama.cpp could not decode: these requests end and their slots are emptied; the others go on."""
        for run in runs:
            self._release(run)
            lib.llama_memory_seq_rm(self._memory, run.slot_id, -1, -1)
            run.slot.held.clear()
        message = f"llama.cpp could not decode the batch (code {failure})."
        hint = "Send it again; if that repeats, reload the model and look at its log lines."
        return [Refused(r.request.request_id, message, hint, code="decode_failed", status=500) for r in runs]

    def stats(self) -> Stats:
        """Totals since the load."""
        return Stats(self._prefill_tokens, self._decode_tokens, tuple(len(s.held) for s in self._slots))

    def close(self) -> None:
        """Free everything."""
        for run in list(self._active):
            self._release(run)
        if self._open is not None:
            self._open.close()
            self._open = None


def _shared(held: list[int], tokens: list[int]) -> int:
    """Length of the common prefix, at most all but one of ``tokens``: the last must be decoded for its logits."""
    most = min(len(held), len(tokens) - 1)
    return next((i for i in range(most) if held[i] != tokens[i]), most)
