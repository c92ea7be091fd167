"""OpenAI's Responses API without a memory: bodies translated to chats, and the shape of its answers. Pure; no I/O.

Nothing is stored: a client that goes on with a conversation sends it again, so ``previous_response_id`` is refused.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from laya_desktop.node.server import wire
from laya_desktop.node.server.faults import invalid, unsupported
from laya_desktop.node.server.shapes import Block, Blocks, blocks_of, named_event

if TYPE_CHECKING:
    from laya_desktop.errors import LayaError
    from laya_desktop.node.engines.base import Delta, Started
    from laya_desktop.node.server.choices import Choices
    from laya_desktop.node.server.completions import Outcome

_STATEFUL = {
    "previous_response_id": "this node stores no responses",
    "conversation": "this node stores no conversations",
    "prompt": "this node stores no prompts",
}
_HINT_STATEFUL = "Send the whole conversation as input."


class _Reasoning(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None


class ResponsesBody(msgspec.Struct, kw_only=True):
    """``POST /v1/responses``."""

    input: str | list[dict[str, Any]]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: _Reasoning | None = None
    stream: bool | None = None
    temperature: float | None = None
    text: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    top_p: float | None = None
    truncation: str | None = None


def parse(body: dict[str, Any]) -> ResponsesBody:
    """The body. Raises LayaError naming the field."""
    for name, why in _STATEFUL.items():
        if body.get(name):
            raise unsupported(name, f"{name}: {why}.", _HINT_STATEFUL)
    if body.get("background"):
        raise unsupported("background", "background: this node answers while the client waits.", "Leave it out.")
    sent = wire.convert(body, ResponsesBody)
    if not sent.input:
        raise invalid("input is empty.", "input", hint="Send a text or items.", code="missing_parameter")
    if sent.truncation == "auto":
        text = "truncation: this node never cuts a conversation silently."
        raise unsupported("truncation", text, "Shorten the input, or raise the model's max_seq_len.")
    return sent


def chat_of(sent: ResponsesBody) -> wire.ChatBody:
    """The chat that a body asks for. Raises LayaError naming the field."""
    messages: list[dict[str, Any]] = []
    if sent.instructions:
        messages.append({"role": "system", "content": sent.instructions})
    if isinstance(sent.input, str):
        messages.append({"role": "user", "content": sent.input})
    else:
        messages += _messages(sent.input)
    chat: dict[str, Any] = {
        "messages": messages,
        "max_completion_tokens": sent.max_output_tokens,
        "stream": sent.stream,
        "temperature": sent.temperature,
        "top_p": sent.top_p,
        "tools": [_tool(tool, f"tools[{i}]") for i, tool in enumerate(sent.tools or ())] or None,
        "tool_choice": _choice(sent.tool_choice),
        "parallel_tool_calls": sent.parallel_tool_calls,
        "response_format": _format((sent.text or {}).get("format")),
        "reasoning_effort": sent.reasoning.effort if sent.reasoning else None,
    }
    return wire.parse_chat({key: value for key, value in chat.items() if value is not None})


def _messages(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as messages; calls in a row belong to one message of the assistant."""
    made: list[dict[str, Any]] = []
    for i, item in enumerate(items):
        where, kind = f"input[{i}]", item.get("type", "message")
        if kind == "message":
            role = _string(item, "role", where)
            made.append({"role": role, "content": _content(item.get("content"), f"{where}.content")})
        elif kind == "function_call":
            function = {"name": _string(item, "name", where), "arguments": _string(item, "arguments", where)}
            call = {"id": _string(item, "call_id", where), "type": "function", "function": function}
            _assistant(made).setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = _content(item.get("output"), f"{where}.output")
            made.append({"role": "tool", "tool_call_id": _string(item, "call_id", where), "content": output})
        elif kind == "reasoning":
            if text := _reasoning(item):
                _assistant(made)["reasoning_content"] = text
        else:
            raise unsupported(
                f"{where}.type",
                f"{where}.type: items of type '{kind}' are not supported.",
                "Send message, function_call, function_call_output or reasoning.",
            )
    return made


