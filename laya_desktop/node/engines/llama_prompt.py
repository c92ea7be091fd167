"""From a request to the tokens of its prompt. Worker only; holds the chat template and the vocabulary."""

from __future__ import annotations

import ctypes

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines.base import Generate, Refused
from laya_desktop.node.engines.llama_template import CHATML, ChatTemplate, Prompt, TemplateError
from laya_desktop.node.engines.llama_vocab import Vocab

NO_TEMPLATE = "The model has no chat template, so ChatML is used for chats."


class Prompts:
    """Renders and tokenises requests for one model.

    Attributes:
        has_template: the model brought its own chat template and it compiles.
        notes: what people should know about it.
    """

    def __init__(self, model: ctypes.c_void_p, vocab: Vocab) -> None:
        self._vocab = vocab
        self._marks = (vocab.text(vocab.bos), vocab.text(vocab.eos), vocab.control_texts())
        self.notes: list[str] = []
        own, with_tools = _source(model, None), _source(model, b"tool_use")
        self._chat = self._compile(own)
        self._tools = self._compile(with_tools) or self._chat
        self.has_template = self._chat is not None
        if self._chat is None:
            self.notes.append(NO_TEMPLATE)
            self._chat = self._tools = ChatTemplate(CHATML, *self._marks)

    def _compile(self, source: str | None) -> ChatTemplate | None:
        if source is None:
            return None
        try:
            return ChatTemplate(source, *self._marks)
        except TemplateError as error:
            self.notes.append(str(error))
            return None

    def read(self, request: Generate) -> Prompt | Refused:
        """The prompt, or why there is none."""
        if isinstance(request.prompt, list):
            return self._given(request, request.prompt)
        if request.prompt is not None:
            tokens = self._vocab.tokenize(request.prompt, parse_special=True)
            return Prompt(self._vocab.with_bos(tokens) if request.add_special else tokens)
        if not request.messages:
            return Refused(request.request_id, "There are no messages.", "Send at least one.", param="messages")
        template = self._tools if request.tools else self._chat
        assert template is not None
        try:
            pieces = template.render(request.messages, request.tools, more=request.template_values)
        except TemplateError as error:
            return Refused(request.request_id, str(error), code="invalid_messages", param="messages")
        tokens = self._vocab.with_bos([t for p in pieces for t in self._vocab.tokenize(p, parse_special=True)])
        return Prompt(tokens, template.dialect, template.opens_thinking(pieces))

    def _given(self, request: Generate, tokens: list[int]) -> Prompt | Refused:
        strange = next((t for t in tokens if not 0 <= t < self._vocab.size), None)
        if strange is None:
            return Prompt(list(tokens))  # the caller's list stays as it is
        last = self._vocab.size - 1
        text = f"The prompt has token {strange}; this model's tokens are 0 to {last}."
        return Refused(request.request_id, text, param="prompt")


def _source(model: ctypes.c_void_p, name: bytes | None) -> str | None:
    raw = lib.llama_model_chat_template(model, name)
    return raw.decode("utf-8", "replace") if raw else None
