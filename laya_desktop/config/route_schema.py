"""The parts of a route: what it matches, where it leads, what becomes of path and answer. Frozen; any thread.

``schema`` joins them with the rest and holds what spans several parts. Field docstrings are the descriptions in the
JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import ValidationError

from laya_desktop.config import rules
from laya_desktop.config.cross import Reference
from laya_desktop.config.edits import invalid
from laya_desktop.config.frozen import Frozen
from laya_desktop.config.rules import Name, PositiveDuration
from laya_desktop.state.enums import Priority


class MatchConfig(Frozen):
    """What a route matches: exactly one of path, prefix and regex, plus conditions that must all hold."""

    path: rules.RoutePath | None = None
    """This path and no other."""
    prefix: rules.RoutePath | None = None
    """This path and everything below it; it is stripped, and what follows names the API."""
    regex: rules.Regex | None = None
    """RE2 expression for the whole path; needs ``use_regex: true``."""
    use_regex: bool = False
    """Accepts what a regex costs: about 7 µs for every request that no path or prefix takes."""
    methods: rules.Methods = ()
    """HTTP methods; none: any."""
    host: rules.HostRule | None = None
    """The Host header."""
    headers: rules.Headers = {}  # noqa: RUF012 - pydantic copies it
    """Name to exact value; ``null``: present with any value; a value ending in ``*``: that prefix."""
    model: str | None = None
    """The body's ``model``; a model's name takes its aliases too."""

    @model_validator(mode="wrap")
    @classmethod
    def _one_rule(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Reports the rule beside the faults of single fields, so that all show at once."""
        faults = [] if not isinstance(data, dict) else rules.rule_faults(data)
        try:
            match = handler(data)
        except ValidationError as error:
            unknown = any(e["type"] == "extra_forbidden" for e in error.errors(include_url=False))
            if not faults or (unknown and "none of them" in faults[0][1]):
                raise  # a misspelt 'prefix' explains the missing one
            raise invalid("MatchConfig", faults, error) from None
        if faults:
            raise invalid("MatchConfig", faults)
        return match


class TargetConfig(Frozen):
    """One of several targets that share a route's requests."""

    name: Name
    """Name of a model or an upstream."""
    weight: Annotated[int, Field(ge=1, le=1000), rules.DIGITS] = 1
    """Its share: a target of weight 2 takes twice the requests of one of weight 1."""


def _bare_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Target = Annotated[TargetConfig, BeforeValidator(_bare_name, json_schema_input_type=TargetConfig | str)]
"""``{name: a, weight: 2}``, or only the name."""


class RouteConfig(Frozen):
    """A match rule plus policy."""

    name: Name
    """Its name; unique among routes."""
    match: MatchConfig
    """What it matches."""
    target: Name | None = None
    """Name of a model or an upstream. Either this or targets."""
    targets: tuple[Target, ...] = ()
    """Several models or upstreams that share the requests by weight: each request goes to the least busy one."""
    fallback: tuple[Name, ...] = ()
    """Models or upstreams that are tried in this order when the target cannot take a request. Only before the first
    byte of the answer: no connection, 429, 502, 503 or 504, a full queue, a model that cannot be loaded."""
    strip_prefix: bool = True
    """False: the whole path is passed on; true: what follows the prefix."""
    rewrite: rules.PathRule | None = None
    """A path that takes the prefix's place when the request is passed on, e.g. ``/v1``."""
    enabled: bool = True
    """False: the route is kept but matches nothing."""
    priority: Priority = Priority.NORMAL
    """Scheduling class of its requests."""
    timeout: PositiveDuration = 300.0
    """Longest time for a whole answer, e.g. 300s; fallbacks share it."""
    response_headers: rules.ResponseHeaders = {}  # noqa: RUF012 - pydantic copies it
    """Headers put on every answer of this route, e.g. ``{Cache-Control: no-store}``."""

    @model_validator(mode="wrap")
    @classmethod
    def _one_aim(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Reports what is wrong between keys beside the faults of single ones."""
        faults = [] if not isinstance(data, dict) else rules.aim_faults(data)
        try:
            route = handler(data)
        except ValidationError as error:
            raise (invalid("RouteConfig", faults, error) if faults else error) from None
        if faults:
            raise invalid("RouteConfig", faults)
        return route

    @property
    def weighted(self) -> tuple[TargetConfig, ...]:
        """Its targets with their weights, in file order, fallbacks not among them."""
        return self.targets or (TargetConfig(name=self.target or ""),)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets that share its requests, in file order."""
        return (self.target,) if self.target is not None else tuple(t.name for t in self.targets)

    @property
    def all_names(self) -> tuple[str, ...]:
        """``target_names``, then the fallbacks."""
        return self.target_names + self.fallback

    @property
    def target_text(self) -> str:
        """Where it leads, in one line: ``a``, ``a ×2, b``, ``a, else b``."""
        shares = ", ".join(t.name if t.weight == 1 else f"{t.name} ×{t.weight}" for t in self.targets)
        return ", else ".join([self.target or shares, *self.fallback])

    @property
    def references(self) -> list[Reference]:
        """Every name of a target that it holds, with its place."""
        found: list[Reference] = [] if self.target is None else [(("target",), self.target)]
        found += [(("targets", i, "name"), target.name) for i, target in enumerate(self.targets)]
        return found + [(("fallback", i), name) for i, name in enumerate(self.fallback)]

    def renamed(self, old: str, new: str) -> Self:
        """Itself after one of its targets got another name."""
        if old not in self.all_names:
            return self
        return self.model_copy(
            update={
                "target": new if self.target == old else self.target,
                "targets": tuple(t.model_copy(update={"name": new}) if t.name == old else t for t in self.targets),
                "fallback": tuple(new if name == old else name for name in self.fallback),
            }
        )
