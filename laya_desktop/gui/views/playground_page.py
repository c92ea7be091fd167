"""The Playground: chat through a route or a model and see where the time goes. Qt main thread.

The request goes over HTTP to the node like anyone else's; nothing takes a short cut. Keys stay in memory.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels import playground
from laya_desktop.gui.qtmodels.chat_client import ChatClient
from laya_desktop.gui.qtmodels.playground import Destination, Draft, Timings
from laya_desktop.gui.views.inputs import Choice, TextInput
from laya_desktop.gui.views.transcript import Transcript
from laya_desktop.gui.views.widgets import Card, CopyButton, button, column, label, row
from laya_desktop.state.snapshot import NodeSnapshot

_SIDE_WIDTH, _MESSAGE_HEIGHT, _SYSTEM_HEIGHT = 284, 76, 92
_ENDINGS = {"stop": "", "length": QT_TR_NOOP("stopped at max tokens"), "stopped": QT_TR_NOOP("stopped by you")}


class MessageInput(QPlainTextEdit):
    """Several lines of text; Enter sends, Shift+Enter makes a new line."""

    sent = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
            return
        super().keyPressEvent(event)


class PlaygroundPage(QWidget):
    """A conversation on the left; destination, settings and timings on the right."""

    def __init__(self, bridge: NodeBridge) -> None:
        super().__init__()
        self.setObjectName("page")
        self._bridge = bridge
        self._messages: list[tuple[str, str]] = []
        self._asked: str | None = None
        self._answering = False
        self._needs_key = False
        self._destinations: tuple[Destination, ...] = ()
        self.client = ChatClient(self)
        self.transcript = Transcript()
        self.message = MessageInput()
        self.send_button = button(tr("Send"), "primary", on_click=self.send)
        self.stop_button = button(tr("Stop"), "secondary", "stop", on_click=self.client.stop)
        self.clear_button = button(tr("Clear"), "ghost", "trash", on_click=self.clear)
        self.curl_button = CopyButton(self.curl_text, tr("Copy as curl"), tr("Copy the request as a curl command"))
        self.python_button = CopyButton(
            self.python_text, tr("Copy as Python"), tr("Copy the request as a Python program")
        )
        self.hint = label(role="error", wrap=True)
        self.hint.hide()
        self._build_settings()
        self.values = {name: label() for name in playground.TIMING_NAMES}
        self.served_by = label(role="hint", wrap=True)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_4, theme.SPACE_4, theme.SPACE_4)
        layout.setSpacing(theme.SPACE_3)
        layout.addLayout(self._build_chat(), 1)
        layout.addWidget(self._build_side())
        self._connect()
        self._show_timings(Timings())
        self._show_busy()
        self.set_snapshot(bridge.snapshot)

    def _build_settings(self) -> None:
        self.destination = Choice()
        self.system = QPlainTextEdit()
        self.system.setPlaceholderText(tr("e.g. Answer in one sentence."))
        self.system.setFixedHeight(_SYSTEM_HEIGHT)
        self.system.setTabChangesFocus(True)
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(-0.1, 2.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setDecimals(1)
        self.temperature.setSpecialValueText(tr("default"))
        self.temperature.setValue(-0.1)
        self.max_tokens = QSpinBox()
        self.max_tokens.setRange(0, 1_000_000)
        self.max_tokens.setSpecialValueText(tr("no limit"))
        self.max_tokens.setValue(256)
        for spin in (self.temperature, self.max_tokens):
            spin.lineEdit().setTextMargins(theme.SPACE_2, 0, 0, 0)
        self.key = TextInput(tr("the node asks for one"))
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key_label = label(tr("API key"), "hint")
        for widget, name in (
            (self.destination, tr("Send to")),
            (self.system, tr("System prompt")),
            (self.temperature, tr("Temperature")),
            (self.max_tokens, tr("Max tokens")),
            (self.key, tr("API key")),
            (self.message, tr("Message")),
        ):
            widget.setAccessibleName(name)

    def _build_chat(self) -> QVBoxLayout:
        self.message.setPlaceholderText(tr("Write a message. Enter sends, Shift+Enter makes a new line."))
        self.message.setFixedHeight(_MESSAGE_HEIGHT)
        self.transcript.setPlaceholderText(tr("Choose a route or a model on the right and write a message below."))
        chat = column(spacing=theme.SPACE_2)
        chat.addLayout(row(label(tr("Playground"), "heading"), None, self.curl_button, self.python_button))
        chat.addWidget(self.transcript, 1)
        chat.addWidget(self.hint)
        chat.addWidget(self.message)
        chat.addLayout(row(self.clear_button, None, self.stop_button, self.send_button))
        return chat

    def _build_side(self) -> QWidget:
        form, times = Card(tr("Request")), Card(tr("Timing of the last answer"))
        pairs: tuple[tuple[QWidget, QWidget], ...] = (
            (label(tr("Send to"), "hint"), self.destination),
            (self.key_label, self.key),
            (label(tr("System prompt"), "hint"), self.system),
        )
        for name, editor in pairs:
            form.body.addWidget(name)
            form.body.addWidget(editor)
        both = row(spacing=theme.SPACE_2)
        for text, spin in ((tr("Temperature"), self.temperature), (tr("Max tokens"), self.max_tokens)):
            both.addLayout(column(label(text, "hint"), spin, spacing=theme.SPACE_1), 1)
        form.body.addLayout(both)
        grid = QGridLayout()
        grid.setVerticalSpacing(theme.SPACE_1)
        for i, (name_text, value) in enumerate(self.values.items()):
            grid.addWidget(label(tr(name_text), "secondary"), i, 0)
            grid.addWidget(value, i, 1, Qt.AlignmentFlag.AlignRight)
        times.body.addLayout(grid)
        times.body.addWidget(self.served_by)
        side = QWidget()
        side.setLayout(column(form, times, None, spacing=theme.SPACE_3))
        side.setFixedWidth(_SIDE_WIDTH)
        return side

    def _connect(self) -> None:
        self.message.sent.connect(self.send)
        self.client.received.connect(self._on_received)
        self.client.timed.connect(self._show_timings)
        self.client.ended.connect(self._on_ended)
        self.client.failed.connect(self._on_failed)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Offer what the configuration in force offers."""
        config = snapshot.config
        self._destinations = playground.destinations(config)
        chosen = self.destination.value()
        self.destination.set_items((d.key, d.text) for d in self._destinations)
        if self._destinations and chosen not in {d.key for d in self._destinations} and not self.client.busy:
            self.destination.set_value(self._destinations[0].key)
        self._needs_key = config is not None and bool(config.server.api_keys)
        self.key.setVisible(self._needs_key)
        self.key_label.setVisible(self._needs_key)

    def send(self) -> None:
        """Send the message that is written; ignored while an answer is on its way or where there is none."""
        text = self.message.toPlainText().strip()
        if not text or self.client.busy:
            return
        url, destination = self._bridge.snapshot.node.url, self._chosen()
        if url is None or destination is None:
            self._show_hint(
                tr("The node is stopped. Press Start in the header, then send again.")
                if destination is not None
                else tr("There is no route and no model to send to. Add a model on the Models page.")
            )
            return
        self._show_hint("")
        self.transcript.add("user", text)
        self.message.clear()
        self._asked, self._answering = text, False
        self._show_timings(Timings())
        self.served_by.clear()
        self.client.send(url, destination, self._draft(text), self.key.value().strip() if self._needs_key else "")
        self._show_busy()

    def clear(self) -> None:
        """Stop, and begin a new conversation."""
        self.client.stop()
        self._messages.clear()
        self.transcript.clear_turns()
        self._show_hint("")
        self._show_timings(Timings())
        self.served_by.clear()

    def curl_text(self) -> str:
        """The request as a curl command."""
        return self._snippet(playground.curl_text)

    def python_text(self) -> str:
        """The request as a Python program."""
        return self._snippet(playground.python_text)

    def _snippet(self, write: playground.SnippetWriter) -> str:
        destination = self._chosen()
        if destination is None:
            return ""
        snapshot = self._bridge.snapshot
        server = snapshot.config.server if snapshot.config else None
        url = snapshot.node.url or (f"http://{server.host}:{server.port}" if server else "")
        written = self.message.toPlainText().strip()
        draft = self._draft(written or ("" if self._messages else tr("Hello")))
        return write(url, destination, draft, needs_key=self._needs_key)

    def choose_model(self, name: str) -> None:
        """Chat with that model next."""
        self.destination.set_value(f"model:{name}")
        self.message.setFocus()

    def _chosen(self) -> Destination | None:
        return next((d for d in self._destinations if d.key == self.destination.value()), None)

    def _draft(self, text: str) -> Draft:
        messages = self._messages if text else self._messages[:-1]  # without a new question, the last one again
        temperature, limit = self.temperature.value(), self.max_tokens.value()
        return Draft(
            (*messages, ("user", text)) if text else tuple(messages),
            self.system.toPlainText(),
            None if temperature < 0 else round(temperature, 1),
            limit or None,
        )

    def _on_received(self, text: str) -> None:
        if not self._answering:
            self._answering = True
            self.transcript.add("assistant", text)
        else:
            self.transcript.extend(text)

    def _on_ended(self, reason: str) -> None:
        if self._asked is not None:
            answer = self.transcript.turns[-1].text if self._answering else ""
            if answer:
                self._messages += [("user", self._asked), ("assistant", answer)]
            line = playground.summary(self.client.timings, tr(_ENDINGS.get(reason, reason)))
            self.transcript.add(
                "note", line if answer or reason == "stopped" else tr("empty answer  ·  {line}", line=line)
            )
        self._settle()

    def _on_failed(self, text: str) -> None:
        self.transcript.add("error", text)
        if self._asked is not None and not self._answering and not self.message.toPlainText():
            self.message.setPlainText(self._asked)  # nothing was answered: to be sent again with one key
        self._settle()

    def _settle(self) -> None:
        self._asked, self._answering = None, False
        self._show_busy()

    def _show_busy(self) -> None:
        self.send_button.setEnabled(not self.client.busy)
        self.stop_button.setEnabled(self.client.busy)

    def _show_hint(self, text: str) -> None:
        self.hint.setText(text)
        self.hint.setVisible(bool(text))

    def _show_timings(self, timings: Timings) -> None:
        for value, text in zip(self.values.values(), playground.timing_texts(timings), strict=True):
            value.setText(text)
        parts = [tr("Served by {target}", target=timings.target) if timings.target else ""]
        parts += [tr("through route {route}", route=timings.route) if timings.route else ""]
        parts += [tr("cache {cache}", cache=timings.cache) if timings.cache else ""]
        self.served_by.setText(", ".join(p for p in parts if p))
