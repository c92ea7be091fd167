"""OpenAI answer bodies, whole and as stream chunks. Pure; bytes out, no I/O.

The constant parts of a chunk are encoded once per answer: one token then costs one small JSON string.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from laya_desktop.node.server.logprob_shapes import chat_logprobs, letters, text_logprobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laya_desktop.errors import LayaError
    from laya_desktop.node.engines.base import Delta, Finished, Started, TokenLogprob, ToolCallPart
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.server.choices import Choice, Choices

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.encode


def sse(value: Any) -> bytes:
    """One server-sent event with a JSON value."""
    return b"data: %b\n\n" % _encode(value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a generation ended, with the figures that answers report."""

    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    queue_ms: float | None
    prefill_ms: float | None
    ttft_ms: float | None
    decode_tokens_per_s: float | None

    @classmethod
    def of(cls, finished: Finished, record: RequestRecord) -> Outcome:
        """From the engine's last event and what the node noted."""
        return cls(
            finish_reason=finished.finish_reason,
            prompt_tokens=finished.prompt_tokens,
            completion_tokens=finished.completion_tokens,
            cached_tokens=finished.cached_tokens,
            reasoning_tokens=finished.reasoning_tokens,
            queue_ms=_ms(record.queue_s),
            prefill_ms=_ms(finished.prefill_s),
            ttft_ms=_ms(record.ttft_s),
            decode_tokens_per_s=_rounded(record.decode_tokens_per_s),
        )

    @property
    def usage(self) -> dict[str, Any]:
        """OpenAI's ``usage``."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }

    @property
    def timings(self) -> dict[str, float | None]:
        """Our addition to the wire format; unknown is null."""
        return {
            "queue_ms": self.queue_ms,
            "prefill_ms": self.prefill_ms,
            "ttft_ms": self.ttft_ms,
            "decode_tokens_per_s": self.decode_tokens_per_s,
        }


class Completion:
    """Bodies of one request: ``chat`` or text completion, one answer or several."""

    def __init__(
        self,
        request_id: str,
        model: str,
        *,
        chat: bool,
        include_usage: bool,
        count: int = 1,
        logprobs: bool = False,
    ) -> None:
        self._chat = chat
        self._include_usage = include_usage
        self._logprobs = logprobs
        self._open = list(range(count))
        """Answers whose end has not been said yet."""
        self._offsets = [0] * count
        kind = "chat.completion.chunk" if chat else "text_completion"
        self._frame: dict[str, Any] = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{request_id}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }
        before, after = self._chunk_bytes("\x00").split(_encode("\x00"))
        self._before, self._after = before, after

    def whole(self, choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        kind = "chat.completion" if self._chat else "text_completion"
        shown = [self._whole_choice(i, choice, outcome) for i, choice in enumerate(choices.items)]
        return {
            **self._frame,
            "object": kind,
            "choices": shown,
            "usage": outcome.usage,
            "timings": outcome.timings,
        }

    def opening(self, _started: Started) -> bytes:
        """The first chunks of a chat, which name the role; nothing for a text completion."""
        if not self._chat:
            return b""
        role = {"role": "assistant", "content": ""}
        return b"".join(sse(self._chunk([_choice(role, index, chat=True)])) for index in self._open)

    def delta(self, event: Delta) -> bytes:
        """The chunk of a piece; empty where there is nothing to say."""
        plain = not (event.index or event.reasoning or event.tool_calls or event.logprobs or event.finish_reason)
        if plain:
            return b"%b%b%b" % (self._before, _encode(event.text), self._after) if event.text else b""
        part: dict[str, Any] | str = _message_part(event) if self._chat else event.text
        logprobs = self._shape_logprobs(event.logprobs, event.index) if event.logprobs else None
        reason = event.finish_reason
        if reason is not None:
            self._open.remove(event.index)
        return sse(self._chunk([_choice(part, event.index, chat=self._chat, finish_reason=reason, logprobs=logprobs)]))

    def closing(self, outcome: Outcome) -> bytes:
        """The last chunks, with ``[DONE]``."""
        part: dict[str, Any] | str = {} if self._chat else ""
        ends = [_choice(part, i, chat=self._chat, finish_reason=outcome.finish_reason) for i in self._open]
        end = b"".join(sse({**self._chunk([last]), "timings": outcome.timings}) for last in ends)
        if self._include_usage:
            end += sse({**self._chunk([]), "usage": outcome.usage, "timings": outcome.timings})
        return end + DONE

    def failed(self, error: LayaError) -> bytes:
        """The error as an event."""
        return sse(error.to_wire())

    def _whole_choice(self, index: int, choice: Choice, outcome: Outcome) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "index": index,
            "logprobs": self._shape_logprobs(choice.logprobs, index) if self._logprobs else None,
            "finish_reason": choice.finish_reason or outcome.finish_reason,
        }
        if not self._chat:
            return shown | {"text": choice.text}
        message: dict[str, Any] = {"role": "assistant", "content": choice.text}
        if choice.reasoning:
            message["reasoning_content"] = "".join(choice.reasoning)
        if choice.calls:
            message["content"] = choice.text or None
            message["tool_calls"] = [_call(call.call_id, call.name, "".join(call.arguments)) for call in choice.calls]
        return shown | {"message": message}

    def _shape_logprobs(self, tokens: Sequence[TokenLogprob], index: int) -> dict[str, Any]:
        if self._chat:
            return chat_logprobs(tokens)
        offset = self._offsets[index]
        self._offsets[index] += letters(tokens)
        return text_logprobs(tokens, offset)

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        chunk = {**self._frame, "choices": choices}
        if self._include_usage:
            chunk["usage"] = None
        return chunk

    def _chunk_bytes(self, text: str) -> bytes:
        return sse(self._chunk([_choice({"content": text} if self._chat else text, chat=self._chat)]))


def _message_part(event: Delta) -> dict[str, Any]:
    part: dict[str, Any] = {}
    if event.reasoning:
        part["reasoning_content"] = event.reasoning
    if event.text:
        part["content"] = event.text
    if event.tool_calls:
        part["tool_calls"] = [_call_part(call) for call in event.tool_calls]
    return part


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _call_part(part: ToolCallPart) -> dict[str, Any]:
    if part.name is not None:
        return {"index": part.index, **_call(part.call_id or "", part.name, part.arguments)}
    return {"index": part.index, "function": {"arguments": part.arguments}}


def _choice(
    part: dict[str, Any] | str,
    index: int = 0,
    *,
    chat: bool,
    finish_reason: str | None = None,
    logprobs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "index": index,
        "delta" if chat else "text": part,
        "logprobs": logprobs,
        "finish_reason": finish_reason,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
