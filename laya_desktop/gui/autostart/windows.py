"""Windows: a value under the user's Run key."""

from __future__ import annotations

import importlib
import subprocess
from typing import Any

KEY = r"Software\Microsoft\Windows\CurrentVersion\Run"
VALUE = "Laya Desktop"


class RunKey:
    r"""``HKEY_CURRENT_USER\Software\Microsoft\Windows\CurrentVersion\Run``.

    Args:
        registry: the module ``winreg``; None: the system's own.
    """

    def __init__(self, registry: Any = None) -> None:
        self._registry = registry or importlib.import_module("winreg")

    def is_on(self) -> bool:
        """True where the value exists."""
        registry = self._registry
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, KEY) as key:
                return bool(registry.QueryValueEx(key, VALUE)[0])
        except FileNotFoundError:
            return False

    def turn_on(self, command: tuple[str, ...]) -> None:
        """Write the value, quoted as Windows splits it."""
        registry = self._registry
        with registry.CreateKey(registry.HKEY_CURRENT_USER, KEY) as key:
            registry.SetValueEx(key, VALUE, 0, registry.REG_SZ, subprocess.list2cmdline(command))

    def turn_off(self) -> None:
        """Remove the value."""
        registry = self._registry
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, KEY, 0, registry.KEY_SET_VALUE) as key:
                registry.DeleteValue(key, VALUE)
        except FileNotFoundError:
            return
