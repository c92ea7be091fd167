"""Try a request against the routes in force: which one wins, and why each other one loses. Qt main thread.

It asks the node; nothing is sent to any model or upstream.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.route_fields import METHODS, headers_from_text
from laya_desktop.gui.views.inputs import Choice, TextInput
from laya_desktop.gui.views.widgets import Card, button, column, label, row, scrolled, set_property
from laya_desktop.state.snapshot import NodeSnapshot, RouteExplanation

_RESULT_HEIGHT = 76


class RouteTester(Card):
    """One line of inputs, and the verdict in words below."""

    def __init__(self, bridge: NodeBridge) -> None:
        self._shown: RouteExplanation | None = None  # before Qt's constructor: it may send a palette change
        super().__init__(spacing=theme.SPACE_2)
        self._bridge = bridge
        self._revision: int | None = None
        self._asked = 0
        self.method = Choice((m, m) for m in METHODS)
        self.method.set_value("POST")
        self.path = TextInput("/v1/model/chat/completions", mono=True)
        self.path.set_value("/v1/model/chat/completions")
        self.headers = TextInput(tr("headers, e.g. X-Tier: pro"), mono=True)
        self.model = TextInput(tr("model id of the body"), mono=True)
        for widget, name, tip in (
            (self.method, tr("Method"), ""),
            (self.path, tr("Path"), tr("Path of the request")),
            (self.headers, tr("Headers"), tr("Headers, e.g. X-Tier: pro; X-Team: blue")),
            (self.model, tr("Model id"), tr("The model that the body names; may be empty")),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        self.method.setFixedWidth(96)
        self.ask_button = button(tr("Which route?"), on_click=self.ask)
        for line in (self.path, self.headers, self.model):
            line.returnPressed.connect(self.ask)
        self.verdict, self.losers = label(), label(role="secondary", wrap=True)
        self.verdict.setTextFormat(Qt.TextFormat.RichText)
        self.verdict.setWordWrap(True)
        self.losers.setAlignment(Qt.AlignmentFlag.AlignTop)
        first, second = row(self.method), row()
        first.addWidget(self.path, 1)
        first.addWidget(self.ask_button)
        second.addWidget(self.headers, 3)
        second.addWidget(self.model, 2)
        self.body.addLayout(row(label(tr("Try a request"), "title"), None, label(tr("nothing is sent"), "secondary")))
        self.body.addLayout(first)
        self.body.addLayout(second)
        result = QWidget()
        result.setLayout(column(self.verdict, self.losers, None, spacing=3))
        area = scrolled(result)
        area.setFixedHeight(_RESULT_HEIGHT)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.body.addWidget(area)
        self._show_hint()

    def ask(self) -> None:
        """Ask the node about the request on show."""
        headers, wrong = headers_from_text(self.headers.value())
        set_property(self.headers, "invalid", bool(wrong))
        if wrong:
            self._shown = None
            self._show(
                tr("“{wrong}” is not a header.", wrong=wrong),
                tr("Write NAME: VALUE, several with a semicolon between."),
                "critical",
            )
            return
        self._asked += 1
        ticket = self._asked
        self._bridge.explain_route(
            self.method.value(),
            self.path.value().strip() or "/",
            headers,
            self.model.value().strip() or None,
            lambda explanation: self._on_explained(explanation, ticket),
        )

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """An answer on show is asked again when the routes have changed."""
        revision = snapshot.config_status.revision
        if self._asked and revision != self._revision:
            self.ask()
        self._revision = revision

    def _on_explained(self, explanation: RouteExplanation, ticket: int) -> None:
        if ticket == self._asked:
            self._shown = explanation
            self._render(explanation)

    def changeEvent(self, event: QEvent) -> None:
        """Write the verdict in the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._shown is not None:
            self._render(self._shown)

    def _render(self, explanation: RouteExplanation) -> None:
        losers = [f"✕ {c.route}: {c.reason}" for c in explanation.candidates if not c.won]
        below = "     ".join(losers)
        if explanation.winner is None:
            self._show(tr("No route takes it."), f"{explanation.reason}\n{below}".strip(), "warn")
            return
        calm, quiet = theme.color("calm").name(), theme.color("secondary").name()
        self.verdict.setText(
            f'<b style="color:{calm}">✓ {_plain(explanation.winner)}</b> → {_plain(explanation.target or "–")} '
            f'<span style="color:{quiet}; font-size:{theme.FONT_SECONDARY}px">{_plain(explanation.reason)}</span>'
        )
        self.losers.setText(below)

    def _show(self, verdict: str, below: str, role: str) -> None:
        """A verdict that names no winner."""
        self.verdict.setText(f'<b style="color:{theme.color(role).name()}">{_plain(verdict)}</b>')
        self.losers.setText(below)

    def _show_hint(self) -> None:
        self.verdict.setText("")
        self.losers.setText(tr("Press Enter: the winner is named here, with the reason why each other route loses."))


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
