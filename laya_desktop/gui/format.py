"""Numbers as people read them. Pure functions, of Qt only the translation; every view writes its numbers through them.

Unknown (None, NaN) is "–". Sizes on screen are decimal, GB of 1,000,000,000 bytes with one decimal, everywhere: it is
what drives, cards and system monitors say. The configuration file keeps its own exact spelling (``2GiB``).
"""

from __future__ import annotations

import math

from laya_desktop.gui.i18n import QT_TR_NOOP, tr

NONE = "–"
_GB = 1_000_000_000


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def size(size_bytes: float | None) -> str:
    """Bytes: ``22.8 GB``, ``94 MB``, ``3 kB``, ``0 GB``."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return NONE
    magnitude = abs(size_bytes)
    if magnitude >= 999.5e6 or magnitude == 0:
        return tr("{gigabytes} GB", gigabytes=gigabytes(size_bytes))
    if magnitude >= 999.5e3:
        return tr("{value:.0f} MB", value=size_bytes / 1e6)
    return tr("{value:.0f} kB", value=size_bytes / 1e3) if magnitude >= 999.5 else f"{size_bytes:.0f} B"


def gigabytes(size_bytes: float | None) -> str:
    """GB without the unit and without an idle decimal: ``41.2``, ``64``."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return NONE
    text = f"{size_bytes / _GB:,.1f}"
    return text.removesuffix(".0")


def size_of(used_bytes: float | None, total_bytes: float | None) -> str:
    """``41.2 of 64 GB``; "–" where the total is unknown."""
    return (
        tr("{used} of {total} GB", used=gigabytes(used_bytes), total=gigabytes(total_bytes))
        if _known(total_bytes)
        else NONE
    )


def micros(value_us: float | None) -> str:
    """A latency: ``341 µs``, ``1.2 ms``, ``2.5 s``."""
    if value_us is None or not math.isfinite(value_us):
        return NONE
    if value_us < 999.5:
        return f"{value_us:.0f} µs"
    return seconds(value_us / 1e6)


def seconds(value_s: float | None) -> str:
    """A duration: ``0.4 ms``, ``210 ms``, ``4.2 s``, ``45 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 d 4 h``."""
    if value_s is None or not math.isfinite(value_s):
        return NONE
    if value_s < 0.9995:
        return (
            tr("{value:.0f} ms", value=value_s * 1000)
            if value_s >= 0.00995 or value_s == 0
            else tr("{value:.1f} ms", value=value_s * 1000)
        )
    if value_s < 59.95:
        return f"{value_s:.1f} s" if value_s < 9.95 else f"{value_s:.0f} s"
    whole = round(value_s)
    for unit, below, part, size_s, part_s in (
        ("min", 3600, "s", 60, 1),
        ("h", 86_400, "min", 3600, 60),
        ("d", math.inf, "h", 86_400, 3600),
    ):
        if whole < below:
            rest = whole % size_s // part_s
            return f"{whole // size_s} {unit}" + (f" {rest} {part}" if rest else "")
    return NONE


def countdown(value_s: float | None) -> str:
    """Time that is left, in steps that can be read while it runs: ``8 s``, ``45 s``, ``3 min``, ``2 h 5 min``."""
    if value_s is None or not math.isfinite(value_s):
        return NONE
    if value_s < 57.5:
        return f"{value_s:.0f} s" if value_s < 10 else f"{round(value_s / 5) * 5} s"
    return seconds(max(60, round(value_s / 60) * 60))


def rate(value_per_s: float | None, unit: str = "tokens/s") -> str:
    """``83 tokens/s``; below ten with a decimal; ``unit`` may be empty."""
    if value_per_s is None or not math.isfinite(value_per_s):
        return NONE
    text = f"{value_per_s:,.0f}" if value_per_s >= 9.95 or value_per_s == 0 else f"{value_per_s:.1f}"
    return f"{text} {unit}" if unit else text


def count(value: float | None) -> str:
    """With thousands separators: ``12,904``."""
    return f"{value:,.0f}" if value is not None and math.isfinite(value) else NONE


_NOUNS = {
    "core": (QT_TR_NOOP("{n} core"), QT_TR_NOOP("{n} cores")),
    "line": (QT_TR_NOOP("{n} line"), QT_TR_NOOP("{n} lines")),
    "model": (QT_TR_NOOP("{n} model"), QT_TR_NOOP("{n} models")),
    "other alert": (QT_TR_NOOP("{n} other alert"), QT_TR_NOOP("{n} other alerts")),
    "request": (QT_TR_NOOP("{n} request"), QT_TR_NOOP("{n} requests")),
    "route": (QT_TR_NOOP("{n} route"), QT_TR_NOOP("{n} routes")),
    "slot": (QT_TR_NOOP("{n} slot"), QT_TR_NOOP("{n} slots")),
    "token": (QT_TR_NOOP("{n} token"), QT_TR_NOOP("{n} tokens")),
    "unsaved change": (QT_TR_NOOP("{n} unsaved change"), QT_TR_NOOP("{n} unsaved changes")),
}


def counted(value: int, noun: str) -> str:
    """``1 unsaved change``, ``2 unsaved changes``; the noun is one of a known few, so that it can be translated."""
    return tr(_NOUNS[noun][value != 1], n=f"{value:,}")


def percent(value: float | None) -> str:
    """Of 100: ``71 %``; between 0 and 1 exclusive ``<1 %``."""
    if value is None or not math.isfinite(value):
        return NONE
    return "<1 %" if 0 < value < 0.5 else f"{value:.0f} %"


def share(value: float | None) -> str:
    """Of 1: 0.71 → ``71 %``."""
    return NONE if value is None else percent(value * 100)


def temperature(value_c: float | None) -> str:
    """``62 °C``."""
    return f"{value_c:.0f} °C" if value_c is not None and math.isfinite(value_c) else NONE


def age(then_unix_s: float | None, now_unix_s: float) -> str:
    """How long ago: ``now``, ``3 s ago``, ``2 min ago``, ``5 h ago``, ``3 d ago``."""
    if then_unix_s is None or not math.isfinite(then_unix_s):
        return NONE
    past_s = now_unix_s - then_unix_s
    for limit_s, size_s, unit in ((1, 0, ""), (59.5, 1, "s"), (3570, 60, "min"), (84_600, 3600, "h")):
        if past_s < limit_s:
            return tr("{value:.0f} {unit} ago", value=past_s / size_s, unit=unit) if size_s else tr("now")
    return tr("{value:.0f} d ago", value=past_s / 86_400)


def axis(value: float) -> str:
    """A tick: ``0``, ``40``, ``2.5``, ``1k``, ``1.2M``."""
    for size_of_unit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size_of_unit:
            return f"{value / size_of_unit:g}{unit}"
    return f"{value:g}"
