"""What saving would write: the old text brought up to date, and read back before anybody sees it. Pure; any thread."""

from __future__ import annotations

from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from laya_desktop.config import emit
from laya_desktop.config.loader import BOM, check_form, load_text, parse
from laya_desktop.config.patch import NeedsLongFormError, patch
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.upgrade import to_long_form
from laya_desktop.errors import ConfigError, LayaError


def render(text: str, old: NodeConfig, new: NodeConfig) -> str:
    """The text of a file that says ``old``, changed so that it says ``new``.

    Raises:
        LayaError: the text is written in a way that cannot be edited (code ``cannot_edit_in_place``).
    """
    if old == new:
        return text
    body = text.removeprefix(BOM)
    _, document, places = parse(body, "the file as read")
    try:
        changed = patch(body, document, places, old, new)
    except NeedsLongFormError:
        changed = None
    if changed is None or not _says(changed, new):
        changed = _through_long_form(body, old, new) if places.short else None
    if changed is None or not _says(changed, new):
        raise LayaError(
            "This file is written in a way that cannot be edited without losing something, so it was left as it is.",
            hint="Save as another file: it will hold the same configuration without the comments.",
            code="cannot_edit_in_place",
            status=409,
        )
    return text[: len(text) - len(body)] + changed


def fresh(config: NodeConfig) -> str:
    """A new text: only what differs from the defaults."""
    return emit.document(config.model_dump(mode="json", exclude_defaults=True))


def check_both_readers(text: str, config: NodeConfig) -> None:
    """Make sure that PyYAML (YAML 1.1) and ruamel.yaml (YAML 1.2) both read ``config`` out of ``text``.

    Raises:
        LayaError: they do not (code ``would_not_read_back``).
    """
    readers = {"PyYAML": _pyyaml, "ruamel.yaml": _ruamel}
    for name, reader in readers.items():
        try:
            same = check_form(reader(text) or {}) == config
        except (ConfigError, yaml.YAMLError, YAMLError, ValueError, TypeError):
            same = False
        if not same:
            raise LayaError(
                f"What would be written does not read back equal with {name}, so nothing was written.",
                hint="Put text values that look like numbers, dates or switches in quotes, and save again.",
                code="would_not_read_back",
                status=409,
            )


def _pyyaml(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def _through_long_form(text: str, old: NodeConfig, new: NodeConfig) -> str | None:
    body = text if text.endswith("\n") else f"{text}\n"
    _, document, places = parse(body, "the file as read")
    upgraded = to_long_form(body, document, places, old)
    if not _says(upgraded, old):
        return None
    _, document, places = parse(upgraded, "the file as read")
    return patch(upgraded, document, places, old, new)


def _says(text: str, config: NodeConfig) -> bool:
    try:
        return load_text(text) == config
    except ConfigError:
        return False
