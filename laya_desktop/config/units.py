"""Durations and byte sizes as people write them. Pure functions; used by the schema and by the forms.

Durations are seconds (float), sizes are bytes (int). Both read back equal to what they write.
"""

from __future__ import annotations

import re
from decimal import Decimal

DURATION_PATTERN = r"^\s*\d+(\.\d+)?\s*(ms|s|m|h|d)?\s*$"
"""For JSON Schema, which has no flags."""
SIZE_PATTERN = r"^\s*\d+(\.\d+)?\s*([KkMmGgTt][Ii]?[Bb]|[KkMmGgTt]|[Bb])?\s*$"
"""For JSON Schema, which has no flags."""

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)?\s*")
_DURATION_UNITS = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
_MIN_DURATION_S, _MAX_DURATION_S = 1e-6, 1e9
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB|K|M|G|T)?\s*", re.IGNORECASE)
_SIZE_UNITS = {
    "b": 1,
    **{u: 1024 ** (i + 1) for i, u in enumerate(("kib", "mib", "gib", "tib"))},
    **{u: 1000 ** (i + 1) for i, u in enumerate(("kb", "mb", "gb", "tb"))},
    **{u: 1024 ** (i + 1) for i, u in enumerate(("k", "m", "g", "t"))},
}
_MAX_SIZE_BYTES = 1024**5
_NOT_A_DURATION = "Not a duration. Write 300s, 5m or 1h."
_NOT_A_SIZE = "Not a size. Write 512MiB or 2GiB."


def parse_duration(value: object) -> float:
    """Seconds from ``300``, ``"300s"``, ``"5m"``, ``"1.5h"`` or ``"250ms"``.

    Raises:
        ValueError: with a message that says what to write.
    """
    if isinstance(value, bool):
        raise ValueError(_NOT_A_DURATION)
    if isinstance(value, int | float):
        if not 0 <= value < _MAX_DURATION_S:
            raise ValueError("A duration must not be negative or above 30 years. Write 300s, 5m or 1h.")
        if 0 < value < _MIN_DURATION_S:
            raise ValueError("A duration is 0 or at least one millionth of a second. Write 300s, 5m or 1h.")
        return float(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) and len(value) < 64 else None
    if match is None:
        raise ValueError(_NOT_A_DURATION)
    # Decimal, because 9 * 0.001 is not the float 0.009 and would not read back equal
    return parse_duration(float(Decimal(match[1]) * _DURATION_UNITS[match[2] or "s"]))


def format_duration(seconds: float) -> str:
    """The shortest exact spelling: ``300.0`` → ``5m``, ``0.25`` → ``250ms``, ``90`` → ``90s``."""
    if seconds == 0:
        return "0s"
    exact = Decimal(repr(float(seconds)))
    for unit in ("d", "h", "m", "s", "ms"):
        count = exact / _DURATION_UNITS[unit]
        if count >= 1 and count == count.to_integral_value():
            return f"{int(count)}{unit}"
    return f"{exact:f}s"


def parse_size(value: object) -> int:
    """Bytes from ``33554432``, ``"32MiB"``, ``"2 GB"`` or ``"64M"`` (K, M, G, T are powers of 1024).

    Raises:
        ValueError: with a message that says what to write.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= _MAX_SIZE_BYTES:
            raise ValueError("A size must not be negative or above 1024TiB. Write 512MiB or 2GiB.")
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) and len(value) < 64 else None
    if match is None:
        raise ValueError(_NOT_A_SIZE)
    return parse_size(int(Decimal(match[1]) * _SIZE_UNITS[(match[2] or "B").lower()]))


def format_size(size_bytes: int) -> str:
    """The shortest exact spelling: ``33554432`` → ``32MiB``; not round: plain bytes, e.g. ``1000B``."""
    for unit, size in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size_bytes >= size and size_bytes % size == 0:
            return f"{size_bytes // size}{unit}"
    return f"{size_bytes}B"
