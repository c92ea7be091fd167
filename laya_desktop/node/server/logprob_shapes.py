"""Log probabilities in the two forms of OpenAI's API. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import TokenLogprob


def chat_logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """``logprobs`` of a chat's choice."""
    return {
        "content": [
            {**_entry(t.piece, t.logprob), "top_logprobs": [_entry(piece, value) for piece, value in t.top]}
            for t in tokens
        ],
        "refusal": None,
    }


def text_logprobs(tokens: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """``logprobs`` of a text completion's choice.

    Args:
        tokens: in order.
        offset: letters of the answer before the first of them.
    """
    texts = [_text(t.piece) for t in tokens]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [t.logprob for t in tokens],
        "top_logprobs": [{_text(piece): value for piece, value in t.top} for t in tokens],
        "text_offset": offsets,
    }


def letters(tokens: Sequence[TokenLogprob]) -> int:
    """Letters that the tokens take in ``text_offset``."""
    return sum(len(_text(t.piece)) for t in tokens)


def _entry(piece: bytes, logprob: float) -> dict[str, Any]:
    return {"token": _text(piece), "logprob": logprob, "bytes": list(piece)}


def _text(piece: bytes) -> str:
    return piece.decode("utf-8", "replace")