def _assistant(made: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's message that an item belongs to."""
    if not made or made[-1]["role"] != "assistant":
        made.append({"role": "assistant", "content": ""})
    return made[-1]


def _reasoning(item: dict[str, Any]) -> str:
    parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
    return "".join(str(p.get("text", "")) for p in parts if isinstance(p, dict))


def _content(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"{where}: expected a text or parts.", where, code="invalid_type")
    texts = []
    for i, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("input_text", "output_text", "text"):
            text = f"{where}[{i}].type: parts of type '{kind}' are not supported; this node serves text models."
            raise unsupported(f"{where}[{i}].type", text, "Send parts of type input_text.")
        texts.append(_string(part, "text", f"{where}[{i}]"))
    return "".join(texts)


def _string(value: dict[str, Any], key: str, where: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise invalid(f"{where}.{key}: expected a string.", f"{where}.{key}", code="invalid_type")
    return found


def _tool(tool: dict[str, Any], where: str) -> dict[str, Any]:
    if tool.get("type") != "function":
        text = f"{where}.type: tools of type '{tool.get('type')}' are not supported."
        raise unsupported(f"{where}.type", text, "Send tools of type function.")
    function = {key: tool[key] for key in ("name", "description", "parameters") if tool.get(key) is not None}
    return {"type": "function", "function": function}


def _choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    if isinstance(choice, dict) and "function" not in choice:
        return {"type": choice.get("type"), "function": {"name": choice.get("name")}}
    return choice


def _format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise invalid("text.format: expected an object.", "text.format", code="invalid_type")
    if value.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": value.get("name"), "schema": value.get("schema")}}
    return value


class ResponseShape:
    """Answers of ``/v1/responses``."""

    def __init__(self, request_id: str, model: str, sent: ResponsesBody) -> None:
        self._id, self._model, self._sent = request_id, model, sent
        self._created = int(time.time())
        self._blocks = Blocks()
        self._number = 0

    def opening(self, _started: Started) -> bytes:
        """``response.created`` and ``response.in_progress``."""
        response = self._response("in_progress", [], None)
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def delta(self, event: Delta) -> bytes:
        """Items that begin, grow and end."""
        return b"".join(self._step(*step) for step in self._blocks.feed(event))

    def closing(self, outcome: Outcome) -> bytes:
        """The end of the last item, and the whole response."""
        end = b"".join(self._step(*step) for step in self._blocks.end())
        status = _status(outcome)
        response = self._response(status, self._blocks.done, outcome)
        return end + self._event(f"response.{status}", response=response)

    def failed(self, error: LayaError) -> bytes:
        """``response.failed``."""
        response = self._response("failed", self._blocks.done, None)
        response["error"] = {"code": error.code, "message": str(error)}
        return self._event("response.failed", response=response)

    def whole(self, choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """The response."""
        return self._response(_status(outcome), blocks_of(choices.items[0]), outcome)

    def _response(self, status: str, blocks: list[Block], outcome: Outcome | None) -> dict[str, Any]:
        sent = self._sent
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        reasoning = sent.reasoning or _Reasoning()
        return {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": cut,
            "instructions": sent.instructions,
            "max_output_tokens": sent.max_output_tokens,
            "metadata": sent.metadata or {},
            "model": self._model,
            "output": [self._item(block, "completed") for block in blocks],
            "parallel_tool_calls": sent.parallel_tool_calls is not False,
            "previous_response_id": None,
            "reasoning": {"effort": reasoning.effort, "summary": reasoning.summary},
            "store": False,
            "temperature": sent.temperature,
            "text": sent.text or {"format": {"type": "text"}},
            "tool_choice": sent.tool_choice or "auto",
            "tools": sent.tools or [],
            "top_p": sent.top_p,
            "truncation": "disabled",
            "usage": _usage(outcome) if outcome else None,
        }

    def _event(self, kind: str, **values: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return named_event({"type": kind, "sequence_number": number, **values})

    def _step(self, what: str, block: Block, text: str) -> bytes:
        if what == "open":
            return self._opened(block)
        if what == "close":
            return self._closed(block)
        place = self._place(block)
        if block.kind == "text":
            return self._event("response.output_text.delta", **place, content_index=0, delta=text, logprobs=[])
        if block.kind == "thinking":
            return self._event("response.reasoning_text.delta", **place, content_index=0, delta=text)
        return self._event("response.function_call_arguments.delta", **place, delta=text)

    def _opened(self, block: Block) -> bytes:
        empty = self._item(Block(block.index, block.kind, block.call_id, block.name), "in_progress")
        if block.kind != "call":
            empty["content"] = []
        begun = self._event("response.output_item.added", output_index=block.index, item=empty)
        if block.kind != "call":
            part = _part(Block(block.index, block.kind))
            begun += self._event("response.content_part.added", **self._place(block), content_index=0, part=part)
        return begun

    def _closed(self, block: Block) -> bytes:
        place, text = self._place(block), block.content
        if block.kind == "call":
            end = self._event("response.function_call_arguments.done", **place, name=block.name, arguments=text)
        else:
            if block.kind == "text":
                end = self._event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
            else:
                end = self._event("response.reasoning_text.done", **place, content_index=0, text=text)
            end += self._event("response.content_part.done", **place, content_index=0, part=_part(block))
        item = self._item(block, "completed")
        return end + self._event("response.output_item.done", output_index=block.index, item=item)

    def _place(self, block: Block) -> dict[str, Any]:
        return {"item_id": self._item_id(block), "output_index": block.index}

    def _item_id(self, block: Block) -> str:
        prefix = {"text": "msg", "thinking": "rs", "call": "fc"}[block.kind]
        return f"{prefix}_{self._id}_{block.index}"

    def _item(self, block: Block, status: str) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self._item_id(block), "status": status}
        if block.kind == "call":
            called = {"call_id": block.call_id, "name": block.name, "arguments": block.content}
            return item | {"type": "function_call", **called}
        if block.kind == "thinking":
            return item | {"type": "reasoning", "summary": [], "content": [_part(block)]}
        return item | {"type": "message", "role": "assistant", "content": [_part(block)]}


def _part(block: Block) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "reasoning_text", "text": block.content}
    return {"type": "output_text", "text": block.content, "annotations": [], "logprobs": []}


def _status(outcome: Outcome) -> str:
    return "incomplete" if outcome.finish_reason == "length" else "completed"


def _usage(outcome: Outcome) -> dict[str, Any]:
    return {
        "input_tokens": outcome.prompt_tokens,
        "input_tokens_details": {"cached_tokens": outcome.cached_tokens},
        "output_tokens": outcome.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": outcome.reasoning_tokens},
        "total_tokens": outcome.prompt_tokens + outcome.completion_tokens,
    }
