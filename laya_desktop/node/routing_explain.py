"""Why a route wins or loses, in the words of the window. Pure; any thread. Looks at every route; sends nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import re2

from laya_desktop.config.schema import RouteConfig
from laya_desktop.node.routing_paths import rule_path
from laya_desktop.node.routing_rules import PathKind, Request, Rule
from laya_desktop.state.snapshot import CandidateExplanation, RouteExplanation

_WORDS = {"path": "path", "prefix": "prefix", "regex": "regex"}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Winner = Callable[[Request, str], tuple[RouteConfig, str] | None]


@dataclass(frozen=True)
class Rules:
    """The rules that are on, in file order, and the routes that are off."""

    on: tuple[Rule, ...]
    off: tuple[RouteConfig, ...]

    @cached_property
    def by_path(self) -> dict[tuple[PathKind, str], list[Rule]]:
        """Rules that share a path, best first; paths in file order of their first rule."""
        groups: dict[tuple[PathKind, str], list[Rule]] = defaultdict(list)
        for rule in self.on:
            groups[rule.kind, rule.path].append(rule)
        for members in groups.values():
            members.sort(key=lambda rule: rule.order)
        return dict(groups)

    def of_kind(self, kind: PathKind) -> dict[str, list[Rule]]:
        """``by_path`` for one kind of path."""
        return {path: members for (k, path), members in self.by_path.items() if k == kind}

    @cached_property
    def in_order(self) -> tuple[Rule, ...]:
        """All rules, the one that wins over all others first."""
        kinds = ("path", "prefix", "regex")
        places = {key: i for i, key in enumerate(self.by_path)}

        def order(rule: Rule) -> tuple[int, int, int, tuple[int, int, int]]:
            length = len(rule.path) if rule.kind == "prefix" else 0
            place = places[rule.kind, rule.path] if rule.kind == "regex" else 0
            return kinds.index(rule.kind), -length, place, rule.order

        return tuple(sorted(self.on, key=order))


def explain(
    rules: Rules, winner_of: Winner, method: str, path: str, headers: Mapping[str, str], model: str | None
) -> RouteExplanation:
    """See ``RoutingTable.explain``."""
    try:
        path = rule_path(path.partition("?")[0])
    except ValueError as error:
        return RouteExplanation(None, None, f"The request is refused before any route is asked: {error}")
    lower = {name.lower(): value for name, value in headers.items()}
    request = Request(method.upper(), lower.get("host", ""), lower, model)
    found = winner_of(request, path)
    if found is None:
        lost = [_lost(rule, None, request, path) for rule in rules.in_order] + [_off(r) for r in rules.off]
        reason = "no route fits; a standard path such as /v1/chat/completions picks its target by the body's model"
        return RouteExplanation(None, None, reason, None, tuple(lost))
    route, stripped = found
    winner = next(rule for rule in rules.on if rule.name == route.name)
    others = [rule for rule in rules.in_order if rule is not winner]
    second = next((r for r in others if _path_miss(r, path) is None and not r.misses(request)), None)
    reason = _won(winner, second)
    candidates = [CandidateExplanation(winner.name, True, reason)]
    candidates += [_lost(rule, winner, request, path) for rule in others] + [_off(r) for r in rules.off]
    targets = route.target_names
    return RouteExplanation(
        winner.name, targets[0], reason, stripped, tuple(candidates), targets, route.fallback, _aim(route)
    )


def _aim(route: RouteConfig) -> str:
    """The order in which a request tries its targets, in words."""
    if route.targets:
        shares = [t.name if t.weight == 1 else f"{t.name} ×{t.weight}" for t in route.targets]
        text = f"the least busy of {', '.join(shares)}" if len(shares) > 1 else shares[0]
    else:
        text = route.target or ""
    return ", else ".join([text, *route.fallback])


def _off(route: RouteConfig) -> CandidateExplanation:
    return CandidateExplanation(route.name, False, "off")


def _won(winner: Rule, second: Rule | None) -> str:
    if second is None:
        return "the only route that fits"
    if (second.kind, second.path) == (winner.kind, winner.path):
        same = f"same {_WORDS[winner.kind]} as “{second.name}”"
        more = [c.subject for s, c in winner.conditions.items() if s not in second.conditions]
        count = len(winner.conditions) - len(second.conditions)
        if count == 0:
            return f"{same}, narrower conditions"
        noun = "condition" if count == 1 else "conditions"
        word = _COUNTS[count] if count < len(_COUNTS) else str(count)
        return f"{same}, {word} more {noun} ({', '.join(more)})"
    if winner.kind == "path":
        return f"exact path; “{second.name}” has a {_WORDS[second.kind]}"
    if winner.kind == "prefix":
        return (
            f"longer prefix than “{second.name}”"
            if second.kind == "prefix"
            else f"a prefix wins over “{second.name}”, a regex"
        )
    return f"earlier in the file than “{second.name}”"


def _lost(rule: Rule, winner: Rule | None, request: Request, path: str) -> CandidateExplanation:
    miss = _path_miss(rule, path)
    if miss is not None:
        return CandidateExplanation(rule.name, False, miss)
    reasons = rule.misses(request)
    if winner is not None and not (reasons and (rule.kind, rule.path) == (winner.kind, winner.path)):
        reasons = _behind(rule, winner) + reasons
    return CandidateExplanation(rule.name, False, ", and ".join(reasons))


def _behind(rule: Rule, winner: Rule) -> list[str]:
    """What puts a rule behind the winner whether its conditions hold or not; empty where it would be ahead."""
    if (rule.kind, rule.path) == (winner.kind, winner.path):
        ahead = rule.order < winner.order
        text = "fewer conditions" if len(rule.conditions) < len(winner.conditions) else "wider conditions"
    elif rule.kind == "prefix":
        ahead = winner.kind == "regex" or (winner.kind == "prefix" and len(rule.path) > len(winner.path))
        text = "shorter prefix" if winner.kind == "prefix" else "a prefix, and the winner has the exact path"
    else:
        ahead = rule.kind == "path"
        text = "regex, later in the file" if winner.kind == "regex" else "regex, checked last"
    return [] if ahead else [text]


def _path_miss(rule: Rule, path: str) -> str | None:
    """Why the path does not fit the rule; None where it does."""
    if rule.kind == "path":
        return None if path == rule.path else f"path is not {rule.path}"
    if rule.kind == "prefix":
        if path == rule.path or rule.path == "/" or path.startswith(rule.path + "/"):
            return None
        if path.startswith(rule.path):
            return f"prefix {rule.path} ends inside a segment of the path"
        return f"path does not start with {rule.path}"
    regex = re2.compile(rule.path)
    if regex.fullmatch(path):
        return None
    return "regex matches a part of the path only" if regex.search(path) else "regex does not match"
