"""Writes plain values as YAML that every reader reads alike: YAML 1.1 and 1.2. Pure; any thread.

Text stays plain only where no reader could take it for anything else; otherwise it is quoted.
"""

from __future__ import annotations

import re
from typing import Any

_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*")
_UNIT = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m|h|d|[KMGT]iB|B)")
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_PACKAGE = re.compile(r"package:[A-Za-z0-9_./-]+")
_SWITCHES = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scalar(value: Any, quote: str | None = None) -> str:
    """One plain value; ``quote`` (``'`` or ``"``) is kept where text was quoted that way before."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, int):
        return str(value)
    return text(str(value), quote)


def text(value: str, quote: str | None = None) -> str:
    """Text, quoted where it has to be."""
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if not quote and is_plain(value):
        return value
    return '"' + "".join(_escaped(c) for c in value) + '"'


def is_plain(value: str) -> bool:
    """True where text may stand without quotes, in block and flow style."""
    if _WORD.fullmatch(value):
        return value.lower() not in _SWITCHES
    return any(p.fullmatch(value) is not None for p in (_UNIT, _ADDRESS, _PACKAGE))


def flow(value: Any) -> str:
    """A value on one line: ``{prefix: /v1, methods: [POST]}``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    return scalar(value)


def entry(key: str, value: Any, indent: int, *, deep: bool = False) -> str:
    """``key: value`` as whole lines; ``deep``: mappings and lists get lines of their own."""
    pad = " " * indent
    if deep and isinstance(value, dict) and value:
        return f"{pad}{text(key)}:\n" + "".join(entry(k, v, indent + 2) for k, v in value.items())
    if deep and isinstance(value, list) and value:
        return f"{pad}{text(key)}:\n" + "".join(item(v, indent + 2) for v in value)
    return f"{pad}{text(key)}: {flow(value)}\n"


def item(value: Any, indent: int) -> str:
    """One item of a block list as whole lines; its keys get a line each."""
    pad = " " * indent
    if not isinstance(value, dict) or not value:
        return f"{pad}- {flow(value)}\n"
    lines = "".join(entry(k, v, indent + 2) for k, v in value.items())
    return f"{pad}- {lines[indent + 2 :]}"


def document(data: dict[str, Any]) -> str:
    """A whole document, one empty line between its parts."""
    return "\n".join(entry(key, value, 0, deep=True) for key, value in data.items())


def _float(value: float) -> str:
    shown = repr(value)
    mantissa, e, exponent = shown.partition("e")  # YAML 1.1 wants a dot in the mantissa and a sign in the exponent
    if not e:
        return shown
    sign = "" if exponent.startswith("-") else "+"
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e{sign}{exponent.lstrip('+')}"


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
