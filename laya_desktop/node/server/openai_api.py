"""The OpenAI API: which operation a path names, which target serves it, and handing it over. Runs on the node's loop.

A route decides its target; the body's ``model`` decides only where no route is in the way. Decisions that need the
head alone are taken before the body is read, so that a wrong path is refused without it. Routing latency ends here,
when a request has been handed to a model's queue or to an upstream's client.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from laya_desktop.config.schema import ModelConfig, RouteConfig, UpstreamConfig
from laya_desktop.errors import LayaError, near
from laya_desktop.node.routing import UNREAD, NeedModel
from laya_desktop.node.server import wire
from laya_desktop.node.server.answering import Answer
from laya_desktop.node.server.completions import Completion
from laya_desktop.node.server.faults import MethodNotAllowedError, invalid
from laya_desktop.node.server.proxy import Forward
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Generate
    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.routing import Decision
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway

Plan = Callable[["Exchange"], None]

DEFAULT_TIMEOUT_S = float(RouteConfig.model_fields["timeout"].default)
ROUTES_NAMED = 20
STARTED_UNIX_S = int(time.time())


class Operation(StrEnum):
    """What a path asks for."""

    BARE = ""
    CHAT = "/chat/completions"
    COMPLETION = "/completions"
    EMBEDDINGS = "/embeddings"
    RESPONSES = "/responses"
    MODELS = "/models"
    MODEL = "/models/…"


_BY_PATH = {o.value: o for o in Operation if o is not Operation.MODEL}
_ANSWERED = (Operation.CHAT, Operation.COMPLETION)
_BY_FIELD = {"messages": Operation.CHAT, "prompt": Operation.COMPLETION, "input": Operation.EMBEDDINGS}


def operation_of(path: str) -> tuple[Operation, str] | None:
    """The operation of an API path, with or without ``/v1`` in front, and the model id of ``/models/ID``."""
    if path == "/v1" or path.startswith("/v1/"):
        path = path[3:]
    found = _BY_PATH.get("" if path == "/" else path)
    if found is not None:
        return found, ""
    return (Operation.MODEL, unquote(path[8:])) if path.startswith("/models/") else None


def operation_of_body(body: dict[str, Any]) -> Operation:
    """What a bare POST to a route asks for. Raises LayaError where the body does not say."""
    found = [name for name in _BY_FIELD if body.get(name) is not None]
    if len(found) != 1:
        has = f"it has {' and '.join(found)}" if found else "it has none of them"
        raise invalid(
            f"A body sent to the route's own path has exactly one of messages, prompt and input; {has}.",
            hint="Send messages for a chat or prompt for a completion.",
            code="missing_parameter",
        )
    return _BY_FIELD[found[0]]


class OpenAiApi:
    """Plans and hands over every request that is not the node's own."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

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
            return self._plan_standard(exchange.method, path, query)
        route, rest = decision.route, decision.stripped_path
        exchange.route = route.name
        if self._gateway.config.upstream(route.target) is not None:
            return partial(self._forward, path, query, rest, route)
        found = operation_of(rest)
        if found is None:
            raise _no_such_part(route, rest)
        operation, model_id = found
        if operation in (Operation.MODELS, Operation.MODEL):
            _require_method(exchange.method, path, "GET", "HEAD")
            return partial(self._models, [route.target], model_id)
        _require_method(exchange.method, path, "POST")
        _require_answered(operation)
        return partial(self._generate, path, operation, route, route.target)

    def _plan_standard(self, method: str, path: str, query: str) -> Plan:
        found = operation_of(path)
        if found is None or found[0] is Operation.BARE:
            raise self._unknown_path(path)
        operation, model_id = found
        if operation in (Operation.MODELS, Operation.MODEL):
            _require_method(method, path, "GET", "HEAD")
            return partial(self._models, None, model_id)
        _require_method(method, path, "POST")
        return partial(self._by_model, path, query, operation)

    def _by_model(self, path: str, query: str, operation: Operation, exchange: Exchange) -> None:
        body = _body(exchange)
        target, upstream_model = self._resolve(wire.model_of(body))
        if isinstance(target, UpstreamConfig):
            changed = {**body, "model": upstream_model} if upstream_model else dict(body)
            if not upstream_model:
                changed.pop("model", None)
            exchange.replace_body(msgspec.json.encode(changed))
            self._forward(path, query, operation.value, None, exchange, target.name)
            return
        _require_answered(operation)
        self._generate(path, operation, None, target.name, exchange)

    def _resolve(self, name: str | None) -> tuple[ModelConfig | UpstreamConfig, str]:
        """The target that a body's ``model`` names; ``UPSTREAM/MODEL`` names a model of an upstream."""
        config = self._gateway.config
        if name is None:
            only: tuple[ModelConfig | UpstreamConfig, ...] = (*config.models, *config.upstreams)
            if len(only) == 1:
                return only[0], ""
            raise invalid("model is missing.", "model", hint=self._available(), code="missing_parameter")
        found = config.model(name) or config.upstream(name)
        if found is not None:
            return found, ""
        first, _, rest = name.partition("/")
        upstream = config.upstream(first)
        if upstream is not None and rest:
            return upstream, rest
        raise self._unknown_model(name)

    # -- handing over

    def _generate(
        self, path: str, operation: Operation, route: RouteConfig | None, model: str, exchange: Exchange
    ) -> None:
        record = self._gateway.open_record(exchange.method, path, route.name if route else None, model)
        exchange.request_id = record.request_id
        try:
            body = _body(exchange)
            if operation is Operation.BARE:
                operation = operation_of_body(body)
                _require_answered(operation)
            request, stream, include_usage = _to_engine(operation, record.request_id, body)
            record.stream = stream
            timeout_s = route.timeout if route else DEFAULT_TIMEOUT_S
            generation = self._gateway.generate(record, model, request, timeout_s)
        except Exception as error:
            record.finish(Phase.FAILED, status=getattr(error, "status", 500), error=str(error))
            raise
        self._routed(exchange, record)
        exchange.release_body()
        shape = Completion(record.request_id, model, chat=operation is Operation.CHAT, include_usage=include_usage)
        answer = Answer(exchange, generation, record, shape)
        spawn(answer.run(stream=stream), f"answer {record.request_id}")

    def _forward(
        self,
        path: str,
        query: str,
        api_path: str,
        route: RouteConfig | None,
        exchange: Exchange,
        target: str | None = None,
    ) -> None:
        name = target or (route.target if route else "")
        record = self._gateway.open_record(exchange.method, path, route.name if route else None, name)
        exchange.request_id = record.request_id
        try:
            if api_path in ("", "/") and exchange.method == "POST":
                api_path = operation_of_body(_body(exchange)).value
            upstream = self._gateway.upstreams.get(name)
        except Exception as error:
            record.finish(Phase.FAILED, status=getattr(error, "status", 500), error=str(error))
            raise
        record.phase = Phase.PROXY
        forward = Forward(exchange, record, upstream, f"{api_path}?{query}" if query else api_path)
        timeout_s = route.timeout if route else DEFAULT_TIMEOUT_S
        spawn(forward.run(timeout_s, lambda: self._routed(exchange, record)), f"forward {record.request_id}")

    def _routed(self, exchange: Exchange, record: RequestRecord) -> None:
        exchange.routed(self._gateway.metrics, record.route)
        record.routing_us = exchange.routing_us

    # -- models

    def _models(self, only: list[str] | None, model_id: str, exchange: Exchange) -> None:
        names = only if only is not None else list(self._gateway.config.target_names)
        if model_id and model_id not in names:
            raise self._unknown_model(model_id)
        exchange.routed(self._gateway.metrics, exchange.route)
        if model_id:
            exchange.respond_json(self._model_object(model_id))
        else:
            exchange.respond_json({"object": "list", "data": [self._model_object(n) for n in names]})

    def _model_object(self, name: str) -> dict[str, Any]:
        owner = "upstream" if self._gateway.config.upstream(name) is not None else "laya-desktop"
        shown: dict[str, Any] = {"id": name, "object": "model", "created": STARTED_UNIX_S, "owned_by": owner}
        snapshot = self._gateway.snapshot.model(name)
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
            ["/health", "/metrics", "/v1/models", "/v1/chat/completions", "/v1/completions", "/admin/…", *routes]
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


