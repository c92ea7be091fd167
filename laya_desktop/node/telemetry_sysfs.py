"""Reading the small files of sysfs and procfs. Linux; telemetry's thread only."""

from __future__ import annotations

from pathlib import Path


def number(path: Path) -> int | None:
    """A file's whole number; None where there is none to read."""
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        return None


def text(path: Path) -> str | None:
    """A file's text without the line end; None where there is none to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
