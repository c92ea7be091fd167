"""A route as its form holds it: text fields ↔ configuration data. Pure; runs on the Qt thread; imports no Qt.

The form keeps what people typed, also where it is wrong; ``config.store.check_part`` judges it. Nothing here
validates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from laya_desktop.config import units
from laya_desktop.config.schema import MatchConfig, RouteConfig
from laya_desktop.gui.i18n import QT_TR_NOOP, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laya_desktop.config.schema import NodeConfig
    from laya_desktop.errors import Problem

KINDS = ("prefix", "path", "regex")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
REGEX_COST = QT_TR_NOOP("A regex runs on every request that no path or prefix takes: about 7 µs instead of 0.1 µs.")

_SHOWN = frozenset({
    "name", "match", "target", "targets", "fallback", "priority", "timeout", "enabled", "strip_prefix", "rewrite",
    "response_headers",
})  # fmt: skip
_SHOWN_MATCH = frozenset({"prefix", "path", "regex", "use_regex", "methods", "host", "headers", "model"})
_PLACES = {"prefix": "path", "regex": "path", "targets": "shares"}
"""Keys that another field shows."""
_FIELDS = (_SHOWN | _SHOWN_MATCH | {"shares"}) - {"match", "prefix", "regex", "targets"}
ADVANCED = ("shares", "strip_prefix", "rewrite", "response_headers")
"""Fields that most routes leave alone."""
_SHARE = re.compile(r"(?P<name>.*?)(?:\s*[×*]\s*|\s+x\s*)(?P<weight>\S+)")
_YAML_WIDTH = 40
"""Characters that fit beside the form."""
_DEFAULT_TIMEOUT = units.format_duration(300.0)


@dataclass(frozen=True, slots=True)
class RouteFields:
    """Every field of the form, as typed. Empty text means "any" or the default."""

    name: str = ""
    kind: str = "prefix"
    path: str = ""
    use_regex: bool = False
    methods: str = ""
    host: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    model: str = ""
    target: str = ""
    priority: str = "normal"
    fallback: str = ""
    """Names in order, with commas between."""
    timeout: str = _DEFAULT_TIMEOUT
    enabled: bool = True
    shares: str = ""
    """Several targets with weights, ``a ×2, b``; where there are any, ``target`` says nothing."""
    strip_prefix: bool = True
    rewrite: str = ""
    response_headers: tuple[tuple[str, str], ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the route that the form does not show."""
    kept_match: Mapping[str, Any] = field(default_factory=dict)


def fields_of(route: RouteConfig) -> RouteFields:
    """The form of a route in force."""
    match = route.match
    kind = next(k for k in KINDS if getattr(match, k) is not None)
    data = route.model_dump(mode="json", exclude_defaults=True)
    kept = {key: value for key, value in data.items() if key not in _SHOWN}
    kept_match = {key: value for key, value in data["match"].items() if key not in _SHOWN_MATCH}
    return RouteFields(
        name=route.name,
        kind=kind,
        path=getattr(match, kind),
        use_regex=match.use_regex,
        methods=", ".join(match.methods),
        host=match.host or "",
        headers=tuple((name, value or "") for name, value in match.headers.items()),
        model=match.model or "",
        target=route.target or "",
        shares=_shares([t.model_dump(exclude_defaults=True) for t in route.targets]),
        strip_prefix=route.strip_prefix,
        rewrite=route.rewrite or "",
        response_headers=tuple(route.response_headers.items()),
        fallback=", ".join(route.fallback),
        priority=str(route.priority),
        timeout=units.format_duration(route.timeout),
        enabled=route.enabled,
        kept=kept,
        kept_match=kept_match,
    )


def data_of(fields: RouteFields) -> dict[str, Any]:
    """Configuration data, as it would stand in the file: defaults are left out, wrong text is kept."""
    data: dict[str, Any] = {"name": fields.name.strip(), "match": _match_of(fields) | dict(fields.kept_match)}
    if fields.shares.strip():
        data["targets"] = targets_of(fields.shares)
    else:
        data["target"] = fields.target.strip()
    if fallback := [name for name in (n.strip() for n in fields.fallback.split(",")) if name]:
        data["fallback"] = fallback
    return data | _policy_of(fields) | dict(fields.kept)


def _match_of(fields: RouteFields) -> dict[str, Any]:
    match: dict[str, Any] = {fields.kind: fields.path.strip()}
    if fields.kind == "regex" and fields.use_regex:
        match["use_regex"] = True
    if methods := [m.upper() for m in fields.methods.replace(",", " ").split()]:
        match["methods"] = methods
    if host := fields.host.strip():
        match["host"] = host
    if headers := {n.strip(): v.strip() or None for n, v in fields.headers if n.strip() or v.strip()}:
        match["headers"] = headers
    if model := fields.model.strip():
        match["model"] = model
    return match


def _policy_of(fields: RouteFields) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    if not fields.enabled:
        policy["enabled"] = False
    if fields.priority != "normal":
        policy["priority"] = fields.priority
    if (timeout := fields.timeout.strip()) != _DEFAULT_TIMEOUT:
        policy["timeout"] = timeout
    if not fields.strip_prefix:
        policy["strip_prefix"] = False
    if rewrite := fields.rewrite.strip():
        policy["rewrite"] = rewrite
    if answers := {n.strip(): v.strip() for n, v in fields.response_headers if n.strip() or v.strip()}:
        policy["response_headers"] = answers
    return policy


