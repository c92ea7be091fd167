"""The Models page: a card per model, and the form of the selected one. Qt main thread; passes wishes to the bridge.

Cards show what the node reports. Edits act on the configuration at once and on a loaded model at its next load.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedLayout, QWidget

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.qtmodels import model_fields
from laya_desktop.gui.qtmodels.found_models import fields_for
from laya_desktop.gui.qtmodels.model_cards import card_values, parameters_text
from laya_desktop.gui.qtmodels.model_curl import curl_text
from laya_desktop.gui.qtmodels.model_estimate import (
    EstimateWords,
    estimate_words,
    file_words,
    no_file,
    unknown,
    with_proposal,
)
from laya_desktop.gui.qtmodels.model_fields import ModelFields
from laya_desktop.gui.qtmodels.model_removal import delete_question, without_model
from laya_desktop.gui.qtmodels.part_editor import REST_MS, PartEditor
from laya_desktop.gui.qtmodels.part_kinds import MODEL_KIND
from laya_desktop.gui.views.card_list import CardList
from laya_desktop.gui.views.inputs import TextInput
from laya_desktop.gui.views.main_window import window_settings
from laya_desktop.gui.views.model_card import ModelCard
from laya_desktop.gui.views.model_dialogs import Ask, Choose, ask_in_dialog, choose_in_dialog
from laya_desktop.gui.views.model_files import ModelFiles
from laya_desktop.gui.views.model_finder_panel import ModelFinderPanel
from laya_desktop.gui.views.model_form import ModelForm
from laya_desktop.gui.views.part_panel import FormState, PartPanel
from laya_desktop.gui.views.widgets import EmptyState, button, column, row
from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, ModelFileInfo, NodeSnapshot, Proposal


class ModelsPage(QWidget):
    """Load, watch and edit the models of the node."""

    chat_wanted = Signal(str)
    """A model's name: somebody shows the Playground with it."""

    def __init__(
        self,
        bridge: NodeBridge,
        ask: Ask = ask_in_dialog,
        choose: Choose = choose_in_dialog,
        preferences: Preferences | None = None,
    ) -> None:
        super().__init__()
        self._bridge, self._ask, self._choose = bridge, ask, choose
        self._preferences = preferences or Preferences(window_settings())
        self._estimates = 0
        self._proposal: Proposal | None = None
        self.list = CardList(self._new_card)
        self.cards = self.list.cards
        self.files = ModelFiles(bridge, self)
        self.editor: PartEditor[ModelFields] = PartEditor(MODEL_KIND, lambda: bridge.config, bridge.apply_config, self)
        self.finder = ModelFinderPanel(bridge)
        self._finding = False
        self.form = ModelForm()
        self.panel = PartPanel(
            tr("model"),
            EmptyState(tr("No model selected"), tr("Select a model to edit it, or add one."), icon="models"),
        )
        self.panel.content.addWidget(self.form)
        self._estimate_timer = QTimer(self)
        self._estimate_timer.setSingleShot(True)
        self._estimate_timer.setInterval(REST_MS)
        self._estimate_timer.timeout.connect(self._estimate)
        self._build()
        self._connect()
        self.set_snapshot(bridge.snapshot)

    def _build(self) -> None:
        self.add_button = button(tr("Model"), "primary", "plus", self.start_draft)
        self.find_button = button(tr("Find models…"), icon="search", on_click=self.find_models)
        self.copy_button = button("", icon="duplicate", on_click=self.duplicate)
        self.copy_button.setToolTip(tr("Duplicate"))
        self.copy_button.setAccessibleName(tr("Duplicate"))
        self.delete_button = button(tr("Delete"), icon="trash", on_click=self.delete)
        self.filter = TextInput(tr("Filter models"))
        self.filter.setAccessibleName(tr("Filter models"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setMinimumWidth(80)
        self.filter.setMaximumWidth(180)
        self.empty = EmptyState(
            tr("No models yet"),
            tr("Add a GGUF file: it is read, its memory is estimated, and it can be loaded with one click."),
            tr("Add a model"),
            "models",
        )
        self.empty.clicked.connect(self.start_draft)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.list)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.finder)
        left = column(spacing=theme.SPACE_3)
        left.addLayout(row(self.add_button, self.find_button, self.copy_button, self.delete_button, None, self.filter))
        left.addLayout(self._stack, 1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_4, theme.SPACE_4, theme.SPACE_4)
        layout.setSpacing(theme.SPACE_3)
        layout.addLayout(left, 1)
        layout.addWidget(self.panel)

    def _connect(self) -> None:
        self.files.changed.connect(lambda: self._show(self._bridge.snapshot))
        self.filter.textChanged.connect(lambda _text: self._show(self._bridge.snapshot))
        self.form.edited.connect(self._on_edited)
        self.form.finished.connect(self.editor.finish)
        self.form.estimate.fit_clicked.connect(self._on_fit_clicked)
        self.form.path.browse_clicked.connect(self._on_browse)
        self.form.path.set_recent(lambda: self._preferences.recent_models)
        self.form.path.recent_chosen.connect(self._use_file)
        self.finder.add_clicked.connect(self.add_found)
        self.finder.folder_clicked.connect(self._on_folder_wanted)
        self.finder.close_clicked.connect(self._on_finder_closed)
        self.panel.add_clicked.connect(self.editor.add_draft)
        self.panel.discard_clicked.connect(self._on_discard)
        self.editor.shown.connect(self._on_shown)
        self.editor.judged.connect(self._on_judged)
        for keys, action in ((QKeySequence.StandardKey.New, self.start_draft), (QKeySequence("F5"), self._look_again)):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave more room to the cards of a narrow page."""
        super().resizeEvent(event)
        self.panel.fit_page(event.size().width())

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot: cards change in place; selection, scroll position and typed text stay."""
        config = self._bridge.config or NodeConfig()
        machine = snapshot.machine
        self.form.set_machine([g.index for g in machine.gpus], machine.cores_physical, config.guard.mem_fraction * 100)
        self.editor.sync()
        self._show(snapshot)

    def start_draft(self) -> None:
        """A new model, in the form only until it is added."""
        self.editor.start_draft(model_fields.new_model(self._bridge.config or NodeConfig()))
        self.form.path.setFocus()

    def duplicate(self) -> None:
        """A draft like the selected model, under a free name."""
        config, name = self._bridge.config, self.editor.name
        model = config.model_called(name) if config is not None and name is not None else None
        if config is not None and model is not None:
            self.editor.start_draft(model_fields.copy_of(model, config), fresh=True)
            self.form.name.setFocus()

    def find_models(self) -> None:
        """Show which models are on the machine already."""
        self._finding = True
        self.finder.search()
        self._show(self._bridge.snapshot)
        self.finder.table.setFocus()

    def select(self, name: str) -> None:
        """Show a model's form."""
        self.editor.show(name)
        self.list.reveal(name)

    def delete(self) -> None:
        """Delete the selected model; asks where it is loaded or used by routes, which go with it."""
        config, name = self._bridge.config, self.editor.name
        if config is None or name is None:
            return
        question = delete_question(name, self._bridge.snapshot, config)
        if question and not self._ask(self, question, tr("Delete")):
            return
        self._bridge.apply_config(without_model(name, config))
        self.editor.forget(name)

    def showEvent(self, event: QShowEvent) -> None:
        """Files may have come or gone while another page was shown."""
        super().showEvent(event)
        self._look_again()

    def _look_again(self) -> None:
        self.files.forget_faults()
        self.set_snapshot(self._bridge.snapshot)
        self._estimate_timer.start()

    def _show(self, snapshot: NodeSnapshot) -> None:
        config = snapshot.config or NodeConfig()  # what is in force; the form works on edits under way too
        words = self.filter.value()
        self.list.set_values(
            [card_values(m, snapshot, config, self.files.get_for(str(m.path), m.engine)) for m in config.models], words
        )
        self._stack.setCurrentIndex(2 if self._finding else 0 if config.models else 1)
        self.finder.set_config(config, words)
        if self.editor.fields is None and config.models:
            self.editor.show(config.models[0].name)
        self.list.select(self.editor.name)
        self._show_head()
        self._show_file()

    def _new_card(self, name: str) -> ModelCard:
        card = ModelCard(name, self._curl)
        card.clicked.connect(lambda: self.select(name))
        card.edit_clicked.connect(self._on_edit_clicked)
        card.load_clicked.connect(self._on_load_clicked)
        card.load_anyway_clicked.connect(self._on_load_anyway_clicked)
        card.unload_clicked.connect(self._bridge.unload_model)
        card.chat_clicked.connect(self.chat_wanted)
        card.clear_cache_clicked.connect(self._bridge.clear_cache)
        return card

    def _curl(self, name: str) -> str:
        return curl_text(name, self._bridge.snapshot.node.url, self._bridge.config or NodeConfig())

    def _on_load_clicked(self, name: str, device: str) -> None:
        self.editor.finish()
        self._bridge.load_model(name, device or None)

    def _on_load_anyway_clicked(self, name: str) -> None:
        self.editor.finish()
        self._bridge.load_model(name, override=True)

    def _on_edit_clicked(self, name: str) -> None:
        self.select(name)
        self.form.device.setFocus()

    def _on_edited(self, fields: ModelFields, hold: bool) -> None:
        self.editor.edit(fields, hold=hold)
        self._estimate_timer.start()

    def _on_browse(self) -> None:
        path = self._choose(self, self.form.engine.value() == "transformers")
        if path:
            self._use_file(path)

    def _use_file(self, path: str) -> None:
        """Write a chosen file into the form; it counts as typed."""
        config = self._bridge.config
        if config is None:
            return
        self._preferences.remember_model(path)
        self.files.forget_faults([path])
        self.form.path.set_value(path)
        fields = self.form.fields()
        if self.editor.is_draft and fields.name.startswith("model"):
            fields = model_fields.renamed_after_path(fields, config)
            self.form.name.set_value(fields.name)
        self._on_edited(fields, hold=False)
        self.editor.finish()
        self._show_file()

    def add_found(self, found: FoundModel) -> None:
        """Add a model that is on this machine at once; where it cannot be added, its form says why."""
        self._preferences.remember_model(found.path)
        self.editor.start_draft(fields_for(found, self._bridge.config or NodeConfig()), fresh=True)
        self.editor.add_draft()

    def _on_folder_wanted(self) -> None:
        path, config = self._choose(self, True), self._bridge.config
        if path and config is not None:
            folders = tuple(dict.fromkeys((*config.model_folders, Path(path))))
            wanted = config.model_copy(update={"model_folders": folders})
            self._bridge.apply_config(wanted, lambda _none: self.finder.search())

    def _on_finder_closed(self) -> None:
        self._finding = False
        self._show(self._bridge.snapshot)

    def _on_discard(self) -> None:
        self.editor.discard()
        self._show(self._bridge.snapshot)

    def _on_shown(self) -> None:
        if self.editor.fields is None:
            self.panel.show_empty()
        else:
            self.form.set_fields(self.editor.fields)
            self._estimate_timer.start()
        self._on_judged()

    def _on_judged(self) -> None:
        for tool in (self.copy_button, self.delete_button):
            tool.setEnabled(self.editor.name is not None)
        self.list.select(self.editor.name)
        self._show_head()
        if self.editor.fields is not None:
            self.panel.set_error(self.editor.problems.get(None))
            self.panel.preview.set_text(model_fields.yaml_of(self.editor.fields).rstrip())
        self._show_file()

    def _show_head(self) -> None:
        editor = self.editor
        if editor.fields is None:
            return
        card = self.cards.get(editor.name or "")
        waits = card is not None and card.values is not None and bool(card.values.reload)
        state = FormState.of(draft=editor.is_draft, problems=bool(editor.problems), waits=waits)
        self.panel.show_form(editor.fields.name.strip() or tr("Unnamed model"), state)

    def _show_file(self) -> None:
        """Metadata or fault of the file that the form names."""
        if self.editor.fields is None:
            return
        typing = self.form.path.line.hasFocus() and self.editor.dirty
        known = None if typing else self.files.get_for(self.editor.fields.path, self.editor.fields.engine)
        self.form.set_problems(self.editor.problems, str(known) if isinstance(known, LayaError) else None)
        if isinstance(known, ModelFileInfo):
            self.form.set_file_hint(file_words(known, parameters_text(known.parameters)))
        else:
            self.form.set_file_hint(None)

    def _estimate(self) -> None:
        """Ask what the form's model would take; an answer that comes too late is dropped."""
        if not self.isVisible():
            return  # a dry run costs a process; showing the page asks again
        config, fields = self._bridge.config, self.editor.fields
        self._estimates += 1
        ticket = self._estimates
        part = None
        if config is not None and fields is not None and fields.path.strip():
            part, _ = MODEL_KIND.parse(fields, config, self.editor.name)
        if part is not None and isinstance(self.files.get_for(str(part.path), part.engine), LayaError):
            part = None
        if part is None:
            self._show_estimate(no_file() if fields is None or not fields.path.strip() else unknown())
            return
        self.form.estimate.set_pending()
        self._bridge.estimate_model(
            part,
            None,
            lambda estimate: self._on_estimated(estimate, ticket),
            lambda error: self._on_estimate_failed(error, ticket),
        )

    def _on_estimated(self, estimate: MemoryEstimate, ticket: int) -> None:
        if ticket == self._estimates:
            self._show_estimate(estimate_words(estimate))
            self._proposal = estimate.proposal

    def _on_estimate_failed(self, error: LayaError, ticket: int) -> None:
        if ticket == self._estimates:
            self._show_estimate(unknown(error.message))

    def _on_fit_clicked(self) -> None:
        """Fill the offered settings in, as if they had been typed."""
        if self._proposal is not None:
            fields = with_proposal(self.form.fields(), self._proposal)
            self.form.set_fields(fields)
            self._on_edited(fields, hold=False)

    def _show_estimate(self, words: EstimateWords) -> None:
        self._proposal = None
        self.form.estimate.set_words(words)
