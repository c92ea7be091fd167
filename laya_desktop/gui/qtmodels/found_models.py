"""Models found on the machine as a Qt table, and how one becomes a part of the configuration. Qt main thread.

Rows are pure values; whether a model is configured already is judged by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import Qt

from laya_desktop.config.schema import NodeConfig
from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels import model_fields
from laya_desktop.gui.qtmodels.model_fields import ModelFields
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE, RowTableModel
from laya_desktop.state.snapshot import FoundModel

_Role = Qt.ItemDataRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class FoundColumn(IntEnum):
    """Columns from left to right."""

    NAME = 0
    SOURCE = 1
    SIZE = 2
    QUANTISATION = 3
    STATE = 4


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A found model, and the name under which it is configured, if it is."""

    model: FoundModel
    added_as: str | None = None

    @property
    def state(self) -> str:
        """That it was added, or cannot be, in a word or two."""
        return tr("cannot be loaded") if self.model.problem else tr("added") if self.added_as else ""

    @property
    def explanation(self) -> str:
        """What is wrong with it, or under which name it was added, or where it is."""
        if self.model.problem:
            return self.model.problem
        return (
            tr("Added as {added_as}: {path}", added_as=self.added_as, path=self.model.path)
            if self.added_as
            else self.model.path
        )

    @property
    def tip(self) -> str:
        """Everything known, a line each."""
        info = self.model.info
        context = (
            tr("{context_length} tokens of context", context_length=fmt.count(info.context_length))
            if info and info.context_length
            else None
        )
        kind = info.architecture if info else None
        return "\n".join(t for t in (self.model.path, kind, context, self.model.problem) if t)


def rows_of(found: Iterable[FoundModel], config: NodeConfig, words: str = "") -> list[FoundRow]:
    """What the table shows: models whose name, source or path has every word of ``words``."""
    wanted = words.lower().split()
    shown = (m for m in found if all(w in f"{m.name} {m.source} {m.path}".lower() for w in wanted))
    return [FoundRow(m, _added_as(m, config)) for m in shown]


def _added_as(found: FoundModel, config: NodeConfig) -> str | None:
    path = PurePath(found.path)
    for model in config.models:
        parts = model.path.parts
        if model.path == path or (not model.path.is_absolute() and path.parts[-len(parts) :] == parts):
            return model.name
    return None


def fields_for(found: FoundModel, config: NodeConfig) -> ModelFields:
    """The form of a found model: its name, path and engine, and a context no longer than it was made for."""
    name = re.sub(r"[^\w.-]+", "-", model_fields.name_from_path(found.name.rpartition("/")[2])).strip("-") or "model"
    fields = replace(
        model_fields.new_model(config, found.path), name=model_fields.free_name(name, config), engine=found.engine
    )
    limit = found.info.context_length if found.info else None
    return replace(fields, max_seq_len=str(limit)) if limit and limit < int(fields.max_seq_len) else fields


class FoundTableModel(RowTableModel[FoundRow]):
    """One row a model."""

    headers = (QT_TR_NOOP("Name"), QT_TR_NOOP("Found in"), QT_TR_NOOP("Size"), QT_TR_NOOP("Weights"), "")

    def key_of(self, row: FoundRow) -> str:
        """A path is found once."""
        return row.model.path

    def cell(self, row: FoundRow, column: int, role: int) -> Any:
        """One cell."""
        if role == _Role.DisplayRole:
            return _text(row, column)
        if role == _Role.TextAlignmentRole:
            return _RIGHT if column == FoundColumn.SIZE else _LEFT
        if role == _Role.ToolTipRole:
            return row.tip
        if role == TONE_ROLE:
            return _tone(row, column)
        return None

    def header_cell(self, section: int, role: int) -> Any:
        """Sizes stand right, their title with them."""
        if role == _Role.TextAlignmentRole:
            return _RIGHT if section == FoundColumn.SIZE else _LEFT
        return None


def _text(row: FoundRow, column: int) -> str:
    match column:
        case FoundColumn.NAME:
            return row.model.name
        case FoundColumn.SOURCE:
            return row.model.source
        case FoundColumn.SIZE:
            return fmt.size(row.model.size_bytes)
        case FoundColumn.QUANTISATION:
            return (row.model.info.quantisation if row.model.info else None) or fmt.NONE
    return row.state


def _tone(row: FoundRow, column: int) -> str | None:
    if column == FoundColumn.STATE:
        return "warn" if row.model.problem else "secondary"
    if row.model.problem or row.added_as:
        return "secondary"
    return "secondary" if column == FoundColumn.SOURCE else None
