"""Start with the session: one module a platform, each of them a file or a registry value that the user can see.

``command()`` is what is started; ``place()`` picks this platform's module. No Qt; called on the main thread, because
each call touches one small file. Nothing is written before the user asks for it.
"""

from __future__ import annotations

import sys
from typing import Protocol

from laya_desktop.errors import LayaError


class Autostart(Protocol):
    """Whether the product starts when the user logs in."""

    def is_on(self) -> bool:
        """True while it does."""
        ...

    def turn_on(self, command: tuple[str, ...]) -> None:
        """Start ``command`` at each login from now on.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def turn_off(self) -> None:
        """No longer; nothing happens where it was off.

        Raises:
            OSError: it cannot be removed.
        """
        ...


def command() -> tuple[str, ...]:
    """What starts this program again: the frozen executable, or this interpreter with the package."""
    if getattr(sys, "frozen", False):
        return (sys.executable, "--hidden")
    return (sys.executable, "-m", "laya_desktop", "--hidden")


def place() -> Autostart:
    """This platform's way.

    Raises:
        LayaError: there is none.
    """
    if sys.platform.startswith("linux"):
        from laya_desktop.gui.autostart.linux import DesktopEntry

        return DesktopEntry()
    if sys.platform == "darwin":
        from laya_desktop.gui.autostart.macos import LaunchAgent

        return LaunchAgent()
    if sys.platform == "win32":
        from laya_desktop.gui.autostart.windows import RunKey

        return RunKey()
    raise LayaError(f"Starting with the session is not known on {sys.platform}.", hint="Use the system's own settings.")
