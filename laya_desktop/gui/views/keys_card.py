"""Who may call the node: its reach, the keys of callers, and the key of /admin. Qt main thread.

A new key is shown once, here, and kept nowhere in the window. Every change is a request to the node; what is shown
settles when a snapshot confirms it. Nothing opens a dialog.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.key_rows import KeyRow, KeysState
from laya_desktop.gui.views.inputs import Switch, TextInput
from laya_desktop.gui.views.widgets import (
    LABEL_WIDTH,
    Card,
    CopyButton,
    ElidedLabel,
    button,
    divider,
    label,
    row,
    set_property,
)
from laya_desktop.state.snapshot import NodeSnapshot

LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104  # offered, never a default
_NETWORK_KEY = "network"
_NEEDS_KEY = QT_TR_NOOP(
    "Everybody on the network could use this node, so it opens only with a key, and there is none yet."
)
_HOW = QT_TR_NOOP("Callers send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.")
_ONCE = QT_TR_NOOP("Copy it now: it is shown once, and only its hash is kept. It works at once; save to keep it.")
_ADMIN_NONE = QT_TR_NOOP("None: /admin is for this machine only.")


class KeyLine(QWidget):
    """One key: its name, what is known of it, and revoking, which asks on the spot."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._name = label(text)
        self._name.setFixedWidth(LABEL_WIDTH)
        self._note = ElidedLabel("", "hint")
        self.ask = button(tr("Revoke"), "ghost", on_click=lambda: self._confirm(True))
        self.revoke = button(tr("Revoke now"), "danger")
        self.keep = button(tr("Keep"), "ghost", on_click=lambda: self._confirm(False))
        self.revoke.clicked.connect(lambda _checked=False: self._confirm(False))
        for each in (self.ask, self.revoke):
            each.setAccessibleName(f"{each.text()}: {text}")
        layout = row(self._name, self._note, self.ask, self.revoke, self.keep, spacing=4)
        layout.setStretch(1, 1)
        self.setLayout(layout)
        self._confirm(False)

    def _confirm(self, asking: bool) -> None:
        self.ask.setVisible(not asking)
        self.revoke.setVisible(asking)
        self.keep.setVisible(asking)

    def show_row(self, shown: KeyRow) -> None:
        """Show a key."""
        self._name.setText(shown.label)
        self._name.setToolTip(shown.label)
        self._note.set_text(shown.note)
        set_property(self._note, "role", "error" if shown.warn else "hint")

    @property
    def text(self) -> tuple[str, str]:
        """Name and note as shown."""
        return self._name.text(), self._note.full_text


class NewKey(QWidget):
    """A key that has just been made, until the user is done with it."""

    def __init__(self) -> None:
        super().__init__()
        self.title = label(wrap=True)
        self.key = TextInput(mono=True)
        self.key.setReadOnly(True)
        self.key.setAccessibleName(tr("The new key"))
        self.done = button(tr("Done"), on_click=self.forget)
        line = row(self.key, CopyButton(self.key.value, tooltip=tr("Copy the key")), self.done, spacing=6)
        line.setStretch(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.title)
        layout.addLayout(line)
        layout.addWidget(label(tr(_ONCE), "hint", wrap=True))
        self.hide()

    def show_key(self, name: str, key: str) -> None:
        """Show it."""
        self.title.setText(tr("The key “{name}”:", name=name))
        self.key.set_value(key)
        self.show()
        self.key.setFocus()
        self.key.selectAll()

    def forget(self) -> None:
        """Hide it, and keep nothing of it."""
        self.key.set_value("")
        self.hide()


