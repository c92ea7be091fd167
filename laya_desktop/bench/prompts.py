"""Prompts of a wanted number of tokens, and the bodies that carry them. Pure; any thread.

Every prompt begins differently, so that neither a response cache nor a kept prefix answers for the model. Ordinary
words are about one token each; ``fit`` corrects for what the model's tokeniser and chat template really make of them.
"""

from __future__ import annotations

import json
import random

_WORDS = (
    "river", "stone", "light", "paper", "house", "green", "water", "north", "table", "music", "glass", "cloud", "field",
    "metal", "north", "bread", "horse", "plant", "night", "chair", "ocean", "sound", "train", "world", "apple", "clock",
)  # fmt: skip


def words(count: int, number: int) -> str:
    """``count`` words, others for each ``number``; the same for the same arguments."""
    chosen = random.Random(number)  # noqa: S311 - a prompt, not a secret
    return " ".join(chosen.choice(_WORDS) for _ in range(max(count, 1)))


def fit(wanted_tokens: int, few: tuple[int, int], many: tuple[int, int]) -> int:
    """How many words make ``wanted_tokens``, from two probes (words, tokens); one word at least."""
    per_word = (many[1] - few[1]) / max(many[0] - few[0], 1) or 1.0
    return max(1, round(few[0] + (wanted_tokens - few[1]) / per_word))


def body(model: str, text: str, max_tokens: int) -> bytes:
    """A streamed chat that gives exactly ``max_tokens`` where the engine lets it."""
    return json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
