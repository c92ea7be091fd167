"""The OpenAI API: which operation a path names, which target serves it, and handing it over. Runs on the node's loop.

A route decides its target; the body's ``model`` decides only where no route is in the way. Decisions that need the
head alone are taken before the body is read, so that a wrong path is refused without it. Routing latency ends here,
when a request has been handed to a model's queue or to an upstream's client.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from laya_desktop.config.schema import ModelConfig, RouteConfig, UpstreamConfig
from laya_desktop.errors import LayaError, near
from laya_desktop.node.balance import Balancer
from laya_desktop.node.routing import UNREAD, NeedModel
from laya_desktop.node.server import wire
from laya_desktop.node.server.caching import cache_mode, caller_of
from laya_desktop.node.server.faults import MethodNotAllowedError, invalid
from laya_desktop.node.server.handover import Handover, Job
from laya_desktop.node.server.operations import (
    ANSWERED,
    ANTHROPIC,
    Operation,
    Prepared,
    operation_of,
    operation_of_body,
    prepare,
)
from laya_desktop.node.server.wire_anthropic import error_body
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.routing import Decision
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway

Plan = Callable[["Exchange"], None]
_SERVED = ANSWERED | {Operation.BARE}
"""What models of our own may be asked for: a bare path is told by its body."""
_NAMED = (
    Operation.CHAT,
    Operation.COMPLETION,
    Operation.EMBEDDINGS,
    Operation.RESPONSES,
    Operation.MESSAGES,
)

DEFAULT_TIMEOUT_S = float(RouteConfig.model_fields["timeout"].default)
ROUTES_NAMED = 20
STARTED_UNIX_S = int(time.time())


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request's head says.

    Attributes:
        path: as the client wrote it.
        query: the same, without ``?``.
        api_path: what the route left of the path.
        operation: what that names; None: nothing that this node knows.
        route: None where the body's ``model`` decided.
    """

    path: str
    query: str
    api_path: str
    operation: Operation | None
    route: RouteConfig | None


