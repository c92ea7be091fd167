"""A table model over frozen rows that changes in place. Qt main thread; knows nothing of routes or requests.

Rows have a key and are compared by value: a snapshot moves, inserts, removes or repaints only what differs, so
selection, scroll position and open editors survive. Subclasses turn one row into cells.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from laya_desktop.gui.i18n import tr

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()

ROW_ROLE = int(Qt.ItemDataRole.UserRole)
"""The whole row value, for delegates and pages."""
TONE_ROLE = ROW_ROLE + 1
"""The colour role of a cell's text; None for the normal one."""


class RowTableModel(QAbstractTableModel, Generic[Row]):
    """Shows a sequence of frozen rows; ``update_rows`` takes the next one."""

    headers: tuple[str, ...] = ()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def key_of(self, row: Row) -> Hashable:
        """What makes two rows the same one in two snapshots."""
        raise NotImplementedError

    def cell(self, row: Row, column: int, role: int) -> Any:
        """The data of one cell; None where the role says nothing."""
        raise NotImplementedError

    @property
    def rows(self) -> Sequence[Row]:
        """The rows on show."""
        return self._rows

    def row_of(self, key: Hashable) -> int | None:
        """The position of a key, or None."""
        return next((i for i, row in enumerate(self._rows) if self.key_of(row) == key), None)

    def update_rows(self, rows: Sequence[Row]) -> None:
        """Become ``rows`` with the fewest signals: removals, then moves and insertions, then ``dataChanged``."""
        wanted = {self.key_of(row) for row in rows}
        self._remove_all_but(wanted)
        for position, row in enumerate(rows):
            self._place(position, row)
        self._repaint(rows)

    def _remove_all_but(self, wanted: set[Hashable]) -> None:
        last = len(self._rows) - 1
        while last >= 0:
            if self.key_of(self._rows[last]) in wanted:
                last -= 1
                continue
            first = last
            while first > 0 and self.key_of(self._rows[first - 1]) not in wanted:
                first -= 1
            self.beginRemoveRows(_ROOT, first, last)
            del self._rows[first : last + 1]
            self.endRemoveRows()
            last = first - 1

    def _place(self, position: int, row: Row) -> None:
        key = self.key_of(row)
        for found in range(position, len(self._rows)):
            if self.key_of(self._rows[found]) == key:
                break
        else:
            self.beginInsertRows(_ROOT, position, position)
            self._rows.insert(position, row)
            self.endInsertRows()
            return
        if found != position:
            self.beginMoveRows(_ROOT, found, found, _ROOT, position)
            self._rows.insert(position, self._rows.pop(found))
            self.endMoveRows()

    def _repaint(self, rows: Sequence[Row]) -> None:
        last_column = self.columnCount() - 1
        for position, row in enumerate(rows):
            if self._rows[position] != row:
                self._rows[position] = row
                self.dataChanged.emit(self.index(position, 0), self.index(position, last_column))

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Qt: the number of rows."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Qt: the number of columns."""
        return 0 if parent.isValid() else len(self.headers)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: one cell."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        return row if role == ROW_ROLE else self.cell(row, index.column(), role)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: column titles; numbers are right-aligned by the subclass's cells, titles follow the first row's rule."""
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(self.headers):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return tr(self.headers[section])
        return self.header_cell(section, role)

    def header_cell(self, section: int, role: int) -> Any:
        """Alignment or tooltip of a title; None for Qt's own."""
        return None
