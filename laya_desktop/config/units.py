"""Durations and byte sizes as people write them. Pure functions; used by the schema and by the forms.

Durations are seconds (float), sizes are bytes (int). Both read back equal to what they write.
"""

from __future__ import annotations

import re

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*")
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB|K|M|G|T)?\s*", re.IGNORECASE)
_SIZE_UNITS = {
    "b": 1,
    **{u: 1024 ** (i + 1) for i, u in enumerate(("kib", "mib", "gib", "tib"))},
    **{u: 1000 ** (i + 1) for i, u in enumerate(("kb", "mb", "gb", "tb"))},
    **{u: 1024 ** (i + 1) for i, u in enumerate(("k", "m", "g", "t"))},
}


def parse_duration(value: object) -> float:
    """Seconds from ``300``, ``"300s"``, ``"5m"``, ``"1.5h"`` or ``"250ms"``.

    Raises:
        ValueError: with a message that says what to write.
    """
    if isinstance(value, bool):
        raise ValueError("Not a duration. Write 300s, 5m or 1h.")
    if isinstance(value, int | float):
        if not 0 <= value < 1e9:
            raise ValueError("A duration must not be negative or above 30 years. Write 300s, 5m or 1h.")
        return float(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("Not a duration. Write 300s, 5m or 1h.")
    return parse_duration(float(match[1]) * _DURATION_UNITS[match[2] or "s"])


def format_duration(seconds: float) -> str:
    """The shortest exact spelling: ``300.0`` → ``5m``, ``0.25`` → ``250ms``, ``90`` → ``90s``."""
    for unit in ("d", "h", "m", "s"):
        size = _DURATION_UNITS[unit]
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    if seconds == 0:
        return "0s"
    millis = seconds * 1000
    return f"{int(millis)}ms" if millis == int(millis) else f"{seconds!r}s"


def parse_size(value: object) -> int:
    """Bytes from ``33554432``, ``"32MiB"``, ``"2 GB"`` or ``"64M"`` (K, M, G, T are powers of 1024).

    Raises:
        ValueError: with a message that says what to write.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("A size must not be negative. Write 512MiB or 2GiB.")
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("Not a size. Write 512MiB or 2GiB.")
    return int(float(match[1]) * _SIZE_UNITS[(match[2] or "B").lower()])


def format_size(size_bytes: int) -> str:
    """The shortest exact spelling: ``33554432`` → ``32MiB``; not round: plain bytes, e.g. ``1000B``."""
    for unit, size in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size_bytes >= size and size_bytes % size == 0:
            return f"{size_bytes // size}{unit}"
    return f"{size_bytes}B"
