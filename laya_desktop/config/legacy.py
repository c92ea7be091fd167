"""The short form of earlier users: ``model:`` and ``route:`` as single mappings. Pure; any thread.

It is read as if it were the first entry of ``models:`` and ``routes:``, so both forms mix. A route's match keys may
stand beside its target; a missing route name is made from the target; a target may be written ``<model>-backend``,
in the long form too. Saving keeps the short form while it can hold the configuration; otherwise the entry moves into
``models:`` or ``routes:``, with its comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laya_desktop.config.cross import references
from laya_desktop.config.schema import MatchConfig, RouteConfig
from laya_desktop.errors import Problem, near

Loc = tuple[str | int, ...]

SUFFIX = "-backend"
SHORT = {"model": "models", "route": "routes"}
"""The short form's key, and the list that it stands for."""
MATCH_KEYS = tuple(MatchConfig.model_fields)
ROUTE_KEYS = tuple(RouteConfig.model_fields)


@dataclass(frozen=True, slots=True)
class Places:
    """Where in the written file a path of the long form stands."""

    short: frozenset[str] = frozenset()
    """The lists whose first entry is written in the short form."""
    lifted: frozenset[str] = frozenset()
    """Match keys written directly in the short route."""

    def written(self, loc: Loc) -> Loc:
        """The path as written, e.g. ``("models", 0, "path")`` → ``("model", "path")``."""
        if not loc or loc[0] not in self.short or len(loc) < 2 or not isinstance(loc[1], int):
            return loc
        if loc[1] > 0:
            return (loc[0], loc[1] - 1, *loc[2:])
        short = str(loc[0]).removesuffix("s")
        rest = loc[2:]
        if loc[0] == "routes" and rest[:1] == ("match",) and (len(rest) == 1 or rest[1] in self.lifted):
            rest = rest[1:]
        return (short, *rest)


def expand(data: dict[str, Any]) -> tuple[dict[str, Any], Places, list[Problem]]:
    """The long form of a document, where its parts stand, and faults of the short form itself."""
    long = {key: value for key, value in data.items() if key not in SHORT}
    problems: list[Problem] = []
    short: set[str] = set()
    lifted: frozenset[str] = frozenset()
    for key, plural in SHORT.items():
        entry = data.get(key)
        if entry is None:
            continue
        if not isinstance(entry, dict):
            problems.append(Problem(f"'{key}:' holds one {key}. Write '{plural}:' for a list.", (key,)))
            continue
        if not isinstance(data.get(plural) or [], list):
            continue  # the schema says what is wrong with the list
        if key == "route":
            entry, lifted = _long_route(entry)
        long[plural] = [entry, *(data.get(plural) or [])]
        short.add(plural)
    _resolve_targets(long)
    if "routes" in short:
        _name_route(long["routes"])
    return long, Places(frozenset(short), lifted), problems


def _long_route(entry: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    if "match" in entry:
        return dict(entry), frozenset()
    lifted = frozenset(key for key in entry if key in MATCH_KEYS or (key not in ROUTE_KEYS and near(key, MATCH_KEYS)))
    match = {key: value for key, value in entry.items() if key in lifted}
    rest = {key: value for key, value in entry.items() if key not in lifted}
    return {**rest, "match": match}, lifted


def _resolve_targets(long: dict[str, Any]) -> None:
    known = {
        item["name"]
        for kind in ("models", "upstreams")
        for item in _entries(long, kind)
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }
    if isinstance(long.get("routes"), list):
        long["routes"] = [_with_model_target(route, known) for route in long["routes"]]


def _entries(long: dict[str, Any], kind: str) -> list[Any]:
    entries = long.get(kind)
    return entries if isinstance(entries, list) else []


def _with_model_target(route: Any, known: set[str]) -> Any:
    """The route with ``<model>-backend`` written as the model, wherever it names a target."""
    if not isinstance(route, dict):
        return route

    def plain(name: Any) -> Any:
        if isinstance(name, dict) and "name" in name:
            return {**name, "name": plain(name["name"])}
        is_long = isinstance(name, str) and name not in known and name.removesuffix(SUFFIX) in known
        return name.removesuffix(SUFFIX) if is_long else name

    changed = {"target": plain(route["target"])} if "target" in route else {}
    for key in ("targets", "fallback"):
        if isinstance(route.get(key), list):
            changed[key] = [plain(name) for name in route[key]]
    return {**route, **changed} if changed else route


def _name_route(routes: list[Any]) -> None:
    """Name the short route after its target, else after its prefix; never with a name that is taken."""
    entry = routes[0]
    if "name" in entry:
        return
    taken = {r.get("name") for r in routes[1:] if isinstance(r, dict)}
    targets = [name for _, name in references(entry)]
    base = next((t for t in (*targets[:1], entry.get("match", {}).get("prefix")) if isinstance(t, str) and t), "route")
    name, n = base, 2
    while name in taken:
        name, n = f"{base}-{n}", n + 1
    entry["name"] = name
