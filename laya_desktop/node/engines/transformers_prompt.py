"""From a request to tokens and from tokens to text with a Hugging Face tokenizer. Worker only; knows no PyTorch.

Chats go through the same sandboxed, time-limited template renderer as llama.cpp's models, not through the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laya_desktop.node.engines.base import Generate, Refused
from laya_desktop.node.engines.llama_template import CHATML, ChatTemplate, Prompt, TemplateError

NO_TEMPLATE = "The model has no chat template, so ChatML is used for chats."
_CONTEXT_TOKENS = 5
"""Tokens before the answer that are decoded with it: whether a word begins with a space depends on them."""
_HELD_TOKENS = 16
"""No character is longer; bytes that still make none are given out as they are."""


class Prompts:
    """Renders and tokenises requests for one model.

    Attributes:
        has_template: the model brought its own chat template and it compiles.
        notes: what people should know about it.
    """

    def __init__(self, tokenizer: Any, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        marks = (tokenizer.bos_token or "", tokenizer.eos_token or "", _control_texts(tokenizer))
        self.notes: list[str] = []
        own = self._compile(_source(tokenizer, tools=False), marks)
        self.has_template = own is not None
        if own is None:
            self.notes.append(NO_TEMPLATE)
        self._chat = own or ChatTemplate(CHATML, *marks)
        self._tools = self._compile(_source(tokenizer, tools=True), marks) or self._chat

    def _compile(self, source: str | None, marks: tuple[str, str, list[str]]) -> ChatTemplate | None:
        if source is None:
            return None
        try:
            return ChatTemplate(source, *marks)
        except TemplateError as error:
            self.notes.append(str(error))
            return None

    def read(self, request: Generate) -> Prompt | Refused:
        """The prompt, or why there is none."""
        if isinstance(request.prompt, list):
            return self._given(request, request.prompt)
        if request.prompt is not None:
            return Prompt(self._encode(request.prompt, special=request.add_special) if request.prompt else [])
        if not request.messages:
            return Refused(request.request_id, "There are no messages.", "Send at least one.", param="messages")
        template = self._tools if request.tools else self._chat
        try:
            pieces = template.render(request.messages, request.tools, more=request.template_values)
        except TemplateError as error:
            return Refused(request.request_id, str(error), code="invalid_messages", param="messages")
        tokens = [t for piece in pieces for t in self._encode(piece, special=False)]
        return Prompt(tokens, template.dialect, template.opens_thinking(pieces))

    def inputs(self, request: Generate) -> list[list[int]]:
        """Tokens of what ``embed`` makes vectors of."""
        return [self._encode(one, special=True) if isinstance(one, str) else list(one) for one in request.inputs]

    def piece(self, token: int) -> bytes:
        """The text of one token; part of a character is given as the replacement character."""
        return self.text([token]).encode()

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, control tokens included."""
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))

    def _encode(self, text: str, *, special: bool) -> list[int]:
        """Tokens of a text; ``special`` adds what the model wants around a bare prompt."""
        return list(self._tokenizer(text, add_special_tokens=special)["input_ids"])

    def _given(self, request: Generate, tokens: list[int]) -> Prompt | Refused:
        strange = next((t for t in tokens if not 0 <= t < self._vocab_size), None)
        if strange is None:
            return Prompt(list(tokens))
        text = f"The prompt has token {strange}; this model's tokens are 0 to {self._vocab_size - 1}."
        return Refused(request.request_id, text, param="prompt")


class Detokenizer:
    """Text of one answer, token by token. A character split over tokens waits for its last part."""

    def __init__(self, tokenizer: Any, prompt: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._tokens = list(prompt[-_CONTEXT_TOKENS:])
        self._given = len(self._tokens)
        self._start = 0

    def push(self, token: int) -> bytes:
        """The text that the token completes, as UTF-8; it may be empty."""
        self._tokens.append(token)
        before = self._decode(self._tokens[self._start : self._given])
        after = self._decode(self._tokens[self._start :])
        waits = after.endswith("\ufffd") and len(self._tokens) - self._given < _HELD_TOKENS
        if waits or len(after) <= len(before):
            return b""
        self._start, self._given = self._given, len(self._tokens)
        return after[len(before) :].encode("utf-8", "replace")

    def _decode(self, tokens: list[int]) -> str:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def _control_texts(tokenizer: Any) -> list[str]:
    """Spellings that the tokenizer reads as control tokens."""
    added = [t.content for t in tokenizer.added_tokens_decoder.values() if t.special]
    return sorted({*added, *tokenizer.all_special_tokens})


def _source(tokenizer: Any, *, tools: bool) -> str | None:
    """The template's text; some models have several, by name."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("tool_use" if tools else "default")
    elif tools:
        return None
    return template if isinstance(template, str) and template else None