def targets_of(text: str) -> list[dict[str, Any] | str]:
    """``a ×2, b`` (or ``a x2``, ``a * 2``) as the file has it; a weight that is no number is kept for the check."""
    made: list[dict[str, Any] | str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        found = _SHARE.fullmatch(part)
        if found is None:
            made.append(part)
        else:
            weight = found["weight"]
            made.append({"name": found["name"].strip(), "weight": int(weight) if weight.isdecimal() else weight})
    return made


def is_advanced(fields: RouteFields) -> bool:
    """Whether one of the fields that most routes leave alone says something."""
    plain = RouteFields()
    return any(getattr(fields, key) != getattr(plain, key) for key in ADVANCED)


def yaml_of(fields: RouteFields) -> str:
    """The item of ``routes:`` that the form makes."""
    return yaml.safe_dump(
        [data_of(fields)], sort_keys=False, default_flow_style=None, allow_unicode=True, width=_YAML_WIDTH
    )


def field_of(loc: Sequence[str | int]) -> str | None:
    """The field under which a problem at ``loc`` (relative to the route) belongs; None: the whole form."""
    words = [part for part in loc if isinstance(part, str)]
    if words[:1] == ["match"]:
        words = words[1:] or ["path"]
    word = _PLACES.get(words[0], words[0]) if words else None
    return word if word in _FIELDS else None


def problems_by_field(problems: Iterable[Problem], kind: str) -> dict[str | None, str]:
    """Texts to show by field; several problems of one field are joined.

    A regex without its switch is the switch's problem, since that is where people act.
    """
    shown: dict[str | None, str] = {}
    for problem in problems:
        place = field_of(problem.loc)
        if place == "path" and kind == "regex" and "use_regex: true" in problem.message:
            place = "use_regex"
        message = problem.message if place or not problem.loc else f"{problem.key}: {problem.message}"
        earlier = shown.get(place)
        shown[place] = f"{earlier} {message}" if earlier else message
    return shown


def new_route(config: NodeConfig) -> RouteFields:
    """A draft that would work: a free prefix to the first model (or upstream)."""
    targets = config.target_names
    target = targets[0] if targets else ""
    prefixes = {r.match.prefix for r in config.routes}
    candidates = ["/v1/model", f"/v1/{target}" if target else "/v1/new", *(f"/v1/route-{n}" for n in range(2, 1000))]
    path = next(p for p in candidates if p not in prefixes)
    return RouteFields(name=free_name(target or "route", config), path=path, target=target)


TEMPLATES = {
    "prefix": QT_TR_NOOP("Chat below a path"),
    "header": QT_TR_NOOP("One model by a header"),
    "shares": QT_TR_NOOP("Two models share the requests"),
    "fallback": QT_TR_NOOP("Another target where the first one cannot"),
    "rewrite": QT_TR_NOOP("A path of another version"),
    "regex": QT_TR_NOOP("Paths by a regular expression"),
}
"""Common cases, by key."""


def from_template(key: str, config: NodeConfig) -> RouteFields:
    """A draft for a common case, with this configuration's own names."""
    plain = new_route(config)
    names = [*config.target_names, "first-model", "other-model"][:2]
    match key:
        case "header":
            return replace(plain, headers=(("X-Tier", "pro"),))
        case "shares":
            return replace(plain, target="", shares=f"{names[0]} ×2, {names[1]}")
        case "fallback":
            return replace(plain, target=names[0], fallback=names[1])
        case "rewrite":
            return replace(plain, path="/api/v2", rewrite="/v1")
        case "regex":
            return replace(plain, kind="regex", path="/u/(?P<id>[0-9]+)/chat", use_regex=True)
        case _:
            return plain


def copy_of(route: RouteConfig, config: NodeConfig) -> RouteFields:
    """A draft like ``route`` under a free name; one condition must be changed before it can be added."""
    return replace(fields_of(route), name=free_name(route.name, config))


def free_name(name: str, config: NodeConfig) -> str:
    """``name``, or ``name 2``, ``name 3`` … where it is taken by a route."""
    taken = {r.name for r in config.routes}
    return next(n for n in (name, *(f"{name} {i}" for i in range(2, 10_000))) if n not in taken)


def _shares(targets: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{t['name']} ×{t['weight']}" if t.get("weight", 1) != 1 else t["name"] for t in targets)


def match_text(match: MatchConfig) -> str:
    """The path rule in one word: ``= /status``, ``/v1/model/*`` or ``~ /u/[0-9]+``."""
    if match.path is not None:
        return f"= {match.path}"
    if match.prefix is not None:
        return f"{match.prefix.rstrip('/')}/*"
    return f"~ {match.regex}"


def conditions_text(match: MatchConfig) -> str:
    """The other conditions: ``POST · X-Tier: pro · model: qwen3-32b``; empty where there are none."""
    parts = [" ".join(match.methods)] if match.methods else []
    if match.host:
        parts.append(tr("host: {host}", host=match.host))
    parts += [
        f"{name}: {value}" if value is not None else tr("{name}: any", name=name)
        for name, value in match.headers.items()
    ]
    if match.model:
        parts.append(f"model: {match.model}")
    return " · ".join(parts)


def headers_from_text(text: str) -> tuple[dict[str, str], str | None]:
    """``X-Tier: pro; X-Team: blue`` as a dict, and the first part that is no header (None: all are)."""
    headers: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, colon, value = part.partition(":")
        if not colon or not name.strip():
            return headers, part
        headers[name.strip()] = value.strip()
    return headers, None
