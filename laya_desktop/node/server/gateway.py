"""What the server needs of the node, as a protocol: the server is tested against a fake, the node satisfies it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig, NodeConfig
    from laya_desktop.node.balance import TargetLoad
    from laya_desktop.node.engines.base import Generate, RequestEvent
    from laya_desktop.node.metrics import Metrics
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.routing import RoutingTable
    from laya_desktop.node.upstream import UpstreamPool
    from laya_desktop.state.events import Event
    from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, NodeSnapshot


class Generation(Protocol):
    """One admitted request on its way through queue and engine.

    Iterating yields ``Started``, ``Prefilled``, ``Delta`` … and ``Finished``, then ends. A refusal, an expired
    deadline, a dead worker or an unload raises ``LayaError`` from the iteration.
    """

    def __aiter__(self) -> AsyncIterator[RequestEvent]: ...

    def cancel(self, reason: str) -> None:
        """Stop it wherever it is (queued: it never runs). Idempotent; the iteration then ends."""
        ...


class Gateway(Protocol):
    """The node as the server sees it. All of it on the node's loop."""

    @property
    def config(self) -> NodeConfig:
        """The configuration in force."""
        ...

    @property
    def table(self) -> RoutingTable:
        """The routing table in force."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where routing latency is recorded."""
        ...

    @property
    def upstreams(self) -> UpstreamPool:
        """Clients of the remote servers."""
        ...

    @property
    def snapshot(self) -> NodeSnapshot:
        """The latest picture."""
        ...

    def open_record(self, method: str, path: str, route: str | None, target: str | None) -> RequestRecord:
        """A new live request for the Requests page; the server fills it and calls ``record.finish``."""
        ...

    def generate(self, record: RequestRecord, model: str, request: Generate, timeout_s: float) -> Generation:
        """Admit a request to a model's queue.

        Raises:
            LayaError: queue full (429), model failed or node draining (503).
        """
        ...

    def target_load(self, name: str) -> TargetLoad:
        """How busy a model or an upstream is, and whether it can begin."""
        ...

    async def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> None:
        """Load a model; ``override``: although the guard advises against it, this once. Raises LayaError."""
        ...

    def undo_guard_action(self, action_id: str) -> str:
        """Take an action of the guard back; what it was, in words. Raises LayaError."""
        ...

    async def unload_model(self, name: str) -> None:
        """Unload a model. Raises LayaError."""
        ...

    async def find_models(self) -> tuple[FoundModel, ...]:
        """Models that are on this machine already."""
        ...

    async def estimate_model(self, model: ModelConfig, device: str | None) -> MemoryEstimate:
        """What the model would take against what is free on that device. Raises LayaError."""
        ...

    async def clear_cache(self, name: str) -> None:
        """Forget a model's kept answers. Raises LayaError."""
        ...

    def cancel_request(self, request_id: str) -> bool:
        """Cancel a live request; False when it is already over."""
        ...

    async def apply_config(self, config: NodeConfig, source: str) -> None:
        """Put a configuration in force. Raises ConfigError and keeps the old one."""
        ...

    async def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the configuration to its file."""
        ...

    async def diff_config(self) -> str:
        """Unified diff from the file to what saving would write. Raises LayaError."""
        ...

    async def create_api_key(self, name: str) -> str:
        """Make a key for callers and put its hash in force; returns the key, once. Raises LayaError."""
        ...

    async def revoke_api_key(self, name: str) -> None:
        """Take a key out of force. Raises LayaError."""
        ...

    async def create_admin_key(self) -> str:
        """Make a key for ``/admin`` in place of the one there was; returns it, once."""
        ...

    async def revoke_admin_key(self) -> None:
        """Take the key of ``/admin`` out of force. Raises LayaError."""
        ...

    def subscribe(self) -> AsyncIterator[Event]:
        """Events from now on (``/admin/events``)."""
        ...
