"""The one place where the window meets the node. Qt main thread; polls the service, emits Qt signals.

Views call the command methods and connect to the signals; nothing else in the window knows the service. ``poll`` is
driven by a timer and may be called directly by tests.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.service.api import NodeServiceApi
from laya_desktop.state.snapshot import NodeSnapshot

log = logging.getLogger(__name__)

Done = Callable[[Any], None]
Failed = Callable[[LayaError], None]
_POLL_MS = 50


class _EditsUnderWay:
    """Configurations sent to the node that no snapshot has shown yet. A snapshot may lag behind an accepted one."""

    def __init__(self) -> None:
        self.newest: NodeConfig | None = None
        """The last one sent and not refused; None: the snapshot's is the newest."""
        self._accepted: NodeConfig | None = None
        self._open = 0
        self._awaited_revision = 0

    def on_sent(self, config: NodeConfig, snapshot: NodeSnapshot) -> None:
        if self.newest is None:
            self._awaited_revision = snapshot.config_status.revision
        self.newest = config
        self._open += 1

    def on_accepted(self, config: NodeConfig) -> None:
        self._open -= 1
        self._awaited_revision += 1
        self._accepted = config

    def on_refused(self, config: NodeConfig) -> None:
        self._open -= 1
        if self.newest is config:
            self.newest = self._accepted

    def on_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Forget them once a snapshot has the last one, or a later revision from elsewhere."""
        arrived = snapshot.config_status.revision >= self._awaited_revision or snapshot.config == self.newest
        if not self._open and arrived:
            self.newest = self._accepted = None


class NodeBridge(QObject):
    """Emits what the node says; sends what the user asks."""

    snapshot_changed = Signal(object)
    """NodeSnapshot, at most once a poll and only when its ``seq`` is new."""
    event_received = Signal(object)
    """One of ``state.events.Event``."""
    command_failed = Signal(object)
    """LayaError of a command whose caller gave no ``failed`` callback; shown as a banner."""

    def __init__(self, service: NodeServiceApi, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._snapshot = service.snapshot
        self._settled: deque[tuple[Future[Any], Done | None, Failed | None]] = deque()
        self._edits = _EditsUnderWay()
        self._timer = QTimer(self)
        self._timer.setInterval(_POLL_MS)
        self._timer.timeout.connect(self.poll)

    def start(self) -> None:
        """Begin polling."""
        self._timer.start()

    def stop(self) -> None:
        """Stop polling; the service is left as it is."""
        self._timer.stop()

    @property
    def snapshot(self) -> NodeSnapshot:
        """The snapshot that the views last saw."""
        return self._snapshot

    @property
    def config(self) -> NodeConfig | None:
        """What the next edit starts from: the configuration on its way to the node, else the one in force.

        Two edits within one snapshot's time therefore never undo each other.
        """
        return self._edits.newest or self._snapshot.config

    def poll(self) -> None:
        """Deliver finished commands, events and a new snapshot, in this order."""
        while self._settled:
            self._deliver(*self._settled.popleft())
        for event in self._service.drain_events():
            self.event_received.emit(event)
        snapshot = self._service.snapshot
        if snapshot.seq != self._snapshot.seq:
            self._snapshot = snapshot
            self._edits.on_snapshot(snapshot)
            self.snapshot_changed.emit(snapshot)

    def start_node(self) -> None:
        """Open the listener."""
        self._send(self._service.start_node())

    def stop_node(self) -> None:
        """Close the listener."""
        self._send(self._service.stop_node())

    def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> None:
        """Load a model (``override``: although the guard refused); a failure shows on the model and as a banner."""
        self._send(self._service.load_model(name, device, override=override))

    def undo_guard_action(self, action_id: str) -> None:
        """Take an action of the guard back."""
        self._send(self._service.undo_guard_action(action_id))

    def unload_model(self, name: str) -> None:
        """Unload a model once its answers are done."""
        self._send(self._service.unload_model(name))

    def clear_cache(self, name: str) -> None:
        """Forget a model's kept answers."""
        self._send(self._service.clear_cache(name))

    def cancel_request(self, request_id: str) -> None:
        """Cancel a live request."""
        self._send(self._service.cancel_request(request_id))

    def apply_config(self, config: NodeConfig, done: Done | None = None, failed: Failed | None = None) -> None:
        """Put a configuration in force; ``done(None)`` once it is."""
        self._edits.on_sent(config, self._snapshot)

        def on_done(result: Any) -> None:
            self._edits.on_accepted(config)
            if done:
                done(result)

        def on_failed(error: LayaError) -> None:
            self._edits.on_refused(config)
            failed(error) if failed else self.command_failed.emit(error)

        self._send(self._service.apply_config(config), on_done, on_failed)

    def save_config(
        self,
        path: Path | None = None,
        *,
        overwrite: bool = False,
        done: Done | None = None,
        failed: Failed | None = None,
    ) -> None:
        """Save, or "Save as" with a path; ``done(Path)``."""
        self._send(self._service.save_config(path, overwrite=overwrite), done, failed)

    def export_config(self, path: Path, done: Done | None = None) -> None:
        """Write a copy; ``done(Path)``."""
        self._send(self._service.export_config(path), done)

    def diff_config(self, done: Done, failed: Failed | None = None) -> None:
        """``done(str)``: unified diff from the file to what saving would write."""
        self._send(self._service.diff_config(), done, failed)

    def revert_config(self, done: Done | None = None) -> None:
        """Go back to the file."""
        self._send(self._service.revert_config(), done)

    def open_config(self, path: Path, done: Done | None = None) -> None:
        """Put another file in force."""
        self._send(self._service.open_config(path), done)

    def create_api_key(self, name: str, done: Done, failed: Failed | None = None) -> None:
        """Make a key for callers; ``done(str)`` gets it, once."""
        self._send(self._service.create_api_key(name), done, failed)

    def revoke_api_key(self, name: str, failed: Failed | None = None) -> None:
        """Take a key out of force, by its label."""
        self._send(self._service.revoke_api_key(name), None, failed)

    def create_admin_key(self, done: Done, failed: Failed | None = None) -> None:
        """Make a key for ``/admin``; ``done(str)`` gets it, once."""
        self._send(self._service.create_admin_key(), done, failed)

    def revoke_admin_key(self, failed: Failed | None = None) -> None:
        """Take the key of ``/admin`` out of force."""
        self._send(self._service.revoke_admin_key(), None, failed)

    def explain_route(self, method: str, path: str, headers: dict[str, str], model: str | None, done: Done) -> None:
        """``done(RouteExplanation)``."""
        self._send(self._service.explain_route(method, path, headers, model), done)

    def inspect_model(self, path: Path, done: Done, failed: Failed | None = None) -> None:
        """``done(ModelFileInfo)``."""
        self._send(self._service.inspect_model(path), done, failed)

    def find_models(self, done: Done, failed: Failed | None = None) -> None:
        """``done(tuple[FoundModel, ...])``."""
        self._send(self._service.find_models(), done, failed)

    def estimate_model(self, model: ModelConfig, device: str | None, done: Done, failed: Failed | None = None) -> None:
        """``done(MemoryEstimate)``."""
        self._send(self._service.estimate_model(model, device), done, failed)

    def _send(self, future: Future[Any], done: Done | None = None, failed: Failed | None = None) -> None:
        future.add_done_callback(lambda f: self._settled.append((f, done, failed)))

    def _deliver(self, future: Future[Any], done: Done | None, failed: Failed | None) -> None:
        try:
            result = future.result()
        except CancelledError:
            return
        except LayaError as error:
            failed(error) if failed else self.command_failed.emit(error)
            return
        except Exception as error:  # the boundary: a fault of ours must not take the window down
            log.exception("A command failed unexpectedly")
            fault = LayaError(f"Internal fault: {error}.", hint="The Logs page has the details.")
            failed(fault) if failed else self.command_failed.emit(fault)
            return
        if done:
            done(result)
