"""Anthropic's Messages API: bodies translated to chats, and the shape of its answers. Pure; no I/O.

Everything that matters to a model of our own is kept: system texts, tool calls and their results, thinking, stop
sequences. What cannot be honoured (pictures, documents, tools that run on the provider's servers) is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from laya_desktop.node.server import wire
from laya_desktop.node.server.faults import invalid, unsupported
from laya_desktop.node.server.shapes import Block, Blocks, blocks_of, named_event

if TYPE_CHECKING:
    from laya_desktop.errors import LayaError
    from laya_desktop.node.engines.base import Delta, Started
    from laya_desktop.node.server.choices import Choices
    from laya_desktop.node.server.completions import Outcome

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_TEXT_ONLY = "this node serves text models"


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Tool(msgspec.Struct):
    name: str
    input_schema: dict[str, Any] | None = None
    description: str | None = None
    type: str | None = None


class _Thinking(msgspec.Struct):
    type: str


class MessagesBody(msgspec.Struct, kw_only=True):
    """``POST /v1/messages``; ``max_tokens`` is not needed where tokens are only counted."""

    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    model: str | None = None
    max_tokens: int | None = None
    system: str | list[dict[str, Any]] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    tools: list[_Tool] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: _Thinking | None = None


def chat_of(body: dict[str, Any], *, counting: bool = False) -> wire.ChatBody:
    """The chat that a body asks for; with ``counting``, one that is only counted. Raises LayaError naming the field."""
    sent = wire.convert(body, MessagesBody)
    if sent.max_tokens is None and not counting:
        raise invalid("max_tokens is missing.", "max_tokens", hint="Add it to the body.", code="missing_parameter")
    messages: list[dict[str, Any]] = []
    if sent.system:
        messages.append({"role": "system", "content": _plain(sent.system, "system")})
    for i, message in enumerate(sent.messages):
        messages += _message(message, f"messages[{i}]")
    chat: dict[str, Any] = {
        "messages": messages,
        "max_tokens": sent.max_tokens,
        "stop": sent.stop_sequences,
        "stream": sent.stream,
        "temperature": sent.temperature,
        "top_k": sent.top_k,
        "top_p": sent.top_p,
        "tools": [_tool(tool, f"tools[{i}]") for i, tool in enumerate(sent.tools or ())] or None,
        "chat_template_kwargs": {"enable_thinking": sent.thinking is not None and sent.thinking.type != "disabled"},
    }
    chat |= _choice(sent.tool_choice)
    return wire.parse_chat({key: value for key, value in chat.items() if value is not None})


def _message(message: _Message, where: str) -> list[dict[str, Any]]:
    if message.role not in ("user", "assistant"):
        text = f"{where}.role is '{message.role}'."
        raise invalid(text, f"{where}.role", hint="Use user or assistant; a system text goes to system.")
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    if message.role == "user":
        return _user(message.content, where)
    return [_assistant(message.content, where)]


def _user(content: list[dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """Results of tools first, each a message of its own, then what the user says."""
    results, texts = [], []
    for i, block in enumerate(content):
        at = f"{where}.content[{i}]"
        kind = block.get("type")
        if kind == "text":
            texts.append(_string(block, "text", at))
        elif kind == "tool_result":
            result = _plain(block.get("content") or "", f"{at}.content")
            if block.get("is_error") is True:
                result = f"Error: {result}"
            results.append({"role": "tool", "tool_call_id": _string(block, "tool_use_id", at), "content": result})
        else:
            raise _no_such_block(kind, at)
    return results + ([{"role": "user", "content": "".join(texts)}] if texts or not results else [])


def _assistant(content: list[dict[str, Any]], where: str) -> dict[str, Any]:
    texts, thoughts, calls = [], [], []
    for i, block in enumerate(content):
        at = f"{where}.content[{i}]"
        kind = block.get("type")
        if kind == "text":
            texts.append(_string(block, "text", at))
        elif kind == "thinking":
            thoughts.append(_string(block, "thinking", at))
        elif kind == "tool_use":
            function = {"name": _string(block, "name", at), "arguments": block.get("input") or {}}
            calls.append({"id": _string(block, "id", at), "type": "function", "function": function})
        elif kind != "redacted_thinking":
            raise _no_such_block(kind, at)
    made: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        made["reasoning_content"] = "".join(thoughts)
    if calls:
        made["tool_calls"] = calls
    return made


def _plain(content: Any, where: str) -> str:
    """A text, or the text of blocks that are all text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"{where}: expected a text or blocks.", where, code="invalid_type")
    texts = []
    for i, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind != "text":
            raise _no_such_block(kind, f"{where}[{i}]")
        texts.append(_string(block, "text", f"{where}[{i}]"))
    return "".join(texts)


