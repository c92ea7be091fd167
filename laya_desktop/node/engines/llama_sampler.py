"""Draws the tokens of one answer. Worker only.

The plain case is one call into llama.cpp. A grammar is asked about the token that the chain drew first, and restricts
the whole vocabulary (some milliseconds) only where that one is not allowed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines.base import Generate, TokenLogprob
from laya_desktop.node.engines.llama_candidates import Candidates
from laya_desktop.node.engines.llama_chain import Chains
from laya_desktop.node.engines.llama_grammar import Grammar


class Sampler:
    """Draws the next token; remembers what it needs for penalties, seeds and the grammar."""

    def __init__(
        self,
        request: Generate,
        index: int,
        chains: Chains,
        candidates: Candidates,
        ends: Sequence[int],
        grammar: Grammar | None = None,
    ) -> None:
        """Begin.

        Args:
            request: with settings that ``llama_chain.complaint`` has nothing against.
            index: of the answer, added to the seed.
            chains: makes its chain.
            candidates: the model's buffer.
            ends: the model's tokens that end an answer.
            grammar: that the answer must follow; closed with this.
        """
        sampling = request.sampling
        seed = None if sampling.seed is None else sampling.seed + index
        self._chain = chains.make(sampling, seed, ends if request.ignore_eos else ())
        self._looks_back = chains.looks_back(sampling)
        self._candidates = candidates
        self._ends = [*ends, *request.stop_tokens]
        self._grammar = grammar
        self._logprobs = request.logprobs

    def see_prompt(self, tokens: Sequence[int]) -> None:
        """Let the penalties know the end of the prompt."""
        if self._looks_back:
            for token in tokens[-self._looks_back :]:
                lib.llama_sampler_accept(self._chain, token)

    def sample(self, context: ctypes.c_void_p, output: int, *, may_end: bool = True, free: bool = False) -> int:
        """The next token from the logits of the batch's entry ``output``.

        Args:
            context: of the model.
            output: index in the batch.
            may_end: False: no end of the text and no stop token.
            free: True: the grammar is not in force yet.

        Raises:
            GrammarError: the grammar leads nowhere.
        """
        grammar = None if free else self._grammar
        if may_end and grammar is None:
            return int(lib.llama_sampler_sample(self._chain, context, output))
        token = self._choose(context, output, may_end, None)
        if grammar is not None and not grammar.allows(token):
            token = self._choose(context, output, may_end, grammar)
        if grammar is not None:
            grammar.accept(token)
        lib.llama_sampler_accept(self._chain, token)
        return token

    def _choose(self, context: ctypes.c_void_p, output: int, may_end: bool, grammar: Grammar | None) -> int:
        candidates = self._candidates
        candidates.fill(context, output)
        if not may_end:
            candidates.forbid(self._ends)
        if grammar is not None:
            grammar.restrict(candidates)
        elif not may_end:
            candidates.drop_impossible()
        lib.llama_sampler_apply(self._chain, ctypes.byref(candidates.array))
        return candidates.selected

    def logprob(self, context: ctypes.c_void_p, output: int, token: int) -> TokenLogprob | None:
        """The drawn token's probability before any setting acted, where the request wants it."""
        if self._logprobs is None:
            return None
        return self._candidates.logprob(context, output, token, self._logprobs)

    def close(self) -> None:
        """Free it. Idempotent."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None
        if self._grammar is not None:
            self._grammar.close()
