"""Tells text, thinking and tool calls apart in what a model writes, as it writes it. Pure; runs in the worker.

Nothing is given out while it may still turn out to be something else: the beginning of a mark waits, white space before
a call waits. What looked like a call and is none is given out as the text it was.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from laya_desktop.node.engines.base import ToolCallPart
from laya_desktop.node.engines.call_reader import CallReader
from laya_desktop.node.engines.dialect import (
    CALL_CLOSE,
    CALL_OPEN,
    MISTRAL_ARGS,
    MISTRAL_CALLS,
    PYTHON_TAG,
    Dialect,
)

_Mode = Literal["start", "think", "text", "call", "name", "arguments", "called", "closed"]

_SPACE = " \t\r\n"
_LETTERS = string.ascii_letters + string.digits
_ID_LETTERS = 9
"""Mistral's templates insist on exactly nine letters or digits."""


@dataclass
class Parts:
    """What came out of some text."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCallPart] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.text or self.reasoning or self.calls)


class Reply:
    """One answer on its way.

    Attributes:
        calls_done: complete calls so far.
    """

    def __init__(self, dialect: Dialect, tools: Collection[str] | None = None, *, thinking: bool = False) -> None:
        """Begin.

        Args:
            dialect: how the model writes.
            tools: names of the tools it may call; None: calls are not looked for.
            thinking: the prompt ended with the mark that opens thinking.
        """
        self.calls_done = 0
        self._style = dialect.calls
        self._open, self._close = dialect.thinking or ("", "")
        self._tools = tools
        self._mode: _Mode = "think" if thinking else "start"
        self._held = ""
        self._thought = False
        self._reader = CallReader()
        self._calls = 0
        self._named = False
        """Of the call being read: it is one for sure, and was given out."""
        self._raw = ""
        """The call as it was written, for the case that it is none."""

    @property
    def thinking(self) -> bool:
        """True while the model is inside its thinking."""
        return self._mode == "think"

    @property
    def called(self) -> bool:
        """True once the answer has a call."""
        return self._calls > 0

    def push(self, text: str) -> Parts:
        """More of the answer."""
        self._held += text
        parts = Parts()
        while self._held and self._BY_MODE[self._mode](self, parts):
            pass
        return parts

    def flush(self) -> Parts:
        """What was still held back, at the end."""
        parts = Parts()
        if self._mode in ("call", "name") and not self._named:
            self._give_up(parts)
        if self._mode == "think":
            parts.reasoning += self._held
        elif self._mode in ("start", "text"):
            parts.text += self._held
        self._held = ""
        return parts

    # -- each mode takes from ``_held``; True: look again

    def _in_start(self, parts: Parts) -> bool:
        """Nothing but white space so far."""
        body = self._held.lstrip(_SPACE)
        if self._open and body.startswith(self._open):
            self._held, self._mode = body[len(self._open) :], "think"
            return True
        looks_for = [self._open] if self._open else []
        raw_json = self._tools is not None and self._style == "llama3"
        looks_for += [PYTHON_TAG] if raw_json else []
        if any(mark.startswith(body) for mark in looks_for):
            return False
        if raw_json and body.startswith((PYTHON_TAG, "{")):
            self._begin_call(body.removeprefix(PYTHON_TAG), raw=self._held[: len(self._held) - len(body)])
        else:
            self._mode = "text"
        return True

    def _in_think(self, parts: Parts) -> bool:
        if not self._thought:
            self._held = self._held.lstrip(_SPACE)
            self._thought = bool(self._held)
        at = self._held.find(self._close)
        if at < 0:
            parts.reasoning += self._take(len(self._held) - _uncertain(self._held, self._close))
            return False
        parts.reasoning += self._take(at).rstrip(_SPACE)
        self._held, self._mode = self._held[len(self._close) :], "closed"
        return True

    def _in_closed(self, parts: Parts) -> bool:
        """White space after thinking and between calls is nobody's text."""
        self._held = self._held.lstrip(_SPACE)
        if self._held:
            self._mode = "text" if self.called else "start"
        return bool(self._held)

    def _in_text(self, parts: Parts) -> bool:
        if self._tools is None or self._style == "llama3":
            parts.text += self._take(len(self._held))
            return False
        mark = CALL_OPEN if self._style == "hermes" else MISTRAL_CALLS
        at = self._held.find(mark)
        if at < 0:
            parts.text += self._take(len(self._held) - _uncertain(self._held, mark))
            return False
        before = self._take(at)
        shown = before.rstrip(_SPACE)
        parts.text += shown
        self._begin_call(self._held[len(mark) :], raw=before[len(shown) :] + mark)
        return True

    def _begin_call(self, held: str, raw: str) -> None:
        self._held, self._raw = held, raw
        self._reader, self._named = CallReader(), False
        self._mode = "name" if self._style == "mistral_args" else "call"

    def _in_name(self, parts: Parts) -> bool:
        """``name[ARGS]{…}``; or an array of objects, as older models of the family write."""
        body = self._held.lstrip(_SPACE)
        if body[:1] in ("[", "{"):
            self._mode = "call"
            return True
        at = min((i for i in (body.find(MISTRAL_ARGS), body.find("{")) if i >= 0), default=-1)
        if at < 0:
            return False
        name = body[:at].partition("[CALL_ID]")[0].strip()
        if not name or any(c in _SPACE for c in name):
            self._give_up(parts)
            return False
        self._name(parts, name)
        self._reader.push(f'{{"name": {json.dumps(name)}, "arguments": ')
        self._held, self._mode = body[at:].removeprefix(MISTRAL_ARGS), "arguments"
        return True

    def _in_arguments(self, parts: Parts) -> bool:
        """The object after ``[ARGS]``, read as what follows a name."""
        held, self._held = self._held, ""
        for at, letter in enumerate(held):
            self._argue(parts, self._reader.push(letter))
            if self._reader.argued:
                self.calls_done += 1
                self._held, self._mode = held[at + 1 :], "called"
                return True
        return False

    def _in_call(self, parts: Parts) -> bool:
        body, self._held = self._held, ""
        self._raw += body
        if self._reader.untouched and self._style.startswith("mistral"):
            body = body.lstrip(_SPACE).removeprefix("[")
        arguments = self._reader.push(body)
        name = self._reader.name
        if name is not None and not self._named and not self._reader.failed:
            if self._style == "llama3" and self._tools is not None and name not in self._tools:
                self._reader.failed = True  # plain JSON that happens to have a name
            else:
                self._name(parts, name)
        if self._reader.failed and not self._named:
            self._give_up(parts)
            return False
        self._argue(parts, arguments)
        if self._reader.done or self._reader.failed:
            self.calls_done += 1
            self._held, self._mode = self._reader.rest, "called"
        return bool(self._held)

    def _in_called(self, parts: Parts) -> bool:
        """Closing marks and separators, then another call or text."""
        body = self._held.lstrip(_SPACE)
        if self._style == "hermes":
            if CALL_CLOSE.startswith(body):
                return False
            self._held, self._mode = body.removeprefix(CALL_CLOSE), "closed"
            return True
        body = body.lstrip(",;]" + _SPACE)
        self._held = body
        if body.startswith("{") and self._style != "mistral_args":
            self._begin_call(body, raw="")
        elif body:
            self._mode = "text"
        return bool(body)

    _BY_MODE: ClassVar[dict[_Mode, Callable[[Reply, Parts], bool]]] = {
        "start": _in_start,
        "think": _in_think,
        "closed": _in_closed,
        "text": _in_text,
        "name": _in_name,
        "arguments": _in_arguments,
        "call": _in_call,
        "called": _in_called,
    }

    # -- helpers

    def _name(self, parts: Parts, name: str) -> None:
        call_id = "".join(secrets.choice(_LETTERS) for _ in range(_ID_LETTERS))
        parts.calls.append(ToolCallPart(self._calls, call_id, name))
        self._calls += 1
        self._named = True

    def _argue(self, parts: Parts, arguments: str) -> None:
        if arguments:
            parts.calls.append(ToolCallPart(self._calls - 1, arguments=arguments))

    def _give_up(self, parts: Parts) -> None:
        """It was no call: text after all."""
        parts.text += self._raw + self._held
        self._raw, self._held, self._mode = "", "", "text"

    def _take(self, count: int) -> str:
        out, self._held = self._held[:count], self._held[count:]
        return out


def _uncertain(text: str, mark: str) -> int:
    """Length of the end that waits: a begun mark, with the white space before it."""
    begun = next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-n:])), 0)
    body = text[: len(text) - begun]
    return begun + len(body) - len(body.rstrip(_SPACE))
