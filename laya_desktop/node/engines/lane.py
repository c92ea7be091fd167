"""One answer in its slot: what every engine counts, limits and reports the same way. Pure; the worker's thread.

A request has one answer or several, each in a lane of its own; they share a tally, which makes the events that belong
to the request. Also the checks that come before a slot is given. No engine repeats them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from laya_desktop.node.engines.base import (
    Delta,
    Finished,
    FinishReason,
    Generate,
    Prefilled,
    Refused,
    RequestEvent,
    Started,
    TokenLogprob,
)
from laya_desktop.node.engines.dialect import Dialect
from laya_desktop.node.engines.logprobs import HeldLogprobs
from laya_desktop.node.engines.reply import Parts, Reply
from laya_desktop.node.engines.text import TextStream

MOST_LOGPROBS = 20


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


def too_many_answers(request: Generate, slots: int) -> Refused | None:
    """The refusal of a request for more answers than there are slots, or for none; or None."""
    if 1 <= request.n <= slots:
        return None
    message = f"n is {request.n}; this model decodes at most {slots} answers at once, one in each slot."
    hint = f"Set n to {slots} or less, send several requests, or raise the model's batch_size."
    return Refused(request.request_id, message, hint, code="too_many_choices", param="n")


def reply_of(request: Generate, dialect: Dialect, *, thinking: bool = False) -> Reply | None:
    """What reads a chat's answer; None where there is nothing to tell apart."""
    if request.messages is None or (request.tools is None and dialect.thinking is None):
        return None
    return Reply(dialect, tool_names(request.tools) if request.tools else None, thinking=thinking)


def tool_names(tools: Collection[dict[str, object]]) -> list[str]:
    """Names of tools in OpenAI's form."""
    functions = [tool.get("function") for tool in tools]
    return [str(f.get("name")) for f in functions if isinstance(f, dict)]


class Tally:
    """One request with its answers: times, sums, and whether all are over."""

    def __init__(
        self, request: Generate, prompt_tokens: int, cached_tokens: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.request = request
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = cached_tokens
        self.completion_tokens = 0
        self.reasoning_tokens = 0
        self._clock = clock
        self._began_s = clock()
        self._prefilled_s: float | None = None
        self._reasons: dict[int, FinishReason] = {}

    @property
    def open(self) -> bool:
        """True while an answer is missing."""
        return len(self._reasons) < self.request.n

    def prefilled(self) -> Prefilled:
        """The prompt is in; decoding begins now."""
        self._prefilled_s = self._clock()
        return Prefilled(self.request.request_id, self._prefilled_s - self._began_s, self.prompt_tokens)

    def end(self, index: int, reason: FinishReason) -> list[RequestEvent]:
        """An answer is over; with the last one the request is."""
        self._reasons[index] = reason
        events: list[RequestEvent] = []
        if self.request.n > 1:
            events.append(Delta(self.request.request_id, "", 0, index, finish_reason=reason))
        if not self.open:
            events.append(self.finished(self._reasons.get(0, reason)))
        return events

    def finished(self, reason: FinishReason) -> Finished:
        """The last event."""
        prefilled_s = self._prefilled_s
        return Finished(
            self.request.request_id,
            reason,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
            prefill_s=None if prefilled_s is None else prefilled_s - self._began_s,
            decode_s=None if prefilled_s is None else self._clock() - prefilled_s,
            reasoning_tokens=self.reasoning_tokens,
        )


class Lane:
    """An answer that holds a slot."""

    def __init__(
        self,
        request: Generate,
        slot_id: int,
        prompt_tokens: int,
        max_seq_len: int,
        cached_tokens: int = 0,
        clock: Callable[[], float] = time.monotonic,
        *,
        tally: Tally | None = None,
        index: int = 0,
        reply: Reply | None = None,
    ) -> None:
        """Begin.

        Args:
            request: what is answered.
            slot_id: where.
            prompt_tokens: length of its prompt.
            max_seq_len: tokens that the slot holds.
            cached_tokens: of the prompt, those that need not be computed.
            clock: monotonic seconds.
            tally: shared by the request's answers; None: this is the only one.
            index: of the answer.
            reply: tells its text, thinking and calls apart; None: all is text.
        """
        self.request = request
        self.slot_id = slot_id
        self.prompt_tokens = prompt_tokens
        self.tally = tally or Tally(request, prompt_tokens, cached_tokens, clock)
        self.index = index
        self.completion_tokens = 0
        self.over = False
        room = max_seq_len - prompt_tokens
        self.limit = room if request.max_tokens is None else min(room, request.max_tokens)
        self._text = TextStream(request.stop)
        self._reply = reply
        self._logprobs = HeldLogprobs() if request.logprobs is not None else None
        self._unsent = 0

    @property
    def thinking(self) -> bool:
        """True while the model is inside its thinking."""
        return self._reply is not None and self._reply.thinking

    @property
    def may_end(self) -> bool:
        """False while neither the end of text nor a stop token may be drawn."""
        return self.completion_tokens >= self.request.min_tokens

    def started(self, more_slots: tuple[int, ...] = ()) -> Started:
        """The first event."""
        tally = self.tally
        return Started(self.request.request_id, self.slot_id, tally.prompt_tokens, tally.cached_tokens, more_slots)

    def prefilled(self) -> Prefilled:
        """The prompt is in; decoding begins now."""
        return self.tally.prefilled()

    def take(self, piece: bytes, logprob: TokenLogprob | None = None) -> list[RequestEvent]:
        """One decoded token: its text, and ``Finished`` last where it ended the request."""
        self.completion_tokens += 1
        self.tally.completion_tokens += 1
        self._unsent += 1
        if self.thinking:
            self.tally.reasoning_tokens += 1
        text = self._text.push(piece)
        if self._logprobs is not None and logprob is not None:
            self._logprobs.add(logprob, self._text.seen)
        events = self._given(text)
        if self._text.stopped:
            events += self._end_with("stop")
        elif self.completion_tokens >= self.limit:
            events += self.end("length")
        elif self._reply is not None and self._reply.calls_done and self.request.parallel_tool_calls is False:
            events += self._end_with("stop")
        return events

    def end(self, reason: FinishReason) -> list[RequestEvent]:
        """The model or the caller ended the answer: what was held back, then what says so.

        Text held back is not sent to a caller who cancelled.
        """
        if reason == "cancelled":
            self.over = True
            return [self.tally.finished(reason)]
        return [*self._given(self._text.flush()), *self._end_with(reason)]

    def _end_with(self, reason: FinishReason) -> list[RequestEvent]:
        self.over = True
        events = self._events(self._reply.flush() if self._reply is not None else Parts(), last=True)
        if reason == "stop" and self._reply is not None and self._reply.called:
            reason = "tool_calls"
        return [*events, *self.tally.end(self.index, reason)]

    def _given(self, text: str) -> list[RequestEvent]:
        if self._reply is None:
            return self._events(Parts(text))
        return self._events(self._reply.push(text)) if text else []

    def _events(self, parts: Parts, *, last: bool = False) -> list[RequestEvent]:
        logprobs: tuple[TokenLogprob, ...] = ()
        if self._logprobs is not None and (parts or last):
            logprobs = self._logprobs.take(self._text.given if self._text.stopped or not last else None)
        if not parts and not logprobs:
            return []
        tokens, self._unsent = self._unsent, 0
        return [
            Delta(
                self.request.request_id,
                parts.text,
                tokens,
                self.index,
                parts.reasoning,
                tuple(parts.calls),
                logprobs,
            )
        ]
