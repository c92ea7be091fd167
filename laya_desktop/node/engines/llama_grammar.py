"""A grammar of llama.cpp in force for one answer: which tokens may come next. Worker only.

llama.cpp throws, and ends the process, when a token is accepted that the grammar does not allow: every token is checked
before. Control tokens are spelt like text to it, so those that are no part of an answer's form are never allowed.
"""

from __future__ import annotations

import ctypes
import struct
import time

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import llama_library
from laya_desktop.node.engines.llama_candidates import Candidates
from laya_desktop.node.engines.llama_vocab import Vocab

STEP_LIMIT_S = 2.0
"""An ambiguous grammar can make one step endless for everybody; beyond this the answer is given up."""


class GrammarError(Exception):
    """The grammar cannot be used, or leads nowhere; the text is fit to show."""


class Grammar:
    """The state of one grammar."""

    def __init__(self, vocab: Vocab, text: str) -> None:
        """Parse. Raises GrammarError with llama.cpp's reason."""
        self._vocab = vocab
        self._one = lib.llama_token_data()
        self._only = lib.llama_token_data_array(ctypes.pointer(self._one), 1, -1, False)
        with llama_library.complaints() as lines:
            self._sampler = lib.llama_sampler_init_grammar(vocab.handle, text.encode(), b"root")
        if not self._sampler:
            self._sampler = None
            raise GrammarError(f"The grammar cannot be read: {_reason(lines)}.")

    def allows(self, token: int) -> bool:
        """True where the token may come next."""
        if token in self._vocab.hidden:
            return False
        ctypes.memmove(ctypes.byref(self._one), struct.pack("iff", token, 1.0, 0.0), ctypes.sizeof(self._one))
        self._only.size, self._only.selected = 1, -1
        self._timed(self._only)
        return float(self._one.logit) > 0

    def restrict(self, candidates: Candidates) -> None:
        """Drop all that may not come next. Raises GrammarError where nothing is left."""
        candidates.forbid(list(self._vocab.hidden))
        self._timed(candidates.array)
        if not candidates.drop_impossible():
            raise GrammarError("The grammar allows none of the model's tokens here.")

    def accept(self, token: int) -> None:
        """The token was drawn; it must be allowed."""
        lib.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Free it. Idempotent."""
        if self._sampler is not None:
            lib.llama_sampler_free(self._sampler)
            self._sampler = None

    def _timed(self, array: lib.llama_token_data_array) -> None:
        began_s = time.monotonic()
        lib.llama_sampler_apply(self._sampler, ctypes.byref(array))
        if time.monotonic() - began_s > STEP_LIMIT_S:
            raise GrammarError(f"The grammar is too ambiguous: one step took more than {STEP_LIMIT_S:g} s.")


def _reason(lines: list[str]) -> str:
    told = (line.removeprefix("parse: ").removeprefix("error parsing grammar: ").strip() for line in lines)
    reason = next((line for line in told if line and line != "failed to parse grammar"), "llama.cpp gave no reason")
    return reason[:200].rstrip(".")
