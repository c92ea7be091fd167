"""``/admin``: the same commands and pictures that the window uses, as JSON. Runs on the node's loop.

Who may call it is ``security``'s matter. Every command is the gateway's; nothing here changes state itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import msgspec
from pydantic import BaseModel, ValidationError

from laya_desktop.config.masking import masked, restore
from laya_desktop.config.problems import explain
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import ConfigError, LayaError, near
from laya_desktop.node.server import wire
from laya_desktop.node.server.answering import EVENT_STREAM, STREAM_HEADERS
from laya_desktop.node.server.exchange import JSON, ClientGoneError
from laya_desktop.node.server.faults import MethodNotAllowedError
from laya_desktop.node.tasks import spawn

if TYPE_CHECKING:
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway

Handler = Callable[["Exchange", str], Awaitable[None]]

HEARTBEAT_S = 15.0
NOT_KEPT = (("Cache-Control", "no-store"),)
"""An answer that holds a key is shown once and kept by nobody on the way."""
DIFF = "text/x-diff; charset=utf-8"

_T = TypeVar("_T")


class LoadBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /admin/models/{name}/load``."""

    device: str | None = None
    override: bool = False
    """Load although the guard advises against it, this once."""


class EstimateBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /admin/models/{name}/estimate``; settings left out are the model's own."""

    device: str | None = None
    settings: dict[str, object] = {}
    """Of the model, as in the configuration, e.g. ``{"max_seq_len": 8192}``."""


class SaveBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /admin/save``; the file is the node's own, a caller cannot name another."""

    overwrite: bool = False


class KeyBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /admin/keys``."""

    name: str


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /admin/routes/explain``."""

    path: str
    method: str = "POST"
    headers: dict[str, str] = {}
    model: str | None = None


