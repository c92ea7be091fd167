"""What an answer must look like, as a grammar in GBNF: from JSON schemas and from tools. Worker only.

The conversion of schemas is llama-cpp-python's, with its gaps closed here: texts in names, constants and enums are
escaped as JSON and then as GBNF, references get names of their own, and lengths become repetitions instead of nesting.
A schema comes from a caller: it is converted under a deadline, and the grammar's size and depth are bounded, because
llama.cpp reads it recursively. Limits of numbers (``minimum``, ``multipleOf`` …) cannot be enforced and are ignored.
"""

from __future__ import annotations

import json
import re
from typing import Any

from llama_cpp import llama_grammar
from typing_extensions import override

from laya_desktop.node.engines.base import AnswerFormat, Generate
from laya_desktop.node.engines.deadline import DeadlineError, within
from laya_desktop.node.engines.dialect import CALL_CLOSE, CALL_OPEN, MISTRAL_ARGS, MISTRAL_CALLS, CallStyle
from laya_desktop.node.engines.lane import tool_names

LIMIT_S = 2.0
MOST_BYTES = 256 * 1024
MOST_DEPTH = 400
MOST_REPEATS, MOST_REPEATS_IN_ALL = 2000, 20_000
"""llama.cpp makes a rule of every repetition."""
MOST_CALLS = 16
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*', re.DOTALL)
_BRACES = re.compile(r"\{([\d,\s]{1,40})\}")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class FormatError(Exception):
    """The format cannot be enforced; the text is fit to show.

    Attributes:
        param: the field of the request.
    """

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


def grammar_of(request: Generate, style: CallStyle) -> str | None:
    """The grammar that the answer to a request must follow, or None.

    Raises:
        FormatError: the schema or the tools are not understood.
    """
    wanted = request.answer_format
    if request.tools and request.tool_choice == "required":
        return _bounded(_converted(lambda c: _calls(c, request, style), "tools"), "tools")
    if wanted is None:
        return None
    if wanted.kind == "grammar":
        if request.tools:
            raise FormatError("A grammar and tools cannot be combined.", "grammar")
        return _bounded(wanted.text, "grammar")
    return _bounded(_converted(lambda c: _answer(c, wanted, request, style), "response_format"), "response_format")


def _converted(build: Any, param: str) -> str:
    converter = _Converter()
    try:
        within(LIMIT_S, lambda: build(converter))
        return str(converter.format_grammar())  # type: ignore[no-untyped-call]
    except DeadlineError:
        raise FormatError(f"The schema took longer than {LIMIT_S:g} s to convert.", param) from None
    except RecursionError:
        raise FormatError("The schema is nested too deeply.", param) from None
    except Exception as error:  # the converter asserts, and trips over what is no schema
        raise FormatError(
            f"The JSON schema cannot be enforced: {str(error) or type(error).__name__}.", param
        ) from error


def _bounded(grammar: str, param: str) -> str:
    if "\0" in grammar:
        raise FormatError("The grammar has a NUL character.", param)
    if len(grammar.encode()) > MOST_BYTES:
        raise FormatError(f"The grammar is larger than {MOST_BYTES // 1024} KiB.", param)
    form = _QUOTED.sub("", grammar)
    depth = deepest = 0
    for letter in form:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise FormatError(f"The grammar is nested more than {MOST_DEPTH} deep.", param)
    for braces in _BRACES.findall(form):
        low, _, high = braces.partition(",")
        if low.strip() and high.strip() and int(low) > int(high):  # llama.cpp would never come to an end
            raise FormatError(f"A part is repeated at least {low.strip()} and at most {high.strip()} times.", param)
    repeats = [max((int(n) for n in braces.split(",") if n.strip()), default=0) for braces in _BRACES.findall(form)]
    if max(repeats, default=0) > MOST_REPEATS or sum(repeats) > MOST_REPEATS_IN_ALL:
        text = f"more than {MOST_REPEATS:,} times, or all of it more than {MOST_REPEATS_IN_ALL:,}"
        raise FormatError(f"The grammar repeats a part {text}.", param)
    return grammar


