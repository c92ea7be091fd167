"""What every request passes, in this order: Host, Origin, key, then the node's own paths, then routes. Node's loop.

The node's own paths (``/health``, ``/metrics``, ``/admin``) win over every route, so that no route can lock their
user out. ``/health`` needs no key and is answered inside ``data_received``.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.routing import normalise_path
from laya_desktop.node.server import wire
from laya_desktop.node.server.admin_api import AdminApi
from laya_desktop.node.server.faults import MethodNotAllowedError, invalid
from laya_desktop.node.server.metrics_export import CONTENT_TYPE, render
from laya_desktop.node.server.openai_api import OpenAiApi
from laya_desktop.node.server.security import Policy

if TYPE_CHECKING:
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway
    from laya_desktop.node.server.hub import Hub

_HEALTH_BODY = b'{"status":"ok"}'
_HEALTH = (
    b"HTTP/1.1 200 OK\r\n%%bContent-Type: application/json\r\nContent-Length: %d\r\n"
    b"X-Request-Id: %%b%%08x\r\nX-Laya-Routing-Us: %%.1f\r\n\r\n%b" % (len(_HEALTH_BODY), _HEALTH_BODY)
)
_READING = ("GET", "HEAD")


class App:
    """The application of one listener."""

    def __init__(self, gateway: Gateway, hub: Hub, bound_host: str, *, loopback: bool) -> None:
        self._gateway = gateway
        self._hub = hub
        self._bound_host = bound_host
        self._loopback = loopback
        wire.warm_up()
        self._api = OpenAiApi(gateway)
        self._admin = AdminApi(gateway)
        self._settings = gateway.config.server
        self._policy = Policy(self._settings, bound_host, loopback=loopback)

    def on_head(self, exchange: Exchange) -> None:
        """Decide what the head alone decides. Raises LayaError to refuse before the body is read."""
        policy = self._policy if self._gateway.config.server is self._settings else self._renew_policy()
        policy.check_host(exchange.headers, exchange.conn, http10=exchange.http10)
        target = exchange.target
        if target == "/health" and exchange.method in _READING:
            exchange.plan = self._health
            return
        path, query = _path_of(exchange)
        if path == "/health":
            if exchange.method not in _READING:
                raise MethodNotAllowedError(exchange.method, path, _READING)
            exchange.plan = self._health
            return
        if path == "/admin" or path.startswith("/admin/"):
            policy.check_origin(exchange.headers, own=True)
            policy.check_admin(exchange.headers, exchange.conn.peer_address)
            exchange.plan = self._admin.plan(exchange, path)
        elif path == "/metrics":
            policy.check_origin(exchange.headers, own=True)
            policy.check_metrics(exchange.headers)
            if exchange.method not in _READING:
                raise MethodNotAllowedError(exchange.method, path, _READING)
            exchange.plan = self._metrics
        else:
            if policy.has_origins and self._answer_preflight(policy, exchange):
                return
            policy.check_origin(exchange.headers)
            policy.check_key(exchange.headers)
            exchange.plan = self._api.plan(exchange, path, query)

    def _answer_preflight(self, policy: Policy, exchange: Exchange) -> bool:
        """A browser asks before it sends, and without the key: that is answered first."""
        exchange.cors = policy.cors_lines(exchange.headers)
        asked = policy.preflight(exchange.method, exchange.headers)
        if asked is None:
            return False
        exchange.plan = partial(_preflight, asked)
        return True

    def on_request(self, exchange: Exchange) -> None:
        """Carry out what was decided."""
        try:
            if exchange.refusal is not None:
                raise exchange.refusal
            assert exchange.plan is not None
            exchange.plan(exchange)
        except LayaError as error:
            exchange.fail(error)

    def repeat(self, read_ns: int) -> bytes | None:
        """The answer to a request whose bytes were answered before; None where it must be parsed again."""
        if self._gateway.config.server is not self._settings:
            return None
        us = (perf_counter_ns() - read_ns) / 1000
        self._gateway.metrics.record_routing(None, us)
        return _HEALTH % (self._hub.date_bytes, self._hub.id_prefix, next(self._hub.ids), us)

    def _health(self, exchange: Exchange) -> None:
        exchange.routed(self._gateway.metrics, None)
        exchange.respond(200, _HEALTH_BODY)
        exchange.repeatable = (
            exchange.keep_alive
            and not exchange.http10
            and exchange.method == "GET"
            and "x-request-id" not in exchange.headers
            and self._policy.knows(exchange.host)
        )

    def _metrics(self, exchange: Exchange) -> None:
        text = render(self._gateway.snapshot, self._gateway.metrics, len(self._hub.connections))
        exchange.respond(200, text.encode(), CONTENT_TYPE)

    def _renew_policy(self) -> Policy:
        self._hub.repeats.clear()
        self._settings = self._gateway.config.server
        self._policy = Policy(self._settings, self._bound_host, loopback=self._loopback)
        return self._policy


def _preflight(headers: list[tuple[str, str]], exchange: Exchange) -> None:
    exchange.respond(204, b"", None, headers)


def _path_of(exchange: Exchange) -> tuple[str, str]:
    target = exchange.target
    try:
        path, query = normalise_path(target)
    except ValueError as error:
        raise invalid(str(error), hint="Send a path that starts with '/'.", code="bad_path") from None
    if not target.startswith("/") and "://" in target:
        authority = target.partition("://")[2].partition("/")[0].partition("?")[0]
        if authority.lower() != exchange.host.lower():
            raise invalid("The request's address and its Host header differ.", hint="Send one name.", code="bad_host")
    return path, query
