"""The routes as a Qt table. Qt main thread; shows rows, and turns a click on the switch into a request."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt, Signal

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.route_rows import RouteRow
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE, Index, RowTableModel

_Role = Qt.ItemDataRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ROOT = QModelIndex()


class RouteColumn(IntEnum):
    """Columns from left to right."""

    ON = 0
    NAME = 1
    MATCH = 2
    TARGET = 3
    PRIORITY = 4
    HITS = 5
    P99 = 6


_NUMBERS = (RouteColumn.HITS, RouteColumn.P99)


class RouteTableModel(RowTableModel[RouteRow]):
    """One row per route, in file order."""

    enabled_requested = Signal(str, bool)
    """A route's name and whether it should take requests; the row changes when the node confirms."""

    headers = (
        QT_TR_NOOP("On"),
        QT_TR_NOOP("Name"),
        QT_TR_NOOP("Match"),
        QT_TR_NOOP("Target"),
        QT_TR_NOOP("Priority"),
        QT_TR_NOOP("Hits"),
        "p99",
    )

    def key_of(self, row: RouteRow) -> str:
        """Routes have unique names."""
        return row.name

    def cell(self, row: RouteRow, column: int, role: int) -> Any:
        """One cell; the match column's delegate also reads the whole row."""
        if role == _Role.DisplayRole:
            return _text(row, column)
        if role == _Role.TextAlignmentRole and column in _NUMBERS:
            return _RIGHT
        if role == _Role.CheckStateRole and column == RouteColumn.ON:
            return Qt.CheckState.Checked if row.enabled else Qt.CheckState.Unchecked
        if role == _Role.ToolTipRole:
            return _tooltip(row, column)
        if role == _Role.AccessibleTextRole:
            return _spoken(row, column)
        return None

    def header_cell(self, section: int, role: int) -> Any:
        """Numbers stand right, titles with them."""
        if role == _Role.TextAlignmentRole:
            return _RIGHT if section in _NUMBERS else Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        if role == _Role.ToolTipRole and section == RouteColumn.P99:
            return tr("Routing latency of the last ten seconds: 99 of 100 requests were handed on faster than this.")
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows can be selected; the first column can be switched."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable if index.column() == RouteColumn.ON else flags

    def setData(self, index: Index, value: Any, role: int = _Role.EditRole) -> bool:
        """A switch is a request; nothing changes here until a snapshot says so."""
        if not index.isValid() or role != _Role.CheckStateRole or index.column() != RouteColumn.ON:
            return False
        row = self.rows[index.row()]
        enabled = Qt.CheckState(value) is Qt.CheckState.Checked
        if enabled != row.enabled:
            self.enabled_requested.emit(row.name, enabled)
        return False


class RouteFilterModel(QSortFilterProxyModel):
    """Rows that mention the filter's words, in file order, which is the order of the rules."""

    def __init__(self, source: RouteTableModel) -> None:
        super().__init__(source)
        self._text = ""
        self.setSourceModel(source)

    def set_text(self, text: str) -> None:
        """Show the rows with all words of ``text``."""
        self._text = text
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, _parent: QModelIndex | QPersistentModelIndex) -> bool:
        """Qt: is the row on show?"""
        row = self.sourceModel().index(source_row, 0, _ROOT).data(ROW_ROLE)
        return not self._text or row.mentions(self._text)


def _text(row: RouteRow, column: int) -> str | None:
    match column:
        case RouteColumn.NAME:
            return row.name
        case RouteColumn.MATCH:
            return f"{row.match}  {row.conditions}".rstrip()
        case RouteColumn.TARGET:
            return f"{row.target} ↗" if row.upstream else row.target
        case RouteColumn.PRIORITY:
            return row.priority
        case RouteColumn.HITS:
            return fmt.count(row.hits) if row.hits else "–"
        case RouteColumn.P99:
            return fmt.micros(row.p99_us)
    return None


def _tooltip(row: RouteRow, column: int) -> str | None:
    if column == RouteColumn.ON:
        return tr("Takes requests. Click to switch off.") if row.enabled else tr("Off. Click to switch on.")
    if column == RouteColumn.MATCH:
        lines = [f"{row.match}  {row.conditions}".rstrip(), *row.notes]
        if row.shadowed_by is not None:
            lines.append(
                tr("It is never reached: {shadowed_by} takes all of its requests first.", shadowed_by=row.shadowed_by)
            )
        return "\n".join(lines)
    if column == RouteColumn.P99 and row.p99_us is not None:
        return tr(
            "p50 {p50} · p95 {p95} · p99 {p99} · max {highest}, over the last ten seconds",
            p50=fmt.micros(row.p50_us),
            p95=fmt.micros(row.p95_us),
            p99=fmt.micros(row.p99_us),
            highest=fmt.micros(row.max_us),
        )
    if column == RouteColumn.TARGET and row.upstream:
        return tr("{target} is an upstream: another server answers.", target=row.target)
    return None


def _spoken(row: RouteRow, column: int) -> str | None:
    if column == RouteColumn.ON:
        return "on" if row.enabled else "off"
    if column == RouteColumn.MATCH and row.notes:
        return ". ".join((f"{row.match} {row.conditions}".rstrip(), *row.notes))
    return None
