"""Takes keys out of text that is about to be written down. Pure; any thread.

A second line of defence: nothing logs a key on purpose, but exceptions and other people's libraries quote what they
were given. It knows the shapes of keys and of the headers that carry them, and no configuration.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden)"

_HINTS = ("auth", "key", "cookie", "bearer", "laya-", "sk-", "token")
"""Words without which no pattern below can match, so that most lines cost one look-up each."""

_HEADER = re.compile(
    r"""(?ix)
    (?P<name> \b
        (?: proxy-authorization | authorization | x-api-key | x-goog-api-key | api[-_]?key | admin_key | x-auth-token
          | set-cookie | cookie )
        \b ['"]? \s* (?: [:=,] | => ) \s* (?: b (?=['"]) )? ['"]? \s* )
    (?P<scheme> (?: bearer | basic ) \s+ )?
    (?P<value> (?! keyring: | none\b | null\b | \(hidden\) ) [^\s'",;)\]}\\]{4,} )"""
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}")
_TOKEN = re.compile(r"\b(laya-|sk-)[A-Za-z0-9_-]{16,}")


def redact(text: str) -> str:
    """The text with ``(hidden)`` in place of what looks like a key."""
    low = text.lower()
    if not any(hint in low for hint in _HINTS):
        return text
    text = _HEADER.sub(lambda m: f"{m['name']}{m['scheme'] or ''}{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _TOKEN.sub(rf"\1{HIDDEN}", text)
