"""Faults of a routing table that only show when rules are seen together. Pure; any thread; changes nothing.

Ties (two rules of which neither wins over the other) refuse a configuration; rules that can never win are warnings.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import re2

from laya_desktop.config.schema import ServerConfig
from laya_desktop.errors import Problem
from laya_desktop.node.routing_rules import (
    Condition,
    HeaderIs,
    HeaderStarts,
    HostIs,
    MethodIn,
    ModelIs,
    PathKind,
    Rule,
    bare_host,
)

_BODILESS = frozenset({"GET", "HEAD"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 (compared, not bound)
_RANGE_BYTES = 256
_EVERYTHING = frozenset({".*", "/.*", "^.*$", "^/.*$", "^/.*", "^.*", ".+", "(.*)", "/(.*)"})

Paths = Mapping[tuple[PathKind, str], Sequence[Rule]]


def ties(groups: Iterable[Sequence[Rule]]) -> list[Problem]:
    """One problem for each rule that ties with an earlier one of the same path."""
    return [problem for group in groups if len(group) > 1 for problem in _group_ties(group)]


def _group_ties(group: Sequence[Rule]) -> Iterator[Problem]:
    counts: dict[int, list[Rule]] = defaultdict(list)
    for rule in sorted(group, key=lambda r: r.index):
        counts[len(rule.conditions)].append(rule)
    for rules in counts.values():
        if len(rules) > 1:
            yield from _equal_count_ties(rules)


def _equal_count_ties(rules: list[Rule]) -> Iterator[Problem]:
    """Compare each rule only with those that share its values: tables have thousands of rules that differ in one."""
    shapes: dict[tuple[tuple[str, bool], ...], _Shape] = {}
    for rule in rules:
        shape = tuple(sorted((s, _is_exact(c)) for s, c in rule.conditions.items()))
        shapes.setdefault(shape, _Shape()).members.append(rule)
    for rule in rules:
        for group in shapes.values():
            other = next((o for o in group.rivals(rule) if o.index < rule.index and _tied(o, rule)), None)
            if other is not None:
                yield Problem(_tie_text(other, rule), ("routes", rule.index, "match"))
                break


class _Shape:
    """Rules that ask about the same subjects in the same way, found by the values they share with another rule."""

    def __init__(self) -> None:
        self.members: list[Rule] = []
        self._tables: dict[tuple[str, ...], tuple[list[int], dict[tuple[str, ...], list[Rule]]]] = {}

    def rivals(self, rule: Rule) -> Sequence[Rule]:
        """Members that could hold together with the rule: a few too many, never too few."""
        subjects = self.members[0].conditions
        shared = tuple(s for s in subjects if s in rule.conditions and _value(subjects[s]) is not None)
        lengths, table = self._table(shared)
        key = []
        for subject, length in zip(shared, lengths, strict=True):
            condition = rule.conditions[subject]
            value = _value(condition) or ""
            if isinstance(condition, HeaderStarts) and len(value) < length:
                return self.members
            key.append(value[:length])
        return table.get(tuple(key), ())

    def _table(self, shared: tuple[str, ...]) -> tuple[list[int], dict[tuple[str, ...], list[Rule]]]:
        if shared not in self._tables:
            lengths = [min(_reach(member.conditions[s]) for member in self.members) for s in shared]
            table: dict[tuple[str, ...], list[Rule]] = defaultdict(list)
            for member in self.members:
                values = (_value(member.conditions[s]) or "" for s in shared)
                table[tuple(v[:n] for v, n in zip(values, lengths, strict=True))].append(member)
            self._tables[shared] = lengths, table
        return self._tables[shared]


def _is_exact(condition: Condition) -> bool:
    return not isinstance(condition, HeaderStarts)


def _reach(condition: Condition) -> int:
    """How many characters of a value the condition looks at."""
    return len(condition.prefix) if isinstance(condition, HeaderStarts) else sys.maxsize


def _value(condition: Condition) -> str | None:
    """The text that two conditions of one subject must share to hold together; None where text does not decide."""
    match condition:
        case HeaderIs(_, value, _) | HeaderStarts(_, value, _) | ModelIs(value):
            return value
        case HostIs(host):
            return bare_host(host)
    return None


def _tied(first: Rule, second: Rule) -> bool:
    """True where both can hold at once and neither is the narrower one."""
    return not first.excludes(second) and first.implies(second) == second.implies(first)


def _tie_text(first: Rule, second: Rule) -> str:
    where = f"{first.kind} {first.path}"
    if first.implies(second):
        asks = "the same conditions" if first.conditions else "no conditions"
        return (
            f"Routes '{first.name}' and '{second.name}' both match {where} with {asks}, so neither wins. "
            f"Change or add a condition on one of them, or switch one off."
        )
    mine = ", ".join(c.subject for c in first.conditions.values())
    other = ", ".join(c.subject for c in second.conditions.values())
    return (
        f"Routes '{first.name}' ({mine}) and '{second.name}' ({other}) both match {where} with equally many "
        f"conditions, and one request can meet both, so neither wins. Add one more condition to the route that "
        f"should win, for example those of the other."
    )


def unreachable(paths: Paths, server: ServerConfig) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Rules that can never win: by name the route that always wins before them, and a warning for each one.

    Never cries wolf: a rule that only several others together keep from winning is not found.
    """
    shadowed: dict[str, str] = {}
    warnings: list[Problem] = []
    for (kind, path), rules in paths.items():
        dead = _dead_regex(path) if kind == "regex" else None
        for rule in rules:
            by = _always_before(rule, path, paths) if kind == "regex" else None
            if by is not None:
                shadowed[rule.name] = by.name
                text = f"'{by.name}' ({by.kind} {by.path}) always wins before it"
                hint = (
                    f"Add a condition to '{by.name}', or move '{rule.name}' before it"
                    if by.kind == "regex"
                    else (f"Add a condition to '{by.name}', or write '{rule.name}' with a path or a prefix")
                )
            elif (reason := dead or _dead_conditions(rule, server)) is not None:
                text, hint = reason
            else:
                continue
            warnings.append(
                Problem(f"Route '{rule.name}' never wins: {text}. {hint}.", ("routes", rule.index, "match"))
            )
    return shadowed, tuple(sorted(warnings, key=lambda p: p.loc[1:2]))


