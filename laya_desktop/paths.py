"""Where the product's own files live. Pure look-ups, callable from any thread; creates and reads nothing.

Folders follow the platform's conventions. ``LAYA_HOME`` in the environment moves all of them under one folder (tests,
portable installations). Shipped files (icons, example configurations) are found in a checkout, in a wheel and in a
frozen build alike.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs

from laya_desktop.errors import LayaError

APP_NAME = "laya-desktop"
HOME_VARIABLE = "LAYA_HOME"

_PACKAGE = Path(__file__).resolve().parent


def _home() -> Path | None:
    value = os.environ.get(HOME_VARIABLE, "").strip()
    return Path(value).expanduser().absolute() if value else None


def config_dir() -> Path:
    """Where the user's YAML files are kept."""
    home = _home()
    return home / "config" if home else platformdirs.user_config_path(APP_NAME, appauthor=False)


def state_dir() -> Path:
    """What the window remembers between runs: geometry, recent files, benchmark results."""
    home = _home()
    return home / "state" if home else platformdirs.user_state_path(APP_NAME, appauthor=False)


def log_dir() -> Path:
    """Where log files go when the configuration names no folder."""
    home = _home()
    return home / "logs" if home else platformdirs.user_log_path(APP_NAME, appauthor=False)


def cache_dir() -> Path:
    """Files that may be deleted at any time."""
    home = _home()
    return home / "cache" if home else platformdirs.user_cache_path(APP_NAME, appauthor=False)


def data_dir() -> Path:
    """Large files of the user: models."""
    home = _home()
    return home / "data" if home else platformdirs.user_data_path(APP_NAME, appauthor=False)


def resources_dir() -> Path:
    """Icons, themes and translations that ship with the product.

    Raises:
        LayaError: the installation is incomplete.
    """
    return find_shipped("resources")


def configs_dir() -> Path:
    """Example and demo YAML that ship with the product.

    Raises:
        LayaError: the installation is incomplete.
    """
    return find_shipped("configs")


def find_shipped(name: str, *, package: Path = _PACKAGE, frozen: str | None = None) -> Path:
    """The shipped folder ``name``: of a frozen build, else of a wheel (``_name``), else of the checkout.

    Args:
        name: ``resources`` or ``configs``.
        package: folder of the package ``laya_desktop``.
        frozen: folder that a frozen build unpacked itself to; None: PyInstaller's ``sys._MEIPASS``, if set.

    Raises:
        LayaError: none of these places has it.
    """
    bundle = frozen if frozen is not None else getattr(sys, "_MEIPASS", None)
    places = [Path(bundle) / package.name / f"_{name}", Path(bundle) / name] if bundle else []
    places.append(package / f"_{name}")
    if (package.parent / "pyproject.toml").is_file():  # else a stranger's folder in site-packages could be taken
        places.append(package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise LayaError(
        f"The folder '{name}' that ships with Laya Desktop is missing; looked in {', '.join(map(str, places))}.",
        hint="Install Laya Desktop again.",
        code="broken_installation",
    )
