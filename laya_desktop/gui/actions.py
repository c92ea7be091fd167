"""What the user can do to the node and its file, with shortcuts and enabled states. Qt main thread.

Buttons and menus share these actions. ``run`` executes the commands that messages offer. Nothing here assumes that a
request succeeded: states follow the snapshots.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.messages import YAML_FILES, Dialogs, Message, message_for_error
from laya_desktop.state.enums import NodeState
from laya_desktop.state.snapshot import NodeSnapshot

_SUGGESTED = "app.yaml"


class Actions(QObject):
    """Actions of the window: save, save_as, open, export, revert, start_stop, quit."""

    message = Signal(object)
    """A ``Message`` for the banner."""
    page_wanted = Signal(str)
    """Name of a page that a message leads to."""
    quit_wanted = Signal()
    """End the application; closing the window may mean less."""

    def __init__(self, bridge: NodeBridge, dialogs: Dialogs, window: QWidget) -> None:
        super().__init__(window)
        self._bridge, self._dialogs, self._window = bridge, dialogs, window
        self.save = self._action(tr("Save"), "Ctrl+S", self.save_now)
        self.save_as = self._action(tr("Save as…"), "Ctrl+Shift+S", self._save_as)
        self.open = self._action(tr("Open…"), "Ctrl+O", self._open)
        self.export = self._action(tr("Export a copy…"), "Ctrl+E", self._export)
        self.reveal = self._action(tr("Show the file in its folder"), "", self._reveal)
        self.revert = self._action(tr("Revert"), "", self._revert)
        self.start_stop = self._action(tr("Start"), "", self._start_stop)
        self.quit = self._action(tr("Quit"), "Ctrl+Q", self.quit_wanted.emit)
        self.update(bridge.snapshot)

    def _action(self, text: str, shortcut: str, act: Callable[[], object]) -> QAction:
        action = QAction(text, self._window)
        if shortcut:
            action.setShortcut(QKeySequence(shortcut))
        action.triggered.connect(lambda _checked=False: act())
        self._window.addAction(action)
        return action

    def update(self, snapshot: NodeSnapshot) -> None:
        """Enable what makes sense now."""
        status, state = snapshot.config_status, snapshot.node.state
        unsaved = bool(status.unsaved)
        self.save.setEnabled(unsaved or status.path is None)
        self.reveal.setEnabled(status.path is not None)
        self.revert.setEnabled(unsaved and status.path is not None)
        self.start_stop.setText(tr("Stop") if state in (NodeState.RUNNING, NodeState.STOPPING) else tr("Start"))
        self.start_stop.setEnabled(state not in (NodeState.STARTING, NodeState.STOPPING))

    def run(self, command: str) -> None:
        """Execute a command of a message's button: ``reload``, ``overwrite``, ``save_as`` or ``page:NAME``."""
        if command.startswith("page:"):
            self.page_wanted.emit(command.removeprefix("page:"))
        elif command == "reload":
            self._bridge.revert_config()
        elif command == "overwrite":
            self._save_to(None, overwrite=True)
        elif command == "save_as":
            self._save_as()

    def save_now(self, then: Callable[[], object] | None = None) -> None:
        """Save to the file, asking for one if there is none yet; ``then`` is called once it is written."""
        if self._bridge.snapshot.config_status.path is None:
            self._save_as(then)
        else:
            self._save_to(None, then)

    def _save_to(self, path: Path | None, then: Callable[[], object] | None = None, *, overwrite: bool = False) -> None:
        def done(_path: Path) -> None:
            if then is not None:
                then()

        self._bridge.save_config(path, overwrite=overwrite, done=done, failed=self._failed)

    def _failed(self, error: LayaError) -> None:
        self.message.emit(message_for_error(error))

    def _save_as(self, then: Callable[[], object] | None = None) -> None:
        suggestion = self._bridge.snapshot.config_status.path or _SUGGESTED
        path = self._dialogs.save_path(self._window, tr("Save as"), suggestion, tr(YAML_FILES))
        if path is not None:
            self._save_to(path, then, overwrite=True)  # the dialog has asked whether to replace the file

    def _open(self) -> None:
        unsaved = self._bridge.snapshot.config_status.unsaved
        if unsaved and not self._dialogs.confirm_revert(self._window, unsaved):
            return
        folder = str(Path(self._bridge.snapshot.config_status.path or ".").parent)
        path = self._dialogs.open_path(self._window, tr("Open a configuration"), folder, tr(YAML_FILES))
        if path is not None:
            self._bridge.open_config(path)

    def open_file(self, path: Path, then: Callable[[], object] | None = None) -> None:
        """Put a file in force that was dropped or named; asks where changes would be lost."""
        unsaved = self._bridge.snapshot.config_status.unsaved
        if unsaved and not self._dialogs.confirm_revert(self._window, unsaved):
            return

        def done(_result: object) -> None:
            if then is not None:
                then()

        self._bridge.open_config(path, done)

    def _export(self) -> None:
        current = Path(self._bridge.snapshot.config_status.path or _SUGGESTED)
        suggestion = str(current.with_name(f"{current.stem}-copy.yaml"))
        path = self._dialogs.save_path(self._window, tr("Export a copy"), suggestion, tr(YAML_FILES))
        if path is not None:
            self._bridge.export_config(path, done=self._exported)

    def _exported(self, path: Path) -> None:
        self.message.emit(Message("info", tr("Exported a copy to {path}.", path=path), key="config:exported"))

    def _reveal(self) -> None:
        path = self._bridge.snapshot.config_status.path
        if path is not None:
            self._dialogs.open_folder(Path(path).parent)

    def _revert(self) -> None:
        if self._dialogs.confirm_revert(self._window, self._bridge.snapshot.config_status.unsaved):
            self._bridge.revert_config()

    def _start_stop(self) -> None:
        if self._bridge.snapshot.node.state in (NodeState.RUNNING, NodeState.STOPPING):
            self._bridge.stop_node()
        else:
            self._bridge.start_node()
