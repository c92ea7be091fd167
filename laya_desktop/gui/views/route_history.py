"""Undo and redo of route edits. Qt main thread; holds configurations, and asks the bridge to put one's routes back.

Only the routes go back: a model that was edited in between keeps its edit.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from laya_desktop.config.edits import edit
from laya_desktop.config.schema import NodeConfig, RouteConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr

_LIMIT = 100


class RouteHistory(QObject):
    """The undo stack of the Routes page."""

    def __init__(self, bridge: NodeBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._expected: tuple[RouteConfig, ...] | None = None
        self.stack = QUndoStack(self)
        self.stack.setUndoLimit(_LIMIT)

    def record(self, before: NodeConfig, after: NodeConfig, text: str) -> None:
        """An edit is in force; it can be undone now."""
        self._expected = after.routes
        self.stack.push(_RoutesEdit(self, before.routes, after.routes, text))

    def sync(self) -> None:
        """Forget everything when the routes were changed elsewhere: another file, a revert, an import."""
        config = self._bridge.config
        if config is None or not self.stack.count() or config.routes == self._expected:
            return
        self.stack.clear()

    def put_back(self, routes: tuple[RouteConfig, ...]) -> None:
        """Ask for these routes within the configuration of now."""
        config = self._bridge.config
        if config is None:
            return
        try:
            wanted = edit(config, routes=routes)
        except LayaError as error:
            self._on_refused(error)
            return
        self._expected = routes
        self._bridge.apply_config(wanted, failed=self._on_refused)

    def _on_refused(self, error: LayaError) -> None:
        self.stack.clear()
        self._bridge.command_failed.emit(
            LayaError(
                tr("That cannot be undone any more. {message}", message=error.message), hint=error.hint, code=error.code
            )
        )


class _RoutesEdit(QUndoCommand):
    def __init__(
        self,
        history: RouteHistory,
        before: tuple[RouteConfig, ...],
        after: tuple[RouteConfig, ...],
        text: str,
    ) -> None:
        super().__init__(text)
        self._history, self._before, self._after = history, before, after
        self._done = True  # QUndoStack.push calls redo; the edit is in force already

    def redo(self) -> None:
        """Put the later routes in force."""
        if not self._done:
            self._history.put_back(self._after)
        self._done = False

    def undo(self) -> None:
        """Put the earlier routes in force."""
        self._history.put_back(self._before)
