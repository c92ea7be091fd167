"""The node in a thread of its own. Commands are scheduled on its loop; snapshots and events come out without locks.

Callable from any thread. It owns the thread and the event queue, and no state of the node.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.node import Node
from laya_desktop.service.promptness import ask_for_promptness
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, ModelFileInfo, NodeSnapshot, RouteExplanation

if sys.platform == "win32":
    import winloop as fast_loop
else:
    import uvloop as fast_loop

log = logging.getLogger(__name__)

T = TypeVar("T")
NodeBuilder = Callable[[Callable[[Event], None], Callable[[NodeSnapshot], None]], Node]
"""Builds the node on its own thread; gets where events and snapshots go."""

EVENTS_KEPT = 1000
START_TIMEOUT_S = 20.0
CLOSE_TIMEOUT_S = 10.0


class NodeService:
    """Satisfies ``NodeServiceApi`` for a node in this process."""

    def __init__(self, build: NodeBuilder) -> None:
        self._build = build
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._snapshot = NodeSnapshot()
        self._loop: asyncio.AbstractEventLoop = fast_loop.new_event_loop()
        self._node: Node | None = None
        self._ready: Future[None] = Future()
        self._closing: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="laya-node", daemon=True)

    def start(self) -> None:
        """Start the thread and wait until the node is open.

        Raises:
            LayaError: the configuration cannot be put in force.
        """
        self._thread.start()
        self._ready.result(START_TIMEOUT_S)

    @property
    def snapshot(self) -> NodeSnapshot:
        """The latest picture."""
        return self._snapshot

    def drain_events(self) -> list[Event]:
        """Events since the last call, oldest first."""
        drained = []
        while True:
            try:
                drained.append(self._events.popleft())
            except IndexError:
                return drained

    def notify(self, event: Event) -> None:
        """Put an event of this process (the log's, say) beside the node's. Any thread."""
        self._events.append(event)

    def start_node(self) -> Future[None]:
        """Open the listener."""
        return self._send(lambda node: node.start_listening())

    def stop_node(self) -> Future[None]:
        """Close the listener."""
        return self._send(lambda node: node.stop_listening())

    def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> Future[None]:
        """Load or reload a model."""
        return self._send(lambda node: node.load_model(name, device, override=override))

    def undo_guard_action(self, action_id: str) -> Future[str]:
        """Take an action of the guard back."""
        return self._send(lambda node: _now(node.undo_guard_action, action_id))

    def unload_model(self, name: str) -> Future[None]:
        """Unload a model."""
        return self._send(lambda node: node.unload_model(name))

    def clear_cache(self, name: str) -> Future[None]:
        """Forget a model's kept answers."""
        return self._send(lambda node: node.clear_cache(name))

    def cancel_request(self, request_id: str) -> Future[bool]:
        """Cancel a live request."""
        return self._send(lambda node: _now(node.cancel_request, request_id))

    def apply_config(self, config: NodeConfig) -> Future[None]:
        """Put a configuration in force."""
        return self._send(lambda node: node.apply_config(config))

    def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Future[Path]:
        """Save or save as."""
        return self._send(lambda node: node.save_config(path, overwrite=overwrite))

    def export_config(self, path: Path) -> Future[Path]:
        """Write a copy."""
        return self._send(lambda node: node.export_config(path))

    def diff_config(self) -> Future[str]:
        """What saving would change in the file."""
        return self._send(lambda node: node.diff_config())

    def revert_config(self) -> Future[None]:
        """Back to the file."""
        return self._send(lambda node: node.revert_config())

    def open_config(self, path: Path) -> Future[None]:
        """Another file."""
        return self._send(lambda node: node.open_config(path))

    def create_api_key(self, name: str) -> Future[str]:
        """A new key for callers."""
        return self._send(lambda node: node.create_api_key(name))

    def revoke_api_key(self, name: str) -> Future[None]:
        """A key less."""
        return self._send(lambda node: node.revoke_api_key(name))

    def create_admin_key(self) -> Future[str]:
        """A new key for ``/admin``."""
        return self._send(lambda node: node.create_admin_key())

    def revoke_admin_key(self) -> Future[None]:
        """No key for ``/admin``."""
        return self._send(lambda node: node.revoke_admin_key())

    def explain_route(
        self, method: str, path: str, headers: dict[str, str], model: str | None
    ) -> Future[RouteExplanation]:
        """Which route wins, and why."""
        return self._send(lambda node: _now(node.explain_route, method, path, headers, model))

    def inspect_model(self, path: Path) -> Future[ModelFileInfo]:
        """Metadata of a model file."""
        return self._send(lambda node: node.inspect_model(path))

    def find_models(self) -> Future[tuple[FoundModel, ...]]:
        """Models on this machine."""
        return self._send(lambda node: node.find_models())

    def estimate_model(self, model: ModelConfig, device: str | None = None) -> Future[MemoryEstimate]:
        """What a model would take."""
        return self._send(lambda node: node.estimate_model(model, device))

    def close(self) -> None:
        """End everything and join the thread; idempotent."""
        if self._closing is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(CLOSE_TIMEOUT_S)
            if self._thread.is_alive():
                log.error("The node's thread did not end within %g s", CLOSE_TIMEOUT_S)

    def _send(self, command: Callable[[Node], Coroutine[Any, Any, T]]) -> Future[T]:
        node = self._node
        if node is None or not self._thread.is_alive():
            closed: Future[T] = Future()
            closed.set_exception(LayaError("The node is closed.", hint="Start Laya Desktop again.", status=503))
            return closed
        return asyncio.run_coroutine_threadsafe(command(node), self._loop)

    def _publish(self, snapshot: NodeSnapshot) -> None:
        self._snapshot = snapshot

    def _run(self) -> None:
        ask_for_promptness()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except Exception as fault:
            if not self._ready.done():
                self._ready.set_exception(fault)
            else:
                log.exception("The node's thread ended unexpectedly")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _main(self) -> None:
        self._closing = asyncio.Event()
        node = self._build(self._events.append, self._publish)
        await node.open()
        self._node = node
        self._ready.set_result(None)
        await self._closing.wait()
        self._node = None
        await node.close()
        await _cancel_rest()


async def _now(call: Callable[..., T], *args: Any) -> T:
    return call(*args)


async def _cancel_rest() -> None:
    rest = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
