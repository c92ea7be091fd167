"""The routing table: which route takes a request. Pure and immutable; the node's loop reads it and swaps it whole.

Precedence is fixed: exact path, then the longest prefix that ends between two segments, then regexes in file order;
among rules with the same path the one with more conditions wins, then the narrower one. Where all rules of a path
fail their conditions, the next shorter prefix is tried. A regex must match the whole path. Never touches a socket,
a target or the configuration file.

What a route leaves for its target (``stripped_path``): a prefix leaves what follows it; a regex leaves what its group
``rest`` matched; an exact path and any other regex leave the standard API part at their end (``/chat/completions``),
or nothing. A route with ``strip_prefix: false`` leaves the whole path. One with ``rewrite`` puts that path in front of
what a prefix or a group ``rest`` leaves, and in the place of everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, Self

import msgspec
import re2

from laya_desktop.config.schema import NodeConfig, RouteConfig
from laya_desktop.errors import ConfigError, Problem
from laya_desktop.node import routing_checks, routing_explain
from laya_desktop.node.routing_index import build, build_unread
from laya_desktop.node.routing_paths import normalise_path
from laya_desktop.node.routing_rules import Request, Rule
from laya_desktop.state.snapshot import RouteExplanation

__all__ = ["NEED_MODEL", "UNREAD", "Decision", "NeedModel", "RoutingTable", "Unread", "normalise_path"]

_API_PARTS = ("/chat/completions", "/completions", "/embeddings", "/responses", "/models")
TOUCHED = 64
"""Rules that ``touch`` asks for, spread over the table."""
_REGEX_SET_BYTES = 64 * 1024**2
_NO_GROUPS: Final[dict[str, str]] = {}


class Unread(Enum):
    """Type of ``UNREAD``."""

    UNREAD = "unread"


class NeedModel(Enum):
    """Type of ``NEED_MODEL``."""

    NEED_MODEL = "need_model"


UNREAD: Final = Unread.UNREAD
"""In place of a model: the body has not been read yet."""
NEED_MODEL: Final = NeedModel.NEED_MODEL
"""The answer depends on the body's model: read the body and ask again."""


class Decision(msgspec.Struct, frozen=True):
    """The route that takes a request.

    Attributes:
        route: as configured when the request was admitted.
        stripped_path: what follows the route's own path, ``""`` or ``/chat/completions``, with or without ``/v1``.
        groups: named groups of a regex that took part in the match; do not change it.
    """

    route: RouteConfig
    stripped_path: str
    groups: dict[str, str]


class _Group:
    """All rules with one path, best first."""

    __slots__ = ("index", "regex", "unread_index")

    def __init__(self, rules: list[Rule]) -> None:
        self.index = build(rules)
        asks_model = any("model" in rule.conditions for rule in rules)
        self.unread_index = build_unread(rules) if asks_model else self.index
        self.regex = re2.compile(rules[0].path) if rules[0].kind == "regex" else None

    def find(
        self, method: str, host: str, headers: Mapping[str, str], model: str | Unread | None
    ) -> RouteConfig | NeedModel | None:
        """The winning route among these, ``NEED_MODEL``, or None where all fail their conditions."""
        if model is UNREAD:
            entry = self.unread_index.find(Request(method, host, headers, None))
            if entry is not None and entry.needs_model:
                return NEED_MODEL
        else:
            entry = self.index.find(Request(method, host, headers, model))
        return None if entry is None else entry.route


