"""Finding the first of many rules whose conditions hold, at a cost that does not grow with their number.

Built once per set of rules that share a path, then only read; pure; the node's loop. Each rule hangs under its most
selective condition (the one fewest others have), and crowded branches are split again by the conditions left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol

from laya_desktop.config.schema import RouteConfig
from laya_desktop.node.routing_rules import (
    Condition,
    HeaderIs,
    HeaderStarts,
    HostIs,
    MethodIn,
    ModelIs,
    Request,
    Rule,
    bare_host,
)

_SCANNED = 3
"""Up to this many rules are tried one by one: that is faster than one more look-up."""

_Key = tuple[type[Condition], str, str]
"""Kind of condition, header name, value."""


class Node(Protocol):
    """A part of the index."""

    top: int
    """The best (lowest) rank in it."""

    def find(self, request: Request, below: int) -> Entry | None:
        """The entry with the lowest rank, under ``below``, whose conditions hold."""
        ...


class Entry:
    """A rule in the index; ``open`` are the conditions that the way to it has not checked."""

    __slots__ = ("needs_model", "open", "route", "top")

    def __init__(self, rank: int, route: RouteConfig, conditions: tuple[Condition, ...], needs_model: bool) -> None:
        self.top = rank
        self.route = route
        self.open = conditions
        self.needs_model = needs_model

    def find(self, request: Request, below: int) -> Entry | None:
        """Itself if its conditions hold."""
        if self.top >= below:
            return None
        for condition in self.open:
            if not condition.holds(request):
                return None
        return self

    def without(self, condition: Condition) -> Entry:
        """A copy that has one condition less to check."""
        return Entry(self.top, self.route, tuple(c for c in self.open if c is not condition), self.needs_model)


class _Scan:
    """A few entries, best first."""

    __slots__ = ("entries", "top")

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = tuple(sorted(entries, key=lambda e: e.top))
        self.top = self.entries[0].top

    def find(self, request: Request, below: int) -> Entry | None:
        for entry in self.entries:
            if entry.top >= below:
                return None
            for condition in entry.open:
                if not condition.holds(request):
                    break
            else:
                return entry
        return None


class _HeaderBranch:
    """Entries that ask one header for a value or the start of a value."""

    __slots__ = ("exact", "prefixes", "top")

    def __init__(self, exact: dict[str, Node], prefixes: dict[str, Node]) -> None:
        self.exact = exact
        by_length: dict[int, dict[str, Node]] = defaultdict(dict)
        for prefix, node in prefixes.items():
            by_length[len(prefix)][prefix] = node
        self.prefixes = tuple(by_length.items())
        self.top = min(node.top for node in (*exact.values(), *prefixes.values()))

    def find_value(self, value: str, request: Request, below: int) -> Entry | None:
        best = None
        child = self.exact.get(value)
        if child is not None and (best := child.find(request, below)) is not None:
            below = best.top
        for length, nodes in self.prefixes:
            child = nodes.get(value[:length])
            if child is not None and (found := child.find(request, below)) is not None:
                best, below = found, found.top
        return best


class _Branch:
    """Entries split by their most selective condition."""

    __slots__ = ("headers", "hosts", "methods", "models", "rest", "top")

    def __init__(self, buckets: dict[_Key, Node], rest: Node | None) -> None:
        def of(kind: type[Condition]) -> dict[str, Node]:
            return {value: node for (k, _, value), node in buckets.items() if k is kind}

        self.models, self.hosts, self.methods = of(ModelIs), of(HostIs), of(MethodIn)
        exact: dict[str, dict[str, Node]] = defaultdict(dict)
        prefixes: dict[str, dict[str, Node]] = defaultdict(dict)
        for (kind, name, value), node in buckets.items():
            if kind is HeaderIs:
                exact[name][value] = node
            elif kind is HeaderStarts:
                prefixes[name][value] = node
        self.headers = {n: _HeaderBranch(exact[n], prefixes[n]) for n in {*exact, *prefixes}}
        self.rest = rest
        self.top = min(node.top for node in (*buckets.values(), *([rest] if rest else [])))

    def find(self, request: Request, below: int) -> Entry | None:
        best = None
        if self.headers:
            headers = request.headers
            for name in self.headers if len(self.headers) <= len(headers) else headers:
                branch = self.headers.get(name)
                if branch is None or branch.top >= below or (value := headers.get(name)) is None:
                    continue
                if (found := branch.find_value(value, request, below)) is not None:
                    best, below = found, found.top
        for node in self._others(request):
            if node.top < below and (found := node.find(request, below)) is not None:
                best, below = found, found.top
        return best

    def _others(self, request: Request) -> Iterator[Node]:
        if self.models and request.model is not None and (node := self.models.get(request.model)) is not None:
            yield node
        if self.hosts:
            host = request.host.lower()
            for name in {host, bare_host(host)}:
                if (node := self.hosts.get(name)) is not None:
                    yield node
        if self.methods and (node := self.methods.get(request.method)) is not None:
            yield node
        if self.rest is not None:
            yield self.rest


def build(rules: Iterable[Rule]) -> Node:
    """The index of rules that share a path, best first, for requests whose model is known (or known to be absent)."""
    return _build([Entry(rank, r.route, tuple(r.conditions.values()), False) for rank, r in enumerate(rules)])


def build_unread(rules: Iterable[Rule]) -> Node:
    """The index for requests whose body was not read: rules that ask for a model are marked, one per remaining ask."""
    entries: dict[object, Entry] = {}
    for rank, rule in enumerate(rules):
        left = tuple(c for s, c in rule.conditions.items() if s != "model")
        needs_model = len(left) < len(rule.conditions)
        key = frozenset(left) if needs_model else rank
        entries.setdefault(key, Entry(rank, rule.route, left, needs_model))
    return _build(list(entries.values()))


def _build(entries: list[Entry]) -> Node:
    if len(entries) == 1:
        return entries[0]
    if len(entries) <= _SCANNED:
        return _Scan(entries)
    crowd = Counter(key for entry in entries for condition in entry.open for key in _keys(condition))
    buckets: dict[_Key, list[Entry]] = defaultdict(list)
    rest: list[Entry] = []
    for entry in entries:
        if not entry.open:
            rest.append(entry)
            continue
        chosen = min(entry.open, key=lambda c: max(crowd[k] for k in _keys(c)))
        for key in _keys(chosen):
            buckets[key].append(entry.without(chosen))
    return _Branch({k: _build(v) for k, v in buckets.items()}, _Scan(rest) if rest else None)


def _keys(condition: Condition) -> list[_Key]:
    match condition:
        case MethodIn(methods):
            return [(MethodIn, "", m) for m in methods]
        case HostIs(host):
            return [(HostIs, "", host)]
        case HeaderIs(name, value, _):
            return [(HeaderIs, name, value)]
        case HeaderStarts(name, prefix, _):
            return [(HeaderStarts, name, prefix)]
        case ModelIs(model):
            return [(ModelIs, "", model)]
    raise TypeError(f"No index for {condition!r}.")