def _to_engine(operation: Operation, request_id: str, body: dict[str, Any]) -> tuple[Generate, bool, bool]:
    if operation is Operation.CHAT:
        chat = wire.parse_chat(body)
        return wire.chat_to_engine(request_id, chat), bool(chat.stream), chat.include_usage
    text = wire.parse_completion(body)
    return wire.completion_to_engine(request_id, text), bool(text.stream), text.include_usage


def _require_method(method: str, path: str, *allowed: str) -> None:
    if method not in allowed:
        raise MethodNotAllowedError(method, path, allowed)


def _require_answered(operation: Operation) -> None:
    if operation in _ANSWERED or operation is Operation.BARE:
        return
    raise LayaError(
        f"This node does not serve {operation.value} with its own models yet.",
        hint="Use /chat/completions or /completions, or send it to an upstream that serves it.",
        code="not_implemented",
        status=501,
    )


def _no_such_part(route: RouteConfig, rest: str) -> LayaError:
    return LayaError(
        f"Route '{route.name}' leads to model '{route.target}', which has nothing at {rest}.",
        hint="After the route's path, use /chat/completions, /completions or /models, with or without /v1.",
        code="not_found",
        status=404,
    )


def _shown(route: RouteConfig) -> str:
    return route.match.path or (f"{route.match.prefix}/…" if route.match.prefix else f"{route.match.regex}")