def _string(block: dict[str, Any], key: str, where: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise invalid(f"{where}.{key}: expected a string.", f"{where}.{key}", code="invalid_type")
    return value


def _no_such_block(kind: Any, where: str) -> LayaError:
    text = f"{where}.type: blocks of type '{kind}' are not supported; {_TEXT_ONLY}."
    return unsupported(f"{where}.type", text, "Send text, tool_use, tool_result or thinking.")


def _tool(tool: _Tool, where: str) -> dict[str, Any]:
    if tool.type not in (None, "custom"):
        text = f"{where}.type: tools of type '{tool.type}' run on the provider's servers; this node has none."
        raise unsupported(f"{where}.type", text, "Send tools with a name and an input_schema.")
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.input_schema or {"type": "object"}}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def _choice(sent: dict[str, Any] | None) -> dict[str, Any]:
    if sent is None:
        return {}
    kind = sent.get("type")
    made: dict[str, Any] = {}
    if sent.get("disable_parallel_tool_use") is True:
        made["parallel_tool_calls"] = False
    if kind in ("auto", "none"):
        return made | {"tool_choice": kind}
    if kind == "any":
        return made | {"tool_choice": "required"}
    if kind == "tool":
        return made | {"tool_choice": {"type": "function", "function": {"name": sent.get("name")}}}
    raise invalid(f"tool_choice.type is '{kind}'.", "tool_choice.type", hint="Use auto, any, tool or none.")


def error_body(error: LayaError) -> dict[str, Any]:
    """An error as clients of this API read it."""
    kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(error)}}


class MessageShape:
    """Answers of ``/v1/messages``."""

    def __init__(self, request_id: str, model: str) -> None:
        self._id, self._model = f"msg_{request_id}", model
        self._blocks = Blocks()

    def opening(self, started: Started) -> bytes:
        """``message_start``."""
        usage = _usage(started.prompt_tokens, started.cached_tokens, 0)
        return named_event({"type": "message_start", "message": self._message([], None, usage)})

    def delta(self, event: Delta) -> bytes:
        """Blocks that begin, grow and end."""
        return b"".join(self._event(*step) for step in self._blocks.feed(event))

    def closing(self, outcome: Outcome) -> bytes:
        """The end of the last block, the reason and ``message_stop``."""
        end = b"".join(self._event(*step) for step in self._blocks.end())
        reason = {"stop_reason": _STOP_REASONS.get(outcome.finish_reason, "end_turn"), "stop_sequence": None}
        usage = _usage(outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens)
        end += named_event({"type": "message_delta", "delta": reason, "usage": usage})
        return end + named_event({"type": "message_stop"})

    def failed(self, error: LayaError) -> bytes:
        """The error as an event."""
        return named_event(error_body(error))

    def whole(self, choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """The message."""
        usage = _usage(outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens)
        content = [_shown(block) for block in blocks_of(choices.items[0])]
        return self._message(content, _STOP_REASONS.get(outcome.finish_reason, "end_turn"), usage)

    def _message(self, content: list[dict[str, Any]], reason: str | None, usage: dict[str, int]) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def _event(self, what: str, block: Block, text: str) -> bytes:
        if what == "open":
            shown = _shown(Block(block.index, block.kind, block.call_id, block.name))
            return named_event({"type": "content_block_start", "index": block.index, "content_block": shown})
        if what == "close":
            return named_event({"type": "content_block_stop", "index": block.index})
        delta = {
            "text": {"type": "text_delta", "text": text},
            "thinking": {"type": "thinking_delta", "thinking": text},
            "call": {"type": "input_json_delta", "partial_json": text},
        }[block.kind]
        return named_event({"type": "content_block_delta", "index": block.index, "delta": delta})


def _shown(block: Block) -> dict[str, Any]:
    if block.kind == "text":
        return {"type": "text", "text": block.content}
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": block.content, "signature": ""}
    return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": _object(block.content)}


def _object(text: str) -> dict[str, Any]:
    """Arguments as an object; what is none (the answer was cut) is kept as text."""
    try:
        value = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {"incomplete": text}
    return value if isinstance(value, dict) else {"value": value}


def _usage(prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": prompt_tokens - cached_tokens,
        "cache_read_input_tokens": cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": completion_tokens,
    }
