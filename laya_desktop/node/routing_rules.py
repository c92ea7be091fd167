"""What one route asks of a request, as values that can be compared. Pure; any thread; knows nothing of tables.

A condition knows when it holds, which other condition it implies or excludes, and how to say in words why it failed.
A rule has at most one condition per subject (a header counts as a subject of its own).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec
from typing_extensions import override

from laya_desktop.config.schema import MatchConfig, RouteConfig
from laya_desktop.node.routing_paths import rule_path

PathKind = Literal["path", "prefix", "regex"]
_NO_ALIASES: Mapping[str, str] = {}


class Request(msgspec.Struct, gc=False):
    """What conditions look at. ``model`` is the body's; header names are in lower case."""

    method: str
    host: str
    headers: Mapping[str, str]
    model: str | None


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing a rule asks beside its path."""

    @property
    def subject(self) -> str:
        """What it is about, in words: ``method``, ``host``, ``model`` or ``header X-Tier``."""
        raise NotImplementedError

    @property
    def breadth(self) -> int:
        """Grows with what the condition lets through; comparable between conditions of one subject."""
        return 0

    def holds(self, request: Request) -> bool:
        """True when the request satisfies it."""
        raise NotImplementedError

    def implies(self, other: Condition) -> bool:
        """True when every request that satisfies this one satisfies the other, of the same subject."""
        return self == other

    def excludes(self, other: Condition) -> bool:
        """True when no request satisfies both, where the other has the same subject."""
        return not (self.implies(other) or other.implies(self))

    def miss(self, request: Request) -> str:
        """Why the request fails it, in words."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MethodIn(Condition):
    """The method is one of these."""

    methods: frozenset[str]

    @property
    @override
    def subject(self) -> str:
        return "method"

    @property
    @override
    def breadth(self) -> int:
        return len(self.methods)

    @override
    def holds(self, request: Request) -> bool:
        return request.method in self.methods

    @override
    def implies(self, other: Condition) -> bool:
        return isinstance(other, MethodIn) and self.methods <= other.methods

    @override
    def excludes(self, other: Condition) -> bool:
        return isinstance(other, MethodIn) and not self.methods & other.methods

    @override
    def miss(self, request: Request) -> str:
        return f"method {request.method} is not among {', '.join(sorted(self.methods))}"


@dataclass(frozen=True, slots=True)
class HostIs(Condition):
    """The Host header names this host; a rule without a port takes every port."""

    host: str

    @property
    @override
    def subject(self) -> str:
        return "host"

    @property
    @override
    def breadth(self) -> int:
        return int(self.host == bare_host(self.host))

    @override
    def holds(self, request: Request) -> bool:
        host = request.host.lower()
        return self.host in (host, bare_host(host))

    @override
    def implies(self, other: Condition) -> bool:
        return isinstance(other, HostIs) and other.host in (self.host, bare_host(self.host))

    @override
    def miss(self, request: Request) -> str:
        return (
            f"host {request.host} is not {self.host}" if request.host else f"no Host header, {self.host} is asked for"
        )


@dataclass(frozen=True, slots=True)
class HeaderIs(Condition):
    """A header has exactly this value. ``label`` is its name as the configuration writes it."""

    name: str
    value: str
    label: str

    @property
    @override
    def subject(self) -> str:
        return f"header {self.label}"

    @override
    def holds(self, request: Request) -> bool:
        return request.headers.get(self.name) == self.value

    @override
    def implies(self, other: Condition) -> bool:
        if isinstance(other, HeaderStarts):
            return self.value.startswith(other.prefix)
        return isinstance(other, HeaderIs) and self.value == other.value

    @override
    def miss(self, request: Request) -> str:
        value = request.headers.get(self.name)
        return f"{self.subject} is missing" if value is None else f"{self.subject} is “{value}”, not “{self.value}”"


