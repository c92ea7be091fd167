"""What an answer looks like on the wire, as a contract: one API, one shape. Pure; bytes out, no I/O.

Also the blocks (thinking, text, calls) that the APIs newer than chat completions make of an answer's pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laya_desktop.errors import LayaError
    from laya_desktop.node.engines.base import Delta, Started
    from laya_desktop.node.server.choices import Choice, Choices
    from laya_desktop.node.server.completions import Outcome

_encode = msgspec.json.encode


class Shape(Protocol):
    """Bodies of one request's answer."""

    def opening(self, started: Started) -> bytes:
        """What comes first in a stream."""
        ...

    def delta(self, event: Delta) -> bytes:
        """The events of a piece; empty where there is nothing to say."""
        ...

    def closing(self, outcome: Outcome) -> bytes:
        """What comes last in a stream."""
        ...

    def failed(self, error: LayaError) -> bytes:
        """What comes last in a stream that cannot go on."""
        ...

    def whole(self, choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        ...


def named_event(value: dict[str, Any]) -> bytes:
    """A server-sent event whose name is the value's ``type``."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), _encode(value))


Kind = Literal["thinking", "text", "call"]


@dataclass(slots=True)
class Block:
    """A run of thinking or text, or one call of a tool (``pieces`` are then its arguments)."""

    index: int
    kind: Kind
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def content(self) -> str:
        """All of it."""
        return "".join(self.pieces)


Step = tuple[Literal["open", "add", "close"], Block, str]
"""What happened to a block, and the text that was added."""


class Blocks:
    """Cuts one answer's pieces into blocks; one is open at a time.

    Attributes:
        done: the blocks so far, the open one last.
    """

    def __init__(self) -> None:
        self.done: list[Block] = []
        self._open: Block | None = None

    def feed(self, event: Delta) -> Iterator[Step]:
        """One more piece."""
        if event.reasoning:
            yield from self._add("thinking", event.reasoning)
        if event.text:
            yield from self._add("text", event.text)
        for part in event.tool_calls:
            if part.name is not None:
                yield from self._begin(Block(len(self.done), "call", part.call_id or "", part.name))
            if part.arguments and self._open is not None:
                self._open.pieces.append(part.arguments)
                yield "add", self._open, part.arguments

    def end(self) -> Iterator[Step]:
        """The answer is complete."""
        if self._open is not None:
            block, self._open = self._open, None
            yield "close", block, ""

    def _add(self, kind: Kind, text: str) -> Iterator[Step]:
        if self._open is None or self._open.kind != kind:
            yield from self._begin(Block(len(self.done), kind))
        assert self._open is not None
        self._open.pieces.append(text)
        yield "add", self._open, text

    def _begin(self, block: Block) -> Iterator[Step]:
        yield from self.end()
        self._open = block
        self.done.append(block)
        yield "open", block, ""


def blocks_of(choice: Choice) -> list[Block]:
    """The blocks of an answer that was gathered whole."""
    blocks: list[Block] = []
    if choice.reasoning:
        blocks.append(Block(len(blocks), "thinking", pieces=list(choice.reasoning)))
    if choice.text:
        blocks.append(Block(len(blocks), "text", pieces=[choice.text]))
    for call in choice.calls:
        blocks.append(Block(len(blocks), "call", call.call_id, call.name, list(call.arguments)))
    return blocks
