"""What to do before the machine is overwhelmed: alerts, and in mode ``shed`` actions that a person can undo. Pure.

Runs on the node's thread once a sample; reads no sensor and no clock, and acts only through ``Effects``.
``off``: nothing. ``warn``: alerts only. ``shed``: at warn, batch requests wait and idle, unpinned models go, the least
recently used first and one at a time, so that no more go than must; at critical, loads and batch requests are refused.
Running answers always finish. An action ends when all is calm, or when it has not been needed for ``RELIEF_S`` (a
machine that is well filled and steady stays at watch, and batch requests must not starve there). An unloaded model is
not loaded again by the guard, which would only bring the alert back: its next request loads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, Protocol

from laya_desktop.errors import LayaError
from laya_desktop.node.guard_signs import HEAT, MEMORY, Sign
from laya_desktop.node.levels import RANK, worst
from laya_desktop.state.enums import Level
from laya_desktop.state.events import AlertCleared, AlertRaised, Event, GuardActed
from laya_desktop.state.snapshot import GuardAction, GuardAlert, GuardSnapshot

RELIEF_S = 30.0
IDLE_S = 10.0
"""At warn only a model that has been idle for so long goes: one between two messages of a chat stays."""
UNLOAD_EVERY_S = 3.0
"""Freed memory takes a moment to show, and what is enough is enough."""
RETRY_S = 10.0
ALERTS_KEPT, ACTIONS_KEPT = 100, 50

Mode = Literal["off", "warn", "shed"]
_STANDING = (
    ("hold_batch", Level.WARN, "Batch requests wait"),
    ("refuse_batch", Level.CRITICAL, "Batch requests are refused"),
    ("refuse_loads", Level.CRITICAL, "New models are not loaded"),
)
_LIFTED = {
    "hold_batch": "Batch requests run again",
    "refuse_batch": "Batch requests are taken again",
    "refuse_loads": "Models may be loaded again",
}


class Effects(Protocol):
    """What the guard may cause."""

    def set_standing(self, kind: str, *, on: bool) -> None:
        """``hold_batch``, ``refuse_batch`` or ``refuse_loads`` comes into force or ends."""
        ...

    def unload(self, model: str, reason: str) -> None:
        """Unload an idle model; one that has become busy since is left alone."""
        ...

    def reload(self, model: str) -> None:
        """Load a model again because a person wants it, whatever the guard thinks."""
        ...

    def say(self, event: Event) -> None:
        """Log it and tell the world."""
        ...


@dataclass(frozen=True, slots=True)
class ModelView:
    """A loaded model as the guard sees it."""

    name: str
    last_used_s: float
    busy: bool = False
    pinned: bool = False
    in_vram: bool = False
    in_ram: bool = True


class Guard:
    """Remembers alerts and actions; ``update`` with each sample."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._mode: Mode = "off"
        self._signs: tuple[Sign, ...] = ()
        self._now_s = self._unix_s = 0.0
        self._alerts: dict[str, GuardAlert] = {}
        self._past: deque[GuardAlert] = deque(maxlen=ALERTS_KEPT)
        self._standing: dict[str, GuardAction] = {}
        self._needed_s: dict[str, float] = {}
        """When each standing action was last called for."""
        self._unloads: deque[GuardAction] = deque(maxlen=ACTIONS_KEPT)
        self._unloaded_s: float | None = None
        self._left_alone: set[str] = set()
        """Kinds of action and names of models (``model:x``) that a person took back, until all is calm."""
        self._numbers = count(1)

    def update(
        self, now_s: float, unix_s: float, signs: Sequence[Sign], models: Iterable[ModelView], mode: Mode
    ) -> None:
        """Look at a new sample and act.

        Args:
            now_s: monotonic seconds.
            unix_s: the same moment for people.
            signs: all resources with their levels.
            models: those that are loaded.
            mode: ``guard.mode`` in force.
        """
        self._now_s, self._unix_s, self._mode = now_s, unix_s, mode
        self._signs = () if mode == "off" else tuple(signs)
        self._follow_alerts()
        if mode != "shed":
            self._end_all()
            return
        levels = {kind: worst([s.level for s in self._signs if s.kind == kind]) for kind in (MEMORY, HEAT)}
        self._follow_standing(worst(list(levels.values())))
        if RANK[levels[MEMORY]] >= RANK[Level.WARN]:
            self._unload_one(models, levels[MEMORY])
        elif not self._alerts_of(MEMORY, HEAT):
            self._left_alone.clear()
            self._unloads = deque((_ended(a, unix_s) for a in self._unloads), maxlen=ACTIONS_KEPT)

    @property
    def level(self) -> Level:
        """Of the worst sign."""
        return worst([s.level for s in self._signs])

    @property
    def text(self) -> str:
        """The worst sign in words; empty while calm."""
        found = max(self._signs, key=lambda s: RANK[s.level], default=None)
        return found.text if found is not None and found.level is not Level.CALM else ""

    def snapshot(self) -> GuardSnapshot:
        """A frozen picture."""
        there = sorted(self._alerts.values(), key=lambda a: (-RANK[a.level], -a.raised_unix_s))
        live = [*self._standing.values(), *(a for a in self._unloads if a.ended_unix_s is None)]
        actions = sorted(live, key=lambda a: -a.began_unix_s)
        alerts = (*there, *self._past)[:ALERTS_KEPT]
        return GuardSnapshot(self._mode, self.level, self.text, alerts, tuple(actions))

    def refusal(self, kind: str) -> LayaError | None:
        """The 503 for a batch request (``refuse_batch``) or a load (``refuse_loads``), or None: go ahead."""
        if (action := self._standing.get(kind)) is None:
            return None
        what = "Batch requests are refused" if kind == "refuse_batch" else "No model is loaded"
        return LayaError(
            f"{what} while the machine is at its limit: {self._worst_of(MEMORY, HEAT) or action.reason}.",
            hint="Retry after the given time, or undo the guard's action on the Overview page.",
            code="overloaded",
            status=503,
            retry_after_s=RETRY_S,
        )

    def undo(self, action_id: str) -> GuardAction:
        """Take an action back at a person's wish; the guard leaves it alone until all is calm.

        Raises:
            LayaError: there is no such action, or it is over (404).
        """
        for kind, action in list(self._standing.items()):
            if action.action_id == action_id:
                self._left_alone.add(kind)
                return self._end(kind, undone=True)
        for place, action in enumerate(self._unloads):
            if action.action_id == action_id and action.ended_unix_s is None and action.model is not None:
                self._left_alone.add(f"model:{action.model}")
                undone = self._unloads[place] = replace(_ended(action, self._unix_s), undone=True)
                self._effects.reload(action.model)
                self._tell(undone, f"'{action.model}' is loaded again", undone=True)
                return undone
        raise LayaError(
            f"The guard has no action '{action_id}' in force.",
            hint="It may be over already.",
            code="action_not_found",
            status=404,
        )

    # -- alerts

    def _follow_alerts(self) -> None:
        seen = {s.resource: s for s in self._signs if s.level is not Level.CALM}
        for resource in [r for r in self._alerts if r not in seen]:
            alert = self._alerts.pop(resource)
            self._past.appendleft(replace(alert, cleared_unix_s=self._unix_s))
            self._effects.say(AlertCleared(alert.alert_id, resource))
        for resource, sign in seen.items():
            known = self._alerts.get(resource)
            if known is None:
                number = f"a{next(self._numbers)}"
                new = GuardAlert(number, resource, sign.level, sign.level, sign.text, self._unix_s)
            else:
                new = replace(known, level=sign.level, text=sign.text, peak=worst([known.peak, sign.level]))
            new = replace(new, kind=sign.form, values=dict(sign.values))
            self._alerts[resource] = new
            if known is None or RANK[sign.level] > RANK[known.level]:
                self._effects.say(AlertRaised(new.alert_id, resource, sign.level, sign.text))

    def _alerts_of(self, *kinds: str) -> list[Sign]:
        return [s for s in self._signs if s.kind in kinds and s.level is not Level.CALM]

    def _worst_of(self, *kinds: str) -> str:
        found = max(self._alerts_of(*kinds), key=lambda s: RANK[s.level], default=None)
        return found.text if found else ""

    # -- actions

    def _follow_standing(self, level: Level) -> None:
        for kind, threshold, text in _STANDING:
            if RANK[level] >= RANK[threshold]:
                self._needed_s[kind] = self._now_s
                if kind not in self._standing and kind not in self._left_alone:
                    self._begin(kind, text)
            elif kind in self._standing:
                unneeded_s = self._now_s - self._needed_s.get(kind, self._now_s)
                if level is Level.CALM or unneeded_s >= RELIEF_S:
                    self._end(kind)

    def _begin(self, kind: str, text: str) -> None:
        action = GuardAction(f"g{next(self._numbers)}", kind, text, self._worst_of(MEMORY, HEAT), self._unix_s)
        self._standing[kind] = action
        self._effects.set_standing(kind, on=True)
        self._tell(action, text)
        self._note(MEMORY, HEAT, text=text)

    def _end(self, kind: str, *, undone: bool = False) -> GuardAction:
        action = replace(_ended(self._standing.pop(kind), self._unix_s), undone=undone)
        self._effects.set_standing(kind, on=False)
        self._tell(action, _LIFTED[kind], undone=True)
        return action

    def _end_all(self) -> None:
        for kind in list(self._standing):
            self._end(kind)
        self._left_alone.clear()
        self._unloads.clear()

    def _unload_one(self, models: Iterable[ModelView], level: Level) -> None:
        if self._unloaded_s is not None and 0 <= self._now_s - self._unloaded_s < UNLOAD_EVERY_S:
            return
        signs = [s for s in self._alerts_of(MEMORY) if RANK[s.level] >= RANK[Level.WARN]]
        vram, ram = (any(s.resource.startswith("vram") is gpu for s in signs) for gpu in (True, False))
        rest_s = 0.0 if level is Level.CRITICAL else IDLE_S

        def helps(model: ModelView) -> bool:
            rested = self._now_s - model.last_used_s >= rest_s
            return (
                rested
                and f"model:{model.name}" not in self._left_alone
                and ((vram and model.in_vram) or (ram and model.in_ram))
            )

        if (goes := next_to_unload(models, helps)) is None:
            return
        self._unloaded_s = self._now_s
        text, reason = f"Idle model '{goes.name}' is unloaded", self._worst_of(MEMORY)
        action = GuardAction(f"g{next(self._numbers)}", "unload_idle", text, reason, self._unix_s, model=goes.name)
        self._unloads.append(action)
        self._effects.unload(goes.name, f"the guard frees memory: {reason}")
        self._tell(action, text)
        self._note(MEMORY, text=text)

    def _tell(self, action: GuardAction, text: str, *, undone: bool = False) -> None:
        self._effects.say(GuardActed(action.action_id, action.kind, text, action.reason, undone))

    def _note(self, *kinds: str, text: str) -> None:
        """Write what was done on the alerts that called for it."""
        for sign in self._alerts_of(*kinds):
            alert = self._alerts[sign.resource]
            if RANK[sign.level] >= RANK[Level.WARN]:
                self._alerts[sign.resource] = replace(alert, actions=(*alert.actions, text)[-ACTIONS_KEPT:])


def next_to_unload(models: Iterable[ModelView], helps: Callable[[ModelView], bool]) -> ModelView | None:
    """The least recently used model that is idle and not pinned and whose memory would help; never a busy one."""
    return min(
        (m for m in models if not m.busy and not m.pinned and helps(m)), key=lambda m: m.last_used_s, default=None
    )


def _ended(action: GuardAction, unix_s: float) -> GuardAction:
    return action if action.ended_unix_s is not None else replace(action, ended_unix_s=unix_s)
