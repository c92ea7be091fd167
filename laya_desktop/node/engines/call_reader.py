"""Reads one tool call, a JSON object, as its letters arrive. Pure; runs in the worker.

``{"name": …, "arguments": {…}}`` and its relatives: ``parameters`` for ``arguments``, the two in either order, or both
inside ``function``. The arguments are passed on while they are being written; nothing checks them here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

_ARGUMENTS = ("arguments", "parameters")
_SPACE = " \t\r\n"


class CallReader:
    """One object. Feed it with ``push``; ask ``name``, ``done`` and ``failed``.

    Attributes:
        name: of the function, once it is known.
        done: the object is complete.
        failed: this is no call.
        rest: what came after the object.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.done = False
        self.failed = False
        self.rest = ""
        self._expect = "open"
        self._key = ""
        self._raw = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._kept = ""
        self._gave = False

    @property
    def untouched(self) -> bool:
        """True until the object begins."""
        return self._expect == "open" and not self.failed

    @property
    def argued(self) -> bool:
        """True right after a complete value of ``arguments``."""
        return self._expect == "next" and self._key in _ARGUMENTS

    def push(self, text: str) -> str:
        """More letters. Returns what of the arguments may be passed on; ``name`` is set before anything comes out."""
        out = "".join(self._letters(text))
        if self.name is not None and self._kept:
            out, self._kept = self._kept + out, ""
        self._gave = self._gave or bool(out)
        if self.done and self.name is None:
            self.failed = True
        if self.done and not self._gave:
            self._gave = True
            return "{}"  # a call without arguments
        return out

    def _letters(self, text: str) -> Iterator[str]:
        for at, letter in enumerate(text):
            if self.done or self.failed:
                self.rest = text[at:]
                return
            yield from self._letter(letter)

    def _letter(self, letter: str) -> Iterator[str]:
        if self._expect == "value":
            yield from self._value(letter)
        elif self._expect == "key text":
            self._raw += letter
            if self._ends_string(letter):
                self._key, self._raw, self._expect = _string(self._raw), "", "colon"
        elif letter in _SPACE:
            return
        elif self._expect == "open" and letter == "{":
            self._expect = "key"
        elif self._expect == "key" and letter == '"':
            self._raw, self._expect, self._in_string = letter, "key text", True
        elif self._expect in ("key", "next") and letter == "}":
            self.done = True
        elif self._expect == "next" and letter == ",":
            self._expect = "key"
        elif self._expect == "colon" and letter == ":":
            self._raw, self._depth, self._expect = "", 0, "value"
        else:
            self.failed = True

    def _value(self, letter: str) -> Iterator[str]:
        if not self._raw and letter in _SPACE:
            return
        plain = bool(self._raw) and self._depth == 0 and not self._in_string and self._raw[0] not in '{["'
        if plain and letter in ",}" + _SPACE:
            yield from self._take_value()
            yield from self._letter(letter)
            return
        self._raw += letter
        if self._passes_on:
            yield letter
        if self._in_string:
            ended = self._ends_string(letter) and self._depth == 0
        else:
            self._in_string = letter == '"'
            self._depth += (letter in "{[") - (letter in "}]")
            ended = letter in "}]" and self._depth == 0
        if ended:
            yield from self._take_value()

    @property
    def _passes_on(self) -> bool:
        """True while an arguments object is being written and the name is known."""
        return self._key in _ARGUMENTS and self.name is not None and self._raw[0] == "{"

    def _take_value(self) -> Iterator[str]:
        raw, self._raw, self._expect = self._raw, "", "next"
        if self._key == "name" and raw[0] == '"':
            self.name = _string(raw)
        elif self._key in _ARGUMENTS:
            if self.name is None or raw[0] != "{":
                self._kept = _as_object(raw)
        elif self._key == "function":
            yield from self._take_function(raw)

    def _take_function(self, raw: str) -> Iterator[str]:
        if raw[0] == '"':
            self.name = _string(raw)
            return
        inner = CallReader()
        arguments = inner.push(raw)
        if inner.name is not None:
            self.name = inner.name
            yield arguments

    def _ends_string(self, letter: str) -> bool:
        """Follow a string; True at its closing quote."""
        if self._escaped:
            self._escaped = False
        elif letter == "\\":
            self._escaped = True
        elif letter == '"' and (len(self._raw) > 1 or self._expect == "value"):
            self._in_string = False
            return True
        return False


def _string(raw: str) -> str:
    try:
        value = json.loads(raw, strict=False)
    except ValueError:
        return raw.strip('"')
    return value if isinstance(value, str) else raw


def _as_object(raw: str) -> str:
    """Arguments as the text of an object: some models write them as a string, or null for none."""
    if raw[0] == "{":
        return raw
    inner = _string(raw) if raw[0] == '"' else ""
    return inner if inner.lstrip().startswith("{") else "{}"
