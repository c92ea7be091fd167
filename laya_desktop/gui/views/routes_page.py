"""The Routes page: table, tester and form. Qt main thread; lays out, and passes edits to the bridge.

Shows what is in force or on its way there; the switch, the form and Delete are requests that the node may refuse.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QItemSelection, QModelIndex, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QMenu, QStackedLayout, QWidget

from laya_desktop.config.edits import edit
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels import route_fields
from laya_desktop.gui.qtmodels.part_editor import PartEditor
from laya_desktop.gui.qtmodels.part_kinds import ROUTE_KIND
from laya_desktop.gui.qtmodels.route_fields import RouteFields
from laya_desktop.gui.qtmodels.route_rows import RouteRow, route_rows
from laya_desktop.gui.qtmodels.route_table import RouteColumn, RouteFilterModel, RouteTableModel
from laya_desktop.gui.qtmodels.row_diff import ROW_ROLE
from laya_desktop.gui.views.cells import Index, MatchDelegate, SwitchDelegate, Table, TextDelegate, flip
from laya_desktop.gui.views.inputs import TextInput
from laya_desktop.gui.views.part_panel import NARROW_PAGE, FormState, PartPanel
from laya_desktop.gui.views.route_form import RouteForm
from laya_desktop.gui.views.route_history import RouteHistory
from laya_desktop.gui.views.route_tester import RouteTester
from laya_desktop.gui.views.widgets import Card, EmptyState, button, column, row
from laya_desktop.state.snapshot import NodeSnapshot

_LIMITS = {
    RouteColumn.NAME: (72, 148),
    RouteColumn.TARGET: (72, 148),
    RouteColumn.PRIORITY: (72, 104),
    RouteColumn.HITS: (60, 96),
    RouteColumn.P99: (68, 80),
}
"""Least and most width of columns, px."""
_SPARED, _LEAST_MATCH = (RouteColumn.P99, RouteColumn.PRIORITY, RouteColumn.HITS), 132
"""What a narrow table leaves out first, and the room that the match needs, px."""


class RoutesPage(QWidget):
    """Edit the routes of the node and see what they do."""

    def __init__(self, bridge: NodeBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._updating = False
        self.model = RouteTableModel(self)
        self.proxy = RouteFilterModel(self.model)
        self.history = RouteHistory(bridge, self)
        self.editor: PartEditor[RouteFields] = PartEditor(ROUTE_KIND, lambda: bridge.config, bridge.apply_config, self)
        self.form = RouteForm()
        self.tester = RouteTester(bridge)
        self.table = self._build_table()
        self.panel = PartPanel(
            tr("route"),
            EmptyState(tr("No route selected"), tr("Select a route to edit it, or add one."), icon="routes"),
        )
        self.panel.content.addWidget(self.form)
        self._build()
        self._connect()
        self.set_snapshot(bridge.snapshot)

    def _build_table(self) -> Table:
        table = Table(tr("Routes"), self._on_key)
        table.setModel(self.proxy)
        table.set_columns({RouteColumn.ON: 46}, RouteColumn.MATCH)
        table.set_tall_column(RouteColumn.MATCH)
        table.setItemDelegate(TextDelegate(_tone, table))
        table.setItemDelegateForColumn(RouteColumn.ON, SwitchDelegate(table))
        table.setItemDelegateForColumn(RouteColumn.MATCH, MatchDelegate(table))
        return table

    def _build(self) -> None:
        self.add_button = button(tr("Route"), "primary", "plus", self.start_draft)
        self.template_button = button("", icon="more")
        self.template_button.setProperty("menu", True)
        self.template_button.setAccessibleName(tr("New route for a common case"))
        self.template_button.setToolTip(tr("New route for a common case"))
        menu = QMenu(self.template_button)
        for key, text in route_fields.TEMPLATES.items():
            menu.addAction(tr(text), partial(self.start_template, key))
        self.template_button.setMenu(menu)
        self.copy_button = button(tr("Duplicate"), icon="duplicate", on_click=self.duplicate)
        self.delete_button = button(tr("Delete"), icon="trash", on_click=self.delete)
        self.undo_button = button(tr("Undo"), icon="undo", on_click=self.history.stack.undo)
        for tool, text in (
            (self.copy_button, tr("Duplicate")),
            (self.delete_button, tr("Delete")),
            (self.undo_button, tr("Undo")),
        ):
            tool.setAccessibleName(text)
            tool.setToolTip(text)
        self.filter = TextInput(tr("Filter routes"))
        self.filter.setAccessibleName(tr("Filter routes"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(180)
        edits = (self.copy_button, self.delete_button, self.undo_button)
        tools = row(self.add_button, self.template_button, *edits, None, self.filter)
        self.empty = EmptyState(
            tr("No routes yet"),
            tr("A route says which requests go to which model. The standard paths under /v1 work without one."),
            tr("Add a route"),
            "routes",
        )
        self.empty.clicked.connect(self.start_draft)
        card = Card(padding=0)
        card.body.setContentsMargins(1, 1, 1, 1)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.empty)
        card.body.addLayout(self._stack)
        left = column(spacing=theme.SPACE_3)
        left.addLayout(tools)
        left.addWidget(card, 1)
        left.addWidget(self.tester)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_4, theme.SPACE_4, theme.SPACE_4)
        layout.setSpacing(theme.SPACE_3)
        layout.addLayout(left, 1)
        layout.addWidget(self.panel)

    def _connect(self) -> None:
        self.model.enabled_requested.connect(self._on_enabled_requested)
        self.table.selectionModel().selectionChanged.connect(self._on_selected)
        self.filter.textChanged.connect(self.proxy.set_text)
        self.form.edited.connect(lambda fields, hold: self.editor.edit(fields, hold=hold))
        self.form.finished.connect(self.editor.finish)
        self.panel.add_clicked.connect(self.editor.add_draft)
        self.panel.discard_clicked.connect(self._on_discard)
        self.editor.shown.connect(self._on_shown)
        self.editor.judged.connect(self._on_judged)
        self.editor.applied.connect(
            lambda before, after, name: self.history.record(before, after, tr("edit {name}", name=name))
        )
        self.history.stack.indexChanged.connect(self._on_history)  # a slot of ours: it ends before the stack does
        for keys, action in (
            (QKeySequence.StandardKey.Undo, self.history.stack.undo),
            (QKeySequence.StandardKey.Redo, self.history.stack.redo),
            (QKeySequence.StandardKey.New, self.start_draft),
            ("Alt+Up", partial(self.move_route, -1)),
            ("Alt+Down", partial(self.move_route, 1)),
        ):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)
        self._show_history()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say less on a narrow page."""
        super().resizeEvent(event)
        narrow = event.size().width() < NARROW_PAGE
        self.panel.fit_page(event.size().width())
        for tool, text in (
            (self.copy_button, tr("Duplicate")),
            (self.delete_button, tr("Delete")),
            (self.undo_button, tr("Undo")),
        ):
            tool.setText("" if narrow else text)
        self.filter.setFixedWidth(140 if narrow else 180)
        self._fit_table()

    def _fit_table(self) -> None:
        self.table.fit_columns({int(c): limits for c, limits in _LIMITS.items()})
        self.table.spare_columns(_SPARED, _LEAST_MATCH)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot; selection, scroll position and typed text stay."""
        config = self._bridge.config or NodeConfig()  # with edits on their way: the form works on it
        self.form.set_targets((m.name for m in config.models), (u.name for u in config.upstreams))
        self.history.sync()
        self.editor.sync()
        self.tester.set_snapshot(snapshot)
        self._show_rows(snapshot)

    def start_draft(self) -> None:
        """A new route, in the form only until it is added."""
        self._start(route_fields.new_route(self._bridge.config or NodeConfig()))

    def start_template(self, key: str) -> None:
        """A new route for one of the common cases."""
        self._start(route_fields.from_template(key, self._bridge.config or NodeConfig()))

    def _start(self, fields: RouteFields) -> None:
        self._unselect()
        self.editor.start_draft(fields)
        self.form.name.setFocus()
        self.form.name.selectAll()

    def duplicate(self) -> None:
        """A draft like the selected route."""
        config, name = self._bridge.config, self.editor.name
        route = config.route(name) if config is not None and name is not None else None
        if config is None or route is None:
            return
        self._unselect()
        self.editor.start_draft(route_fields.copy_of(route, config), fresh=True)
        self.form.path.setFocus()

    def delete(self) -> None:
        """Delete the selected route at once; Undo brings it back."""
        config, name = self._bridge.config, self.editor.name
        if config is None or name is None:
            return
        self._change(config, config.without_route(name), tr("delete {name}", name=name))
        self.editor.forget(name)

    def move_route(self, step: int) -> None:
        """Put the selected route ``step`` places further down in the file: order decides among regular expressions."""
        config, name = self._bridge.config, self.editor.name
        route = config.route(name) if config is not None and name is not None else None
        if config is None or route is None or name is None:
            return
        routes = list(config.routes)
        place = routes.index(route)
        to = min(max(place + step, 0), len(routes) - 1)
        if to == place:
            return
        routes.insert(to, routes.pop(place))
        self._change(config, edit(config, routes=tuple(routes)), tr("move {name}", name=name))

    def _change(self, before: NodeConfig, after: NodeConfig, text: str) -> None:
        self._bridge.apply_config(after, done=lambda _none: self.history.record(before, after, text))

    def _show_rows(self, snapshot: NodeSnapshot) -> None:
        """The table shows what is in force, and nothing that the node may still refuse."""
        config = snapshot.config or NodeConfig()
        self._updating = True  # a renamed route is a removed row and a new one: the form leads, not the selection
        self.model.update_rows(route_rows(snapshot, config, self.editor.unfinished))
        self._updating = False
        self._stack.setCurrentIndex(0 if self.model.rows else 1)
        self._fit_table()
        if self.editor.fields is None and self.proxy.rowCount():
            current = self.table.currentIndex()
            self.editor.show((current if current.isValid() else self.proxy.index(0, 0)).data(ROW_ROLE).name)
        self._select(self.editor.name)

    def _select(self, name: str | None) -> None:
        """Follow a renamed or added route; selecting what is selected changes nothing."""
        source = self.model.row_of(name) if name is not None else None
        if source is None:
            return
        index = self.proxy.mapFromSource(self.model.index(source, RouteColumn.NAME))
        if index.isValid() and not self.table.selectionModel().isRowSelected(index.row(), QModelIndex()):
            self.table.selectRow(index.row())

    def _unselect(self) -> None:
        self.table.clearSelection()
        self.table.setCurrentIndex(QModelIndex())

    def _on_selected(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        if not self._updating and (indexes := selected.indexes()):
            self.editor.show(indexes[0].data(ROW_ROLE).name)

    def _on_key(self, key: Qt.Key, index: Index) -> bool:
        if key == Qt.Key.Key_Space:
            flip(index.sibling(index.row(), RouteColumn.ON))
            return True
        if key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.delete()
            return True
        return False

    def _on_enabled_requested(self, name: str, enabled: bool) -> None:
        config = self._bridge.config
        route = config.route(name) if config is not None else None
        if config is None or route is None:
            return
        try:
            after = config.with_route(route.model_copy(update={"enabled": enabled}), name)
        except LayaError as error:
            self._bridge.command_failed.emit(error)
            return
        self._change(config, after, tr("switch {name} {value}", name=name, value="on" if enabled else "off"))

    def _on_discard(self) -> None:
        self.editor.discard()
        if self.editor.fields is None and self.proxy.rowCount():
            self.table.selectRow(0)

    def _on_shown(self) -> None:
        if self.editor.fields is None:
            self.panel.show_empty()
        else:
            self.form.set_fields(self.editor.fields)
        self._on_judged()

    def _on_judged(self) -> None:
        editor = self.editor
        if editor.fields is None:
            self._show_tools()
            return
        state = FormState.of(draft=editor.is_draft, problems=bool(editor.problems))
        self.panel.show_form(editor.fields.name.strip() or tr("Unnamed route"), state)
        self.panel.set_error(editor.problems.get(None))
        self.form.set_problems(editor.problems)
        self.panel.preview.set_text(route_fields.yaml_of(editor.fields).rstrip())
        self._show_tools()

    def _show_tools(self) -> None:
        for tool in (self.copy_button, self.delete_button):
            tool.setEnabled(self.editor.name is not None)

    def _on_history(self, _index: int) -> None:
        self._show_history()

    def _show_history(self) -> None:
        stack = self.history.stack
        self.undo_button.setEnabled(stack.canUndo())
        undo = tr("Undo: {undoText}", undoText=stack.undoText()) if stack.canUndo() else tr("Nothing to undo")
        redo = tr(
            "\nRedo ({toString}): {redoText}",
            toString=QKeySequence(QKeySequence.StandardKey.Redo).toString(),
            redoText=stack.redoText(),
        )
        self.undo_button.setToolTip(undo + (redo if stack.canRedo() else ""))


def _tone(index: Index) -> str | None:
    route: RouteRow = index.data(ROW_ROLE)
    if not route.enabled:
        return "secondary"
    if index.column() == RouteColumn.PRIORITY and route.priority == "interactive":
        return "accent"
    return None
