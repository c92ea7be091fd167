"""The list of models that are on the node's machine already. Qt main thread; asks the bridge, says which one to add.

It searches when it is opened and when asked again; what it adds and where is the page's business.
"""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QModelIndex, Qt, Signal
from PySide6.QtWidgets import QStackedLayout

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.found_models import FoundColumn, FoundRow, FoundTableModel, rows_of
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE, TONE_ROLE
from laya_desktop.gui.views.cells import Index, Table, TextDelegate
from laya_desktop.gui.views.widgets import Card, EmptyState, SectionTitle, button, label, row, set_property
from laya_desktop.state.snapshot import FoundModel

_WIDTHS = {FoundColumn.NAME: 210, FoundColumn.SOURCE: 104, FoundColumn.SIZE: 76, FoundColumn.QUANTISATION: 84}
_FITTED = {FoundColumn.NAME: (120, 260), FoundColumn.SOURCE: (80, 120), FoundColumn.QUANTISATION: (60, 110)}
_LEAST_STATE = 110
_SEARCHING = (
    QT_TR_NOOP("Searching…"),
    QT_TR_NOOP("In the folders of LM Studio, Ollama, Hugging Face, llama.cpp, GPT4All, Jan and your own."),
)
_NOTHING = (
    QT_TR_NOOP("No models found"),
    QT_TR_NOOP("Choose a file with the Model button, or another folder to search with the folder button."),
)


def _breakable(text: str) -> str:
    """The text with invisible places to break long paths at."""
    return text.replace("/", "/\u200b").replace("\\", "\\\u200b")


class ModelFinderPanel(Card):
    """Find models, see what they are, add one."""

    add_clicked = Signal(object)
    """FoundModel."""
    folder_clicked = Signal()
    """Another folder is to be searched; the page asks which."""
    close_clicked = Signal()

    def __init__(self, bridge: NodeBridge) -> None:
        super().__init__(spacing=theme.SPACE_2)
        self._bridge = bridge
        self._found: tuple[FoundModel, ...] = ()
        self._config, self._words = NodeConfig(), ""
        self._searches = 0
        self.model = FoundTableModel(self)
        self.table = self._build_table()
        self.empty = EmptyState(tr(_SEARCHING[0]), tr(_SEARCHING[1]), icon="search")
        self.count = label(role="secondary")
        self.explanation = label(role="secondary", wrap=True)
        self.again_button = button("", "ghost", "refresh", self.search)
        self.again_button.setToolTip(tr("Search again"))
        self.again_button.setAccessibleName(tr("Search again"))
        self.folder_button = button("", "ghost", "folder", self.folder_clicked.emit)
        self.folder_button.setToolTip(tr("Search another folder too"))
        self.folder_button.setAccessibleName(tr("Search another folder too"))
        self.close_button = button(tr("Close"), "ghost", on_click=self.close_clicked.emit)
        self.add_button = button(tr("Add"), "primary", "plus", self._add)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.empty)
        title = SectionTitle(tr("Models on this machine"))
        self.body.addLayout(row(title, self.count, None, self.folder_button, self.again_button, self.close_button))
        self.body.addLayout(self._stack, 1)
        foot = row(self.explanation, self.add_button)
        foot.setStretch(0, 1)
        self.body.addLayout(foot)
        self._show_selection()

    def _build_table(self) -> Table:
        table = Table(tr("Models on this machine"), self._on_key)
        table.setModel(self.model)
        table.set_columns({int(c): w for c, w in _WIDTHS.items()}, FoundColumn.STATE)
        table.spare_columns((FoundColumn.SOURCE, FoundColumn.QUANTISATION), _LEAST_STATE)
        table.setItemDelegate(TextDelegate(lambda index: index.data(TONE_ROLE), table))
        table.selectionModel().selectionChanged.connect(self._on_selected)
        table.doubleClicked.connect(self._on_double_clicked)
        return table

    @property
    def selected(self) -> FoundRow | None:
        """The selected row."""
        indexes = self.table.selectionModel().selectedRows()
        return indexes[0].data(ROW_ROLE) if indexes else None

    def search(self) -> None:
        """Ask the node; of several answers only the last counts."""
        self._searches += 1
        ticket = self._searches
        self.again_button.setEnabled(False)
        self.empty.set_text(*map(tr, _SEARCHING))
        self.count.setText(tr(_SEARCHING[0]) if self._found else "")
        self._stack.setCurrentIndex(0 if self.model.rows else 1)
        self._bridge.find_models(
            lambda found: self._on_found(found, ticket), lambda error: self._on_failed(error, ticket)
        )

    def set_config(self, config: NodeConfig, words: str = "") -> None:
        """Mark what is configured; show what has these words."""
        self._config, self._words = config, words
        self._show()

    def _on_found(self, found: tuple[FoundModel, ...], ticket: int) -> None:
        if ticket == self._searches:
            self.again_button.setEnabled(True)
            self._found = found
            self.empty.set_text(*map(tr, _NOTHING))
            self._show()

    def _on_failed(self, error: LayaError, ticket: int) -> None:
        if ticket == self._searches:
            self.again_button.setEnabled(True)
            self._found = ()
            self.empty.set_text(tr("The search failed"), str(error))
            self._show()

    def _show(self) -> None:
        rows = rows_of(self._found, self._config, self._words)
        self.model.update_rows(rows)
        self.table.fit_columns({int(c): limits for c, limits in _FITTED.items()})
        self._stack.setCurrentIndex(0 if rows else 1)
        if self._found:
            self.count.setText(fmt.counted(len(rows), "model"))
            if not rows:
                self.empty.set_text(tr("No model has these words"), tr("Change or clear the filter."))
        elif self.again_button.isEnabled():
            self.count.setText("")
        self._show_selection()

    def _show_selection(self) -> None:
        row = self.selected
        self.explanation.setText(_breakable(row.explanation) if row else tr("Select a model to add it."))
        set_property(self.explanation, "tone", "warn" if row and row.model.problem else "")
        self.add_button.setEnabled(row is not None and row.model.problem is None and row.added_as is None)

    def _on_selected(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        self._show_selection()

    def _on_double_clicked(self, _index: QModelIndex) -> None:
        self._add()

    def _on_key(self, key: Qt.Key, _index: Index) -> bool:
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._add()
            return True
        if key == Qt.Key.Key_Escape:
            self.close_clicked.emit()
            return True
        return False

    def _add(self) -> None:
        row = self.selected
        if row is not None and self.add_button.isEnabled():
            self.add_clicked.emit(row.model)
