"""The log as it grows: filter, follow, copy, and the way to its files. Qt main thread.

Reads the ring four times a second while it is visible, at most one ring's worth at a time, so that 10,000 lines a
second cost a few milliseconds each time and nothing while another page is shown.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QItemSelection, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from laya_desktop import paths
from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import QT_TR_NOOP, tr, translated
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.qtmodels.log_table import MAX_ROWS, LogTableModel, full_time
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE
from laya_desktop.gui.views.cells import TextDelegate
from laya_desktop.gui.views.inputs import Choice
from laya_desktop.gui.views.widgets import Card, EmptyState, button, label, row
from laya_desktop.logs import LogRing

_READ_MS, _FILTER_MS, _ROW_PX = 250, 150, 22
_LEVELS = (
    ("debug", QT_TR_NOOP("Everything")),
    ("info", QT_TR_NOOP("Info and above")),
    ("warn", QT_TR_NOOP("Warnings and errors")),
    ("error", QT_TR_NOOP("Errors")),
)


class LogsPage(QWidget):
    """Toolbar, table, and the selected line in full.

    Args:
        bridge: tells where the log files are.
        ring: the lines.
        dialogs: shows the folder.
    """

    def __init__(self, bridge: NodeBridge, ring: LogRing, dialogs: Dialogs) -> None:
        super().__init__()
        self._bridge, self._ring, self._dialogs = bridge, ring, dialogs
        self._seq = 0
        self.model = LogTableModel(self)
        self.level, self.text = Choice(translated(_LEVELS)), QLineEdit()
        self.level.set_value("info")
        self.text.setPlaceholderText(tr("Filter messages"))
        self.text.setClearButtonEnabled(True)
        self.level.setAccessibleName(tr("Least level shown"))
        self.text.setAccessibleName(tr("Filter messages"))
        self.level.setFixedWidth(170)
        self.text.setMinimumWidth(120)
        self.text.setMaximumWidth(240)
        self.follow = button(tr("Follow"), "segment", icon="down", on_click=self._on_follow)
        self.follow.setChecked(True)
        self.count = label("", "secondary")
        self.open_folder = button(tr("Open folder"), icon="folder", on_click=self._open_folder)
        copy, clear = button(tr("Copy"), icon="copy", on_click=self.copy), button(tr("Clear"), on_click=self.clear)
        tools = row(self.level, self.text, self.count, None, self.follow, copy, clear, self.open_folder, spacing=6)
        tools.setStretch(1, 100)  # before the empty space, up to its maximum
        self._make_table()
        body = QVBoxLayout(self)
        body.setContentsMargins(*(theme.SPACE_4,) * 4)
        body.setSpacing(theme.SPACE_3)
        body.addLayout(tools)
        card = Card(padding=0, spacing=0)
        card.body.setContentsMargins(1, 1, 1, 1)
        self.empty = EmptyState(tr("Nothing to show"), tr("No line of the log passes this filter."), icon="logs")
        card.body.addWidget(self.table, 1)
        card.body.addWidget(self.empty, 1)
        card.body.addWidget(self.detail)
        body.addWidget(card, 1)
        self._timers()
        self.model.set_filter("info", "")

    def _make_table(self) -> None:
        self.table = QTableView()
        self.table.setModel(self.model)
        self.table.setProperty("dense", True)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.setAccessibleName(tr("Log lines"))
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.setProperty("role", "mono")
        self.table.setTabKeyNavigation(False)
        self.table.setItemDelegate(TextDelegate(lambda index: index.data(TONE_ROLE), self.table))
        rows, columns = self.table.verticalHeader(), self.table.horizontalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMinimumSectionSize(_ROW_PX)
        rows.setDefaultSectionSize(_ROW_PX)
        columns.setHighlightSections(False)
        columns.setStretchLastSection(True)
        columns.setDefaultAlignment(columns.defaultAlignment().AlignLeft | columns.defaultAlignment().AlignVCenter)
        for column, width_px in enumerate((112, 78, 170)):
            self.table.setColumnWidth(column, width_px)
        self.detail = QPlainTextEdit()
        self.detail.setProperty("role", "detail")
        self.detail.setReadOnly(True)
        self.detail.setAccessibleName(tr("Selected line"))
        self.detail.setFixedHeight(116)
        self.detail.hide()
        self.table.selectionModel().selectionChanged.connect(self._on_selected)
        self.table.verticalScrollBar().actionTriggered.connect(lambda _action: self._wait_for_scroll.start())

    def _timers(self) -> None:
        self._timer = QTimer(self)
        self._timer.setInterval(_READ_MS)
        self._timer.timeout.connect(self.read)
        self._filter_rest = QTimer(self)
        self._filter_rest.setSingleShot(True)
        self._filter_rest.setInterval(_FILTER_MS)
        self._filter_rest.timeout.connect(self.apply_filter)
        self._wait_for_scroll = QTimer(self)
        self._wait_for_scroll.setSingleShot(True)
        self._wait_for_scroll.timeout.connect(self._on_scrolled)
        self.level.edited.connect(self.apply_filter)
        self.text.textChanged.connect(lambda _text: self._filter_rest.start())

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up and go on reading."""
        super().showEvent(event)
        self.read()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop reading; the ring keeps the lines."""
        super().hideEvent(event)
        self._timer.stop()

    def read(self) -> None:
        """Take the lines that are new since the last time."""
        lines = self._ring.since(max(self._seq, self._ring.last_seq - MAX_ROWS), limit=MAX_ROWS)
        if lines:
            self._seq = lines[-1].seq
            if self.model.take(lines) and self.follow.isChecked():
                self.table.scrollToBottom()
        self._say()

    def apply_filter(self) -> None:
        """Show what the level and the text let through."""
        self._filter_rest.stop()
        self.model.set_filter(self.level.value(), self.text.text())
        self._say()
        if self.follow.isChecked():
            self.table.scrollToBottom()

    def _say(self) -> None:
        shown, held = self.model.rowCount(), self.model.held
        self.count.setText(
            tr("{shown} of {counted}", shown=fmt.count(shown), counted=fmt.counted(held, "line"))
            if shown != held
            else fmt.counted(held, "line")
        )
        if self.empty.isHidden() == (shown == 0):
            self.empty.setVisible(shown == 0)
            self.table.setVisible(shown > 0)

    def copy(self) -> None:
        """Put the selected lines, or all that are shown, on the clipboard."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        QGuiApplication.clipboard().setText(self.model.text_of(rows or None))

    def clear(self) -> None:
        """Empty the page; the files and the ring keep their lines."""
        self.model.clear()
        self._say()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies whole lines; Ctrl+F goes to the filter."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.Find):
            self.text.setFocus()
        else:
            super().keyPressEvent(event)

    def _on_follow(self) -> None:
        if self.follow.isChecked():
            self.table.scrollToBottom()

    def _on_scrolled(self) -> None:
        bar = self.table.verticalScrollBar()
        self.follow.setChecked(bar.value() >= bar.maximum() - _ROW_PX)

    def _on_selected(self, _new: QItemSelection, _old: QItemSelection) -> None:
        rows = self.table.selectionModel().selectedRows()
        self.detail.setVisible(len(rows) == 1)
        if len(rows) == 1:
            line = self.model.line(rows[0].row())
            QTimer.singleShot(0, self, partial(self.table.scrollTo, rows[0]))  # after the table has shrunk
            self.detail.setPlainText(f"{full_time(line.time_unix_s)}  {line.level}  {line.logger}\n{line.message}")

    def _open_folder(self) -> None:
        config = self._bridge.snapshot.config
        self._dialogs.open_folder((config.log.dir if config else None) or paths.log_dir())
