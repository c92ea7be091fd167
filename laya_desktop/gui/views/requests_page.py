"""The Requests page: live and recent requests, one in detail, and Cancel. Qt main thread; reads snapshots only.

The table changes by difference; the selected request and the lines in sight stay where they are while others come
and go above them.
"""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QMenu, QStackedLayout, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels import request_rows
from laya_desktop.gui.qtmodels.request_table import RequestColumn, RequestTableModel
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE, TONE_ROLE
from laya_desktop.gui.views.cells import Index, Table, TextDelegate
from laya_desktop.gui.views.inputs import TextInput
from laya_desktop.gui.views.widgets import (
    Card,
    CopyButton,
    ElidedLabel,
    EmptyState,
    MonoLabel,
    Pill,
    button,
    column,
    label,
    row,
    set_property,
)
from laya_desktop.state.enums import Phase
from laya_desktop.state.snapshot import NodeSnapshot, RequestSnapshot

_ROW_HEIGHT = 28
_WIDTHS = {
    RequestColumn.TIME: 76,
    RequestColumn.ROUTE: 116,
    RequestColumn.TARGET: 124,
    RequestColumn.PHASE: 98,
    RequestColumn.PLACE: 58,
    RequestColumn.PROMPT: 68,
    RequestColumn.ANSWER: 68,
    RequestColumn.TTFT: 70,
    RequestColumn.RATE: 74,
    RequestColumn.DURATION: 82,
    RequestColumn.STATUS: 62,
}
_SPARED, _LEAST_ERROR = (RequestColumn.PROMPT, RequestColumn.DURATION, RequestColumn.PLACE, RequestColumn.RATE), 120
"""What a narrow table leaves out first, and the room that an error needs, px."""
_DETAIL_COLUMNS = 4
_TONES = {"accent": "calm", "secondary": "neutral"}


class RequestDetails(Card):
    """One request: id, path, every timing, and what went wrong."""

    def __init__(self) -> None:
        super().__init__(spacing=theme.SPACE_2)
        self.request: RequestSnapshot | None = None
        self.request_id = MonoLabel()
        self.copy_button = CopyButton(
            lambda: self.request.request_id if self.request else "", tooltip=tr("Copy the id")
        )
        self.pill = Pill()
        self.path = ElidedLabel("", "mono")
        self.error = label(role="error", wrap=True)
        self.error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.cancel_button = button(tr("Cancel request"), "danger", "stop")
        self._values = [(label(role="hint"), label()) for _ in request_rows.DETAILS]
        head = row(self.request_id, self.copy_button, self.pill, None, self.cancel_button)
        self.body.addLayout(head)
        self.body.addWidget(self.path)
        self.body.addLayout(self._build_grid())
        self.body.addWidget(self.error)

    def _build_grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.SPACE_4)
        grid.setVerticalSpacing(theme.SPACE_1)
        for i, (name, value) in enumerate(self._values):
            place, line = i % _DETAIL_COLUMNS, i // _DETAIL_COLUMNS
            grid.addLayout(column(name, value, spacing=0), line, place)
            grid.setColumnStretch(place, 1)
        return grid

    def set_request(self, request: RequestSnapshot) -> None:
        """Show a request."""
        if request == self.request:
            return
        self.request = request
        symbol, word, tone = request_rows.PHASES[request.phase]
        word = tr(word)
        self.request_id.setText(request.request_id)
        self.pill.set_state(f"{symbol} {word}", _TONES.get(tone, tone), dot=False)
        self.path.set_text(f"{request.method} {request.path}")
        for (name, value), (name_text, value_text) in zip(self._values, request_rows.details(request), strict=True):
            name.setText(name_text)
            value.setText(value_text)
        self.error.setText(request.error or "")
        set_property(self.error, "role", "error" if request.phase is Phase.FAILED else "secondary")
        self.error.setVisible(bool(request.error))
        self.cancel_button.setVisible(not request.phase.finished)


