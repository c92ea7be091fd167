"""Text to tokens and back, with a model's own vocabulary. Worker only."""

from __future__ import annotations

import ctypes

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines.dialect import MARKERS

_CONTROL, _UNKNOWN = 1 << 3, 1 << 0


class Vocab:
    """The vocabulary of a loaded model. Valid while the model is.

    Attributes:
        handle: llama.cpp's.
        hidden: control tokens that are no part of an answer's form: people never see them.
        end_tokens: those that end a generation (EOS, EOT …).
    """

    def __init__(self, model: ctypes.c_void_p) -> None:
        self._vocab = self.handle = lib.llama_model_get_vocab(model)
        self.size = int(lib.llama_vocab_n_tokens(self._vocab))
        self.bos = int(lib.llama_vocab_bos(self._vocab))
        self.eos = int(lib.llama_vocab_eos(self._vocab))
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self._vocab)) and self.bos >= 0
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(512)
        attr = lib.llama_vocab_get_attr
        self._control = [i for i in range(self.size) if attr(self._vocab, i) & (_CONTROL | _UNKNOWN)]
        self._shown = {i: text.encode() for i in self._control if (text := self.text(i)) in MARKERS}
        self.end_tokens = [i for i in range(self.size) if lib.llama_vocab_is_eog(self._vocab, i)]
        self._ends = frozenset(self.end_tokens)
        self.hidden = frozenset(self._control) - self._shown.keys() - self._ends

    def tokenize(self, text: str, *, parse_special: bool, add_special: bool = False) -> list[int]:
        """Tokens of a text.

        Args:
            text: any text.
            parse_special: read ``<|im_end|>`` and the like as control tokens, not as letters.
            add_special: add the beginning and the end of text that the model wants.
        """
        data = text.encode("utf-8", "replace")
        room = len(data) + 16
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, data, len(data), tokens, room, add_special, parse_special)
        if count < 0:
            tokens = (lib.llama_token * -count)()
            count = lib.llama_tokenize(self._vocab, data, len(data), tokens, -count, add_special, parse_special)
        return tokens[:count]

    def with_bos(self, tokens: list[int]) -> list[int]:
        """The tokens with a beginning of text before them, where the model wants one and none is there."""
        if self.adds_bos and tokens[:1] != [self.bos]:
            return [self.bos, *tokens]
        return tokens

    def piece(self, token: int) -> bytes:
        """The bytes of a token, possibly a part of a character; empty for control tokens that nobody should see."""
        known = self._pieces.get(token)
        if known is None and token in self._shown:
            known = self._pieces[token] = self._shown[token]
        if known is None:
            size = lib.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, False)
            if size < 0:
                self._buffer = ctypes.create_string_buffer(-size)
                size = lib.llama_token_to_piece(self._vocab, token, self._buffer, -size, 0, False)
            known = self._pieces[token] = self._buffer.raw[:size]
        return known

    def spelling(self, token: int) -> bytes:
        """The bytes of any token, control tokens as the vocabulary spells them."""
        return self.piece(token) or self.text(token).encode()

    def ends(self, token: int) -> bool:
        """True for every token that ends a generation."""
        return token in self._ends

    def text(self, token: int) -> str:
        """A token as the vocabulary spells it (``<s>``); empty where there is none."""
        raw = lib.llama_vocab_get_text(self._vocab, token) if token >= 0 else None
        return raw.decode("utf-8", "replace") if raw else ""

    def control_texts(self) -> list[str]:
        """Spellings that ``parse_special`` reads as control tokens."""
        return [t for i in self._control if (t := self.text(i))]

    def suppressed(self) -> list[int]:
        """Tokens that the model's file says must never be drawn."""
        count = ctypes.c_int32()
        tokens = lib.llama_vocab_get_suppress_tokens(self._vocab, ctypes.byref(count))
        return [int(tokens[i]) for i in range(count.value)] if tokens else []
