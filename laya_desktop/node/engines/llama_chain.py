"""Chains of llama.cpp's samplers from a request's settings. Worker only.

The order is llama.cpp's own: bias, penalties, DRY, top-n-sigma, top_k, typical_p, top_p, min_p, XTC, temperature, draw;
mirostat takes the place of everything between the temperature and the draw. Values that llama.cpp asserts on or
allocates by are refused here: a caller must not be able to end the worker.
"""

from __future__ import annotations

import ctypes
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines.base import Sampling
from laya_desktop.node.engines.llama_vocab import Vocab

_SEED_MASK = 0xFFFFFFFF
_MIROSTAT_M = 100
_MOST_BREAKERS, _MOST_BREAKER_LETTERS = 32, 40
_DRY_KEPT = 4
"""Making one goes through the whole vocabulary for every breaker; copying one does not."""
_FINITE = (
    "temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty", "typical_p",
    "top_n_sigma", "dynatemp_range", "dynatemp_exponent", "mirostat_tau", "mirostat_eta", "dry_multiplier", "dry_base",
    "xtc_probability", "xtc_threshold",
)  # fmt: skip
_NOT_NEGATIVE = ("temperature", "dynatemp_range", "mirostat_tau", "mirostat_eta", "dry_multiplier", "xtc_probability")
_WHOLE = ("top_k", "repeat_last_n", "dry_allowed_length", "dry_penalty_last_n")


def complaint(sampling: Sampling, vocab_size: int) -> tuple[str, str] | None:
    """Field and sentence for a value that cannot be used, or None."""
    for field in _FINITE:
        if not math.isfinite(getattr(sampling, field)):
            return field, f"{field} must be a finite number."
    for field in _NOT_NEGATIVE:
        if getattr(sampling, field) < 0:
            return field, f"{field} is {getattr(sampling, field)}; it must not be negative."
    if sampling.repeat_penalty <= 0:
        return "repeat_penalty", f"repeat_penalty is {sampling.repeat_penalty}; it must be above 0."
    for field in _WHOLE:
        if not -(2**31) <= getattr(sampling, field) < 2**31:
            return field, f"{field} is {getattr(sampling, field)}; it must fit into 32 bits."
    breakers = sampling.dry_sequence_breakers
    if len(breakers) > _MOST_BREAKERS or any(len(b) > _MOST_BREAKER_LETTERS or "\0" in b for b in breakers):
        text = f"at most {_MOST_BREAKERS} texts of at most {_MOST_BREAKER_LETTERS} characters"
        return "dry_sequence_breakers", f"dry_sequence_breakers: {text} are possible."
    return _biases_complaint(sampling.logit_bias, vocab_size)


def _biases_complaint(biases: Mapping[int, float], vocab_size: int) -> tuple[str, str] | None:
    for token, bias in biases.items():
        if not 0 <= token < vocab_size:
            return "logit_bias", f"logit_bias names token {token}; this model's tokens are 0 to {vocab_size - 1}."
        if not math.isfinite(bias):
            return "logit_bias", f"logit_bias of token {token} must be a finite number."
    return None


