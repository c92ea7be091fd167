"""Fields of OpenAI bodies that say what an answer must be: formats and tools. Pure functions; no I/O.

The formats are OpenAI's ``response_format``, and the spellings of llama.cpp's server (``grammar``, ``json_schema``) and
of vLLM's (``guided_*``, ``structured_outputs``). One of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from laya_desktop.errors import near
from laya_desktop.node.engines.base import AnswerFormat
from laya_desktop.node.server.faults import invalid, unsupported
from laya_desktop.node.server.wire_sampling import SamplingBody

_MOST_TOOLS = 128
_GBNF = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_encode = msgspec.json.encode


class FormatBody(SamplingBody, kw_only=True):
    """What chat and text completions share, sampling included."""

    response_format: dict[str, Any] | None = None
    grammar: str | None = None
    json_schema: dict[str, Any] | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    structured_outputs: dict[str, Any] | None = None


def format_of(body: FormatBody) -> AnswerFormat | None:
    """The form that the answer must have, or None. Raises LayaError naming the field."""
    given = list(_formats(body))
    if len(given) > 1:
        names = " and ".join(name for name, _ in given)
        raise invalid(f"{names} cannot be combined.", given[1][0], hint="Leave all but one out.")
    return given[0][1] if given else None


def _formats(body: FormatBody) -> Iterator[tuple[str, AnswerFormat]]:
    if body.response_format is not None and (found := _response_format(body.response_format)) is not None:
        yield "response_format", found
    if body.grammar:
        yield "grammar", AnswerFormat("grammar", body.grammar)
    if body.json_schema is not None:
        yield "json_schema", _schema(body.json_schema)
    if body.guided_json:
        yield "guided_json", _guided_json(body.guided_json, "guided_json")
    if body.guided_choice:
        yield "guided_choice", _choice(body.guided_choice)
    if body.guided_grammar:
        yield "guided_grammar", AnswerFormat("grammar", body.guided_grammar)
    for key, value in (body.structured_outputs or {}).items():
        if value:
            yield f"structured_outputs.{key}", _structured(key, value)


def _response_format(value: dict[str, Any]) -> AnswerFormat | None:
    kind = value.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        schema = value.get("schema")
        return _schema(schema if isinstance(schema, dict) else {"type": "object"})
    if kind == "json_schema":
        inner = value.get("json_schema")
        schema = inner.get("schema") if isinstance(inner, dict) else None
        param = "response_format.json_schema.schema"
        if schema is None:
            raise invalid(f"{param} is missing.", param, hint="Put the schema there.", code="missing_parameter")
        if not isinstance(schema, dict):
            raise invalid(f"{param} is {_encode(schema).decode()[:60]}.", param, hint="A schema is an object.")
        return _schema(schema)
    if kind == "grammar" and isinstance(value.get("grammar"), str):
        return AnswerFormat("grammar", value["grammar"])
    raise invalid(
        f"response_format.type is {_encode(kind).decode()}.",
        "response_format.type",
        hint="Use text, json_object, json_schema or grammar.",
    )


def _schema(schema: dict[str, Any]) -> AnswerFormat:
    return AnswerFormat("json_schema", _encode(schema).decode())


def _guided_json(value: dict[str, Any] | str, param: str) -> AnswerFormat:
    if isinstance(value, dict):
        return _schema(value)
    try:
        schema = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise invalid(f"{param}: expected a JSON schema.", param)
    return _schema(schema)


def _choice(texts: list[str]) -> AnswerFormat:
    return AnswerFormat("grammar", "root ::= " + " | ".join(f'"{text.translate(_GBNF)}"' for text in texts))


def _structured(key: str, value: Any) -> AnswerFormat:
    param = f"structured_outputs.{key}"
    if key == "json" and isinstance(value, dict | str):
        return _guided_json(value, param)
    if key == "choice" and isinstance(value, list) and all(isinstance(text, str) for text in value):
        return _choice(value)
    if key == "grammar" and isinstance(value, str):
        return AnswerFormat("grammar", value)
    if key == "json_object" and value is True:
        return _schema({"type": "object"})
    raise unsupported(param, f"{param} is not supported.", "Use json, choice or grammar.")


def tools_of(
    sent: list[dict[str, Any]] | None, choice: str | dict[str, Any] | None, parallel: bool | None
) -> dict[str, Any]:
    """The fields of ``Generate`` that tools set. Raises LayaError naming the field."""
    if not sent:
        if choice not in (None, "none", "auto"):
            raise invalid("tool_choice needs tools.", "tool_choice", hint="Send tools with it.")
        return {}
    if len(sent) > _MOST_TOOLS:
        raise invalid(f"tools has {len(sent)} entries; {_MOST_TOOLS} are possible.", "tools")
    tools = [_tool(tool, f"tools[{i}]") for i, tool in enumerate(sent)]
    if choice == "none":
        return {}
    made: dict[str, Any] = {"tools": tools}
    if parallel is not None:
        made["parallel_tool_calls"] = parallel
    if isinstance(choice, dict):
        made |= {"tool_choice": "required", "tool_name": _named(choice, tools)}
    elif choice == "required":
        made["tool_choice"] = choice
    elif choice not in (None, "auto"):
        raise invalid(f"tool_choice is '{choice}'.", "tool_choice", hint="Use none, auto, required or a function.")
    return made


def _tool(tool: dict[str, Any], where: str) -> dict[str, object]:
    if tool.get("type") != "function":
        text = f"{where}.type: tools of type {_encode(tool.get('type')).decode()} are not supported."
        raise unsupported(f"{where}.type", text, "Send tools of type function.")
    function = tool.get("function")
    if not isinstance(function, dict):
        raise invalid(f"{where}.function is missing.", f"{where}.function", code="missing_parameter")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise invalid(f"{where}.function.name is missing.", f"{where}.function.name", code="missing_parameter")
    if parameters is not None and not isinstance(parameters, dict):
        param = f"{where}.function.parameters"
        raise invalid(f"{param}: expected a JSON schema.", param, code="invalid_type")
    return {"type": "function", "function": function}


def _named(choice: dict[str, Any], tools: list[dict[str, Any]]) -> str:
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        text = 'tool_choice is no {"type": "function", "function": {"name": …}}.'
        raise invalid(text, "tool_choice", hint="Use none, auto, required or a function.")
    names = [tool["function"]["name"] for tool in tools]
    if name not in names:
        raise invalid(f"tool_choice names '{name}', which is none of the tools.{near(name, names)}", "tool_choice")
    return name