def _answer(converter: _Converter, wanted: AnswerFormat, request: Generate, style: CallStyle) -> None:
    """A JSON value after a schema; with tools, that or calls."""
    schema = json.loads(wanted.text)
    if not isinstance(schema, dict):
        raise TypeError("a schema is an object")
    schema = converter.resolve_refs(schema, "answer")
    if not request.tools:
        converter.visit(schema, "")
        return
    answer = converter.visit(schema, "answer")
    _calls(converter, request, style)
    converter.set_rule("calls", converter.rule("root"))
    converter.set_rule("root", f"{answer} | calls")


def _calls(converter: _Converter, request: Generate, style: CallStyle) -> None:
    """One call of the named tool, or of any; several where the caller says that they may be."""
    tools = [tool["function"] for tool in request.tools or [] if isinstance(tool.get("function"), dict)]
    if request.tool_name is not None:
        tools = [tool for tool in tools if isinstance(tool, dict) and tool.get("name") == request.tool_name]
    if not tools:
        names = ", ".join(tool_names(request.tools or []))
        raise ValueError(f"there is no tool '{request.tool_name}', only {names}")
    made = [_call(converter, tool, index, style) for index, tool in enumerate(tools)]
    converter.set_rule("call", " | ".join(made))
    more = f"{{0,{MOST_CALLS - 1}}}" if request.parallel_tool_calls and request.tool_name is None else "{0,0}"
    several = more != "{0,0}"
    if style == "hermes":
        one = f'"{CALL_OPEN}\\n" call "\\n{CALL_CLOSE}"'
        root = f'{one} ("\\n" {one}){more}' if several else one
    elif style == "mistral":
        root = f'"{MISTRAL_CALLS}[" call (", " call){more} "]"' if several else f'"{MISTRAL_CALLS}[" call "]"'
    elif style == "mistral_args":
        root = f'"{MISTRAL_CALLS}" call ("{MISTRAL_CALLS}" call){more}' if several else f'"{MISTRAL_CALLS}" call'
    else:
        root = f'call ("; " call){more}' if several else "call"
    converter.set_rule("root", root)


def _call(converter: _Converter, tool: Any, index: int, style: CallStyle) -> str:
    """The rule of a call of one tool."""
    parameters = tool.get("parameters")
    schema = parameters if isinstance(parameters, dict) else {}
    if not {"$ref", "anyOf", "oneOf", "allOf"} & schema.keys():
        schema = {"type": "object", "properties": {}, **schema}
    own = json.loads(json.dumps(schema))  # the converter writes into it
    arguments = converter.visit(converter.resolve_refs(own, f"tool{index}"), f"tool-{index}")
    name = str(tool.get("name"))
    if style == "mistral_args":
        head = f'"{name.translate(_ESCAPES)}{MISTRAL_ARGS}" {arguments}'
        return converter.set_rule(f"call-{index}", head)
    key = "parameters" if style == "llama3" else "arguments"
    head = f'{{"name": {json.dumps(name, ensure_ascii=False)}, "{key}": '.translate(_ESCAPES)
    return converter.set_rule(f"call-{index}", f'"{head}" {arguments} "}}"')


