"""What deleting a model takes along, and what to ask before. Pure; runs on the Qt thread; imports no Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laya_desktop.gui.i18n import tr
from laya_desktop.state.enums import ModelState

if TYPE_CHECKING:
    from laya_desktop.config.schema import NodeConfig, RouteConfig
    from laya_desktop.state.snapshot import NodeSnapshot


def without_model(name: str, config: NodeConfig) -> NodeConfig:
    """The configuration without a model, without the routes that led to it alone, and without it in the others.

    Raises:
        LayaError: there is no such model.
    """
    for route in config.routes:
        if name not in route.all_names:
            continue
        rest = _without(name, route)
        config = config.without_route(route.name) if rest is None else config.with_route(rest, route.name)
    return config.without_model(name)


def delete_question(name: str, snapshot: NodeSnapshot, config: NodeConfig) -> str:
    """What to ask before a model is deleted; empty where nothing is lost but its entry."""
    live = snapshot.model(name)
    loaded = live is not None and live.state not in (ModelState.UNLOADED, ModelState.FAILED)
    users = [route for route in config.routes if name in route.all_names]
    gone = [route.name for route in users if _without(name, route) is None]
    changed = [route.name for route in users if route.name not in gone]
    parts = []
    if loaded:
        parts.append(tr("It is loaded; its answers end and its memory is freed."))
    if gone:
        parts.append(
            tr("With it goes 1 route: {listed}.", listed=_listed(gone))
            if len(gone) == 1
            else tr("With it go {count} routes: {listed}.", count=len(gone), listed=_listed(gone))
        )
    if changed:
        parts.append(
            tr("{listed} will lead to its other targets only.", listed=_listed(changed))
            if len(changed) == 1
            else tr("{listed} will lead to their other targets only.", listed=_listed(changed))
        )
    return " ".join([tr("Delete “{name}”?", name=name), *parts]) if parts else ""


def _without(name: str, route: RouteConfig) -> RouteConfig | None:
    """The route without a target; None where no other target is left. A fallback does not become the target."""
    if route.target == name:
        return None
    targets = tuple(t for t in route.targets if t.name != name)
    if route.targets and not targets:
        return None
    fallback = tuple(n for n in route.fallback if n != name)
    return route.model_copy(update={"targets": targets, "fallback": fallback})


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else tr("{first} and {last}", first=", ".join(names[:-1]), last=names[-1])