class RoutingTable:
    """Immutable. Made by ``compile``; put in force by one assignment.

    Attributes:
        warnings: rules that can never win, and other doubtful ones; they do not stop the table from working.
        shadowed: name of a route → name of the route that always wins before it.
    """

    __slots__ = (
        "_aliases", "_by_name", "_deep", "_exact", "_exact_plain", "_prefix", "_prefix_plain", "_puts", "_regex_set",
        "_regexes", "_root", "_rules", "shadowed", "warnings",
    )  # fmt: skip

    def __init__(
        self, rules: Iterable[Rule], off: Iterable[RouteConfig] = (), aliases: Mapping[str, str] = _NO_GROUPS
    ) -> None:
        self._rules = routing_explain.Rules(tuple(rules), tuple(off))
        self._aliases = dict(aliases)
        self._puts = {rule.name: rule.put for rule in self._rules.on if rule.put is not None}
        self._by_name = {route.name: route for route in (*(rule.route for rule in self._rules.on), *self._rules.off)}
        exact, prefix, regex = (self._rules.of_kind(kind) for kind in ("path", "prefix", "regex"))
        self._exact_plain = {
            path: Decision(members[0].route, self._left(members[0].route, path, _api_part(path)), _NO_GROUPS)
            for path, members in exact.items()
            if _is_plain(members)
        }
        self._exact = {path: _Group(members) for path, members in exact.items() if not _is_plain(members)}
        root = prefix.pop("/", None)
        self._root = None if root is None else _Group(root)
        self._prefix_plain = {p: members[0].route for p, members in prefix.items() if _is_plain(members, strips=True)}
        self._prefix = {p: _Group(members) for p, members in prefix.items() if p not in self._prefix_plain}
        depths = {path.count("/") for path in prefix}
        self._deep = tuple(depth in depths for depth in range(1, max(depths, default=0) + 1))
        self._regexes = tuple(map(_Group, regex.values()))
        self._regex_set = _regex_set(list(regex))
        self.warnings: tuple[Problem, ...] = ()
        self.shadowed: dict[str, str] = {}

    @classmethod
    def compile(cls, config: NodeConfig) -> Self:
        """The table of a configuration; routes that are off take no part.

        Raises:
            ConfigError: two rules of which neither wins over the other, or a path that no request can have.
        """
        aliases = {alias: model.name for model in config.models for alias in model.aliases}
        rules: list[Rule] = []
        problems: list[Problem] = []
        for i, route in enumerate(config.routes):
            if route.enabled:
                try:
                    rules.append(Rule.parse(route, i, aliases))
                except ValueError as error:
                    problems.append(Problem(f"Route '{route.name}': {error}", ("routes", i, "match")))
        table = cls(rules, [r for r in config.routes if not r.enabled], aliases)
        problems += routing_checks.ties(table._rules.by_path.values())
        if problems:
            raise ConfigError("configuration", sorted(problems, key=lambda p: p.loc[1:2]))
        table.shadowed, table.warnings = routing_checks.unreachable(table._rules.by_path, config.server)
        return table

    def route(self, name: str) -> RouteConfig | None:
        """The route of that name, on or off, or None."""
        return self._by_name.get(name)

    def touch(self) -> None:
        """Decide a few requests, so that the first real one is as fast as the next (RE2 builds its automaton late)."""
        rules = self._rules.on
        for rule in rules[:: max(1, len(rules) // TOUCHED)]:
            path = rule.path if rule.kind != "regex" else "/"
            for model in (UNREAD, None):
                self.decide("POST", path, "", _NO_GROUPS, model)
        self.decide("POST", "/nothing/here", "", _NO_GROUPS, None)

    def decide(
        self, method: str, path: str, host: str, headers: Mapping[str, str], model: str | Unread | None
    ) -> Decision | NeedModel | None:
        """The route of a request; None where no route fits.

        Args:
            method: in capitals.
            path: as ``normalise_path`` returns it.
            host: the Host header, with or without a port.
            headers: names in lower case.
            model: the body's ``model``; None: it names none; ``UNREAD``: the body was not read.

        Returns:
            ``NEED_MODEL`` only for ``UNREAD``, and only where a rule that could win asks for the model.
        """
        decision = self._exact_plain.get(path)
        if decision is not None:
            return decision
        if self._aliases and isinstance(model, str):
            model = self._aliases.get(model, model)
        if self._exact and (group := self._exact.get(path)) is not None:
            found = group.find(method, host, headers, model)
            if found is not None:
                return found if found is NEED_MODEL else self._decision(found, path, _api_part(path))
        return self._decide_prefix(method, path, host, headers, model)

    def _decide_prefix(
        self, method: str, path: str, host: str, headers: Mapping[str, str], model: str | Unread | None
    ) -> Decision | NeedModel | None:
        """Prefixes at the depths in use, the longest first."""
        find = path.find
        end = 0
        ends = []
        for in_use in self._deep:
            end = find("/", end + 1)
            if end < 0:
                if in_use:
                    ends.append(len(path))
                break
            if in_use:
                ends.append(end)
        while ends:
            end = ends.pop()
            prefix = path[:end]
            route = self._prefix_plain.get(prefix)
            if route is not None:
                return Decision(route, path[end:], _NO_GROUPS)
            group = self._prefix.get(prefix)
            if group is not None:
                found = group.find(method, host, headers, model)
                if found is not None:
                    return found if found is NEED_MODEL else self._decision(found, path, path[end:])
        return None if path == "*" else self._decide_last(method, path, host, headers, model)

    def _decide_last(
        self, method: str, path: str, host: str, headers: Mapping[str, str], model: str | Unread | None
    ) -> Decision | NeedModel | None:
        """The prefix ``/`` and the regexes."""
        if self._root is not None:
            found = self._root.find(method, host, headers, model)
            if found is not None:
                return found if found is NEED_MODEL else self._decision(found, path, "" if path == "/" else path)
        for group in self._matching(path):
            found = group.find(method, host, headers, model)
            if found is NEED_MODEL:
                return NEED_MODEL
            if found is not None:
                return self._regex_decision(found, group.regex, path)
        return None

    def _decision(self, route: RouteConfig, path: str, left: str, groups: dict[str, str] = _NO_GROUPS) -> Decision:
        return Decision(route, self._left(route, path, left), groups)

    def _left(self, route: RouteConfig, path: str, left: str) -> str:
        """What the route's policy makes of the path; ``left``: what the match leaves of it."""
        if route.rewrite is not None:
            put = self._puts[route.name]
            return put + left if route.match.path is None else put
        return left if route.strip_prefix else path

    def _regex_decision(self, route: RouteConfig, regex: Any, path: str) -> Decision:
        groups = _NO_GROUPS
        if regex.groupindex:
            groups = {n: t for n, t in regex.fullmatch(path).groupdict().items() if t is not None}
        rest = groups.get("rest")
        if rest is not None:
            return self._decision(route, path, rest if rest.startswith("/") or not rest else f"/{rest}", groups)
        return self._decision(route, path, "" if route.rewrite is not None else _api_part(path), groups)

    def _matching(self, path: str) -> Iterator[_Group]:
        if self._regex_set is None:
            return (g for g in self._regexes if g.regex is not None and g.regex.fullmatch(path))
        return (self._regexes[i] for i in sorted(self._regex_set.Match(path) or ()))

    def explain(self, method: str, path: str, headers: Mapping[str, str], model: str | None = None) -> RouteExplanation:
        """Which route a request would take, and in words why each other one would not.

        Args:
            method: in any case.
            path: as a person types it, with or without a query.
            headers: in any case; ``Host`` among them.
            model: the body's ``model``, or None where it names none.
        """
        named = model if model is None else self._aliases.get(model, model)
        return routing_explain.explain(self._rules, self._winner, method, path, headers, named)

    def _winner(self, request: Request, path: str) -> tuple[RouteConfig, str] | None:
        decision = self.decide(request.method, path, request.host, request.headers, request.model)
        return (decision.route, decision.stripped_path) if isinstance(decision, Decision) else None


def _is_plain(rules: list[Rule], *, strips: bool = False) -> bool:
    """One rule without conditions: the path alone decides. ``strips``: and what follows the prefix is passed on."""
    if len(rules) != 1 or rules[0].conditions:
        return False
    return not strips or (rules[0].put is None and rules[0].route.strip_prefix)


def _api_part(path: str) -> str:
    return next((part for part in _API_PARTS if path.endswith(part)), "")


def _regex_set(patterns: list[str]) -> Any | None:
    """One automaton for all regexes, or None where it would not fit its memory: then they are tried one by one."""
    if not patterns:
        return None
    options = re2.Options()
    options.max_mem = _REGEX_SET_BYTES
    options.log_errors = False
    found = re2.Set.FullMatchSet(options)
    for pattern in patterns:
        found.Add(pattern)
    probe = found.Add(r"\x00")  # matches no path; proves that the automaton could be built at all
    found.Compile()
    return found if found.Match("\x00") == [probe] else None
