"""A table of texts whose columns change with what is shown. Qt main thread."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from laya_desktop.gui.qtmodels.bench_charts import Figures
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class FiguresTable(QAbstractTableModel):
    """Shows ``Figures``; the first ``names`` columns and those without a title hold words, the others numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._figures = Figures()
        self.names = 0

    def set_figures(self, figures: Figures, names: int = 0) -> None:
        """Show others; a no-op where they are the same."""
        if (figures, names) != (self._figures, self.names):
            self.beginResetModel()
            self._figures, self.names = figures, names
            self.endResetModel()

    @property
    def figures(self) -> Figures:
        """What is shown."""
        return self._figures

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Qt: rows."""
        return 0 if parent.isValid() else len(self._figures.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Qt: columns."""
        return 0 if parent.isValid() else len(self._figures.titles)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: one cell."""
        if not index.isValid():
            return None
        cell = self._figures.rows[index.row()][index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return cell.text
        if role == TONE_ROLE:
            return cell.tone or None
        return self._side(index.column()) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: titles."""
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(self._figures.titles):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._figures.titles[section]
        return self._side(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _side(self, column: int) -> Qt.AlignmentFlag:
        side = (
            Qt.AlignmentFlag.AlignLeft
            if column < self.names or not self._figures.titles[column]
            else Qt.AlignmentFlag.AlignRight
        )
        return side | Qt.AlignmentFlag.AlignVCenter
