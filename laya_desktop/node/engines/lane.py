"""One request in its slot: what every engine counts, limits and reports the same way. Pure; the worker's thread.

Also the checks that come before a slot is given. No engine repeats them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from laya_desktop.node.engines.base import Delta, Finished, Generate, Prefilled, Refused, RequestEvent, Started
from laya_desktop.node.engines.text import TextStream

FinishReason = Literal["stop", "length", "cancelled"]


def refusal(request: Generate, prompt_tokens: int, max_seq_len: int) -> Refused | None:
    """Why a request cannot be served, or None. Lengths are in tokens."""
    if prompt_tokens == 0:
        return Refused(request.request_id, "The prompt is empty.", "Send at least one token.", param="prompt")
    if prompt_tokens >= max_seq_len:
        return Refused(
            request.request_id,
            f"The prompt has {prompt_tokens} tokens; this model's context holds {max_seq_len} with the answer.",
            f"Shorten it to at most {max_seq_len - 1} tokens, or raise the model's max_seq_len.",
            code="context_length_exceeded",
            param="messages" if request.messages is not None else "prompt",
        )
    if request.max_tokens is not None and request.max_tokens < 1:
        return Refused(
            request.request_id, f"max_tokens is {request.max_tokens}; it must be at least 1.", param="max_tokens"
        )
    return None


class Lane:
    """A request that holds a slot."""

    def __init__(
        self,
        request: Generate,
        slot_id: int,
        prompt_tokens: int,
        max_seq_len: int,
        cached_tokens: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.request = request
        self.slot_id = slot_id
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = cached_tokens
        self.completion_tokens = 0
        room = max_seq_len - prompt_tokens
        self.limit = room if request.max_tokens is None else min(room, request.max_tokens)
        self._text = TextStream(request.stop)
        self._unsent = 0
        self._clock = clock
        self._began_s = clock()
        self._prefilled_s: float | None = None

    def started(self) -> Started:
        """The first event."""
        return Started(self.request.request_id, self.slot_id, self.prompt_tokens, self.cached_tokens)

    def prefilled(self) -> Prefilled:
        """The prompt is in; decoding begins now."""
        self._prefilled_s = self._clock()
        return Prefilled(self.request.request_id, self._prefilled_s - self._began_s, self.prompt_tokens)

    def take(self, piece: bytes) -> list[RequestEvent]:
        """One decoded token: its text, and ``Finished`` last where it ended the generation."""
        self.completion_tokens += 1
        self._unsent += 1
        events = self._delta(self._text.push(piece))
        if self._text.stopped:
            events.append(self._finished("stop"))
        elif self.completion_tokens >= self.limit:
            events += self.end("length")
        return events

    def end(self, reason: FinishReason) -> list[RequestEvent]:
        """The model or the caller ended the generation: what was held back, then ``Finished``.

        Text held back is not sent to a caller who cancelled.
        """
        events = [] if reason == "cancelled" else self._delta(self._text.flush())
        return [*events, self._finished(reason)]

    def _delta(self, text: str) -> list[RequestEvent]:
        if not text:
            return []
        tokens, self._unsent = self._unsent, 0
        return [Delta(self.request.request_id, text, tokens)]

    def _finished(self, reason: FinishReason) -> Finished:
        prefilled_s = self._prefilled_s
        return Finished(
            self.request.request_id,
            reason,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
            prefill_s=None if prefilled_s is None else prefilled_s - self._began_s,
            decode_s=None if prefilled_s is None else self._clock() - prefilled_s,
        )