class RequestsPage(QWidget):
    """Watch requests and cancel them."""

    def __init__(self, bridge: NodeBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._kind = "all"
        self.model = RequestTableModel(self)
        self.details = RequestDetails()
        self.table = self._build_table()
        self.filters = {kind: button(kind, "segment") for kind in request_rows.FILTERS}
        self.search = TextInput(tr("Filter requests"))
        self.cancel_button = button(tr("Cancel"), "secondary", "stop", self.cancel)
        self.empty = EmptyState("", icon="requests")
        self._build()
        self._connect()
        self.set_snapshot(bridge.snapshot)

    def _build_table(self) -> Table:
        table = Table(tr("Requests"), self._on_key)
        table.setModel(self.model)
        table.set_columns({int(c): w for c, w in _WIDTHS.items()}, RequestColumn.ERROR)
        table.spare_columns(_SPARED, _LEAST_ERROR)
        table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        table.setItemDelegate(TextDelegate(lambda index: index.data(TONE_ROLE), table))
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        return table

    def _build(self) -> None:
        self.search.setAccessibleName(tr("Filter requests"))
        self.search.setClearButtonEnabled(True)
        self.search.setFixedWidth(220)
        group = QButtonGroup(self)
        for item in self.filters.values():
            group.addButton(item)
        self.filters["all"].setChecked(True)
        card = Card(padding=0)
        card.body.setContentsMargins(1, 1, 1, 1)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.empty)
        card.body.addLayout(self._stack)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_4, theme.SPACE_4, theme.SPACE_4)
        layout.setSpacing(theme.SPACE_3)
        layout.addLayout(row(*self.filters.values(), None, self.cancel_button, self.search))
        layout.addWidget(card, 1)
        layout.addWidget(self.details)

    def _connect(self) -> None:
        for kind, item in self.filters.items():
            item.clicked.connect(lambda _checked=False, kind=kind: self._on_kind(kind))
        self.search.textChanged.connect(lambda _text: self.set_snapshot(self._bridge.snapshot))
        self.table.selectionModel().selectionChanged.connect(self._on_selected)
        self.table.customContextMenuRequested.connect(self._on_menu)
        self.details.cancel_button.clicked.connect(lambda _checked=False: self.cancel())

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot; selection and the lines in sight stay."""
        rows = request_rows.shown(snapshot.requests, self._kind, self.search.value())
        anchor = self._anchor()
        self.model.update_rows(rows)
        self._restore(anchor)
        for kind, number in request_rows.counts(snapshot.requests).items():
            self.filters[kind].setText(f"{tr(request_rows.FILTER_NAMES[kind])} {number}")
        self._stack.setCurrentIndex(0 if rows else 1)
        if not rows:
            self.empty.set_text(*request_rows.empty_words(self._kind, self.search.value(), len(snapshot.requests)))
        self._show_details()

    @property
    def selected(self) -> RequestSnapshot | None:
        """The selected request."""
        indexes = self.table.selectionModel().selectedRows()
        return indexes[0].data(ROW_ROLE) if indexes else None

    def cancel(self) -> None:
        """Ask for the end of the selected live request."""
        request = self.selected
        if request is not None and not request.phase.finished:
            self._bridge.cancel_request(request.request_id)

    def _anchor(self) -> tuple[str, int] | None:
        """The first line in sight and its offset, unless the newest lines are in sight."""
        if self.table.verticalScrollBar().value() == 0 or not self.model.rows:
            return None
        index = self.table.indexAt(QPoint(1, 1))
        return (index.data(ROW_ROLE).request_id, self.table.visualRect(index).top()) if index.isValid() else None

    def _restore(self, anchor: tuple[str, int] | None) -> None:
        place = self.model.row_of(anchor[0]) if anchor is not None else None
        if anchor is None or place is None:
            return
        bar = self.table.verticalScrollBar()
        self.table.updateGeometries()
        bar.setValue(self.table.verticalHeader().sectionPosition(place) - anchor[1])

    def _show_details(self) -> None:
        request = self.selected
        self.cancel_button.setEnabled(request is not None and not request.phase.finished)
        self.details.setVisible(request is not None)
        if request is not None:
            self.details.set_request(request)

    def _on_kind(self, kind: str) -> None:
        self._kind = kind
        self.set_snapshot(self._bridge.snapshot)

    def _on_selected(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        self._show_details()

    def _on_key(self, key: Qt.Key, _index: Index) -> bool:
        if key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.cancel()
            return True
        return False

    def _on_menu(self, position: QPoint) -> None:
        request = self.selected
        if request is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = QAction(tr("Copy id"), menu)
        copy.triggered.connect(lambda _checked=False: self.details.copy_button.click())
        cancel = QAction(tr("Cancel request"), menu)
        cancel.setEnabled(not request.phase.finished)
        cancel.triggered.connect(lambda _checked=False: self.cancel())
        menu.addActions([copy, cancel])
        menu.popup(self.table.viewport().mapToGlobal(position))
