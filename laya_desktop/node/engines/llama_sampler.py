"""A sampler chain of llama.cpp for one request. Worker only.

The order is llama.cpp's own: bias, penalties, top_k, top_p, min_p, temperature, draw. Values that llama.cpp asserts on
are refused here: a caller must not be able to end the worker.
"""

from __future__ import annotations

import ctypes
import math
import secrets
from collections.abc import Sequence

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines.base import Sampling

PENALTY_LAST_N = 64
"""llama.cpp's default: penalties look at that many tokens, the prompt's end included."""
_SEED_MASK = 0xFFFFFFFF


def complaint(sampling: Sampling, vocab_size: int) -> tuple[str, str] | None:
    """Field and sentence for a value that cannot be used, or None."""
    for field in ("temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty"):
        if not math.isfinite(getattr(sampling, field)):
            return field, f"{field} must be a finite number."
    if sampling.temperature < 0:
        return "temperature", f"temperature is {sampling.temperature}; it must not be negative."
    if sampling.repeat_penalty <= 0:
        return "repeat_penalty", f"repeat_penalty is {sampling.repeat_penalty}; it must be above 0."
    if not -(2**31) <= sampling.top_k < 2**31:
        return "top_k", f"top_k is {sampling.top_k}; it must fit into 32 bits."
    for token, bias in sampling.logit_bias.items():
        if not 0 <= token < vocab_size:
            return "logit_bias", f"logit_bias names token {token}; this model's tokens are 0 to {vocab_size - 1}."
        if not math.isfinite(bias):
            return "logit_bias", f"logit_bias of token {token} must be a finite number."
    return None


class Sampler:
    """Draws the next token; remembers what it needs for penalties."""

    def __init__(self, sampling: Sampling, vocab_size: int, suppressed: Sequence[int] = ()) -> None:
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        self._chain = lib.llama_sampler_chain_init(params)
        biases = dict.fromkeys(suppressed, -math.inf) | sampling.logit_bias
        if biases:
            entries = (lib.llama_logit_bias * len(biases))(*(lib.llama_logit_bias(t, b) for t, b in biases.items()))
            self._add(lib.llama_sampler_init_logit_bias(vocab_size, len(biases), entries))
        penalties = (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty)
        self._looks_back = penalties != (1.0, 0.0, 0.0)
        if self._looks_back:
            self._add(lib.llama_sampler_init_penalties(vocab_size, PENALTY_LAST_N, *penalties))
        if sampling.temperature == 0:
            self._add(lib.llama_sampler_init_greedy())
            return
        self._add(lib.llama_sampler_init_top_k(sampling.top_k))
        self._add(lib.llama_sampler_init_top_p(sampling.top_p, 1))
        self._add(lib.llama_sampler_init_min_p(sampling.min_p, 1))
        self._add(lib.llama_sampler_init_temp(sampling.temperature))
        self._add(lib.llama_sampler_init_dist(draw_seed(sampling.seed)))

    def _add(self, sampler: object) -> None:
        lib.llama_sampler_chain_add(self._chain, sampler)

    def see_prompt(self, tokens: Sequence[int]) -> None:
        """Let the penalties know the end of the prompt."""
        if self._looks_back:
            for token in tokens[-PENALTY_LAST_N:]:
                lib.llama_sampler_accept(self._chain, token)

    def sample(self, context: ctypes.c_void_p, index: int) -> int:
        """The next token from the logits of the batch's entry ``index``."""
        return int(lib.llama_sampler_sample(self._chain, context, index))

    def close(self) -> None:
        """Free it. Idempotent."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None


def draw_seed(seed: int | None) -> int:
    """A 32-bit seed; never the value that llama.cpp reads as "random"."""
    if seed is None:
        return secrets.randbelow(_SEED_MASK)
    masked = seed & _SEED_MASK
    return masked if masked != lib.LLAMA_DEFAULT_SEED else masked - 1
