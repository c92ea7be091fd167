"""OpenAI answer bodies, whole and as stream chunks. Pure; bytes out, no I/O.

The constant parts of a chunk are encoded once per answer: one token then costs one small JSON string.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Finished
    from laya_desktop.node.records import RequestRecord

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
    """Bodies of one answer: ``chat`` or text completion."""

    def __init__(self, request_id: str, model: str, *, chat: bool, include_usage: bool) -> None:
        self._chat = chat
        self._include_usage = include_usage
        kind = "chat.completion.chunk" if chat else "text_completion"
        self._frame: dict[str, Any] = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{request_id}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }
        before, after = self._chunk_bytes("\x00").split(_encode("\x00"))
        self._before, self._after = before, after

    def whole(self, text: str, outcome: Outcome) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": outcome.finish_reason}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        kind = "chat.completion" if self._chat else "text_completion"
        return {
            **self._frame,
            "object": kind,
            "choices": [choice],
            "usage": outcome.usage,
            "timings": outcome.timings,
        }

    def opening(self) -> bytes:
        """The first chunk of a chat, which names the role; nothing for a text completion."""
        if not self._chat:
            return b""
        return sse(self._chunk([_choice({"role": "assistant", "content": ""}, chat=True)]))

    def delta(self, text: str) -> bytes:
        """A chunk with new text."""
        return b"%b%b%b" % (self._before, _encode(text), self._after)

    def closing(self, outcome: Outcome) -> bytes:
        """The last chunks, with ``[DONE]``."""
        last = _choice({} if self._chat else "", chat=self._chat, finish_reason=outcome.finish_reason)
        end = sse({**self._chunk([last]), "timings": outcome.timings})
        if self._include_usage:
            end += sse({**self._chunk([]), "usage": outcome.usage, "timings": outcome.timings})
        return end + DONE

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        chunk = {**self._frame, "choices": choices}
        if self._include_usage:
            chunk["usage"] = None
        return chunk

    def _chunk_bytes(self, text: str) -> bytes:
        return sse(self._chunk([_choice({"content": text} if self._chat else text, chat=self._chat)]))


def _choice(part: dict[str, str] | str, *, chat: bool, finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta" if chat else "text": part, "logprobs": None, "finish_reason": finish_reason}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
