"""What a node is made of: the collaborators that the composition root passes in. Values and protocols only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from laya_desktop.config.schema import NodeConfig, ServerConfig
    from laya_desktop.node.forecast import Forecaster
    from laya_desktop.node.model_tools import ModelTools
    from laya_desktop.node.node import Node
    from laya_desktop.node.replicas import HandleFactory
    from laya_desktop.node.routing import RoutingTable
    from laya_desktop.node.telemetry import Telemetry
    from laya_desktop.node.upstream import UpstreamPool


class ListenerApi(Protocol):
    """The HTTP listener as the node uses it."""

    @property
    def connections(self) -> int:
        """Open connections."""
        ...

    async def start(self, gateway: Node, host: str, port: int) -> int:
        """Listen; returns the port. Raises LayaError when the port is taken."""
        ...

    def check_settings(self, server: ServerConfig) -> None:
        """Raises LayaError where the settings may not come into force on this address."""
        ...

    async def warm_up(self, table: RoutingTable) -> None:
        """Make the first request as fast as the next. Never raises."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Stop accepting; running answers get ``grace_s`` to finish."""
        ...


@dataclass(frozen=True, slots=True)
class Overrides:
    """Flags of the command line: they win over the file and are never written to it."""

    host: str | None = None
    port: int | None = None
    log_level: str | None = None
    mem_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class NodeParts:
    """Collaborators, built by ``service``."""

    make_handle: HandleFactory
    make_listener: Callable[[], ListenerApi]
    tools: ModelTools
    telemetry: Telemetry
    forecaster: Forecaster
    executor: Executor
    upstreams: Callable[[NodeConfig], UpstreamPool]
    on_log_level: Callable[[str], None]
