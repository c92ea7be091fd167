"""Which of a route's targets gets the next request. Pure but for the turns it remembers; the node's loop.

The least busy one: fewest requests in flight relative to its weight. Among equals a loaded one comes before one that
would have to be loaded, then they take turns by weight. A target known to be broken comes last. It sends nothing and
asks no target itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.config.schema import TargetConfig


class Readiness(IntEnum):
    """How soon a target can begin; lower is sooner."""

    READY = 0
    TO_BE_LOADED = 1
    BROKEN = 2


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """What a target has to do: requests that it runs or that wait for it."""

    busy: int = 0
    readiness: Readiness = Readiness.READY


class Balancer:
    """Remembers, for each route, whose turn it is among equals."""

    def __init__(self) -> None:
        self._credits: dict[str, dict[str, int]] = {}

    def order(self, route: str, targets: Sequence[TargetConfig], load_of: Callable[[str], TargetLoad]) -> list[str]:
        """All targets, the one to try first in front."""
        loads = {target.name: load_of(target.name) for target in targets}

        def rank(target: TargetConfig) -> tuple[bool, float, int]:
            load = loads[target.name]
            return load.readiness is Readiness.BROKEN, load.busy / target.weight, load.readiness

        ranked = sorted(targets, key=rank)
        best = [target for target in ranked if rank(target) == rank(ranked[0])]
        first = best[0].name if len(best) == 1 else self._turn(route, best)
        return [first, *(target.name for target in ranked if target.name != first)]

    def _turn(self, route: str, targets: Sequence[TargetConfig]) -> str:
        """Smooth weighted round robin: each gains its weight, the richest is chosen and pays for all."""
        known = self._credits.get(route, {})
        credit = {t.name: known.get(t.name, 0) + t.weight for t in targets}
        chosen = max(targets, key=lambda t: credit[t.name]).name
        credit[chosen] -= sum(t.weight for t in targets)
        self._credits[route] = known | credit
        return chosen

    def keep_only(self, routes: set[str]) -> None:
        """Forget the turns of every other route."""
        self._credits = {name: turns for name, turns in self._credits.items() if name in routes}
