"""The llama.cpp engine: one model, several slots decoded together. Runs in the worker, on its main thread only.

Continuous batching: every step makes one batch of at most 512 tokens. Each decoding slot puts in its last token, then
prompts fill what is left in the order they came. Requests join and leave between two steps. A request for several
answers computes its prompt once; the other slots get copies of its cells. A request with a seed starts from an empty
slot: batches of another shape give slightly other numbers, and it asks for the same ones.
"""

from __future__ import annotations

import time

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import llama_chain, llama_library, llama_slots, worker_os
from laya_desktop.node.engines.base import (
    EngineParams,
    Generate,
    Loaded,
    NoFreeSlotError,
    ProgressSink,
    Refused,
    RequestEvent,
    Stats,
)
from laya_desktop.node.engines.lane import (
    MOST_LOGPROBS,
    Lane,
    Tally,
    refusal,
    reply_of,
    too_many_answers,
)
from laya_desktop.node.engines.llama_batch import Batch
from laya_desktop.node.engines.llama_candidates import Candidates
from laya_desktop.node.engines.llama_chain import Chains
from laya_desktop.node.engines.llama_context import BATCH_TOKENS
from laya_desktop.node.engines.llama_dry_run import place_where_it_fits
from laya_desktop.node.engines.llama_embedder import Embedder
from laya_desktop.node.engines.llama_grammar import Grammar, GrammarError
from laya_desktop.node.engines.llama_model import OpenModel, open_model
from laya_desktop.node.engines.llama_prompt import Prompts
from laya_desktop.node.engines.llama_rate import tokens_per_s
from laya_desktop.node.engines.llama_sampler import Sampler
from laya_desktop.node.engines.llama_schema import FormatError, grammar_of
from laya_desktop.node.engines.llama_slots import Cells, Slot
from laya_desktop.node.engines.llama_template import Prompt
from laya_desktop.node.engines.llama_vocab import Vocab
from laya_desktop.node.engines.side_tasks import detokenized, tokenized

VECTORS_ONLY = "This model is an encoder: it makes vectors of texts and generates none."


class _Run(Lane):
    """An answer in its slot: its tokens so far, and how many of them are in the cache."""

    def __init__(
        self, slot: Slot, prompt: Prompt, max_seq_len: int, sampler: Sampler, tally: Tally, index: int
    ) -> None:
        request = tally.request
        reply = reply_of(request, prompt.dialect, thinking=prompt.thinking)
        count = len(prompt.tokens)
        super().__init__(request, slot.slot_id, count, max_seq_len, tally=tally, index=index, reply=reply)
        self.slot = slot
        self.tokens = list(prompt.tokens)
        self.sampler = sampler
        self.followers: list[_Run] = []
        """Other answers to the same prompt, which wait until it is in the cache."""

    @property
    def decoding(self) -> bool:
        return self.completion_tokens > 0


