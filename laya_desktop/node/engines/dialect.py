"""How a model writes tool calls and thinking, read off its chat template. Pure; runs in the worker.

Three ways to write a call cover most models; one whose template knows no tools is told about them in a system message
and answers in the first way.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

CallStyle = Literal["hermes", "mistral", "mistral_args", "llama3"]

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
RESULT_OPEN, RESULT_CLOSE = "<tool_response>", "</tool_response>"
MISTRAL_CALLS, MISTRAL_ARGS = "[TOOL_CALLS]", "[ARGS]"
PYTHON_TAG = "<|python_tag|>"
_THINKING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<|think|>", "<|/think|>"))
MARKERS = frozenset(
    {CALL_OPEN, CALL_CLOSE, MISTRAL_CALLS, MISTRAL_ARGS, PYTHON_TAG, *(mark for pair in _THINKING for mark in pair)}
)
"""Control tokens that are part of an answer's form: their spelling is needed, though people never see it."""
_HEADER = (
    "You can call these functions. Each line describes one as JSON:\n{tools}\n\n"
    "To call a function, answer with its name and arguments as JSON between {open} and {close}, and nothing else:\n"
    '{open}\n{{"name": "function", "arguments": {{"key": "value"}}}}\n{close}\n'
    "The result comes back between {result_open} and {result_close}. Answer without a call when none is needed."
)


@dataclass(frozen=True)
class Dialect:
    """The forms of one model."""

    calls: CallStyle = "hermes"
    thinking: tuple[str, str] | None = None
    """The marks around what the model thinks; None: it does not, or does not mark it."""
    knows_tools: bool = False
    """The template writes tools into the prompt itself."""


def dialect_of(source: str, variables: Collection[str]) -> Dialect:
    """Read a template: its text, and the names that it takes from outside."""
    thinking = next((pair for pair in _THINKING if pair[1] in source), None)
    return Dialect(_style(source), thinking, "tools" in variables)


def _style(source: str) -> CallStyle:
    if MISTRAL_CALLS in source:
        return "mistral_args" if MISTRAL_ARGS in source else "mistral"
    if CALL_OPEN not in source and (PYTHON_TAG in source or "<|start_header_id|>" in source):
        return "llama3"
    return "hermes"


def describe_tools(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same conversation for a template without tools: they stand in the system message, calls and results in text.

    Args:
        messages: in OpenAI's form.
        tools: in OpenAI's form; empty: only the history is rewritten.
    """
    told = [_as_text(message) for message in messages]
    if not tools:
        return told
    lines = "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    text = _HEADER.format(
        tools=lines, open=CALL_OPEN, close=CALL_CLOSE, result_open=RESULT_OPEN, result_close=RESULT_CLOSE
    )
    if told and told[0].get("role") == "system":
        own = told[0].get("content")
        first = {**told[0], "content": f"{own}\n\n{text}" if isinstance(own, str) and own else text}
        return [first, *told[1:]]
    return [{"role": "system", "content": text}, *told]


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("role") == "tool":
        return {"role": "user", "content": f"{RESULT_OPEN}\n{message.get('content') or ''}\n{RESULT_CLOSE}"}
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message
    written = "\n".join(f"{CALL_OPEN}\n{_written(call)}\n{CALL_CLOSE}" for call in calls)
    said = message.get("content")
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return rest | {"content": f"{said}\n{written}" if said else written}


def _written(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return f'{{"name": {json.dumps(function.get("name"), ensure_ascii=False)}, "arguments": {text or "{}"}}}'
