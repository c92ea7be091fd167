"""What the fake engine says where an answer must have a form: the smallest JSON value that a schema allows. Pure."""

from __future__ import annotations

import json
from typing import Any

from laya_desktop.node.engines.base import Generate
from laya_desktop.node.engines.dialect import CALL_CLOSE, CALL_OPEN

_MOST_DEPTH = 16
_PLAIN: dict[str, Any] = {"string": "", "number": 0.5, "integer": 1, "boolean": True, "null": None, "array": []}


def formed_answer(request: Generate) -> str | None:
    """The whole answer, or None where the request leaves its form open.

    Raises:
        ValueError: the format is not understood; the text is fit to show.
    """
    if request.tools and request.tool_choice == "required":
        return _call(request)
    wanted = request.answer_format
    if wanted is None:
        return None
    if wanted.kind == "grammar":
        raise ValueError("The fake engine knows no grammars.")
    schema = json.loads(wanted.text)
    return json.dumps(example(schema, schema), ensure_ascii=False)


def _call(request: Generate) -> str:
    functions = [f for tool in request.tools or [] if isinstance(f := tool.get("function"), dict)]
    found = [f for f in functions if request.tool_name in (None, f.get("name"))]
    if not found:
        raise ValueError(f"There is no tool '{request.tool_name}'.")
    schema = found[0].get("parameters") or {"type": "object"}
    call = {"name": found[0].get("name"), "arguments": example(schema, schema)}
    return f"{CALL_OPEN}\n{json.dumps(call, ensure_ascii=False)}\n{CALL_CLOSE}"


def example(schema: Any, root: Any, depth: int = 0) -> Any:
    """A value that the schema allows. Raises ValueError for what is none or never ends."""
    if depth > _MOST_DEPTH or not isinstance(schema, dict):
        raise ValueError("The JSON schema cannot be followed.")
    if isinstance(ref := schema.get("$ref"), str):
        target = root
        for part in ref.lstrip("#/").split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        return example(target, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return example(choices[0], root, depth + 1)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required") or (() if "required" in schema else properties)
        return {key: example(properties[key], root, depth + 1) for key in properties if key in required}
    if kind == "array" and schema.get("minItems"):
        return [example(schema.get("items", {}), root, depth + 1)] * schema["minItems"]
    if kind == "string":
        return "x" * schema.get("minLength", 1)
    if kind not in _PLAIN:
        raise ValueError(f"The JSON schema has an unknown type '{kind}'.")
    return _PLAIN[kind]
