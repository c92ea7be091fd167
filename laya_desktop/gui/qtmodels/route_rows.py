"""One table row per route: what the configuration says and what the node measured. Pure; imports no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.route_fields import conditions_text, match_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from laya_desktop.config.schema import NodeConfig, RouteConfig
    from laya_desktop.state.snapshot import NodeSnapshot, RouteSnapshot


@dataclass(frozen=True, slots=True)
class RouteRow:
    """Everything that the table shows of a route. ``p99_us`` None: not measured; it shows as "–"."""

    name: str
    enabled: bool
    match: str
    conditions: str
    target: str
    upstream: bool
    priority: str
    hits: int
    p99_us: float | None
    regex: bool = False
    shadowed_by: str | None = None
    target_note: str = ""
    unfinished: bool = False
    """The form holds edits of it that are not in force."""
    p50_us: float | None = None
    p95_us: float | None = None
    max_us: float | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about it, in words."""
        notes = []
        if self.shadowed_by is not None:
            notes.append(tr("shadowed by {shadowed_by}", shadowed_by=self.shadowed_by))
        if self.regex:
            notes.append(tr("regex: slower, checked last"))
        if self.target_note:
            notes.append(self.target_note)
        if self.unfinished:
            notes.append(tr("edits not in force"))
        return tuple(notes)

    def mentions(self, text: str) -> bool:
        """True where the filter's text is part of what the row says."""
        words = " ".join((self.name, self.match, self.conditions, self.target, self.priority, *self.notes)).lower()
        return all(word in words for word in text.lower().split())


def route_rows(snapshot: NodeSnapshot, config: NodeConfig, unfinished: Collection[str] = ()) -> list[RouteRow]:
    """Rows in file order for ``config`` (in force or on its way there)."""
    measured = {r.name: r for r in snapshot.routes}
    ill = {u.name for u in snapshot.upstreams if u.healthy is False}
    return [_row(route, config, measured.get(route.name), ill, unfinished) for route in config.routes]


def _row(
    route: RouteConfig,
    config: NodeConfig,
    measured: RouteSnapshot | None,
    ill: set[str],
    unfinished: Collection[str],
) -> RouteRow:
    return RouteRow(
        name=route.name,
        enabled=route.enabled,
        match=match_text(route.match),
        conditions=conditions_text(route.match),
        target=route.target_text,
        upstream=any(config.upstream(name) is not None for name in route.target_names),
        priority=str(route.priority),
        hits=measured.hits if measured else 0,
        p99_us=measured.p99_us if measured else None,
        regex=route.match.regex is not None,
        shadowed_by=measured.shadowed_by if measured else None,
        target_note=", ".join(tr("{name} does not answer", name=name) for name in route.target_names if name in ill),
        unfinished=route.name in unfinished,
        p50_us=measured.p50_us if measured else None,
        p95_us=measured.p95_us if measured else None,
        max_us=measured.max_us if measured else None,
    )
