"""Drawing the next token from one row of logits with PyTorch. Worker only; the same order and meaning as llama.cpp's.

Bias, penalties (over the last 64 tokens), top_k, top_p, min_p, temperature, draw. Each request has a generator of its
own, so that its seed gives the same answer whoever else is being served.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import torch

from laya_desktop.node.engines.base import Sampling

PENALTY_LAST_N = 64
_SEED_MASK = 0xFFFF_FFFF_FFFF_FFFF


def complaint(sampling: Sampling, vocab_size: int) -> tuple[str, str] | None:
    """Field and sentence for a value that cannot be used, or None."""
    for field in ("temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty"):
        if not math.isfinite(getattr(sampling, field)):
            return field, f"{field} must be a finite number."
    if sampling.temperature < 0:
        return "temperature", f"temperature is {sampling.temperature}; it must not be negative."
    if sampling.repeat_penalty <= 0:
        return "repeat_penalty", f"repeat_penalty is {sampling.repeat_penalty}; it must be above 0."
    for token, bias in sampling.logit_bias.items():
        if not 0 <= token < vocab_size:
            return "logit_bias", f"logit_bias names token {token}; this model's tokens are 0 to {vocab_size - 1}."
        if not math.isfinite(bias):
            return "logit_bias", f"logit_bias of token {token} must be a finite number."
    return None


class Sampler:
    """Draws for one request; remembers what it needs for penalties."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        self._sampling = sampling
        self._recent: deque[int] = deque(prompt[-PENALTY_LAST_N:], PENALTY_LAST_N)
        self._generator = torch.Generator()
        seed = secrets.randbits(63) if sampling.seed is None else sampling.seed & _SEED_MASK
        self._generator.manual_seed(seed)

    def sample(self, logits: Any) -> int:
        """The next token.

        Args:
            logits: one float32 row on the CPU, of the vocabulary's length; changed in place.
        """
        sampling = self._sampling
        for token, bias in sampling.logit_bias.items():
            logits[token] += bias
        self._penalise(logits)
        token = int(logits.argmax()) if sampling.temperature == 0 else self._draw(logits)
        self._recent.append(token)
        return token

    def _penalise(self, logits: Any) -> None:
        sampling = self._sampling
        if (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty) == (1.0, 0.0, 0.0):
            return
        counts = Counter(self._recent)
        tokens = torch.tensor(list(counts))
        times = torch.tensor(list(counts.values()), dtype=logits.dtype)
        values = logits[tokens]
        repeat = sampling.repeat_penalty
        values = torch.where(values > 0, values / repeat, values * repeat)
        logits[tokens] = values - times * sampling.frequency_penalty - sampling.presence_penalty

    def _draw(self, logits: Any) -> int:
        sampling = self._sampling
        count = sampling.top_k if 0 < sampling.top_k < logits.numel() else logits.numel()
        values, tokens = torch.topk(logits, count)
        if sampling.top_p < 1:
            shares = values.softmax(-1)
            kept = shares.cumsum(-1) - shares < sampling.top_p
            kept[0] = True
            values, tokens = values[kept], tokens[kept]
        if sampling.min_p > 0:
            kept = values >= values[0] + math.log(min(sampling.min_p, 1.0))
            values, tokens = values[kept], tokens[kept]
        shares = (values / sampling.temperature).softmax(-1)
        return int(tokens[torch.multinomial(shares, 1, generator=self._generator)])