class _Converter(llama_grammar.SchemaConverter):
    """The library's converter with its gaps closed."""

    def __init__(self) -> None:
        super().__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)  # type: ignore[no-untyped-call]
        self._ref_names: dict[str, str] = {}

    def rule(self, name: str) -> str:
        """A rule's text."""
        return str(self._rules[name])

    def set_rule(self, name: str, text: str) -> str:
        """Add or replace a rule; returns its name."""
        self._rules[name] = text
        return name

    @override
    def visit(self, schema: Any, name: str) -> str:
        if not isinstance(schema, dict):
            if schema is True:
                schema = {}
            else:
                raise TypeError(f"{json.dumps(schema)[:60]} is no schema")
        _check_ranges(schema)
        if "const" not in schema and "enum" not in schema and self._is_anything(schema):
            return str(self._add_primitive("value", llama_grammar.PRIMITIVE_RULES["value"])) if name else self._root()
        lengths = schema.get("type") == "string" and ("minLength" in schema or "maxLength" in schema)
        if lengths and "pattern" not in schema and "format" not in schema and "$ref" not in schema:
            return self._string_of(schema, name)
        if schema.get("type") == "array" and {"minItems", "maxItems"} & schema.keys() and "prefixItems" not in schema:
            schema = {"items": True, **schema}
        self._check_items(schema)
        return str(super().visit(schema, name))  # type: ignore[no-untyped-call]

    @staticmethod
    def _is_anything(schema: dict[str, Any]) -> bool:
        says = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions"}
        return not schema.keys() - says

    def _root(self) -> str:
        self._add_primitive("value", llama_grammar.PRIMITIVE_RULES["value"])
        return self.set_rule("root", "value")

    @staticmethod
    def _check_items(schema: dict[str, Any]) -> None:
        for key in ("minItems", "maxItems"):
            value = schema.get(key, 0)
            if not isinstance(value, int) or not 0 <= value <= MOST_DEPTH // 2:
                raise ValueError(f"{key} is {value}; at most {MOST_DEPTH // 2} can be enforced")

    def _string_of(self, schema: dict[str, Any], name: str) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength")
        for key, value in (("minLength", low), ("maxLength", high)):
            if value is not None and (not isinstance(value, int) or not 0 <= value <= MOST_REPEATS):
                raise ValueError(f"{key} is {value}; at most {MOST_REPEATS} can be enforced")
        letter = self._add_primitive("char", llama_grammar.PRIMITIVE_RULES["char"])
        count = f"{{{low},{'' if high is None else high}}}"
        text = rf'"\"" {letter}{count} "\"" space'
        return str(self._add_rule(name or "root", text))  # type: ignore[no-untyped-call]

    @override
    def resolve_refs(self, schema: dict[str, Any], url: str) -> dict[str, Any]:
        """Give every reference in the schema a name of its own, and note where it leads."""

        def look(node: Any) -> None:
            if isinstance(node, dict):
                if isinstance(ref := node.get("$ref"), str) and not ref.startswith(url):
                    self._refs[url + ref] = _pointed_at(schema, ref)
                    node["$ref"] = url + ref
                for value in node.values():
                    look(value)
            elif isinstance(node, list):
                for value in node:
                    look(value)

        look(schema)
        return schema

    @override
    def _add_primitive(self, name: str, rule: Any) -> str:
        if name == "char":  # the library's allows line breaks, which no JSON text may have
            rule = llama_grammar.BuiltinRule(rule.content.replace(r'[^"\\]', r'[^"\\\x7F\x00-\x1F]'), [])
        return str(super()._add_primitive(name, rule))

    @override
    def _format_literal(self, literal: str) -> str:
        """Quote a JSON text as GBNF: umlauts as themselves, backslashes kept."""
        if literal.startswith('"'):
            literal = json.dumps(json.loads(literal), ensure_ascii=False)
        return f'"{literal.translate(_ESCAPES)}"'

    @override
    def _resolve_ref(self, ref: str) -> str:
        known = self._ref_names.get(ref)
        if known is None:
            name = self._ref_names[ref] = f"ref-{len(self._ref_names)}"
            known = self._ref_names[ref] = self.visit(self._refs[ref], name)
        return known


def _pointed_at(schema: dict[str, Any], ref: str) -> Any:
    """What a reference within the schema leads to."""
    if not ref.startswith("#"):
        raise ValueError(f"$ref '{ref[:80]}' leads out of the schema")
    target: Any = schema
    for part in ref[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or key not in target:
            raise ValueError(f"$ref '{ref[:80]}' leads nowhere")
        target = target[key]
    return target


_RANGES = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
)


def _check_ranges(schema: dict[str, Any]) -> None:
    """Raises ValueError for what no value can be, and for keys that hold something else than they should."""
    for lowest, highest in _RANGES:
        low, high = schema.get(lowest), schema.get(highest)
        if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
            raise ValueError(f"{lowest} is {low} and {highest} is {high}: no value can be both")
    if not isinstance(schema.get("properties", {}), dict):
        raise TypeError(f"properties is {json.dumps(schema['properties'])[:60]}, and not an object")
    if schema.get("enum") == []:
        raise ValueError("enum is empty: no value can be one of none")
