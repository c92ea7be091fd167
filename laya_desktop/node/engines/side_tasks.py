"""Tasks beside answers that every engine does the same way: tokens of a prompt, text of tokens, vectors' last form.

Worker only; pure.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from laya_desktop.node.engines.base import Delta, Finished, Generate, Refused, RequestEvent, Started, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_INPUTS = 2048
"""Texts of one embedding request, as OpenAI's API has it."""


def tokenized(
    request: Generate, slot_id: int, tokens: Sequence[int], piece: Callable[[int], bytes]
) -> list[RequestEvent]:
    """All events of a ``tokenize`` request."""
    found = tuple(tokens)
    pieces = tuple(piece(token) for token in found)
    events: list[RequestEvent] = [Started(request.request_id, slot_id, len(found))]
    return [*events, Tokens(request.request_id, found, pieces), Finished(request.request_id, "stop", len(found), 0)]


def detokenized(request: Generate, slot_id: int, count: int, text: str) -> list[RequestEvent]:
    """All events of a ``detokenize`` request."""
    events: list[RequestEvent] = [Started(request.request_id, slot_id, count)]
    return [*events, Delta(request.request_id, text, 0), Finished(request.request_id, "stop", count, 0)]


def unit_vector(values: Sequence[float], dimensions: int | None) -> bytes:
    """The vector as it is sent: little-endian 32-bit floats of length 1.

    With ``dimensions`` it is cut to its first so many values, which are brought to length 1 again, as OpenAI's API does
    it. That keeps most of the meaning only where a model was trained for it (Matryoshka), which its file does not tell.
    """
    kept = values[:dimensions]
    length = math.sqrt(sum(v * v for v in kept)) or 1.0
    return struct.pack(f"<{len(kept)}f", *(v / length for v in kept))


def embedding_refusal(request: Generate, lengths: Sequence[int], max_seq_len: int, width: int) -> Refused | None:
    """Why texts of so many tokens cannot be embedded with a model that makes vectors of ``width`` values, or None."""
    if request.dimensions is not None and request.dimensions > width:
        text = f"dimensions is {request.dimensions}; this model's vectors have {width} values."
        return Refused(request.request_id, text, f"Ask for {width} or fewer, or leave it out.", param="dimensions")
    if not lengths or len(lengths) > MOST_INPUTS:
        text = f"input has {len(lengths)} texts; 1 to {MOST_INPUTS} are possible."
        return Refused(request.request_id, text, "Send several requests.", param="input")
    for i, length in enumerate(lengths):
        if length == 0:
            return Refused(request.request_id, f"input[{i}] is empty.", "Send at least one token.", param="input")
        if length > max_seq_len:
            return Refused(
                request.request_id,
                f"input[{i}] has {length} tokens; this model's context holds {max_seq_len}.",
                "Shorten it, or raise the model's max_seq_len.",
                code="context_length_exceeded",
                param="input",
            )
    return None
