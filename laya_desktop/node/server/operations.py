"""What a path of the API asks for, and the request and the answer's shape that follow from the body. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from laya_desktop.node.engines.base import Generate
from laya_desktop.node.server import wire, wire_anthropic, wire_responses, wire_vectors
from laya_desktop.node.server.completions import Completion
from laya_desktop.node.server.faults import invalid
from laya_desktop.node.server.shapes import Shape


class Operation(StrEnum):
    """What a path asks for."""

    BARE = ""
    CHAT = "/chat/completions"
    COMPLETION = "/completions"
    EMBEDDINGS = "/embeddings"
    RESPONSES = "/responses"
    MESSAGES = "/messages"
    COUNT_TOKENS = "/messages/count_tokens"
    TOKENIZE = "/tokenize"
    DETOKENIZE = "/detokenize"
    MODELS = "/models"
    MODEL = "/models/…"


_BY_PATH = {o.value: o for o in Operation if o is not Operation.MODEL}
_BY_FIELD = {"messages": Operation.CHAT, "prompt": Operation.COMPLETION, "input": Operation.EMBEDDINGS}
ANTHROPIC = frozenset({Operation.MESSAGES, Operation.COUNT_TOKENS})
"""Those whose clients read errors in that API's form."""


def operation_of(path: str) -> tuple[Operation, str] | None:
    """The operation of an API path, with or without ``/v1`` in front, and the model id of ``/models/ID``."""
    if path == "/v1" or path.startswith("/v1/"):
        path = path[3:]
    found = _BY_PATH.get("" if path == "/" else path)
    if found is not None:
        return found, ""
    return (Operation.MODEL, unquote(path[8:])) if path.startswith("/models/") else None


def operation_of_body(body: dict[str, Any]) -> Operation:
    """What a bare POST to a route asks for. Raises LayaError where the body does not say."""
    found = [name for name in _BY_FIELD if body.get(name) is not None]
    if len(found) != 1:
        has = f"it has {' and '.join(found)}" if found else "it has none of them"
        raise invalid(
            f"A body sent to the route's own path has exactly one of messages, prompt and input; {has}.",
            hint="Send messages for a chat, prompt for a completion or input for embeddings.",
            code="missing_parameter",
        )
    return _BY_FIELD[found[0]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body read for a model of our own.

    Attributes:
        request: for the engine.
        stream: the answer comes in pieces.
        shape: what the answer looks like, given the name of the model that serves it.
    """

    request: Generate
    stream: bool
    shape: Callable[[str], Shape]


def prepare(operation: Operation, request_id: str, body: dict[str, Any]) -> Prepared:
    """Read a body. Raises LayaError naming the field that is wrong."""
    return _PREPARE[operation](request_id, body)


def _chat(request_id: str, body: dict[str, Any]) -> Prepared:
    chat = wire.parse_chat(body)
    return _completion(request_id, wire.chat_to_engine(request_id, chat), chat, chat=True)


def _text(request_id: str, body: dict[str, Any]) -> Prepared:
    text = wire.parse_completion(body)
    return _completion(request_id, wire.completion_to_engine(request_id, text), text, chat=False)


def _completion(
    request_id: str, request: Generate, body: wire.ChatBody | wire.CompletionBody, *, chat: bool
) -> Prepared:
    def shape(model: str) -> Shape:
        return Completion(
            request_id,
            model,
            chat=chat,
            include_usage=body.include_usage,
            count=request.n,
            logprobs=request.logprobs is not None,
        )

    return Prepared(request, bool(body.stream), shape)


def _responses(request_id: str, body: dict[str, Any]) -> Prepared:
    sent = wire_responses.parse(body)
    chat = wire_responses.chat_of(sent)
    request = wire.chat_to_engine(request_id, chat)
    return Prepared(request, bool(sent.stream), lambda model: wire_responses.ResponseShape(request_id, model, sent))


def _messages(request_id: str, body: dict[str, Any]) -> Prepared:
    chat = wire_anthropic.chat_of(body)
    request = wire.chat_to_engine(request_id, chat)
    return Prepared(request, bool(chat.stream), lambda model: wire_anthropic.MessageShape(request_id, model))


def _count_tokens(request_id: str, body: dict[str, Any]) -> Prepared:
    chat = wire.chat_to_engine(request_id, wire_anthropic.chat_of(body, counting=True))
    request = Generate(
        request_id, chat.messages, tools=chat.tools, template_values=chat.template_values, task="tokenize"
    )
    return Prepared(request, stream=False, shape=lambda _model: wire_vectors.CountShape())


def _embeddings(request_id: str, body: dict[str, Any]) -> Prepared:
    sent = wire_vectors.parse_embeddings(body)
    request = Generate(request_id, task="embed", inputs=sent.texts, dimensions=sent.dimensions)
    return Prepared(request, stream=False, shape=lambda model: wire_vectors.EmbeddingShape(model, sent.as_base64))


def _tokenize(request_id: str, body: dict[str, Any]) -> Prepared:
    sent = wire_vectors.parse_tokenize(body)
    request = Generate(request_id, prompt=sent.content, add_special=bool(sent.add_special), task="tokenize")
    return Prepared(request, stream=False, shape=lambda _model: wire_vectors.TokenShape(bool(sent.with_pieces)))


def _detokenize(request_id: str, body: dict[str, Any]) -> Prepared:
    sent = wire_vectors.parse_detokenize(body)
    request = Generate(request_id, prompt=sent.tokens, task="detokenize")
    return Prepared(request, stream=False, shape=lambda _model: wire_vectors.TextShape())


_PREPARE: dict[Operation, Callable[[str, dict[str, Any]], Prepared]] = {
    Operation.CHAT: _chat,
    Operation.COMPLETION: _text,
    Operation.EMBEDDINGS: _embeddings,
    Operation.RESPONSES: _responses,
    Operation.MESSAGES: _messages,
    Operation.COUNT_TOKENS: _count_tokens,
    Operation.TOKENIZE: _tokenize,
    Operation.DETOKENIZE: _detokenize,
}
ANSWERED = frozenset(_PREPARE)
"""What models of our own answer."""
