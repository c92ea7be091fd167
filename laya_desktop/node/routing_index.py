"""Finding the first of many rules whose conditions hold, at a cost that does not grow with their number.

Built once per set of rules that share a path, then only read; pure; the node's loop. Each rule hangs under its most
selective condition (the one fewest others have), and crowded branches are split again by the conditions left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Protocol

import msgspec

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

_HEADERS_TRIED = 8
"""Up to this many header names are looked up in the request; above it, the request's names in the index."""

_Key = tuple[type[Condition], str, str]
"""Kind of condition, header name, value."""


class Node(Protocol):
    """A part of the index."""

    def find(self, request: Request) -> Entry | None:
        """The entry with the lowest rank whose conditions hold."""
        ...


class Entry(msgspec.Struct, gc=False):
    """A rule in the index; ``open`` are the conditions that the way to it has not checked."""

    rank: int
    route: RouteConfig
    open: tuple[Condition, ...]
    needs_model: bool

    def find(self, request: Request) -> Entry | None:
        """Itself if its conditions hold."""
        for condition in self.open:
            if not condition.holds(request):
                return None
        return self

    def without(self, condition: Condition) -> Entry:
        """A copy that has one condition less to check."""
        return Entry(self.rank, self.route, tuple(c for c in self.open if c is not condition), self.needs_model)


class _Scan:
    """A few entries, best first."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = tuple(sorted(entries, key=lambda e: e.rank))

    def find(self, request: Request) -> Entry | None:
        for entry in self.entries:
            for condition in entry.open:
                if not condition.holds(request):
                    break
            else:
                return entry
        return None


class _ByHeader:
    """Entries that ask one header for a value or the start of a value."""

    __slots__ = ("exact", "name", "prefixes")

    def __init__(self, name: str, exact: dict[str, Node], prefixes: dict[str, Node]) -> None:
        self.name = name
        self.exact = exact
        by_length: dict[int, dict[str, Node]] = defaultdict(dict)
        for prefix, node in prefixes.items():
            by_length[len(prefix)][prefix] = node
        self.prefixes = tuple(by_length.items())

    def find(self, request: Request) -> Entry | None:
        value = request.headers.get(self.name)
        if value is None:
            return None
        child = self.exact.get(value)
        found = None if child is None else child.find(request)
        if not self.prefixes:
            return found
        children = (nodes.get(value[:length]) for length, nodes in self.prefixes)
        return _better(found, _best((c for c in children if c is not None), request))


class _ByManyHeaders:
    """Entries that ask for so many different headers that it is quicker to go by those of the request."""

    __slots__ = ("by_name",)

    def __init__(self, nodes: list[_ByHeader]) -> None:
        self.by_name = {node.name: node for node in nodes}

    def find(self, request: Request) -> Entry | None:
        return _best((self.by_name[n] for n in request.headers if n in self.by_name), request)


class _ByModel:
    """Entries that ask for a model."""

    __slots__ = ("table",)

    def __init__(self, table: dict[str, Node]) -> None:
        self.table = table

    def find(self, request: Request) -> Entry | None:
        child = self.table.get(request.model)  # type: ignore[arg-type]  # None: no key, which is meant
        return None if child is None else child.find(request)


class _ByMethod:
    """Entries that ask for a method."""

    __slots__ = ("table",)

    def __init__(self, table: dict[str, Node]) -> None:
        self.table = table

    def find(self, request: Request) -> Entry | None:
        child = self.table.get(request.method)
        return None if child is None else child.find(request)


class _ByHost:
    """Entries that ask for a host, with or without a port."""

    __slots__ = ("table",)

    def __init__(self, table: dict[str, Node]) -> None:
        self.table = table

    def find(self, request: Request) -> Entry | None:
        host = request.host.lower()
        return _best((self.table[h] for h in {host, bare_host(host)} if h in self.table), request)


class _Any:
    """Entries under conditions of several subjects."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = tuple(nodes)

    def find(self, request: Request) -> Entry | None:
        return _best(self.nodes, request)


def _best(nodes: Iterable[Node], request: Request) -> Entry | None:
    best = None
    for node in nodes:
        best = _better(best, node.find(request))
    return best


def _better(one: Entry | None, other: Entry | None) -> Entry | None:
    if one is None or other is None:
        return one or other
    return one if one.rank < other.rank else other


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
    nodes = _by_subject({key: _build(members) for key, members in buckets.items()})
    if rest:
        nodes.append(_Scan(rest))
    return nodes[0] if len(nodes) == 1 else _Any(nodes)


def _by_subject(buckets: dict[_Key, Node]) -> list[Node]:
    """One node per subject: a look-up of what the request says to the entries that ask for it."""
    tables: dict[tuple[type[Condition], str], dict[str, Node]] = defaultdict(dict)
    for (kind, name, value), node in buckets.items():
        tables[kind, name][value] = node
    names = dict.fromkeys(name for _, name in tables if name)
    headers = [_ByHeader(n, tables.get((HeaderIs, n), {}), tables.get((HeaderStarts, n), {})) for n in names]
    nodes: list[Node] = [_ByManyHeaders(headers)] if len(headers) > _HEADERS_TRIED else [*headers]
    if models := tables.get((ModelIs, "")):
        nodes.append(_ByModel(models))
    if methods := tables.get((MethodIn, "")):
        nodes.append(_ByMethod(methods))
    if hosts := tables.get((HostIs, "")):
        nodes.append(_ByHost(hosts))
    return nodes


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
