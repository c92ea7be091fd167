"""What spans several parts of a configuration: names are unique, targets exist. Pure; any thread.

It works on bare names, so that the schema asks it about parsed parts and the store about raw ones whose other fields
are at fault: every problem shows at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from laya_desktop.errors import near

Loc = tuple[str | int, ...]
Fault = tuple[Loc, str]
"""Path of the key at fault and the message."""
Names = Sequence[str | None]
"""One entry per item; None where the item has no usable name."""


def cross_faults(models: Names, upstreams: Names, routes: Sequence[tuple[str | None, str | None]]) -> list[Fault]:
    """Faults between the parts; ``routes`` holds name and target of each route."""
    targets = _duplicates((("models", models), ("upstreams", upstreams)))
    names = _duplicates((("routes", [name for name, _ in routes]),))
    return [*targets, *names, *_dangling([*models, *upstreams], [target for _, target in routes])]


def _duplicates(groups: Sequence[tuple[str, Names]]) -> list[Fault]:
    faults: list[Fault] = []
    seen: dict[str, str] = {}  # name → kind of its first owner
    for kind, names in groups:
        for i, name in enumerate(names):
            if name is None:
                continue
            if name in seen:
                owner = (
                    f"{'another' if seen[name] == kind else 'a' if seen[name] == 'models' else 'an'} {seen[name][:-1]}"
                )
                faults.append(((kind, i, "name"), f"The name '{name}' is taken by {owner}. Write another one."))
            seen.setdefault(name, kind)
    return faults


def _dangling(known: Names, targets: Names) -> list[Fault]:
    if None in known:
        return []  # the nameless one may be the target; its own fault comes first
    names = list(dict.fromkeys(n for n in known if n is not None))
    way_out = "" if names else " Add a model or an upstream first."
    present = set(names)
    return [
        (("routes", i, "target"), f"No model or upstream '{t}'.{_near(t, names)}{way_out}")
        for i, t in enumerate(targets)
        if t is not None and t not in present
    ]


def _near(word: str, names: list[str]) -> str:
    """The near name, else the few that exist."""
    hint = near(word, names)
    return hint or (f" There is {' and '.join(repr(n) for n in names)}." if 0 < len(names) <= 3 else "")
