"""What the window remembers about its own habits. Qt main thread; a thin view of one ``QSettings`` file.

Everything is off, or the platform's default, until the user chooses otherwise.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

from laya_desktop.gui import theme

_MODELS_KEPT = 8


class Preferences:
    """Typed access; each value is read from the settings at once, so that all parts of the window agree."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings

    def _flag(self, key: str, default: bool) -> bool:
        return str(self._settings.value(key, default)).lower() == "true"

    @property
    def close_to_tray(self) -> bool:
        """Closing the window leaves the node running behind the tray icon."""
        return self._flag("close_to_tray", False)

    @close_to_tray.setter
    def close_to_tray(self, value: bool) -> None:
        self._settings.setValue("close_to_tray", value)

    @property
    def notifications(self) -> bool:
        """Alerts and failed loads are said by the desktop while another window is in front."""
        return self._flag("notifications", True)

    @notifications.setter
    def notifications(self, value: bool) -> None:
        self._settings.setValue("notifications", value)

    @property
    def welcomed(self) -> bool:
        """The first steps were taken or skipped."""
        return self._flag("welcomed", False)

    @welcomed.setter
    def welcomed(self, value: bool) -> None:
        self._settings.setValue("welcomed", value)

    @property
    def language(self) -> str:
        """Code of the window's language; empty: the system's."""
        return str(self._settings.value("language", ""))

    @language.setter
    def language(self, value: str) -> None:
        self._settings.setValue("language", value)

    @property
    def recent_models(self) -> tuple[str, ...]:
        """Model files and folders that were chosen or added, the newest first, as far as they are still there."""
        kept = self._settings.value("recent_models", [])
        paths = [kept] if isinstance(kept, str) else list(kept) if isinstance(kept, list | tuple) else []
        return tuple(str(path) for path in paths if path and Path(str(path)).exists())

    def remember_model(self, path: str) -> None:
        """Put a model file first."""
        rest = [other for other in self.recent_models if other != path]
        self._settings.setValue("recent_models", [path, *rest][:_MODELS_KEPT])

    @property
    def density(self) -> theme.Density:
        """How much room controls and text take."""
        value = str(self._settings.value("density", ""))
        return theme.Density(value) if value in set(theme.Density) else theme.Density.COMFORTABLE

    @density.setter
    def density(self, value: theme.Density) -> None:
        self._settings.setValue("density", value.value)