class LlamaEngine:
    """See the module. Not usable before ``load``."""

    def __init__(self) -> None:
        self._open: OpenModel | None = None
        self._slots: list[Slot] = []
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
        placement = place_where_it_fits(params, lambda p, where: tokens_per_s(p, where, lambda _v: progress(0.0)))
        if not placement.devices:
            worker_os.limit_memory(params.memory_limit_bytes)
        opened = open_model(params, placement, lambda v: progress(min(v, 0.99)))
        self._open = opened
        self._vocab = Vocab(opened.model)
        self._prompts = Prompts(opened.model, self._vocab)
        self._max_seq_len = min(params.max_seq_len, opened.context_tokens)
        self._chains = Chains(self._vocab, self._max_seq_len)
        self._candidates = Candidates(self._vocab)
        self._cells = Cells(opened.model, opened.context, params.slots, self._max_seq_len)
        self._slots = [Slot(i) for i in range(params.slots)]
        self._batch = Batch(BATCH_TOKENS, params.slots)
        self._embedder = Embedder(opened, self._vocab, params, self._max_seq_len)
        if params.warmup and not opened.encodes:
            self._warm_up()
        worker_os.return_memory()
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
            kv_cache_bytes=opened.kv_cache_bytes,
            compute_bytes=opened.compute_bytes,
            load_s=time.monotonic() - began_s,
            has_chat_template=self._prompts.has_template and not opened.encodes,
            notes=(*self._notes(opened), *opened.adapters.notes),
        )

    def _notes(self, opened: OpenModel) -> list[str]:
        if opened.encodes:
            return [VECTORS_ONLY]
        return [*self._prompts.notes, *self._context_notes(opened)]

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
        self._cells.clear()
        lib.llama_set_warmup(self._open.context, False)

    @property
    def free_slots(self) -> int:
        """Slots that a ``submit`` may take now."""
        return sum(not s.busy for s in self._slots)

    @property
    def busy(self) -> bool:
        """True while any slot has work."""
        return bool(self._active) or self._embedder.busy

    def submit(self, request: Generate) -> list[RequestEvent]:
        """Tokenise, choose slots, keep what they share with the prompt."""
        if (too_many := too_many_answers(request, len(self._slots))) is not None:
            return [too_many]
        if self.free_slots < request.n:
            raise NoFreeSlotError("Too few slots are free.")
        if request.task == "embed":
            return self._embedder.submit(request, self._cheapest(1)[0])
        assert self._open is not None
        if self._open.encodes and request.task == "answer":
            hint = "Send texts to /v1/embeddings, or choose a model that generates text."
            return [Refused(request.request_id, VECTORS_ONLY, hint, code="not_supported", param="model")]
        prompt = self._prompts.read(request)
        if isinstance(prompt, Refused):
            return [prompt]
        if request.task != "answer":
            return self._convert(request, prompt.tokens)
        if (refused := refusal(request, len(prompt.tokens), self._max_seq_len) or self._complaint(request)) is not None:
            return [refused]
        grammars = self._grammars(request, prompt)
        if isinstance(grammars, Refused):
            return [grammars]
        made = llama_slots.plan(self._slots, prompt.tokens, self._cells.gain, fresh=request.sampling.seed is not None)
        self._cells.settle(made)
        tally = Tally(request, len(prompt.tokens), len(made.slot.held))
        slots = [made.slot, *self._cheapest(request.n - 1, but=made.slot)]
        runs = [self._begin(slot, prompt, tally, i, grammars[i]) for i, slot in enumerate(slots)]
        runs[0].followers = runs[1:]
        self._active.append(runs[0])
        return [runs[0].started(tuple(run.slot_id for run in runs[1:]))]

    def _convert(self, request: Generate, tokens: list[int]) -> list[RequestEvent]:
        """Text to tokens or back; it takes no time and leaves the slot as it is."""
        slot_id = self._cheapest(1)[0].slot_id
        if request.task == "tokenize":
            return tokenized(request, slot_id, tokens, self._vocab.spelling)
        text = b"".join(map(self._vocab.spelling, tokens)).decode("utf-8", "replace")
        return detokenized(request, slot_id, len(tokens), text)

    def _complaint(self, request: Generate) -> Refused | None:
        size = self._vocab.size
        wrong = llama_chain.complaint(request.sampling, size)
        if (strange := next((t for t in request.stop_tokens if not 0 <= t < size), None)) is not None:
            wrong = "stop_token_ids", f"stop_token_ids names token {strange}; this model's tokens are 0 to {size - 1}."
        if request.logprobs is not None and not 0 <= request.logprobs <= MOST_LOGPROBS:
            wrong = "top_logprobs", f"top_logprobs is {request.logprobs}; 0 to {MOST_LOGPROBS} are possible."
        return Refused(request.request_id, wrong[1], param=wrong[0]) if wrong is not None else None

    def _grammars(self, request: Generate, prompt: Prompt) -> list[Grammar | None] | Refused:
        """One for each answer, or why the format cannot be enforced."""
        made: list[Grammar | None] = []
        param = "tools" if request.tool_choice == "required" else "response_format"
        try:
            text = grammar_of(request, prompt.dialect.calls)
            made.extend(None if text is None else Grammar(self._vocab, text) for _ in range(request.n))
        except FormatError as error:
            return Refused(request.request_id, str(error), code="invalid_format", param=error.param)
        except GrammarError as error:
            if request.answer_format is not None and request.answer_format.kind == "grammar":
                param = "grammar"
            return Refused(request.request_id, str(error), code="invalid_format", param=param)
        return made

    def _cheapest(self, count: int, *, but: Slot | None = None) -> list[Slot]:
        """Free slots, those whose cells are the least loss."""
        free = [s for s in self._slots if not s.busy and s is not but]
        return sorted(free, key=lambda s: (bool(s.held), s.freed_at))[:count]

    def _begin(self, slot: Slot, prompt: Prompt, tally: Tally, index: int, grammar: Grammar | None) -> _Run:
        sampler = Sampler(tally.request, index, self._chains, self._candidates, self._vocab.end_tokens, grammar)
        sampler.see_prompt(prompt.tokens)
        slot.busy = True
        return _Run(slot, prompt, self._max_seq_len, sampler, tally, index)

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Free the request's slots at once; what is in their cells stays for reuse."""
        if events := self._embedder.cancel(request_id):
            return events
        runs = self._runs_of({request_id})
        for run in runs:
            self._release(run)
        return runs[0].end("cancelled") if runs else []

    def _runs_of(self, request_ids: set[str]) -> list[_Run]:
        found = [run for run in self._active if run.request.request_id in request_ids]
        return [*found, *(follower for run in found for follower in run.followers)]

    def _release(self, run: _Run) -> None:
        if run in self._active:
            self._active.remove(run)
        run.sampler.close()
        run.slot.busy = False
        run.slot.freed_at = self._steps

    def step(self) -> list[RequestEvent]:
        """Decode one batch and sample a token for every slot whose prompt is in; embeddings take turns with it."""
        vectors = self._embedder.step()
        return [*vectors, *self._step()] if self._active else vectors

    def _step(self) -> list[RequestEvent]:
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
            if output is not None and not run.over:
                events += self._first(run, output) if not run.decoding else self._sample(run, output)
        return events

    def _first(self, run: _Run, output: int) -> list[RequestEvent]:
        """The prompt is in: its logits serve all answers, each goes on in a slot of its own."""
        events: list[RequestEvent] = [run.prefilled()]
        runs, run.followers = [run, *run.followers], []
        for follower in runs[1:]:
            self._cells.fork(run.slot, follower.slot)
            self._active.append(follower)
        for one in runs:
            if not one.over:  # a failure of one ends all
                events += self._sample(one, output)
        return events

    def _sample(self, run: _Run, output: int) -> list[RequestEvent]:
        assert self._open is not None
        context = self._open.context
        try:
            token = run.sampler.sample(context, output, may_end=run.may_end, free=run.thinking)
        except GrammarError as error:
            return self._refuse(run, str(error))
        self._decode_tokens += 1
        if self._vocab.ends(token) or token in run.request.stop_tokens:
            events = run.end("stop")
        else:
            run.tokens.append(token)
            events = run.take(self._vocab.piece(token), run.sampler.logprob(context, output, token))
        if run.over:
            self._release(run)
        return events

    def _refuse(self, run: _Run, message: str) -> list[RequestEvent]:
        """The answer cannot go on; its request ends."""
        request_id = run.request.request_id
        for one in self._runs_of({request_id}):
            one.over = True
            self._release(one)
        return [Refused(request_id, message, "Change the grammar or the schema.", code="invalid_format")]

    def _fail(self, runs: list[_Run], failure: int) -> list[RequestEvent]:
        """llama.cpp could not decode: these requests end and their slots are emptied; the others go on."""
        ids = dict.fromkeys(run.request.request_id for run in runs)
        for run in self._runs_of(set(ids)):
            self._release(run)
            self._cells.empty(run.slot)
        message = f"llama.cpp could not decode the batch (code {failure})."
        hint = "Send it again; if that repeats, reload the model and look at its log lines."
        return [Refused(one, message, hint, code="decode_failed", status=500) for one in ids]

    def stats(self) -> Stats:
        """Totals since the load."""
        computed = self._prefill_tokens + self._embedder.prefill_tokens
        return Stats(computed, self._decode_tokens, tuple(len(s.held) for s in self._slots))

    def close(self) -> None:
        """Free everything."""
        for run in self._runs_of({r.request.request_id for r in self._active}):
            self._release(run)
        if self._open is not None:
            self._embedder.close()
            self._chains.close()
            self._open.close()
            self._open = None
