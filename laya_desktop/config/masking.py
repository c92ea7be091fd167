"""A configuration as it may leave the process, and the way back. Pure; any thread.

Every secret becomes ``masked:`` and a mark that is bound to where the secret is used: an upstream's key to that
upstream's url. A configuration that comes back with marks gets the stored secrets again, but only in the place they
were read from, so that nobody can have a key sent somewhere else by changing the url around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from laya_desktop.config.frozen import CREDENTIAL_HEADERS, HIDDEN
from laya_desktop.config.keys import MASK, ApiKey, fingerprint, is_masked
from laya_desktop.config.schema import NodeConfig, RouteConfig, UpstreamConfig
from laya_desktop.errors import ConfigError, Problem
from laya_desktop.logs.redact import redact

_MARK_DIGITS = 32
_AGAIN = "This is a masked secret that was not read from here. Write it again, or read the configuration again."


def masked(config: NodeConfig) -> dict[str, Any]:
    """The configuration as plain data, without secrets."""
    data = config.model_dump(mode="json")
    server = data["server"]
    server["api_keys"] = [_masked_key(key) for key in config.server.api_keys]
    if config.server.admin_key is not None:
        server["admin_key"] = _masked_key(config.server.admin_key)
    for item, upstream in zip(data["upstreams"], config.upstreams, strict=True):
        item["api_key"] = _upstream_mark(upstream, upstream.api_key)
    for item, route in zip(data["routes"], config.routes, strict=True):
        item["match"]["headers"] = _masked_headers(route.match.headers)
    return data


def hide_secrets(text: str, *configs: NodeConfig) -> str:
    """A text (a difference of files, say) without the secrets of these configurations and what else looks like one."""
    found = {secret for config in configs for secret in _secrets(config)}
    for secret in sorted(found, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", HIDDEN, text)
    return redact(text)


def _secrets(config: NodeConfig) -> Iterator[str]:
    yield from map(_secret_of, _keys(config))
    yield from (u.api_key for u in config.upstreams if u.api_key and not u.api_key.startswith("keyring:"))
    for route in config.routes:
        yield from (v for k, v in route.match.headers.items() if v and k.lower() in CREDENTIAL_HEADERS)


def restore(config: NodeConfig, current: NodeConfig) -> NodeConfig:
    """The configuration with the secrets of ``current`` in place of their marks.

    Raises:
        ConfigError: a mark that stands for none of them, or in another place.
    """
    problems: list[Problem] = []
    known = {_secret_of(_masked_key(key)): _secret_of(key) for key in _keys(current)}

    def key_of(key: str | ApiKey, loc: tuple[str | int, ...]) -> str | ApiKey:
        if not is_masked(key):
            return key
        stored = known.get(_secret_of(key))
        if stored is None:
            problems.append(Problem(_AGAIN, loc))
            return key
        return key.model_copy(update={"hash": stored}) if isinstance(key, ApiKey) else stored

    server = config.server
    keys = tuple(key_of(key, ("server", "api_keys", i)) for i, key in enumerate(server.api_keys))
    admin = None if server.admin_key is None else key_of(server.admin_key, ("server", "admin_key"))
    upstreams = tuple(_restored_upstream(u, i, current, problems) for i, u in enumerate(config.upstreams))
    routes = tuple(_restored_route(r, i, current, problems) for i, r in enumerate(config.routes))
    if problems:
        raise ConfigError("body", problems)
    return config.model_copy(
        update={
            "server": server.model_copy(update={"api_keys": keys, "admin_key": admin}),
            "upstreams": upstreams,
            "routes": routes,
        }
    )


def _keys(config: NodeConfig) -> tuple[str | ApiKey, ...]:
    admin = config.server.admin_key
    return config.server.api_keys if admin is None else (*config.server.api_keys, admin)


def _masked_key(key: str | ApiKey) -> Any:
    if isinstance(key, ApiKey):
        return key.model_dump(mode="json") | {"hash": _mark(key.hash, "key")}
    return _mark(key, "key")


def _secret_of(key: Any) -> str:
    return str(key.hash if isinstance(key, ApiKey) else key["hash"] if isinstance(key, dict) else key)


def _mark(secret: str, place: str) -> str:
    return MASK + fingerprint(f"{place}\n{secret}")[:_MARK_DIGITS]


def _upstream_mark(upstream: UpstreamConfig, key: str | None) -> str | None:
    """The name of a keyring's entry is no secret."""
    return key if key is None or key.startswith("keyring:") else _mark(key, f"upstream {upstream.url}")


def _restored_upstream(
    item: UpstreamConfig, index: int, current: NodeConfig, problems: list[Problem]
) -> UpstreamConfig:
    if item.api_key is None or not item.api_key.startswith(MASK):
        return item
    stored = next((u.api_key for u in current.upstreams if _upstream_mark(item, u.api_key) == item.api_key), None)
    if stored is None:
        problems.append(Problem(_AGAIN, ("upstreams", index, "api_key")))
    return item.model_copy(update={"api_key": stored})


def _masked_headers(headers: dict[str, str | None]) -> dict[str, str | None]:
    return {
        k: v if v is None or k.lower() not in CREDENTIAL_HEADERS else _mark(v, "header") for k, v in headers.items()
    }


def _restored_route(item: RouteConfig, index: int, current: NodeConfig, problems: list[Problem]) -> RouteConfig:
    headers = item.match.headers
    marked = [k for k, v in headers.items() if v is not None and v.startswith(MASK)]
    if not marked:
        return item
    stored = {_mark(v, "header"): v for r in current.routes for v in r.match.headers.values() if v is not None}
    lost = [name for name in marked if headers[name] not in stored]
    problems.extend(Problem(_AGAIN, ("routes", index, "match", "headers", name)) for name in lost)
    restored = {k: v if v is None else stored.get(v, v) for k, v in headers.items()}
    return item.model_copy(update={"match": item.match.model_copy(update={"headers": restored})})
