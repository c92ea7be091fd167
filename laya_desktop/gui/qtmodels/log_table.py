"""Log lines as rows: the newest 10,000 that pass the filter. Qt main thread; fed in batches.

``take`` adds a batch at the end and drops rows from the front, with one signal each, whatever the batch's size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE
from laya_desktop.logs import LogLine

MAX_ROWS = 10_000
COLUMNS = (QT_TR_NOOP("Time"), QT_TR_NOOP("Level"), QT_TR_NOOP("Source"), QT_TR_NOOP("Message"))
LEVELS = ("debug", "info", "warn", "error")
_TONES = {"warn": "warn", "error": "critical", "debug": "secondary"}
_Index = QModelIndex | QPersistentModelIndex


class LogTableModel(QAbstractTableModel):
    """Filtered log lines, oldest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: deque[LogLine] = deque(maxlen=MAX_ROWS)
        self._rows: list[LogLine] = []
        self._least, self._text = 0, ""

    def take(self, lines: Iterable[LogLine]) -> int:
        """Add lines; returns how many of them pass the filter."""
        new = tuple(lines)[-MAX_ROWS:]
        self._all.extend(new)
        passed = self._passing(new)
        surplus = min(len(self._rows), len(self._rows) + len(passed) - MAX_ROWS)
        if surplus > 0:
            self.beginRemoveRows(QModelIndex(), 0, surplus - 1)
            del self._rows[:surplus]
            self.endRemoveRows()
        if passed:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(passed) - 1)
            self._rows += passed
            self.endInsertRows()
        return len(passed)

    def set_filter(self, level: str, text: str) -> None:
        """Show lines of at least that level whose message or source contains the text (case is ignored)."""
        least, folded = LEVELS.index(level), text.casefold().strip()
        if (least, folded) != (self._least, self._text):
            self.beginResetModel()
            self._least, self._text = least, folded
            self._rows = self._passing(self._all)
            self.endResetModel()

    def clear(self) -> None:
        """Forget every line (the files keep them)."""
        self.beginResetModel()
        self._all.clear()
        self._rows = []
        self.endResetModel()

    def _passing(self, lines: Iterable[LogLine]) -> list[LogLine]:
        below, text = LEVELS[: self._least], self._text
        passed = [line for line in lines if line.level not in below]
        if text:
            passed = [line for line in passed if text in line.message.casefold() or text in line.logger.casefold()]
        return passed

    @property
    def held(self) -> int:
        """Lines in memory, shown or not."""
        return len(self._all)

    def line(self, row: int) -> LogLine:
        """The line of a row."""
        return self._rows[row]

    def text_of(self, rows: Iterable[int] | None = None) -> str:
        """Rows (None: all) as text, one line each, as in the log file."""
        chosen = self._rows if rows is None else [self._rows[i] for i in rows]
        return "\n".join(f"{full_time(x.time_unix_s)} {x.level.upper():5} {x.logger}: {x.message}" for x in chosen)

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Rows that pass."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Time, level, source, message."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Column names."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return tr(COLUMNS[section])
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, and the colour role by level."""
        if not index.isValid() or not 0 <= index.row() < len(self._rows):
            return None
        line = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _cell(line, index.column())
        if role == TONE_ROLE:
            return "secondary" if index.column() in (0, 2) else _TONES.get(line.level)
        return None


def _cell(line: LogLine, column: int) -> str:
    if column == 0:
        return full_time(line.time_unix_s)[11:]
    if column == 1:
        return line.level
    if column == 2:
        return line.logger.removeprefix("laya_desktop.")
    first, _, rest = line.message.partition("\n")
    return tr("{first}  (+{value} lines)", first=first, value=rest.count(chr(10)) + 1) if rest else first


def full_time(time_unix_s: float) -> str:
    """Local date and time with milliseconds."""
    return datetime.fromtimestamp(time_unix_s).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
