"""Table set-up and the delegates that paint cells. Qt main thread; a delegate paints row values and changes nothing.

Background, selection and the hairline below a row come from the style sheet; text comes from here, so that a cell
may have two tones or lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.route_rows import RouteRow
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT, LINE_HEIGHT, MARGIN = 34, 18, 8
"""One-line row, every further line, and a cell's side margin, px."""
_TEXTS_KNOWN = 5000
"""Widths of texts that a table remembers."""


class Table(QTableView):
    """A table of whole rows: one selection, no grid, keyboard first. Space and Delete go to ``on_key``."""

    def __init__(self, name: str, on_key: Callable[[Qt.Key, Index], bool] | None = None) -> None:
        super().__init__()
        self._on_key = on_key
        self._stretch = -1
        self._spared: tuple[int, ...] = ()
        self._least = 0
        self._widths: dict[int, int] = {}
        self._tall: int | None = None
        self._tall_px = 0
        self._changed = True
        self._advances: dict[str, int] = {}
        self.setAccessibleName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.verticalHeader().setMinimumSectionSize(24)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setMinimumSectionSize(32)
        header.setSectionsClickable(False)

    def set_columns(self, widths: dict[int, int], stretch: int) -> None:
        """Fixed start widths in px by column, and the column that takes the rest."""
        header = self.horizontalHeader()
        for column, width in widths.items():
            self.setColumnWidth(column, width)
        self._stretch = stretch
        header.setSectionResizeMode(stretch, QHeaderView.ResizeMode.Stretch)

    def setModel(self, model: QAbstractItemModel | None) -> None:
        """Follow another model."""
        super().setModel(model)
        if model is not None:
            changes = (model.dataChanged, model.rowsInserted, model.rowsRemoved, model.rowsMoved, model.layoutChanged)
            for change in (*changes, model.modelReset):
                change.connect(self._on_changed)
        self._changed = True

    def _on_changed(self) -> None:
        self._changed = True

    def changeEvent(self, event: QEvent) -> None:
        """In another font or style, texts have other widths."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "_advances"):
            self._advances.clear()
            self._changed = True

    def set_tall_column(self, column: int) -> None:
        """The column whose cells say how high their rows are; without it all rows have one line."""
        self._tall = column
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().sectionResized.connect(self._on_column_resized)

    def _on_column_resized(self, column: int, _old: int, _new: int) -> None:
        if column == self._tall:
            self._fit_rows()  # how many lines a cell needs depends on its width

    def fit_columns(self, limits: dict[int, tuple[int, int]]) -> None:
        """Make columns as wide as what they show, between (least, most) px, and rows as high; call it at any time.

        The longest text is found by the font alone and only its cell is asked: asking all of 200 rows takes 100 ms.
        """
        if not self._changed:
            if self._tall is not None and self.columnWidth(self._tall) != self._tall_px:
                self._fit_rows()
            return
        self._changed = False
        for column, (least, most) in limits.items():
            longest = max(self._cells(column), key=self._advance, default=None)
            shown = 0 if longest is None else self.sizeHintForIndex(longest).width()
            wanted = min(max(shown + 2, least), most)
            if wanted != self.columnWidth(column):
                self.setColumnWidth(column, wanted)  # a hidden one has it when it is shown again
            if column in self._widths:
                self._widths[column] = wanted
        self._fit_rows()

    def _cells(self, column: int) -> Iterator[QModelIndex]:
        model = self.model()
        return (model.index(row, column) for row in range(model.rowCount()))

    def _advance(self, index: QModelIndex) -> int:
        text = str(index.data() or "")
        known = self._advances.get(text)
        if known is None:
            if len(self._advances) >= _TEXTS_KNOWN:
                self._advances.clear()
            known = self._advances[text] = self.fontMetrics().horizontalAdvance(text)
        return known

    def _fit_rows(self) -> None:
        if self._tall is None or self.model() is None:
            return
        self._tall_px = self.columnWidth(self._tall)
        delegate, option = self.itemDelegateForColumn(self._tall), QStyleOptionViewItem()
        for row, index in enumerate(self._cells(self._tall)):
            height = delegate.sizeHint(option, index).height()
            if height != self.rowHeight(row):
                self.setRowHeight(row, height)

    def spare_columns(self, columns: Sequence[int], least: int) -> None:
        """Columns to hide, in this order, while the stretched one has less than ``least`` px: say less, not worse."""
        self._spared, self._least = tuple(columns), least
        self._spare()

    def _spare(self) -> None:
        shown = [c for c in range(self.model().columnCount()) if c not in (*self._spared, self._stretch)]
        room = self.viewport().width() - self._least - sum(self.columnWidth(c) for c in shown)
        for column in reversed(self._spared):
            if not self.isColumnHidden(column):
                self._widths[column] = self.columnWidth(column)
            room -= self._widths[column]
            self.setColumnHidden(column, room < 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show what fits."""
        super().resizeEvent(event)
        if self._spared:
            self._spare()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Offer the key to the page first."""
        index = self.currentIndex()
        if self._on_key is not None and index.isValid() and self._on_key(Qt.Key(event.key()), index):
            event.accept()
            return
        super().keyPressEvent(event)


class TextDelegate(QStyledItemDelegate):
    """One line of text in the colour role that ``tone_of`` gives for a cell (None: the normal one)."""

    def __init__(self, tone_of: Callable[[Index], str | None], parent: QTableView) -> None:
        super().__init__(parent)
        self._tone_of = tone_of

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        """Set the colour."""
        super().initStyleOption(option, index)
        tone = self._tone_of(index)
        if tone is not None:
            for role in (QPalette.ColorRole.Text, QPalette.ColorRole.HighlightedText):
                option.palette.setColor(role, theme.color(tone))


class _PaintedDelegate(QStyledItemDelegate):
    def paint_back(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Background, selection and hairline from the style sheet, without text."""
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        blank.text = ""
        blank.features &= ~QStyleOptionViewItem.ViewItemFeature.HasCheckIndicator
        style = option.widget.style() if option.widget else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, option.widget)


