"""Sampling fields of OpenAI bodies, with those that llama.cpp's and vLLM's servers add. Pure functions; no I/O."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from laya_desktop.node.engines.base import Sampling
from laya_desktop.node.server.faults import invalid

Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Last = Annotated[int, msgspec.Meta(ge=-1)]

_RANDOM_SEED = -1
_SEED_MASK = 0xFFFF_FFFF
_SAME = (
    "temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "typical_p", "top_n_sigma",
    "repeat_last_n", "dynatemp_range", "dynatemp_exponent", "mirostat", "mirostat_tau", "mirostat_eta",
    "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "xtc_probability", "xtc_threshold",
)  # fmt: skip
"""Fields that engines call the same."""


class SamplingBody(msgspec.Struct, kw_only=True):
    """What chat and text completions share; null means not given."""

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    min_p: Share | None = None
    repeat_penalty: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: int | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None
    typical_p: Share | None = None
    top_n_sigma: float | None = None
    repeat_last_n: Last | None = None
    dynatemp_range: NotNegative | None = None
    dynatemp_exponent: NotNegative | None = None
    mirostat: Literal[0, 1, 2] | None = None
    mirostat_tau: NotNegative | None = None
    mirostat_eta: NotNegative | None = None
    dry_multiplier: NotNegative | None = None
    dry_base: NotNegative | None = None
    dry_allowed_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dry_penalty_last_n: Last | None = None
    dry_sequence_breakers: list[str] | None = None
    xtc_probability: Share | None = None
    xtc_threshold: Share | None = None


def sampling_of(body: SamplingBody) -> Sampling:
    """The settings as engines take them. Raises LayaError naming the field."""
    given: dict[str, Any] = {n: v for n in _SAME if (v := getattr(body, n)) is not None}
    if body.top_k is not None:
        given["top_k"] = max(body.top_k, 0)
    penalty = body.repeat_penalty if body.repeat_penalty is not None else body.repetition_penalty
    if penalty is not None:
        given["repeat_penalty"] = penalty
    if body.seed is not None and body.seed != _RANDOM_SEED:
        given["seed"] = body.seed & _SEED_MASK
    if body.logit_bias:
        given["logit_bias"] = {_token_id(k): v for k, v in body.logit_bias.items()}
    if body.dry_sequence_breakers is not None:
        given["dry_sequence_breakers"] = tuple(body.dry_sequence_breakers)
    return Sampling(**given)


def _token_id(key: str) -> int:
    if not key.isascii() or not key.isdigit():
        raise invalid(
            f"logit_bias: '{key}' is not a token id.", "logit_bias", hint="Use the token's number as the key."
        )
    return int(key)
