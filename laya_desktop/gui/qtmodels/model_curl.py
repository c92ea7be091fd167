"""A request to a model as a curl command line. Pure; runs on the Qt thread; sends nothing."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.config.schema import MatchConfig, NodeConfig, RouteConfig

_PATH = "/v1/chat/completions"


def curl_text(model: str, url: str | None, config: NodeConfig) -> str:
    """A chat with ``model`` through the first route that leads to it, else by its name on the standard path.

    Args:
        model: name of the model.
        url: where the node listens; None while it does not: the configured address then.
        config: the configuration in force.
    """
    route = next((r for r in config.routes if _fits(r, model)), None)
    match = route.match if route is not None else None
    base = (url or f"http://{config.server.host}:{config.server.port}").rstrip("/")
    body = {
        "model": match.model if match is not None and match.model else model,
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
    }
    parts = ["curl", "-N", shlex.quote(base + (chat_path(match) if match is not None else _PATH))]
    for header in ["Content-Type: application/json", *(conditions(match) if match is not None else ())]:
        parts += ["-H", shlex.quote(header)]
    if config.server.api_keys:
        parts += ["-H", '"Authorization: Bearer $LAYA_API_KEY"']
    return " ".join([*parts, "-d", shlex.quote(json.dumps(body, ensure_ascii=False))])


def _fits(route: RouteConfig, model: str) -> bool:
    return model in route.target_names and takes_chats(route)


def takes_chats(route: RouteConfig) -> bool:
    """A chat that names no other condition can be sent to it: it is on, and its path can be written down."""
    match = route.match
    posts = not match.methods or "POST" in match.methods
    names_api = route.strip_prefix or route.rewrite is not None
    return route.enabled and match.regex is None and posts and names_api


def chat_path(match: MatchConfig) -> str:
    """The path on which a chat meets the rule."""
    if match.path is not None:
        return match.path
    return f"{(match.prefix or '').rstrip('/')}/chat/completions"


def conditions(match: MatchConfig) -> list[str]:
    """Header lines that the rule asks for."""
    lines = [f"Host: {match.host}"] if match.host else []
    for name, value in match.headers.items():
        lines.append(f"{name}: {'1' if value is None else value.removesuffix('*')}")
    return lines
