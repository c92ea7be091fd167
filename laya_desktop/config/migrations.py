"""Versions of the file format: older ones are brought up to date, newer ones refused. Pure; any thread.

There is one version so far, so the table of steps is empty; a step takes the data of one version and returns the
next one's, and a test holds that there is a step for every older version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laya_desktop.config.schema import VERSION
from laya_desktop.errors import Problem

STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From version N to N + 1, by N."""


def migrate(data: dict[str, Any]) -> dict[str, Any]:
    """The data in today's version; a missing ``version`` means 1. Call ``check_version`` first."""
    version = data.get("version", 1)
    while version in STEPS:
        data = {**STEPS[version](data), "version": version + 1}
        version += 1
    return data


def check_version(data: dict[str, Any]) -> Problem | None:
    """Why the file's version cannot be read, or None. The rest of such a file is not worth looking at."""
    version = data.get("version", 1)
    if isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= VERSION:
        return None
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        text = f"This file has version {version}; this program reads up to version {VERSION}. Install a newer one."
    else:
        text = f"'{version}' is not a version of this file format. Write version: {VERSION}."
    return Problem(text, ("version",))
