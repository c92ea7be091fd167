"""Linux: a desktop entry in the XDG autostart folder, https://specifications.freedesktop.org/autostart-spec."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "laya-desktop.desktop"
_RESERVED = set(" \t\n\"'\\><~|&;$*?#()`%")


class DesktopEntry:
    """``$XDG_CONFIG_HOME/autostart/laya-desktop.desktop``.

    Args:
        folder: the autostart folder; None: this user's.
    """

    def __init__(self, folder: Path | None = None) -> None:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        self.path = (folder or config / "autostart") / NAME

    def is_on(self) -> bool:
        """True where the entry exists and no session tool has hidden it."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        off = {"hidden=true", "x-gnome-autostart-enabled=false"}
        return not any(line.replace(" ", "").lower() in off for line in lines)

    def turn_on(self, command: tuple[str, ...]) -> None:
        """Write the entry."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = (
            "[Desktop Entry]",
            "Type=Application",
            "Name=Laya Desktop",
            "Comment=Local AI inference",
            "Icon=laya-desktop",
            f"Exec={' '.join(_quoted(part) for part in command)}",
            "Terminal=false",
            "X-GNOME-Autostart-enabled=true",
        )
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def turn_off(self) -> None:
        """Remove the entry."""
        self.path.unlink(missing_ok=True)


def _quoted(part: str) -> str:
    """An argument of an Exec line: quoted where it must be, its escapes escaped once more as a string value."""
    if part and not _RESERVED & set(part):
        return part
    escaped = "".join(f"\\{c}" if c in '"`$\\' else c for c in part)
    return f'"{escaped}"'.replace("\\", "\\\\").replace("%", "%%")
