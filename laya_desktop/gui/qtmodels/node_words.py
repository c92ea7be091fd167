"""What the node says of the machine, in the window's language. Pure but for the translation.

The node writes English, in its log and answers as in its snapshots: callers and searches depend on that. Here its
sentences on headroom and alerts are known by their form. One that is not known is shown as it is.
"""

from __future__ import annotations

import re

from laya_desktop.gui.i18n import QT_TR_NOOP, language, tr

_FORMS = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r"(?P<what>.+) full in (?P<time>.+) at this rate", QT_TR_NOOP("{what} full in {time} at this rate")),
        (r"full in (?P<time>.+) at this rate", QT_TR_NOOP("full in {time} at this rate")),
        (r"(?P<what>.+) is (?P<size>\S+ [GM]B) over the limit", QT_TR_NOOP("{what} is {size} over the limit")),
        (r"(?P<what>.+) is at the limit", QT_TR_NOOP("{what} is at the limit")),
        (r"(?P<size>\S+ [GM]B) to the limit, (?P<trend>falling|steady)", QT_TR_NOOP("{size} to the limit, {trend}")),
        (r"(?P<size>\S+ [GM]B) to the limit", QT_TR_NOOP("{size} to the limit")),
        (r"falling", QT_TR_NOOP("falling")),
        (r"steady", QT_TR_NOOP("steady")),
        (r"(?P<what>.+) unknown", QT_TR_NOOP("{what} unknown")),
        (r"queue full: new requests are refused", QT_TR_NOOP("queue full: new requests are refused")),
        (r"queue grows by (?P<rate>.+), full in (?P<time>.+)", QT_TR_NOOP("queue grows by {rate}, full in {time}")),
        (r"queue shrinks by (?P<rate>.+)", QT_TR_NOOP("queue shrinks by {rate}")),
        (r"no queue", QT_TR_NOOP("no queue")),
        (r"empty", QT_TR_NOOP("empty")),
        (r"about (?P<n>\d+) s", QT_TR_NOOP("about {n} s")),
        (r"about (?P<n>\d+) min", QT_TR_NOOP("about {n} min")),
        (r"a second", QT_TR_NOOP("a second")),
        (r"over an hour", QT_TR_NOOP("over an hour")),
        (r"(?P<n>[\d.]+) a minute", QT_TR_NOOP("{n} a minute")),
        (r"(?P<n>[\d.]+) a second", QT_TR_NOOP("{n} a second")),
        (
            r"Programs waited for memory in (?P<n>\d+) % of the last 10 s",
            QT_TR_NOOP("Programs waited for memory in {n} % of the last 10 s"),
        ),
        (r"(?P<n>[\d.]+) MB a second are read back from swap", QT_TR_NOOP("{n} MB a second are read back from swap")),
        (
            r"(?P<n>[\d.]+) GB left on the disk of the log folder",
            QT_TR_NOOP("{n} GB left on the disk of the log folder"),
        ),
        (r"(?P<what>CPU|GPU \d+) at (?P<n>\d+) °C", QT_TR_NOOP("{what} at {n} °C")),
        (r"Nothing slowed down by heat", QT_TR_NOOP("Nothing slowed down by heat")),
        (r"(?P<what>.+) slowed down by heat", QT_TR_NOOP("{what} slowed down by heat")),
        (r"(?P<what>.+) and (?P<rest>CPU|GPU \d+)", QT_TR_NOOP("{what} and {rest}")),
        (r"Idle model '(?P<name>.+)' is unloaded", QT_TR_NOOP("Idle model '{name}' is unloaded")),
        (r"'(?P<name>.+)' is loaded again", QT_TR_NOOP("'{name}' is loaded again")),
        (r"Batch requests wait", QT_TR_NOOP("Batch requests wait")),
        (r"Batch requests are refused", QT_TR_NOOP("Batch requests are refused")),
        (r"New models are not loaded", QT_TR_NOOP("New models are not loaded")),
        (r"Batch requests run again", QT_TR_NOOP("Batch requests run again")),
        (r"Batch requests are taken again", QT_TR_NOOP("Batch requests are taken again")),
        (r"Models may be loaded again", QT_TR_NOOP("Models may be loaded again")),
        (r"VRAM of GPU (?P<n>\d+)", QT_TR_NOOP("VRAM of GPU {n}")),
        (r"(?P<what>'.+'|RAM|VRAM(?: of GPU \d+)?): (?P<rest>.+)", QT_TR_NOOP("{what}: {rest}")),
    )
)
_INNER = frozenset({"what", "time", "trend", "rate", "rest"})
"""Parts that are phrases themselves."""


def in_words(text: str) -> str:
    """A sentence of the node in the window's language; as it is where its form is not known."""
    if language() == "en":
        return text
    for pattern, known in _FORMS:
        if (found := pattern.fullmatch(text)) is not None:
            parts = found.groupdict()
            values = {key: in_words(value) if key in _INNER else value for key, value in parts.items()}
            return tr(known, **values) if values else tr(known)
    return text
