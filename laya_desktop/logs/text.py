"""How levels, messages and lines are written. Pure functions, used by whoever logs and by the writer thread."""

from __future__ import annotations

import logging
from datetime import datetime

from laya_desktop.errors import LayaError, near

LEVELS: dict[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
MAX_MESSAGE = 8_000
"""Characters of one message, traceback included; the middle of a longer one is left out."""

_CONTROL = {c: f"\\x{c:02x}" for c in (*range(32), 127, *range(128, 160)) if chr(c) not in "\n\t"}


def level_number(word: str) -> int:
    """The ``logging`` level of a word.

    Raises:
        LayaError: it is none of debug, info, warn and error.
    """
    if word not in LEVELS:
        raise LayaError(
            f"Unknown log level '{word}'.{near(word, LEVELS)}",
            hint="Use debug, info, warn or error.",
            code="invalid_config",
            status=400,
            param="log.level",
        )
    return LEVELS[word]


def level_word(number: int) -> str:
    """The word of a ``logging`` level; what lies between two levels counts as the lower one."""
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"


def clean(text: str) -> str:
    """Without control characters (a terminal would obey them) and within ``MAX_MESSAGE``."""
    if len(text) > MAX_MESSAGE:
        half = MAX_MESSAGE // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text.translate(_CONTROL)


def render(time_unix_s: float, level: str, logger: str, message: str) -> str:
    """The line of the file; further lines of the message are indented, so that none can pass for a record."""
    stamp = datetime.fromtimestamp(time_unix_s).astimezone().isoformat(sep=" ", timespec="milliseconds")
    text = message.replace("\n", "\n    ")
    return f"{stamp} {level.upper():5} {logger}: {text}\n"
