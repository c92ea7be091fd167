"""What a window may ask of a node, wherever the node runs. A protocol only; values that cross it can be serialised.

Every command returns at once with a ``concurrent.futures.Future``; it fails with ``LayaError`` (also ``ConfigError``)
whose text is fit to show. Callable from any thread.
"""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, ModelFileInfo, NodeSnapshot, RouteExplanation


class NodeServiceApi(Protocol):
    """Commands down, snapshots and events up."""

    @property
    def snapshot(self) -> NodeSnapshot:
        """The latest picture; a new ``seq`` four times a second and after every change of state."""
        ...

    def drain_events(self) -> list[Event]:
        """Events since the last call, oldest first; the queue keeps the newest 1,000."""
        ...

    def start_node(self) -> Future[None]:
        """Open the listener. Fails when the port is taken."""
        ...

    def stop_node(self) -> Future[None]:
        """Close the listener; running answers finish within five seconds or are cut; models stay loaded."""
        ...

    def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> Future[None]:
        """Load (or reload on another device: ``cpu``, ``gpu``, ``gpu:1``; None: the configured one).

        Fails with code ``will_not_fit``, ``out_of_memory`` or ``overloaded`` where the guard refuses; ``override``
        loads all the same, this once.
        """
        ...

    def undo_guard_action(self, action_id: str) -> Future[str]:
        """Take an action of the guard back (``GuardAction.action_id``); what it was, in words."""
        ...

    def unload_model(self, name: str) -> Future[None]:
        """Unload once its running answers are done; waiting requests get 503."""
        ...

    def clear_cache(self, name: str) -> Future[None]:
        """Forget a model's kept answers."""
        ...

    def cancel_request(self, request_id: str) -> Future[bool]:
        """Cancel a live request; False when it is already over."""
        ...

    def apply_config(self, config: NodeConfig) -> Future[None]:
        """Put a configuration in force in memory. Refused whole with every problem; the old one keeps serving."""
        ...

    def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Future[Path]:
        """Write to its file, or to ``path`` and continue with that one ("Save as").

        Fails with code ``changed_on_disk`` when the file changed since it was read and ``overwrite`` is False.
        """
        ...

    def export_config(self, path: Path) -> Future[Path]:
        """Write a copy; the current file and the unsaved state stay as they are."""
        ...

    def diff_config(self) -> Future[str]:
        """Unified diff from the file to what saving would write; empty where nothing would change."""
        ...

    def revert_config(self) -> Future[None]:
        """Read the file again and put it in force."""
        ...

    def open_config(self, path: Path) -> Future[None]:
        """Put another file in force."""
        ...

    def create_api_key(self, name: str) -> Future[str]:
        """Make a key for callers, in force at once; the future holds the key, which nobody can ask for again."""
        ...

    def revoke_api_key(self, name: str) -> Future[None]:
        """Take the key of that label (``config.keys.describe``) out of force at once."""
        ...

    def create_admin_key(self) -> Future[str]:
        """Make a key for ``/admin`` in place of the one there was; the future holds it, once."""
        ...

    def revoke_admin_key(self) -> Future[None]:
        """Take the key of ``/admin`` out of force at once; it then answers programs on this machine only."""
        ...

    def explain_route(
        self, method: str, path: str, headers: dict[str, str], model: str | None
    ) -> Future[RouteExplanation]:
        """Which route a request would take, and why the others would not."""
        ...

    def inspect_model(self, path: Path) -> Future[ModelFileInfo]:
        """Metadata of a model file without loading it."""
        ...

    def find_models(self) -> Future[tuple[FoundModel, ...]]:
        """Models that are on the node's machine already, in its own folder and where other programs keep theirs."""
        ...

    def estimate_model(self, model: ModelConfig, device: str | None = None) -> Future[MemoryEstimate]:
        """What the model would take, against what is free."""
        ...

    def close(self) -> None:
        """Stop everything and join the node's thread. Blocks for ten seconds at most; idempotent."""
        ...