class OpenAiApi:
    """Plans and hands over every request that is not the node's own."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._balancer = Balancer()

    def plan(self, exchange: Exchange, path: str, query: str) -> Plan:
        """What to do with the request once it is complete; raises LayaError to refuse it on its head."""
        decision = self._gateway.table.decide(exchange.method, path, exchange.host, exchange.headers, UNREAD)
        if isinstance(decision, NeedModel):
            return partial(self._late, path, query)
        return self._plan_for(exchange, path, query, decision)

    def _late(self, path: str, query: str, exchange: Exchange) -> None:
        """A rule asks for the body's model: decide again, with it."""
        try:
            model = wire.model_of(_body(exchange)) if exchange.body else None
        except LayaError:
            model = None  # whichever target takes it says what is wrong with the body
        decision = self._gateway.table.decide(exchange.method, path, exchange.host, exchange.headers, model)
        assert not isinstance(decision, NeedModel)
        self._plan_for(exchange, path, query, decision)(exchange)

    def _plan_for(self, exchange: Exchange, path: str, query: str, decision: Decision | None) -> Plan:
        if decision is None:
            return self._plan_standard(exchange, path, query)
        route, rest = decision.route, decision.stripped_path
        exchange.route, exchange.extra_headers = route.name, route.response_headers
        names = route.all_names
        upstreams = tuple(name for name in names if self._is_upstream(name))
        found = operation_of(rest)
        operation, model_id = found or (None, "")
        if operation in ANTHROPIC:
            exchange.error_body = error_body
        ask = Ask(path, query, rest, operation, route)
        if len(upstreams) == len(names):
            return partial(self._serve, ask, names)
        if operation in (Operation.MODELS, Operation.MODEL):
            _require_method(exchange.method, path, "GET", "HEAD")
            return partial(self._models, list(route.target_names), model_id)
        if upstreams and (operation not in _SERVED or exchange.method != "POST"):
            return partial(self._serve, ask, upstreams)  # no model of ours can answer it
        if operation is None:
            raise _no_such_part(route, rest)
        _require_method(exchange.method, path, "POST")
        return partial(self._serve, ask, names)

    def _plan_standard(self, exchange: Exchange, path: str, query: str) -> Plan:
        found = operation_of(path)
        if found is None or found[0] is Operation.BARE:
            raise self._unknown_path(path)
        operation, model_id = found
        if operation in ANTHROPIC:
            exchange.error_body = error_body
        if operation in (Operation.MODELS, Operation.MODEL):
            _require_method(exchange.method, path, "GET", "HEAD")
            return partial(self._models, None, model_id)
        _require_method(exchange.method, path, "POST")
        return partial(self._by_model, path, query, operation)

    def _by_model(self, path: str, query: str, operation: Operation, exchange: Exchange) -> None:
        body = _body(exchange)
        target, upstream_model = self._resolve(wire.model_of(body))
        if isinstance(target, UpstreamConfig):
            changed = {**body, "model": upstream_model} if upstream_model else dict(body)
            if not upstream_model:
                changed.pop("model", None)
            exchange.replace_body(msgspec.json.encode(changed))
        self._serve(Ask(path, query, operation.value, operation, None), (target.name,), exchange)

    def _resolve(self, name: str | None) -> tuple[ModelConfig | UpstreamConfig, str]:
        """The target that a body's ``model`` names; ``UPSTREAM/MODEL`` names a model of an upstream."""
        config = self._gateway.config
        if name is None:
            only: tuple[ModelConfig | UpstreamConfig, ...] = (*config.models, *config.upstreams)
            if len(only) == 1:
                return only[0], ""
            raise invalid("model is missing.", "model", hint=self._available(), code="missing_parameter")
        found = config.model_called(name) or config.upstream(name)
        if found is not None:
            return found, ""
        first, _, rest = name.partition("/")
        upstream = config.upstream(first)
        if upstream is not None and rest:
            return upstream, rest
        raise self._unknown_model(name)

    # -- handing over

    def _serve(self, ask: Ask, names: tuple[str, ...], exchange: Exchange) -> None:
        """Hand the request to the first of the named targets that takes it."""
        route, operation = ask.route, ask.operation
        order = self._order(route, names)
        record = self._gateway.open_record(exchange.method, ask.path, route.name if route else None, order[0])
        record.cache_mode, record.caller = cache_mode(exchange.headers), caller_of(exchange.headers)
        exchange.request_id = record.request_id
        try:
            if operation is Operation.BARE and exchange.method == "POST":
                operation = operation_of_body(_body(exchange))
            if operation not in ANSWERED:
                order = [name for name in order if self._is_upstream(name)]
            Handover(self._gateway, exchange, record, self._job(ask, operation, exchange, record), order).begin()
        except Exception as error:
            record.finish(Phase.FAILED, status=getattr(error, "status", 500), error=str(error))
            raise

    def _order(self, route: RouteConfig | None, names: tuple[str, ...]) -> list[str]:
        """The targets, the one to try first in front."""
        if route is None or len(names) == 1:
            return list(names)
        shares = [target for target in route.weighted if target.name in names]
        others = [name for name in route.fallback if name in names]
        if len(shares) < 2:
            return [target.name for target in shares] + others
        return self._balancer.order(route.name, shares, self._gateway.target_load) + others

    @staticmethod
    def _job(ask: Ask, operation: Operation | None, exchange: Exchange, record: RequestRecord) -> Job:
        api_path = ask.api_path
        if api_path in ("", "/") and operation is not None:
            api_path = operation.value

        def prepared() -> Prepared:
            assert operation is not None
            return prepare(operation, record.request_id, _body(exchange))

        return Job(
            api_path=f"{api_path}?{ask.query}" if ask.query else api_path,
            timeout_s=ask.route.timeout if ask.route else DEFAULT_TIMEOUT_S,
            prepare=prepared,
        )

    def _is_upstream(self, name: str) -> bool:
        return self._gateway.config.upstream(name) is not None

    # -- models

    def _models(self, only: list[str] | None, model_id: str, exchange: Exchange) -> None:
        config = self._gateway.config
        names = list(only if only is not None else config.target_names)
        names += [alias for model in config.models if model.name in names for alias in model.aliases]
        if model_id and model_id not in names:
            raise self._unknown_model(model_id)
        exchange.routed(self._gateway.metrics, exchange.route)
        if model_id:
            exchange.respond_json(self._model_object(model_id))
        else:
            exchange.respond_json({"object": "list", "data": [self._model_object(n) for n in names]})

    def _model_object(self, name: str) -> dict[str, Any]:
        owner = "upstream" if self._is_upstream(name) else "laya-desktop"
        shown: dict[str, Any] = {"id": name, "object": "model", "created": STARTED_UNIX_S, "owned_by": owner}
        model = self._gateway.config.model_called(name)
        if model is not None and model.name != name:
            shown["alias_of"] = model.name
        snapshot = self._gateway.snapshot.model(model.name) if model is not None else None
        if snapshot is not None:
            shown["state"] = snapshot.state
        return shown

    # -- errors

    def _available(self) -> str:
        names = self._gateway.config.target_names
        return f"Available: {', '.join(names)}." if names else "Add a model to the configuration first."

    def _unknown_model(self, name: str) -> LayaError:
        guess = near(name, self._gateway.config.target_names)
        return LayaError(
            f"No model '{name}'.{guess}", hint=self._available(), code="model_not_found", status=404, param="model"
        )

    def _unknown_path(self, path: str) -> LayaError:
        routes = [_shown(r) for r in self._gateway.config.routes if r.enabled]
        if len(routes) > ROUTES_NAMED:
            routes[ROUTES_NAMED:] = [f"and {len(routes) - ROUTES_NAMED} more routes"]
        known = ", ".join(
            ["/health", "/metrics", "/v1/models", *(f"/v1{o.value}" for o in _NAMED), "/admin/…", *routes]
        )
        return LayaError(
            f"Nothing is served at {path}.",
            hint=f"Served: {known}. To serve this path, add a route whose prefix it begins with.",
            code="not_found",
            status=404,
        )


def _body(exchange: Exchange) -> dict[str, Any]:
    if exchange.json is None:
        exchange.json = wire.parse_json(exchange.body)
    return exchange.json


def _require_method(method: str, path: str, *allowed: str) -> None:
    if method not in allowed:
        raise MethodNotAllowedError(method, path, allowed)


def _no_such_part(route: RouteConfig, rest: str) -> LayaError:
    return LayaError(
        f"Route '{route.name}' leads to model '{route.target_names[0]}', which has nothing at {rest}.",
        hint="After the route's path, use /chat/completions, /completions, /embeddings, /responses, /messages or "
        "/models, with or without /v1.",
        code="not_found",
        status=404,
    )


def _shown(route: RouteConfig) -> str:
    return route.match.path or (f"{route.match.prefix}/…" if route.match.prefix else f"{route.match.regex}")
