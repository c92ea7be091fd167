"""Turns pydantic's errors into problems in plain language: what is wrong and what to write. Pure; any thread.

It looks up what a field accepts in the schema itself, so that no message can disagree with the rule. Places in files
are none of its business: the store adds lines.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic_core import ErrorDetails, ValidationError

from laya_desktop.config.frozen import SECRET_FIELDS
from laya_desktop.errors import Problem, near

Loc = tuple[str | int, ...]
_Model = type[BaseModel]

_EXAMPLES = {
    "name": "name: NAME",
    "path": "path: /data/models/my-llm-7b.gguf",
    "target": "target: NAME, the name of a model or an upstream",
    "match": "match: {prefix: /v1/model}",
    "url": 'url: "http://192.168.1.20:5292/v1"',
}
_NUMBERS = (
    "int_type", "int_parsing", "int_parsing_size", "int_from_float", "float_type", "float_parsing", "finite_number",
    "greater_than", "greater_than_equal", "less_than", "less_than_equal",
)  # fmt: skip
_LISTS = ("tuple_type", "list_type", "set_type")
_MAPPINGS = ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type")


def explain(error: ValidationError, root: _Model, written: Mapping[Loc, str] | None = None) -> list[Problem]:
    """Every fault once, in the order of the schema.

    Args:
        error: what pydantic found while it parsed ``root``.
        root: the schema.
        written: the text of plain values as they stand in the file, by path; None: there is no file.
    """
    found: dict[tuple[Loc, str], Problem] = {}
    for detail in error.errors(include_url=False):
        loc, field = _resolve(root, detail["loc"])
        message = _message(detail, loc, field, (written or {}).get(loc))
        found.setdefault((loc, message), Problem(message, loc))
    return list(found.values())


def _message(detail: ErrorDetails, loc: Loc, field: Any, written: str | None) -> str:
    kind = detail["type"]
    if kind == "value_error":
        return str(detail.get("ctx", {}).get("error", detail["msg"]))
    if kind in _NUMBERS:
        return f"{_shown(detail, loc, written)}{_number(field)}"
    for kinds, say in _SAYINGS.items():
        if kind in kinds:
            return say(detail, loc, field, written)
    return detail["msg"] if detail["msg"].endswith(".") else f"{detail['msg']}."


def _missing(_detail: ErrorDetails, loc: Loc, _field: Any, _written: str | None) -> str:
    key = str(loc[-1])
    return f"The key '{key}' is missing. Write {_EXAMPLES.get(key, f'{key}: …')}."


def _unknown(_detail: ErrorDetails, loc: Loc, field: Any, _written: str | None) -> str:
    known = list(field.model_fields) if _is_model(field) else []
    hint = near(str(loc[-1]), known) or (f" Known here: {', '.join(known)}." if known else "")
    return f"Unknown key '{loc[-1]}'.{hint}"


def _text(detail: ErrorDetails, loc: Loc, _field: Any, written: str | None) -> str:
    value = detail["input"]
    if isinstance(value, list | dict | tuple):
        return f"Text is expected here, but this is a {'mapping' if isinstance(value, dict) else 'list'}."
    if value is None:
        return "Text is expected here, but the value is empty. Write a text, or remove the key."
    if is_secret(loc):
        return "This key is not read as text. Put it in quotes."
    shown = written if written is not None else str(value)
    means = "true or false" if isinstance(value, bool) else "a date" if isinstance(value, date) else "a number"
    return f'{shown} is read as {means}, not as text. Put it in quotes: "{shown}".'


def _truth(detail: ErrorDetails, loc: Loc, _field: Any, written: str | None) -> str:
    return f"{_shown(detail, loc, written)}Write true or false."


def _choice(detail: ErrorDetails, loc: Loc, field: Any, written: str | None) -> str:
    words = [str(w) for w in _facts(field).get("words", ())]
    value = written if written is not None else detail["input"]
    hint = near(value.lower(), words) if isinstance(value, str) else ""
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"Unknown {loc[-1] if isinstance(loc[-1], str) else loc[-2]} '{_plain(value)}'. Write {listed}.{hint}"


def _list(detail: ErrorDetails, loc: Loc, _field: Any, written: str | None) -> str:
    shown = "[]" if written is None or is_secret(loc) else f"[{written}]"
    return f"A list is expected here, but this is {_noun(detail['input'])}. Write e.g. {loc[-1]}: {shown}."


def _mapping(detail: ErrorDetails, _loc: Loc, _field: Any, _written: str | None) -> str:
    return f"Keys with values are expected here, but this is {_noun(detail['input'])}. Write 'key: value' lines."


_SAYINGS: dict[tuple[str, ...], Callable[[ErrorDetails, Loc, Any, str | None], str]] = {
    ("missing",): _missing,
    ("extra_forbidden",): _unknown,
    ("string_type", "path_type"): _text,
    ("bool_type", "bool_parsing"): _truth,
    ("literal_error", "enum"): _choice,
    _LISTS: _list,
    _MAPPINGS: _mapping,
}


def _number(field: Any) -> str:
    facts = _facts(field)
    low, high = facts.get("minimum"), facts.get("maximum")
    above = facts.get("exclusiveMinimum")
    noun = "a whole number" if facts.get("type") == "integer" else "a number"
    if low is not None and high is not None:
        return f"Write {noun} from {low} to {high}."
    if above is not None and high is not None:
        return f"Write {noun} above {above:g} and up to {high:g}, e.g. {high * 0.8:g}."
    return f"Write {noun} of at least {low}." if low is not None else f"Write {noun}."


def _shown(detail: ErrorDetails, loc: Loc, written: str | None) -> str:
    value = detail["input"]
    if is_secret(loc) or isinstance(value, list | dict | tuple):
        return ""
    if value is None:
        return "The value is empty. "
    wrong = "is out of range" if detail["type"].startswith(("greater", "less")) else "does not fit here"
    return f"'{written if written is not None else _plain(value)}' {wrong}. "


def _plain(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _noun(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else "a single value"


def is_secret(loc: Loc) -> bool:
    """True for a path whose value no message may repeat."""
    return not SECRET_FIELDS.isdisjoint(loc)


def _resolve(root: _Model, loc: Loc) -> tuple[Loc, Any]:
    """The path without pydantic's own marks (branches of unions), and the type found there.

    The type of an unknown key is the model that refused it.
    """
    kept: list[str | int] = []
    here: Any = root
    for part in loc:
        inner = _bare(here)
        if _is_model(inner):
            kept.append(part)
            field = inner.model_fields.get(str(part))
            here = (
                inner
                if field is None
                else Annotated[field.annotation, *field.metadata]
                if field.metadata
                else (field.annotation)
            )
        elif get_origin(inner) is tuple and isinstance(part, int):
            kept.append(part)
            here = get_args(inner)[0]
        elif get_origin(inner) is dict and part != "[key]":
            kept.append(part)
            here = get_args(inner)[1]
    return tuple(kept), here


def _bare(kind: Any) -> Any:
    """Without ``Annotated`` and ``| None``."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        some = [a for a in get_args(kind) if a is not type(None)]
        models = [a for a in some if _is_model(a)]
        return _bare(some[0]) if len(some) == 1 else models[0] if len(models) == 1 else kind
    return kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@lru_cache(maxsize=256)
def _facts(kind: Any) -> dict[str, Any]:
    """What the JSON schema says of a field: type, bounds, and its words."""
    whole = TypeAdapter(kind).json_schema()
    parts = [whole, *whole.get("anyOf", ())]
    parts += [whole["$defs"][p["$ref"].rsplit("/", 1)[-1]] for p in parts if "$ref" in p]
    facts: dict[str, Any] = {}
    for part in parts:
        words = part.get("enum", [part["const"]] if "const" in part else [])
        facts |= {k: v for k, v in part.items() if k in ("minimum", "maximum", "exclusiveMinimum", "type")}
        facts.setdefault("words", []).extend(words)
    return facts