class Chains:
    """Makes chains for one model."""

    def __init__(self, vocab: Vocab, max_seq_len: int) -> None:
        self._vocab = vocab
        self._max_seq_len = max_seq_len
        self._suppressed = vocab.suppressed()
        self._dry: dict[tuple[object, ...], Any] = {}

    def make(self, sampling: Sampling, seed: int | None, never: Sequence[int] = ()) -> Any:
        """A new chain; the caller frees it.

        Args:
            sampling: checked by ``complaint``.
            seed: None: drawn.
            never: tokens that must not be drawn.
        """
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        chain = lib.llama_sampler_chain_init(params)
        for sampler in self._parts(sampling, draw_seed(seed), never):
            lib.llama_sampler_chain_add(chain, sampler)
        return chain

    def looks_back(self, sampling: Sampling) -> int:
        """Tokens of the prompt that the chain must be told about."""
        penalties = self._last_n(sampling.repeat_last_n) if _penalises(sampling) else 0
        dry = self._last_n(sampling.dry_penalty_last_n) if sampling.dry_multiplier else 0
        return max(penalties, dry)

    def close(self) -> None:
        """Free what is kept for copying."""
        for sampler in self._dry.values():
            lib.llama_sampler_free(sampler)
        self._dry.clear()

    def _parts(self, sampling: Sampling, seed: int, never: Sequence[int]) -> list[Any]:
        size = self._vocab.size
        parts = []
        biases = dict.fromkeys((*self._suppressed, *never), -math.inf) | {
            t: b for t, b in sampling.logit_bias.items() if t not in never
        }
        if biases:
            entries = (lib.llama_logit_bias * len(biases))(*(lib.llama_logit_bias(t, b) for t, b in biases.items()))
            parts.append(lib.llama_sampler_init_logit_bias(size, len(biases), entries))
        if _penalises(sampling):
            last_n = self._last_n(sampling.repeat_last_n)
            penalties = (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty)
            parts.append(lib.llama_sampler_init_penalties(size, last_n, *penalties))
        if sampling.dry_multiplier:
            parts.append(self._dry_sampler(sampling))
        if sampling.temperature == 0:
            return [*parts, lib.llama_sampler_init_greedy()]
        if sampling.mirostat:
            return [*parts, lib.llama_sampler_init_temp(sampling.temperature), _mirostat(sampling, size, seed)]
        return [*parts, *_narrowing(sampling, seed), _temperature(sampling), lib.llama_sampler_init_dist(seed)]

    def _dry_sampler(self, sampling: Sampling) -> Any:
        last_n = self._last_n(sampling.dry_penalty_last_n)
        breakers = tuple(b.encode("utf-8", "replace") for b in sampling.dry_sequence_breakers if b)
        settings = (sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length, last_n)
        key = (*settings, breakers)
        if key not in self._dry:
            if len(self._dry) >= _DRY_KEPT:
                lib.llama_sampler_free(self._dry.pop(next(iter(self._dry))))
            texts = (ctypes.c_char_p * len(breakers))(*breakers)
            self._dry[key] = lib.llama_sampler_init_dry(self._vocab.handle, *settings, texts, len(breakers))
        return lib.llama_sampler_clone(self._dry[key])

    def _last_n(self, value: int) -> int:
        return self._max_seq_len if value < 0 else min(value, self._max_seq_len)


def _penalises(sampling: Sampling) -> bool:
    penalties = (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty)
    return penalties != (1.0, 0.0, 0.0) and sampling.repeat_last_n != 0


def _narrowing(sampling: Sampling, seed: int) -> list[Any]:
    """The samplers that leave fewer candidates; those that would change nothing are left out."""
    parts = []
    if sampling.top_n_sigma > 0:
        parts.append(lib.llama_sampler_init_top_n_sigma(sampling.top_n_sigma))
    parts.append(lib.llama_sampler_init_top_k(sampling.top_k))
    if sampling.typical_p < 1:
        parts.append(lib.llama_sampler_init_typical(max(sampling.typical_p, 0.0), 1))
    parts.append(lib.llama_sampler_init_top_p(sampling.top_p, 1))
    parts.append(lib.llama_sampler_init_min_p(sampling.min_p, 1))
    if sampling.xtc_probability > 0:
        parts.append(lib.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, 1, seed))
    return parts


def _temperature(sampling: Sampling) -> Any:
    if sampling.dynatemp_range == 0:
        return lib.llama_sampler_init_temp(sampling.temperature)
    return lib.llama_sampler_init_temp_ext(sampling.temperature, sampling.dynatemp_range, sampling.dynatemp_exponent)


def _mirostat(sampling: Sampling, vocab_size: int, seed: int) -> Any:
    tau, eta = sampling.mirostat_tau, sampling.mirostat_eta
    if sampling.mirostat == 1:
        return lib.llama_sampler_init_mirostat(vocab_size, seed, tau, eta, _MIROSTAT_M)
    return lib.llama_sampler_init_mirostat_v2(seed, tau, eta)


def draw_seed(seed: int | None) -> int:
    """A 32-bit seed; never the value that llama.cpp reads as "random"."""
    if seed is None:
        return secrets.randbelow(_SEED_MASK)
    masked = seed & _SEED_MASK
    return masked if masked != lib.LLAMA_DEFAULT_SEED else masked - 1
