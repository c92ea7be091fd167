"""The answers of one request, gathered from their pieces for a body that is not streamed. Pure; no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Delta, TokenLogprob, Tokens, Vector


@dataclass(slots=True)
class Call:
    """A tool call; ``arguments`` are pieces of JSON text."""

    call_id: str
    name: str
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Choice:
    """One answer so far."""

    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None
    """None: the request's own."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.texts)


class Choices:
    """All answers, by index."""

    def __init__(self, count: int = 1) -> None:
        self.items = [Choice() for _ in range(count)]
        self.results: list[Vector | Tokens] = []
        """What tasks other than answers gave."""

    def add(self, delta: Delta) -> None:
        """One more piece."""
        choice = self.items[delta.index]
        if delta.text:
            choice.texts.append(delta.text)
        if delta.reasoning:
            choice.reasoning.append(delta.reasoning)
        for part in delta.tool_calls:
            if part.name is not None:
                choice.calls.append(Call(part.call_id or "", part.name))
            if part.arguments:
                choice.calls[part.index].arguments.append(part.arguments)
        choice.logprobs += delta.logprobs
        if delta.finish_reason is not None:
            choice.finish_reason = delta.finish_reason