def _dead_conditions(rule: Rule, server: ServerConfig) -> tuple[str, str] | None:
    method, host = rule.conditions.get("method"), rule.conditions.get("host")
    if isinstance(method, MethodIn) and "model" in rule.conditions and method.methods <= _BODILESS:
        return "it asks for a model in the body, and GET and HEAD have no body", "Remove the model or add POST"
    if isinstance(host, HostIs) and server.host not in _ANY_ADDRESS:
        name = bare_host(host.host)
        known = {*_LOOPBACK, *(bare_host(h.lower()) for h in (server.host, *server.allowed_hosts))}
        if name not in known and not any("*" in h for h in server.allowed_hosts):
            return f"the node refuses the host {name}", f"Add {name} to server.allowed_hosts"
    return None


def _dead_regex(pattern: str) -> tuple[str, str] | None:
    literal = _literal_start(pattern)
    if literal and not literal.startswith("/"):
        return "a regex must match the whole path, and every path starts with '/'", "Start it with '/'"
    if pattern.endswith("/") and pattern != "/":
        return "it must match the whole path, and paths are compared without a '/' at the end", "Remove that '/'"
    return None


def _always_before(rule: Rule, pattern: str, paths: Paths) -> Rule | None:
    """A rule that takes every request that this regex rule matches, or None."""
    for key in _covering(pattern, paths):
        other = next((other for other in paths.get(key, ()) if rule.implies(other)), None)
        if other is not None:
            return other
    return None


def _covering(pattern: str, paths: Paths) -> Iterator[tuple[PathKind, str]]:
    """Paths, prefixes and earlier regexes that match whatever the regex matches."""
    low, high = _range(pattern)
    if low == high and len(low) < _RANGE_BYTES:
        yield "path", low
        yield "prefix", low
    yield "prefix", "/"
    literal = _literal_start(pattern)
    end = literal.find("/", 1)
    while end > 0:
        yield "prefix", literal[:end]
        end = literal.find("/", end + 1)
    for kind, earlier in paths:
        if kind == "regex":
            if earlier == pattern:
                break
            if earlier in _EVERYTHING:
                yield kind, earlier


def _literal_start(pattern: str) -> str:
    """What every path that the regex matches starts with."""
    low, high = _range(pattern)
    same = (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    return low[: next(same, min(len(low), len(high)))]


def _range(pattern: str) -> tuple[str, str]:
    """Bounds of what the regex matches whole, in byte order."""
    low, high = re2.compile(f"^(?:{pattern})$").possiblematchrange(_RANGE_BYTES)
    return low.decode("latin-1"), high.decode("latin-1")