class AdminApi:
    """Commands and pictures of the node."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._fixed: dict[str, dict[str, Handler]] = {
            "snapshot": {"GET": self._snapshot},
            "events": {"GET": self._events},
            "guard": {"GET": self._get_guard},
            "config": {"GET": self._get_config, "PUT": self._put_config},
            "diff": {"GET": self._diff},
            "save": {"POST": self._save},
            "models/found": {"GET": self._found},
            "routes/explain": {"POST": self._explain},
            "keys": {"POST": self._create_key},
            "admin-key": {"POST": self._create_admin_key, "DELETE": self._revoke_admin_key},
        }
        self._named: dict[tuple[str, str], Handler] = {
            ("models", "load"): self._load,
            ("models", "estimate"): self._estimate,
            ("models", "unload"): self._unload,
            ("models", "cache/clear"): self._clear_cache,
            ("requests", "cancel"): self._cancel,
            ("guard", "undo"): self._undo,
            ("keys", "revoke"): self._revoke_key,
        }

    def plan(self, exchange: Exchange, path: str) -> Callable[[Exchange], None]:
        """What to do with the request once it is complete. Raises LayaError (404, 405) on its head."""
        rest = path.removeprefix("/admin").lstrip("/")
        name = ""
        methods = self._fixed.get(rest)
        if methods is None:
            kind, _, tail = rest.partition("/")
            name, _, verb = tail.rpartition("/")
            if tail.endswith("/cache/clear"):
                name, verb = tail.removesuffix("/cache/clear"), "cache/clear"
            handler = self._named.get((kind, verb))
            if handler is None or not name:
                raise self._unknown(path)
            methods = {"POST": handler}
        chosen = methods.get("GET" if exchange.method == "HEAD" else exchange.method)
        if chosen is None:
            raise MethodNotAllowedError(exchange.method, path, methods)
        return partial(self._start, chosen, unquote(name))

    def _start(self, handler: Handler, name: str, exchange: Exchange) -> None:
        task = spawn(_guard(handler, exchange, name), f"admin {exchange.target.partition('?')[0]}")
        if handler == self._events:

            def stop(_reason: str) -> None:
                task.cancel()

            exchange.on_gone = stop

    def _unknown(self, path: str) -> LayaError:
        known = [*(f"/admin/{p}" for p in self._fixed), *(f"/admin/{k}/…/{v}" for k, v in self._named)]
        return LayaError(
            f"Nothing is served at {path}.{near(path, known)}",
            hint=f"Served: {', '.join(known)}.",
            code="not_found",
            status=404,
        )

    # -- pictures

    async def _snapshot(self, exchange: Exchange, _name: str) -> None:
        exchange.respond(200, encode(self._gateway.snapshot))

    async def _get_guard(self, exchange: Exchange, _name: str) -> None:
        exchange.respond(200, encode(self._gateway.snapshot.guard))

    async def _events(self, exchange: Exchange, _name: str) -> None:
        exchange.begin(200, EVENT_STREAM, STREAM_HEADERS)
        exchange.send(b": events from now on\n\n")
        events = aiter(self._gateway.subscribe())
        pending: asyncio.Task[Any] | None = None
        try:
            while True:
                pending = pending or spawn(_next(events), "admin next event")
                done, _ = await asyncio.wait({pending}, timeout=HEARTBEAT_S)
                if done:
                    event, pending = pending.result(), None
                    if event is None:
                        break
                    exchange.send(b"event: %b\ndata: %b\n\n" % (type(event).__name__.encode(), encode(event)))
                else:
                    exchange.send(b": still here\n\n")
                await exchange.drain()
            exchange.end()
        finally:
            if pending is not None:
                pending.cancel()
                await asyncio.wait({pending})
            if hasattr(events, "aclose"):
                await events.aclose()

    async def _get_config(self, exchange: Exchange, _name: str) -> None:
        exchange.respond(200, encode(self._gateway.config))

    async def _diff(self, exchange: Exchange, _name: str) -> None:
        exchange.respond(200, (await self._gateway.diff_config()).encode(), DIFF)

    async def _found(self, exchange: Exchange, _name: str) -> None:
        exchange.respond(200, encode(await self._gateway.find_models()))

    # -- commands

    async def _load(self, exchange: Exchange, name: str) -> None:
        body = _optional(exchange, LoadBody)
        self._require_model(name)
        await self._gateway.load_model(name, body.device, override=body.override)
        exchange.respond_json({"model": name, "loaded": True})

    async def _estimate(self, exchange: Exchange, name: str) -> None:
        body = _optional(exchange, EstimateBody)
        self._require_model(name)
        model = next(m for m in self._gateway.config.models if m.name == name)
        try:
            wanted = ModelConfig.model_validate(model.model_dump() | body.settings)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
            raise LayaError(f"Not a valid model setting: {faults}", code="invalid_config", status=400) from None
        exchange.respond(200, encode(await self._gateway.estimate_model(wanted, body.device)))

    async def _unload(self, exchange: Exchange, name: str) -> None:
        self._require_model(name)
        await self._gateway.unload_model(name)
        exchange.respond_json({"model": name, "loaded": False})

    async def _clear_cache(self, exchange: Exchange, name: str) -> None:
        self._require_model(name)
        await self._gateway.clear_cache(name)
        exchange.respond_json({"model": name, "cleared": True})

    async def _cancel(self, exchange: Exchange, request_id: str) -> None:
        exchange.respond_json({"request_id": request_id, "cancelled": self._gateway.cancel_request(request_id)})

    async def _undo(self, exchange: Exchange, action_id: str) -> None:
        exchange.respond_json({"action_id": action_id, "undone": self._gateway.undo_guard_action(action_id)})

    async def _put_config(self, exchange: Exchange, _name: str) -> None:
        body = wire.parse_json(exchange.body)
        try:
            config = NodeConfig.model_validate(body)
        except ValidationError as error:
            raise ConfigError("body", explain(error, NodeConfig)) from None
        await self._gateway.apply_config(restore(config, self._gateway.config), "admin")
        exchange.respond(200, encode(self._gateway.config))

    async def _save(self, exchange: Exchange, _name: str) -> None:
        body = _optional(exchange, SaveBody)
        path = await self._gateway.save_config(overwrite=body.overwrite)
        exchange.respond_json({"path": str(path)})

    async def _explain(self, exchange: Exchange, _name: str) -> None:
        body = wire.convert(wire.parse_json(exchange.body), ExplainBody)
        exchange.respond(200, encode(self._gateway.table.explain(body.method, body.path, body.headers, body.model)))

    async def _create_key(self, exchange: Exchange, _name: str) -> None:
        name = wire.convert(wire.parse_json(exchange.body), KeyBody).name
        key = await self._gateway.create_api_key(name)
        exchange.respond_json({"name": name, "key": key}, headers=NOT_KEPT)

    async def _revoke_key(self, exchange: Exchange, name: str) -> None:
        await self._gateway.revoke_api_key(name)
        exchange.respond_json({"name": name, "revoked": True})

    async def _create_admin_key(self, exchange: Exchange, _name: str) -> None:
        exchange.respond_json({"key": await self._gateway.create_admin_key()}, headers=NOT_KEPT)

    async def _revoke_admin_key(self, exchange: Exchange, _name: str) -> None:
        await self._gateway.revoke_admin_key()
        exchange.respond_json({"revoked": True})

    def _require_model(self, name: str) -> None:
        names = [m.name for m in self._gateway.config.models]
        if name not in names:
            raise LayaError(
                f"No model '{name}'.{near(name, names)}",
                hint=f"Configured: {', '.join(names) or 'none'}.",
                code="model_not_found",
                status=404,
            )


def encode(value: Any) -> bytes:
    """JSON of snapshots, events and the configuration."""
    return msgspec.json.encode(value, enc_hook=_encode_model)


def _encode_model(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return masked(value) if isinstance(value, NodeConfig) else value.model_dump(mode="json")
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _optional(exchange: Exchange, kind: type[_T]) -> _T:
    return wire.convert(wire.parse_json(exchange.body) if exchange.body else {}, kind)


async def _next(events: Any) -> Any:
    return await anext(events, None)


async def _guard(handler: Handler, exchange: Exchange, name: str) -> None:
    """Turn what a handler raises into an answer."""
    try:
        await handler(exchange, name)
    except ConfigError as error:
        body = error.to_wire()
        body["error"]["problems"] = [{"key": p.key, "message": p.message} for p in error.problems]
        exchange.respond(error.status, msgspec.json.encode(body), JSON)
    except LayaError as error:
        exchange.fail(error)
    except ClientGoneError:
        exchange.cut()
    except asyncio.CancelledError:
        exchange.cut()
    except Exception as error:
        exchange.fail(LayaError(f"The node failed on this request ({type(error).__name__}).", hint="See its log."))
        raise
