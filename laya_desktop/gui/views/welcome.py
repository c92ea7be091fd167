"""The first steps: what is on this machine, a model that fits, ready. Qt main thread; skippable, shown once.

Nothing is searched on the network, and nothing is added or loaded before its button is pressed.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.qtmodels.first_model import first_model, places
from laya_desktop.gui.views.overlay import Overlay
from laya_desktop.gui.views.widgets import CopyButton, ElidedLabel, button, column, label, row
from laya_desktop.state.snapshot import FoundModel, NodeSnapshot

_WIDTH_PX = 560
STEPS = 3


class Welcome(Overlay):
    """Three small pages with Back, Next and Skip."""

    model_wanted = Signal(object)
    """FoundModel to add and load."""
    demo_wanted = Signal()
    """The bundled model is to be loaded."""
    folder_wanted = Signal()
    """Models are in another folder; somebody asks which."""
    playground_wanted = Signal()

    def __init__(self, bridge: NodeBridge, preferences: Preferences, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH_PX)
        self._bridge, self._preferences = bridge, preferences
        self._found: tuple[FoundModel, ...] | None = None
        self.suggestion: FoundModel | None = None
        self.setAccessibleName(tr("First steps"))
        self.title, self.step_label = label("", "heading"), label("", "secondary")
        self.stack = QStackedWidget()
        for page in (self._places_page(), self._model_page(), self._ready_page()):
            self.stack.addWidget(page)
        self.skip = button(tr("Skip"), "ghost", on_click=self.hide)
        self.back = button(tr("Back"), on_click=lambda: self.show_step(self.step - 1))
        self.forward = button(tr("Next"), "primary", on_click=self.next)
        layout = column(spacing=theme.SPACE_3)
        layout.addLayout(row(self.title, None, self.step_label))
        layout.addWidget(self.stack)
        layout.addLayout(row(self.skip, None, self.back, self.forward))
        layout.setContentsMargins(*(theme.SPACE_6,) * 4)
        self.setLayout(layout)
        self.closed.connect(self._on_closed)
        bridge.snapshot_changed.connect(self._on_snapshot)

    def _places_page(self) -> QWidget:
        self.places = label("", wrap=True)
        self.folder = button(tr("Search another folder…"), icon="folder", on_click=self.folder_wanted.emit)
        text = tr("A model is a file. Laya Desktop runs it here and gives it an address, so that programs can use it.")
        return _page(label(text, wrap=True), self.places, row(self.folder, None))

    def _model_page(self) -> QWidget:
        self.offer = label("", wrap=True)
        self.where = ElidedLabel("", "hint")
        self.take = button(tr("Add and load it"), "primary", "plus", self._take)
        self.demo = button(tr("Load the demo model"), icon="play", on_click=self._demo)
        text = tr("The demo model is small and comes with Laya Desktop: good for a first try, not for real work.")
        return _page(self.offer, self.where, row(self.take, None), label(text, "secondary", wrap=True),
                     row(self.demo, None))  # fmt: skip

    def _ready_page(self) -> QWidget:
        self.ready = label("", wrap=True)
        self.address = ElidedLabel("", "mono")
        line = row(self.address, CopyButton(lambda: self.address.full_text, tooltip=tr("Copy the address")))
        line.setStretch(0, 1)
        self.playground = button(tr("Chat in the Playground"), icon="playground", on_click=self._chat)
        keys = label(tr("Ctrl+K finds every command, F1 lists the shortcuts."), "secondary", wrap=True)
        return _page(self.ready, line, row(self.playground, None), keys)

    @property
    def step(self) -> int:
        """0, 1 or 2."""
        return self.stack.currentIndex()

    def open(self) -> None:
        """Start at the first step and look for models."""
        self.search()
        self.show_step(0)
        super().open()
        self.forward.setFocus()

    def search(self) -> None:
        """Look again, e.g. after a folder was added."""
        self._found = None
        self._bridge.find_models(self._on_found, lambda _error: self._on_found(()))
        self._refresh()

    def next(self) -> None:
        """The next step; after the last one it is done."""
        if self.step == STEPS - 1:
            self.hide()
        else:
            self.show_step(self.step + 1)

    def show_step(self, step: int) -> None:
        """Show a step."""
        self.stack.setCurrentIndex(step)
        titles = (tr("Welcome to Laya Desktop"), tr("A model for this machine"), tr("Ready"))
        self.title.setText(titles[step])
        self.step_label.setText(tr("{n} of {total}", n=step + 1, total=STEPS))
        self.back.setVisible(step > 0)
        self.skip.setVisible(step < STEPS - 1)
        self.forward.setText(tr("Done") if step == STEPS - 1 else tr("Next"))
        self._refresh()

    def _on_closed(self) -> None:
        self._preferences.welcomed = True  # taken or skipped, they are not shown again

    def _on_found(self, found: tuple[FoundModel, ...]) -> None:
        self._found = found
        self._refresh()

    def _on_snapshot(self, _snapshot: NodeSnapshot) -> None:
        if self.isVisible():
            self._refresh()

    def _refresh(self) -> None:
        snapshot = self._bridge.snapshot
        if self._found is None:
            self.places.setText(tr("Looking for models on this machine …"))
        elif counted := places(self._found):
            lines = [tr("%n model(s) in {place}", None, n, place=place) for place, n in counted]
            self.places.setText("\n".join([tr("Found here:"), *(f"• {line}" for line in lines)]))
        else:
            self.places.setText(tr("No models were found here yet. The next step has one to start with."))
        self.suggestion = first_model(self._found or (), snapshot)
        self._show_offer()
        self.ready.setText(_ready_text(snapshot))
        self.address.set_text(f"{snapshot.node.url}/v1" if snapshot.node.url else "")
        self.address.setVisible(snapshot.node.url is not None)

    def _show_offer(self) -> None:
        best = self.suggestion
        self.take.setVisible(best is not None)
        self.where.setVisible(best is not None)
        if best is None:
            self.offer.setText(tr("None of the models found fits with ease. You can add one on the Models page."))
        else:
            text = tr(
                "{name} is the largest one that fits with ease: {size}.", name=best.name, size=fmt.size(best.size_bytes)
            )
            self.offer.setText(text)
            self.where.set_text(best.path)

    def _take(self) -> None:
        if self.suggestion is not None:
            self.model_wanted.emit(self.suggestion)
            self.next()

    def _demo(self) -> None:
        self.demo_wanted.emit()
        self.next()

    def _chat(self) -> None:
        self.hide()
        self.playground_wanted.emit()


def _page(*items: object) -> QWidget:
    result = QWidget()
    layout = QVBoxLayout(result)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(theme.SPACE_3)
    for item in items:
        if isinstance(item, QWidget):
            layout.addWidget(item)
        else:
            layout.addLayout(item)  # type: ignore[arg-type]
    layout.addStretch(1)
    return result


def _ready_text(snapshot: NodeSnapshot) -> str:
    if snapshot.node.url is None:
        return tr("The node is not running yet: press Start on top. Then any OpenAI-compatible program can use it.")
    return tr("The node is running. Any OpenAI-compatible program can use it at this address:")
