"""Checks one part of a configuration (one model, one route …) as a form edits it. Pure; any thread.

The messages are those of the file; their places are relative to the part, e.g. ``("match", "prefix")``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from laya_desktop.config.loader import raw_cross_faults
from laya_desktop.config.problems import explain
from laya_desktop.config.schema import (
    GuardConfig,
    LogConfig,
    ModelConfig,
    NodeConfig,
    RouteConfig,
    ServerConfig,
    UpstreamConfig,
)
from laya_desktop.errors import Problem

Kind = Literal["models", "routes", "upstreams", "server", "log", "guard"]
Part = ModelConfig | RouteConfig | UpstreamConfig | ServerConfig | LogConfig | GuardConfig

_TYPES: dict[str, type[BaseModel]] = {
    "models": ModelConfig,
    "routes": RouteConfig,
    "upstreams": UpstreamConfig,
    "server": ServerConfig,
    "log": LogConfig,
    "guard": GuardConfig,
}


def check_part(
    kind: Kind, data: dict[str, Any], context: NodeConfig | None = None, replacing: str | None = None
) -> tuple[Part | None, tuple[Problem, ...]]:
    """Parse one part, and check it against the rest.

    Args:
        kind: which part.
        data: its values as the form holds them; numbers may be text.
        context: the configuration it belongs to; None: only the part itself is checked.
        replacing: name of the model, route or upstream that is being edited; None: a new one.

    Returns:
        The part and no problems, or None and every problem.
    """
    problems: list[Problem] = []
    part: BaseModel | None = None
    try:
        part = _TYPES[kind].model_validate(data)
    except ValidationError as error:
        problems += explain(error, _TYPES[kind])
    if context is not None and kind in ("models", "routes", "upstreams"):
        known = {(p.loc, p.message) for p in problems}
        problems += [p for p in _cross(kind, data, context, replacing) if (p.loc, p.message) not in known]
    if problems or part is None:
        return None, tuple(problems)
    return part, ()  # type: ignore[return-value]  # _TYPES holds exactly the members of Part


def _cross(kind: str, data: dict[str, Any], context: NodeConfig, replacing: str | None) -> list[Problem]:
    """Name and target against the rest, put last so that the newcomer is the one to blame."""
    rest = {k: list(getattr(context, k)) for k in ("models", "upstreams", "routes")}
    rest[kind] = [item for item in rest[kind] if item.name != replacing]
    if kind != "routes":
        rest["routes"] = []  # routes follow a renamed target
    place = len(rest[kind])
    rest[kind].append(data)
    if kind == "models" and any(u.name == data.get("name") for u in context.upstreams):
        return [Problem(f"The name '{data['name']}' is taken by an upstream. Write another one.", ("name",))]
    return [Problem(message, loc[2:]) for loc, message in raw_cross_faults(rest) if loc[:2] == (kind, place)]