@dataclass(frozen=True, slots=True)
class HeaderStarts(Condition):
    """A header's value starts with this; an empty prefix asks only that the header is there."""

    name: str
    prefix: str
    label: str

    @property
    @override
    def subject(self) -> str:
        return f"header {self.label}"

    @property
    @override
    def breadth(self) -> int:
        return 1_000_000 - len(self.prefix)

    @override
    def holds(self, request: Request) -> bool:
        value = request.headers.get(self.name)
        return value is not None and value.startswith(self.prefix)

    @override
    def implies(self, other: Condition) -> bool:
        return isinstance(other, HeaderStarts) and self.prefix.startswith(other.prefix)

    @override
    def miss(self, request: Request) -> str:
        value = request.headers.get(self.name)
        if value is None:
            return f"{self.subject} is missing"
        return f"{self.subject} is “{value}”, it must start with “{self.prefix}”"


@dataclass(frozen=True, slots=True)
class ModelIs(Condition):
    """The body's ``model`` is this one."""

    model: str

    @property
    @override
    def subject(self) -> str:
        return "model"

    @override
    def holds(self, request: Request) -> bool:
        return request.model == self.model

    @override
    def miss(self, request: Request) -> str:
        if request.model is None:
            return "the body names no model"
        return f"the body's model is “{request.model}”, not “{self.model}”"


def bare_host(host: str) -> str:
    """The host without its port: ``[::1]:5292`` → ``[::1]``."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (":" not in name or name.endswith("]")) else host


@dataclass(frozen=True)
class Rule:
    """An enabled route, parsed.

    Attributes:
        route: as configured.
        index: its place in the file.
        kind: which of path, prefix and regex it has.
        path: the path in normal spelling, or the regex as written.
        conditions: by subject, header names in lower case.
        put: what takes the place of the path when the request is passed on; None: nothing.
    """

    route: RouteConfig
    index: int
    kind: PathKind
    path: str
    conditions: dict[str, Condition]
    put: str | None = None

    @classmethod
    def parse(cls, route: RouteConfig, index: int, aliases: Mapping[str, str] = _NO_ALIASES) -> Rule:
        """The rule of a route; ``aliases``: other name of a model → its name.

        Raises:
            ValueError: a path that no request can have, or a host with a wildcard.
        """
        match = route.match
        conditions = _conditions(match, aliases)
        put = None if route.rewrite is None else rule_path(route.rewrite).rstrip("/")
        if match.regex is not None:
            return cls(route, index, "regex", match.regex, conditions, put)
        if match.path is not None:
            return cls(route, index, "path", rule_path(match.path), conditions, put)
        return cls(route, index, "prefix", rule_path(match.prefix or "/"), conditions, put)

    @property
    def name(self) -> str:
        """The route's name."""
        return self.route.name

    @cached_property
    def order(self) -> tuple[int, int, int]:
        """Sorts rules with the same path: more conditions first, then the narrower ones, then file order."""
        return -len(self.conditions), sum(c.breadth for c in self.conditions.values()), self.index

    def implies(self, other: Rule) -> bool:
        """True when every request that meets these conditions meets the other's."""
        mine = self.conditions
        return all(s in mine and mine[s].implies(c) for s, c in other.conditions.items())

    def excludes(self, other: Rule) -> bool:
        """True when no request meets the conditions of both."""
        theirs = other.conditions
        return any(s in theirs and c.excludes(theirs[s]) for s, c in self.conditions.items())

    def misses(self, request: Request) -> list[str]:
        """Why the request fails the conditions, in words; empty when it meets all."""
        return [c.miss(request) for c in self.conditions.values() if not c.holds(request)]


def _conditions(match: MatchConfig, aliases: Mapping[str, str]) -> dict[str, Condition]:
    found: dict[str, Condition] = {}
    if match.methods:
        found["method"] = MethodIn(frozenset(match.methods))
    if match.host is not None:
        if "*" in match.host:
            raise ValueError(f"The host '{match.host}' has a '*'. Write one host name; use one route for each.")
        found["host"] = HostIs(match.host.lower())
    for label, value in match.headers.items():
        name = label.lower()
        found[f"header {name}"] = _header(name, label, value)
    if match.model is not None:
        found["model"] = ModelIs(aliases.get(match.model, match.model))
    return found


def _header(name: str, label: str, value: str | None) -> Condition:
    if value is None:
        return HeaderStarts(name, "", label)
    return HeaderStarts(name, value[:-1], label) if value.endswith("*") else HeaderIs(name, value, label)
