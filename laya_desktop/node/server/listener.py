"""Opening and closing the node's address. Runs on the node's loop; parses nothing and routes nothing."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.server.app import App
from laya_desktop.node.server.faults import STOPPING
from laya_desktop.node.server.hub import Hub
from laya_desktop.node.server.protocol import HttpConnection
from laya_desktop.node.server.rehearsal import rehearse
from laya_desktop.node.server.security import is_loopback, require_key_beyond_loopback

if TYPE_CHECKING:
    from laya_desktop.config.schema import ServerConfig
    from laya_desktop.node.routing import RoutingTable
    from laya_desktop.node.server.gateway import Gateway

BACKLOG = 1024
CUT_S = 0.5
"""How long answers that outlive the grace get to say that they were cut."""
PORTS_TRIED = 50

_Address = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]


class Listener:
    """One listening address and its connections. ``start`` once, then ``stop`` once."""

    def __init__(self) -> None:
        self._hub: Hub | None = None
        self._servers: list[asyncio.Server] = []
        self._host = ""
        self._loopback = True

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._hub.connections) if self._hub else 0

    @property
    def requests_total(self) -> int:
        """Requests since the start, refused ones too."""
        return self._hub.requests_total if self._hub else 0

    async def start(self, gateway: Gateway, host: str, port: int) -> int:
        """Listen; returns the port in use (``port`` 0 takes a free one).

        Raises:
            LayaError: the port is taken, the address is not this machine's, or it is reachable from the network and
                no key is set.
        """
        addresses = await _resolve(host, port)
        loopback = all(is_loopback(address[0]) for _, address in addresses)
        require_key_beyond_loopback(gateway.config.server, host, loopback=loopback)
        self._host, self._loopback = host, loopback
        sockets = _bind(addresses, host)
        hub = Hub(_Settings(gateway), gateway.metrics.count_response)
        app = App(gateway, hub, host, loopback=loopback)
        loop = asyncio.get_running_loop()
        try:
            for sock in sockets:
                server = await loop.create_server(lambda: HttpConnection(hub, app), sock=sock, backlog=BACKLOG)
                self._servers.append(server)
        except OSError as error:
            for sock in sockets:
                sock.close()
            raise _bind_error(error, host, port) from error
        hub.start()
        self._hub = hub
        return int(sockets[0].getsockname()[1])

    async def warm_up(self, table: RoutingTable) -> None:
        """Rehearse the request path, so that the first request is as fast as the next. A few milliseconds."""
        await rehearse(table)

    def check_settings(self, server: ServerConfig) -> None:
        """Settings that are about to come into force leave this address open to nobody who has no key.

        Raises:
            LayaError: with code ``key_required``.
        """
        if self._hub is not None:
            require_key_beyond_loopback(server, self._host, loopback=self._loopback)

    async def stop(self, grace_s: float) -> None:
        """Stop accepting; answers under way get ``grace_s`` seconds, then they are cut. Idempotent."""
        hub = self._hub
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        if hub is None:
            return
        hub.draining = True
        for connection in tuple(hub.connections):
            connection.drain()
        if not await hub.wait_empty(grace_s):
            for connection in tuple(hub.connections):
                connection.cancel(STOPPING)
            if not await hub.wait_empty(CUT_S):
                for connection in tuple(hub.connections):
                    connection.abort()
                await hub.wait_empty(CUT_S)
        hub.close()
        for server in servers:
            await server.wait_closed()


class _Settings:
    """The server's settings as they are now, whatever configuration is in force."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def server(self) -> ServerConfig:
        """In force."""
        return self._gateway.config.server


async def _resolve(host: str, port: int) -> list[_Address]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise LayaError(
            f"The address '{host}' is unknown on this machine ({error.strerror or error}).",
            hint="Set server.host to 127.0.0.1, or to an address of this machine.",
            code="unknown_host",
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))  # type: ignore[misc]


def _bind(addresses: list[_Address], host: str) -> list[socket.socket]:
    """Bind every address of the host on one port; a family that this machine lacks is left out."""
    sockets: list[socket.socket] = []
    port = addresses[0][1][1]
    try:
        for family, address in addresses:
            try:
                sock = _bind_one(family, (address[0], port, *address[2:]))
            except OSError as error:
                if sockets and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    continue
                raise
            sockets.append(sock)
            port = sock.getsockname()[1]
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise _bind_error(error, host, port) from error
    return sockets


def _bind_one(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # there, SO_REUSEADDR would let two programs share the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _bind_error(error: OSError, host: str, port: int) -> LayaError:
    if error.errno == errno.EADDRINUSE:
        free = _free_port_after(host, port)
        other = f"Set server.port to {free}" if free else "Set server.port to another port"
        return LayaError(
            f"Port {port} is taken on {host}.", hint=f"{other}, or stop the program that uses it.", code="port_taken"
        )
    if error.errno == errno.EACCES:
        return LayaError(
            f"This user may not listen on port {port}.", hint="Set server.port above 1023.", code="port_forbidden"
        )
    return LayaError(
        f"Cannot listen on {host} port {port}: {error.strerror or error}.",
        hint="Set server.host to 127.0.0.1, or to an address of this machine.",
        code="cannot_listen",
    )


def _free_port_after(host: str, port: int) -> int | None:
    """The next port on which nobody listens, or None after a few tries."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port + 1, min(port + 1 + PORTS_TRIED, 65536)):
        try:
            _bind_one(family, (host, candidate)).close()
        except OSError:
            continue
        return candidate
    return None
