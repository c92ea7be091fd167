"""All upstreams of a configuration, by name. Owned by the node's loop; the clients themselves are in upstream_client.

It opens no connection before one is asked for, and begins health checks only once ``update`` runs on the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from laya_desktop.node import upstream_errors as errors
from laya_desktop.node.upstream_client import Effects, Upstream, UpstreamResponse

if TYPE_CHECKING:
    from laya_desktop.config.schema import NodeConfig
    from laya_desktop.state.snapshot import UpstreamSnapshot

__all__ = ["Effects", "Upstream", "UpstreamPool", "UpstreamResponse"]


def _no_keyring(_: str) -> str | None:
    return None


class UpstreamPool:
    """The clients; an upstream whose configuration did not change keeps its connections over an update."""

    def __init__(
        self,
        config: NodeConfig,
        resolve_key: Callable[[str], str | None] = _no_keyring,
        make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        *,
        silence_s: float = 120.0,
    ) -> None:
        """See ``Effects`` for the arguments."""
        self._effects = Effects(resolve_key, make_tls, silence_s)
        self._upstreams: dict[str, Upstream] = {}
        self._leaving: list[Upstream] = []
        self._closed = False
        self._adopt(config)

    def update(self, config: NodeConfig) -> None:
        """Put a configuration in force and begin the health checks. On the loop."""
        self._adopt(config)
        for upstream in self._upstreams.values():
            upstream.watch()

    def get(self, name: str) -> Upstream:
        """The client of an upstream.

        Raises:
            LayaError: 503 where it was removed meanwhile or the node is stopping.
        """
        upstream = self._upstreams.get(name)
        if upstream is None or self._closed:
            raise errors.gone(name)
        return upstream

    def snapshot(self) -> tuple[UpstreamSnapshot, ...]:
        """Health of all, in file order."""
        return tuple(upstream.snapshot() for upstream in self._upstreams.values())

    async def close(self) -> None:
        """Close every connection, running answers too. Idempotent."""
        self._closed = True
        await asyncio.gather(*(u.close() for u in (*self._upstreams.values(), *self._leaving)))

    def _adopt(self, config: NodeConfig) -> None:
        before = self._upstreams
        self._upstreams = {}
        for item in config.upstreams:
            known = before.get(item.name)
            kept = known if known is not None and known.config == item else None
            self._upstreams[item.name] = kept or Upstream(item, self._effects)
        gone = [u for u in before.values() if u not in self._upstreams.values()]
        for upstream in gone:
            upstream.retire()
        self._leaving = [u for u in (*self._leaving, *gone) if u.snapshot().in_flight]
