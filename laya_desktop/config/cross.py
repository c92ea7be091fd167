"""What spans several parts of a configuration: names are unique, targets exist. Pure; any thread.

It works on bare names, so that the schema asks it about parsed parts and the store about raw ones whose other fields
are at fault: every problem shows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laya_desktop.errors import near

Loc = tuple[str | int, ...]
Fault = tuple[Loc, str]
"""Path of the key at fault and the message."""
Names = Sequence[str | None]
"""One entry per item; None where the item has no usable name."""
Reference = tuple[Loc, str | None]
"""A target's name that a route holds, and its place within the route."""


def cross_faults(
    models: Names,
    upstreams: Names,
    routes: Sequence[tuple[str | None, Sequence[Reference]]],
    aliases: Sequence[Names] = (),
) -> list[Fault]:
    """Faults between the parts.

    Args:
        models: their names.
        upstreams: their names.
        routes: name and targets of each route.
        aliases: for each model, its other names.
    """
    return [
        *_duplicates(models, upstreams, aliases),
        *_route_duplicates([name for name, _ in routes]),
        *_dangling([*models, *upstreams], routes, _owners(models, aliases)),
    ]


def references(route: dict[str, Any]) -> list[Reference]:
    """The targets that a route's data name, parsed or not."""
    found: list[Reference] = []
    if route.get("target") is not None:
        found.append((("target",), _text(route["target"])))
    for i, item in enumerate(_list(route.get("targets"))):
        found.append((("targets", i, "name"), _text(item.get("name") if isinstance(item, dict) else item)))
    for i, item in enumerate(_list(route.get("fallback"))):
        found.append((("fallback", i), _text(item)))
    return found


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _duplicates(models: Names, upstreams: Names, aliases: Sequence[Names]) -> list[Fault]:
    """Models, their aliases and upstreams share one set of names; the later one is to blame."""
    faults: list[Fault] = []
    seen: dict[str, tuple[str, str]] = {}  # name → kind of its first owner, and that owner in words

    def take(name: str | None, kind: str, noun: str, loc: Loc, owner: str) -> None:
        if name is None:
            return
        if name in seen:
            first, words = seen[name]
            by = f"another {words.split(maxsplit=1)[1]}" if first == kind and kind != "alias" else words
            faults.append((loc, f"The {noun} '{name}' is taken by {by}. Write another one."))
        seen.setdefault(name, (kind, owner))

    for i, name in enumerate(models):
        take(name, "models", "name", ("models", i, "name"), "a model")
        for j, alias in enumerate(aliases[i] if i < len(aliases) else ()):
            take(alias, "alias", "alias", ("models", i, "aliases", j), f"an alias of the model '{name}'")
    for i, name in enumerate(upstreams):
        take(name, "upstreams", "name", ("upstreams", i, "name"), "an upstream")
    return faults


def _route_duplicates(names: Names) -> list[Fault]:
    faults: list[Fault] = []
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name is not None and name in seen:
            faults.append((("routes", i, "name"), f"The name '{name}' is taken by another route. Write another one."))
        elif name is not None:
            seen.add(name)
    return faults


def _owners(models: Names, aliases: Sequence[Names]) -> dict[str, str]:
    """Alias → name of its model."""
    pairs = zip(models, aliases, strict=False)
    return {alias: model for model, names in pairs for alias in names if model is not None and alias is not None}


def _dangling(
    known: Names, routes: Sequence[tuple[str | None, Sequence[Reference]]], owners: dict[str, str]
) -> list[Fault]:
    whole = None not in known  # else a nameless one may be the target; its own fault comes first
    names = list(dict.fromkeys(n for n in known if n is not None))
    present = set(names)
    faults: list[Fault] = []
    for i, (_, named) in enumerate(routes):
        if len(named) == 1 and named[0][1] in present:
            continue
        seen: set[str] = set()
        for loc, name in named:
            if name is None:
                continue
            if name in seen:
                faults.append((("routes", i, *loc), f"'{name}' stands in this route already. Name each target once."))
            elif whole and name not in present:
                faults.append((("routes", i, *loc), _unknown(name, names, owners)))
            seen.add(name)
    return faults


def _unknown(name: str, names: list[str], owners: dict[str, str]) -> str:
    if name in owners:
        return f"'{name}' is an alias of the model '{owners[name]}'. Write '{owners[name]}'."
    way_out = "" if names else " Add a model or an upstream first."
    return f"No model or upstream '{name}'.{_near(name, names)}{way_out}"


def _near(word: str, names: list[str]) -> str:
    """The near name, else the few that exist."""
    hint = near(word, names)
    return hint or (f" There is {' and '.join(repr(n) for n in names)}." if 0 < len(names) <= 3 else "")