class SwitchDelegate(_PaintedDelegate):
    """A small switch for the row's check state; a click or Space asks the model to flip it."""

    WIDTH, HEIGHT = 26, 14

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw it."""
        self.paint_back(painter, option, index)
        on = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
        top = option.rect.center().y() - self.HEIGHT / 2 + 0.5
        track = QRectF(option.rect.left() + MARGIN, top, self.WIDTH, self.HEIGHT)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen if on else theme.color("secondary"))
        painter.setBrush(theme.color("accent" if on else "panel"))
        painter.drawRoundedRect(track.adjusted(0.5, 0.5, -0.5, -0.5), self.HEIGHT / 2, self.HEIGHT / 2)
        radius = self.HEIGHT / 2 - 3
        x = track.right() - self.HEIGHT / 2 if on else track.left() + self.HEIGHT / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("on_accent" if on else "secondary"))
        painter.drawEllipse(QPointF(x, track.center().y()), radius, radius)
        painter.restore()

    def editorEvent(self, event: QEvent, model: Any, option: QStyleOptionViewItem, index: Index) -> bool:
        """A click anywhere in the cell, or Space, is a request to flip."""
        released = event.type() == QEvent.Type.MouseButtonRelease
        if not released and event.type() != QEvent.Type.MouseButtonDblClick:
            return False
        if released:
            flip(index)
        return True


def flip(index: Index) -> None:
    """Ask the index's model for the other check state."""
    on = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
    wanted = Qt.CheckState.Unchecked if on else Qt.CheckState.Checked
    index.model().setData(index, wanted, Qt.ItemDataRole.CheckStateRole)


class MatchDelegate(_PaintedDelegate):
    """A route's rule in monospace, its conditions beside it in secondary colour, and its notes below in words."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw it."""
        self.paint_back(painter, option, index)
        row = index.data(ROW_ROLE)
        area = option.rect.adjusted(MARGIN, 0, -MARGIN, 0)
        beside = self._fit_beside(row, area.width())
        block = LINE_HEIGHT * self._lines(row, area.width())
        line = QRect(area.left(), area.center().y() - block // 2, area.width(), LINE_HEIGHT)
        painter.save()
        painter.setFont(theme.mono_font())
        used = _draw(painter, line, row.match, "text" if row.enabled else "secondary")
        if row.conditions and beside:
            _draw(painter, line.adjusted(used + MARGIN, 0, 0, 0), row.conditions, "secondary")
        elif row.conditions:
            line.translate(0, LINE_HEIGHT)
            _draw(painter, line, row.conditions, "secondary")
        painter.setFont(theme.ui_font(theme.FONT_SMALL))
        for note in row.notes:
            line.translate(0, LINE_HEIGHT)
            _draw(painter, line, note, "warn")
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """One line, one for conditions that do not fit beside the rule, and one for every note."""
        row = index.data(ROW_ROLE)
        table = self.parent()
        if row is None or not isinstance(table, QTableView):
            return QSize(120, ROW_HEIGHT)
        width = table.columnWidth(index.column()) - 2 * MARGIN
        return QSize(120, ROW_HEIGHT + LINE_HEIGHT * (self._lines(row, width) - 1))

    def _lines(self, row: RouteRow, width: int) -> int:
        return 1 + len(row.notes) + (bool(row.conditions) and not self._fit_beside(row, width))

    def _fit_beside(self, row: RouteRow, width: int) -> bool:
        metrics = QFontMetrics(theme.mono_font())
        return metrics.horizontalAdvance(row.match) + MARGIN + metrics.horizontalAdvance(row.conditions) <= width


def _draw(painter: QPainter, area: QRect, text: str, role: str) -> int:
    """Draw one elided line; returns the width that it took, px."""
    if area.width() <= 0:
        return 0
    metrics = QFontMetrics(painter.font())
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width())
    painter.setPen(theme.color(role))
    painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
    return metrics.horizontalAdvance(shown)