class KeysCard(Card):
    """The card of the Settings page."""

    def __init__(self, bridge: NodeBridge) -> None:
        super().__init__(tr("Network and keys"), spacing=10)
        self._bridge = bridge
        self._state: KeysState | None = None
        self._opening = False
        self.network = Switch(tr("Reachable from the network"))
        self.network.edited.connect(self._switch_network)
        self._reach = label(role="hint", wrap=True)
        self._offer = QWidget()
        self.make_and_open = button(tr("Make a key and open"), on_click=self._make_and_open)
        self.not_now = button(tr("Not now"), "ghost", on_click=self._offer.hide)
        offer = QVBoxLayout(self._offer)
        offer.setContentsMargins(0, 0, 0, 0)
        offer.addWidget(label(tr(_NEEDS_KEY), "error", wrap=True))
        offer.addLayout(row(self.make_and_open, self.not_now, None, spacing=6))
        self._offer.hide()
        self.new_key = NewKey()
        self._failure = label(role="error", wrap=True)
        self._failure.hide()
        self._lines = QVBoxLayout()
        self._lines.setSpacing(2)
        self.lines: list[KeyLine] = []
        self._none = label(tr("No keys yet."), "secondary")
        for widget in (self.network, self._reach, self._offer, divider(), self._none):
            self.body.addWidget(widget)
        self.body.addLayout(self._lines)
        self.body.addLayout(self._naming())
        self.body.addWidget(self.new_key)
        self.body.addWidget(self._failure)
        self.body.addWidget(divider())
        self._admin_part()

    def _naming(self) -> QVBoxLayout:
        self.name = TextInput(tr("Whose, e.g. laptop"))
        self.name.setAccessibleName(tr("Name of the new key"))
        self.name.returnPressed.connect(self._create)
        self.new = button(tr("New key"), icon="plus", on_click=self._create)
        line = row(self.name, self.new, spacing=6)
        line.setStretch(0, 1)
        layout = QVBoxLayout()
        layout.setSpacing(theme.SPACE_1)
        layout.addLayout(line)
        layout.addWidget(label(tr(_HOW), "hint", wrap=True))
        return layout

    def _admin_part(self) -> None:
        self.admin = KeyLine(tr("Admin"))
        self.admin.revoke.clicked.connect(lambda _checked=False: self._bridge.revoke_admin_key(self._fail))
        self.new_admin = button(tr("New key"), icon="plus", on_click=self._create_admin)
        self.new_admin.setAccessibleName(tr("New admin key"))
        line = row(self.admin, self.new_admin, spacing=6)
        line.setStretch(0, 1)
        self.body.addLayout(line)

    # -- what is in force

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show the keys in force."""
        if snapshot.config is None:
            return
        state = KeysState.of(snapshot.config)
        if self._opening and state.has_keys:
            self._opening = False
            self._listen(EVERYWHERE)
        if state == self._state:
            self.network.set_value(state.open)
            return
        self._state = state
        self.network.set_value(state.open)
        self._reach.setText(state.reach)
        self._none.setVisible(not state.rows)
        self._show_rows(state.rows)
        self.admin.show_row(state.admin or KeyRow(tr("Admin"), tr(_ADMIN_NONE)))
        self.admin.ask.setVisible(state.admin is not None)
        self.new_admin.setText(tr("Replace") if state.admin else tr("New key"))
        if state.has_keys:
            self._offer.hide()

    def _show_rows(self, rows: tuple[KeyRow, ...]) -> None:
        for line in self.lines:
            line.hide()
            line.deleteLater()
        self.lines = []
        for shown in rows:
            line = KeyLine(shown.label)
            line.show_row(shown)
            line.revoke.clicked.connect(partial(self._revoke, shown.label))
            self._lines.addWidget(line)
            line.show()
            self.lines.append(line)

    # -- what people do

    def _create(self) -> None:
        name = self.name.value().strip()
        if not name:
            self._fail(tr("Give the key a name first: whose or what it is."))
            self.name.setFocus()
            return
        self._fail(None)
        self._bridge.create_api_key(name, partial(self._created, name), self._fail)

    def _created(self, name: str, key: str) -> None:
        self.name.set_value("")
        self.new_key.show_key(name, key)

    def _create_admin(self) -> None:
        self._fail(None)
        self._bridge.create_admin_key(partial(self.new_key.show_key, tr("Admin")), self._fail)

    def _revoke(self, name: str, _checked: bool = False) -> None:
        self._fail(None)
        self._bridge.revoke_api_key(name, self._fail)

    def _switch_network(self) -> None:
        wanted = self.network.value()
        self.network.set_value(not wanted)  # a snapshot turns it once the node has moved
        self._fail(None)
        if wanted and self._state is not None and not self._state.has_keys:
            self._offer.show()
            return
        self._offer.hide()
        self._listen(EVERYWHERE if wanted else LOOPBACK)

    def _make_and_open(self) -> None:
        self._fail(None)
        self._bridge.create_api_key(_NETWORK_KEY, self._open_with, self._fail)

    def _open_with(self, key: str) -> None:
        self._offer.hide()
        self.new_key.show_key(_NETWORK_KEY, key)
        self._opening = True  # the edit has to start from a configuration that has the key

    def _listen(self, host: str) -> None:
        config = self._bridge.config
        if config is None:
            return
        server = config.server.model_copy(update={"host": host})
        self._bridge.apply_config(config.model_copy(update={"server": server}), failed=self._fail)

    def _fail(self, error: LayaError | str | None) -> None:
        self._failure.setText(str(error or ""))
        self._failure.setVisible(error is not None)

    @property
    def failure(self) -> str:
        """What went wrong last; empty where nothing did."""
        return self._failure.text()

    @property
    def reach(self) -> str:
        """Who reaches the node, in words."""
        return self._reach.text()

    @property
    def offers_key(self) -> bool:
        """It was refused to open the network, and a key is offered."""
        return not self._offer.isHidden()
