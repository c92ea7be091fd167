"""The base of every part of the configuration: frozen, strict about its keys, and silent about secrets. Any thread.

It knows which fields hold secrets, and nothing else of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

SECRET_FIELDS = frozenset({"api_keys", "admin_key", "api_key", "hash"})
"""Fields whose values are shown nowhere: not in messages, not in differences, not in a ``repr``."""

CREDENTIAL_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "x-auth-token", "cookie"}
)
"""Headers that identify a caller; a rule that names one has a secret as its value."""

HIDDEN = "(hidden)"


class Frozen(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """A configuration may end up in a traceback or a log line: what is secret does not."""
        for name, value in super().__repr_args__():
            yield name, shown(name, value)


def shown(name: str | None, value: Any) -> Any:
    """The value as it may be shown: in place of a secret only that there is one."""
    if name == "headers" and isinstance(value, dict):
        return {k: HIDDEN if v is not None and k.lower() in CREDENTIAL_HEADERS else v for k, v in value.items()}
    if name not in SECRET_FIELDS or not value:
        return value
    if isinstance(value, str):
        return value if value.startswith("keyring:") else HIDDEN
    return HIDDEN if not isinstance(value, tuple) else (HIDDEN,) * len(value)
