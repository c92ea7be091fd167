"""One key that callers present: how it is written, made, named and compared. Pure but for ``new_key``; any thread.

A key is kept as text, as ``sha256:<hex>``, or as a mapping with a name, a hash and a date. Keys made here are 32 random
bytes, so their plain SHA-256 cannot be guessed back; a key that a person thought up can be.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from laya_desktop.config.frozen import Frozen
from laya_desktop.errors import LayaError

PREFIX = "laya-"
KEY_BYTES = 32
MASK = "masked:"
"""Begins what ``/admin`` shows in place of a secret (``config.masking``); it opens nothing."""

_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_MASKED = re.compile(r"masked:[0-9a-f]{32}")
_LABEL_DIGITS = 6
_SALT = secrets.token_bytes(32)


def check_key(value: str) -> str:
    """A key as text or as a hash.

    Raises:
        ValueError: it could not be sent in a header, or is no hash.
    """
    if value.startswith("sha256:") and _HASH.fullmatch(value) is None:
        raise ValueError("After 'sha256:' come 64 hexadecimal digits in lower case. Or write the key itself.")
    if not value or any(c.isspace() or not c.isprintable() or ord(c) > 126 for c in value):
        raise ValueError("A key has no spaces and only plain characters, and is not empty.")
    return value


def _check_hash(value: str) -> str:
    if _HASH.fullmatch(value) is None and _MASKED.fullmatch(value) is None:
        raise ValueError("A hash is written sha256: and 64 hexadecimal digits in lower case.")
    return value


def check_key_name(value: str) -> str:
    """A name that fits on one line.

    Raises:
        ValueError: it does not.
    """
    if not 1 <= len(value) <= 64 or value != value.strip() or not value.isprintable():
        raise ValueError("A key's name has 1 to 64 characters, no control characters, and no space at its ends.")
    return value


class ApiKey(Frozen):
    """A key with a name: only its hash is kept."""

    name: Annotated[str, AfterValidator(check_key_name)]
    """Whose or what it is, e.g. laptop; unique."""
    hash: Annotated[str, AfterValidator(_check_hash)]
    """``sha256:`` and the hexadecimal SHA-256 of the key."""
    created: date | None = None
    """The day it was made, e.g. 2026-12-01."""


def _parse(value: Any) -> Any:
    if isinstance(value, dict):
        return ApiKey.model_validate(value)
    if isinstance(value, ApiKey):
        return value
    if not isinstance(value, str):
        raise ValueError("A key is text in quotes, or a mapping with name and hash.")
    return check_key(value)


CallerKey = Annotated[str | ApiKey, BeforeValidator(_parse, json_schema_input_type=str | ApiKey)]
"""What ``api_keys`` and ``admin_key`` hold."""


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as people may see it.

    Attributes:
        label: its name, or for one without a name a mark that lasts as long as the process; unique in practice.
        created: the day it was made, None where unknown.
        plain: True where the configuration holds the key itself.
        named: True where ``label`` is a name that somebody gave it.
    """

    label: str
    created: date | None
    plain: bool
    named: bool


def describe(key: str | ApiKey) -> KeyInfo:
    """What may be shown of a key."""
    if isinstance(key, ApiKey):
        return KeyInfo(key.name, key.created, plain=False, named=True)
    label = f"unnamed {fingerprint(key)[:_LABEL_DIGITS]}"
    return KeyInfo(label, None, plain=not key.startswith("sha256:"), named=False)


def digest(key: str | ApiKey) -> bytes:
    """The SHA-256 that a presented key is compared with."""
    text = key.hash if isinstance(key, ApiKey) else key
    match = _HASH.fullmatch(text)
    return bytes.fromhex(match[1]) if match else hashlib.sha256(text.encode()).digest()


def fingerprint(text: str) -> str:
    """A mark that tells secrets apart and cannot be guessed back, not even for a short one. Lasts as the process."""
    return hmac.new(_SALT, text.encode(), hashlib.sha256).hexdigest()


def is_masked(key: str | ApiKey) -> bool:
    """True for what stands in place of a secret; it is nobody's key."""
    return (key.hash if isinstance(key, ApiKey) else key).startswith(MASK)


def usable(keys: tuple[str | ApiKey, ...]) -> tuple[str | ApiKey, ...]:
    """Those that open anything."""
    return tuple(key for key in keys if key and not is_masked(key))


def new_key(name: str, today: date) -> tuple[str, ApiKey]:
    """Make a key: the key itself, which is shown once, and what is kept of it.

    Raises:
        LayaError: 400 for a bad name.
    """
    try:
        check_key_name(name)
    except ValueError as error:
        raise LayaError(str(error), hint="Name it after who uses it.", code="bad_name", status=400) from None
    key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    return key, ApiKey(name=name, hash=f"sha256:{hashlib.sha256(key.encode()).hexdigest()}", created=today)
