"""macOS: a property list in ~/Library/LaunchAgents, which launchd reads at login."""

from __future__ import annotations

import plistlib
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

LABEL = "io.laya.desktop"


class LaunchAgent:
    """``~/Library/LaunchAgents/io.laya.desktop.plist``.

    Args:
        folder: the folder of agents; None: this user's.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or Path.home() / "Library" / "LaunchAgents") / f"{LABEL}.plist"

    def is_on(self) -> bool:
        """True where the agent exists and runs at login."""
        try:
            agent: dict[str, Any] = plistlib.loads(self.path.read_bytes())
        except (OSError, ValueError, ExpatError):  # an unreadable list is none: launchd ignores it as well
            return False
        return bool(agent.get("RunAtLoad")) and not agent.get("Disabled")

    def turn_on(self, command: tuple[str, ...]) -> None:
        """Write the agent; launchd reads it at the next login."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        agent = {
            "Label": LABEL, "ProgramArguments": list(command), "RunAtLoad": True, "ProcessType": "Interactive",
        }  # fmt: skip
        self.path.write_bytes(plistlib.dumps(agent))

    def turn_off(self) -> None:
        """Remove the agent."""
        self.path.unlink(missing_ok=True)
