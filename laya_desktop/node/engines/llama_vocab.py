"""Text to tokens and back, with a model's own vocabulary. Worker only."""

from __future__ import annotations

import ctypes

import llama_cpp.llama_cpp as lib

_CONTROL, _UNKNOWN = 1 << 3, 1 << 0


class Vocab:
    """The vocabulary of a loaded model. Valid while the model is."""

    def __init__(self, model: ctypes.c_void_p) -> None:
        self._vocab = lib.llama_model_get_vocab(model)
        self.size = int(lib.llama_vocab_n_tokens(self._vocab))
        self.bos = int(lib.llama_vocab_bos(self._vocab))
        self.eos = int(lib.llama_vocab_eos(self._vocab))
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self._vocab)) and self.bos >= 0
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(512)
        self._ends: dict[int, bool] = {}

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        """Tokens of a text, nothing added.

        Args:
            text: any text.
            parse_special: read ``<|im_end|>`` and the like as control tokens, not as letters.
        """
        data = text.encode("utf-8", "replace")
        room = len(data) + 16
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, data, len(data), tokens, room, False, parse_special)
        if count < 0:
            tokens = (lib.llama_token * -count)()
            count = lib.llama_tokenize(self._vocab, data, len(data), tokens, -count, False, parse_special)
        return tokens[:count]

    def with_bos(self, tokens: list[int]) -> list[int]:
        """The tokens with a beginning of text before them, where the model wants one and none is there."""
        if self.adds_bos and tokens[:1] != [self.bos]:
            return [self.bos, *tokens]
        return tokens

    def piece(self, token: int) -> bytes:
        """The bytes of a token, possibly a part of a character; empty for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            size = lib.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, False)
            if size < 0:
                self._buffer = ctypes.create_string_buffer(-size)
                size = lib.llama_token_to_piece(self._vocab, token, self._buffer, -size, 0, False)
            known = self._pieces[token] = self._buffer.raw[:size]
        return known

    def ends(self, token: int) -> bool:
        """True for every token that ends a generation (EOS, EOT …)."""
        known = self._ends.get(token)
        if known is None:
            known = self._ends[token] = bool(lib.llama_vocab_is_eog(self._vocab, token))
        return known

    def text(self, token: int) -> str:
        """A token as the vocabulary spells it (``<s>``); empty where there is none."""
        raw = lib.llama_vocab_get_text(self._vocab, token) if token >= 0 else None
        return raw.decode("utf-8", "replace") if raw else ""

    def control_texts(self) -> list[str]:
        """Spellings that ``parse_special`` reads as control tokens."""
        attr = lib.llama_vocab_get_attr
        marked = (i for i in range(self.size) if attr(self._vocab, i) & (_CONTROL | _UNKNOWN))
        return [t for i in marked if (t := self.text(i))]

    def suppressed(self) -> list[int]:
        """Tokens that the model's file says must never be drawn."""
        count = ctypes.c_int32()
        tokens = lib.llama_vocab_get_suppress_tokens(self._vocab, ctypes.byref(count))
        return [int(tokens[i]) for i in range(count.value)] if tokens else []
