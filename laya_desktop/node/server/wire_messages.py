"""Chat messages of OpenAI bodies as engines take them, tool calls and their results included. Pure; no I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from laya_desktop.node.server.faults import invalid, unsupported


class CalledFunction(msgspec.Struct):
    """``function`` of a call in the history; arguments are JSON text, some clients send the object."""

    name: str
    arguments: str | dict[str, Any] = ""


class ToolCall(msgspec.Struct):
    """A call in the history."""

    function: CalledFunction
    id: str | None = None
    type: str = "function"


class ChatMessage(msgspec.Struct):
    """One message; ``content`` is text or a list of parts."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


def message_of(message: ChatMessage, index: int) -> dict[str, object]:
    """A message in the form that chat templates read. Raises LayaError naming the field."""
    where = f"messages[{index}]"
    role = "system" if message.role == "developer" else message.role
    if role == "function":
        raise unsupported(
            f"{where}.role", f"{where}.role: the old function messages are not supported.", "Use role tool."
        )
    if role not in ("system", "user", "assistant", "tool"):
        raise invalid(f"{where}.role is '{role}'.", f"{where}.role", hint="Use system, user, assistant or tool.")
    if message.content is None and role != "assistant":
        raise invalid(f"{where}.content is missing.", f"{where}.content", code="missing_parameter")
    made: dict[str, object] = {"role": role, "content": _text(message.content, f"{where}.content")}
    if message.name is not None:
        made["name"] = message.name
    if role == "tool" and message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    if role == "assistant":
        if message.tool_calls:
            made["tool_calls"] = [_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls)]
        if message.reasoning_content:
            made["reasoning_content"] = message.reasoning_content
    elif message.tool_calls:
        raise invalid(f"{where}.tool_calls: only an assistant calls tools.", f"{where}.tool_calls")
    return made


def _call(call: ToolCall, where: str) -> dict[str, object]:
    if call.type != "function":
        raise unsupported(f"{where}.type", f"{where}.type: calls of type '{call.type}' are not supported.")
    function = {"name": call.function.name, "arguments": call.function.arguments or "{}"}
    return {"id": call.id or "", "type": "function", "function": function}


def _text(content: str | list[dict[str, Any]] | None, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for i, part in enumerate(content):
        kind = part.get("type")
        if kind not in ("text", "refusal"):
            raise unsupported(
                f"{where}[{i}].type",
                f"{where}[{i}].type: parts of type '{kind}' are not supported; this node serves text models.",
                "Send parts of type text.",
            )
        text = part.get(kind)
        if not isinstance(text, str):
            raise invalid(f"{where}[{i}].{kind}: expected a string.", f"{where}[{i}].{kind}", code="invalid_type")
        texts.append(text)
    return "".join(texts)
