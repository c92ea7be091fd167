"""What the guard's panel says: alerts and actions in words. Pure; runs on the Qt thread; imports no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import GuardAlert, NodeSnapshot

MOST_ALERTS = 20
_NO_MODE = {"warn": QT_TR_NOOP("It only says so: guard.mode is warn.")}


@dataclass(frozen=True, slots=True)
class ActionLine:
    """Something the guard did that is in force or can be taken back."""

    action_id: str
    text: str
    reason: str
    undo: str
    """What the button says."""


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert, there or past."""

    when: str
    level: Level
    text: str
    done: str


@dataclass(frozen=True, slots=True)
class GuardLines:
    """Everything the panel shows; compared by value."""

    level: Level
    text: str
    actions: tuple[ActionLine, ...] = ()
    alerts: tuple[AlertLine, ...] = ()

    @property
    def empty(self) -> bool:
        """True where there is nothing to say: calm, and always has been."""
        return not self.actions and not self.alerts


def guard_lines(snapshot: NodeSnapshot) -> GuardLines:
    """The panel of a snapshot."""
    guard = snapshot.guard
    live = [a for a in guard.alerts if a.cleared_unix_s is None]
    if live:
        more = tr(", and {counted}", counted=fmt.counted(len(live) - 1, "other alert")) if len(live) > 1 else ""
        text = f"{in_words(guard.text)}{more}. {tr(_NO_MODE.get(guard.mode, ''))}".rstrip()
    elif guard.alerts and guard.alerts[0].cleared_unix_s is not None:
        text = tr(
            "Calm again. Last alert: {age}.",
            age=fmt.age(_minute(guard.alerts[0].cleared_unix_s, snapshot), snapshot.unix_s),
        )
    else:
        text = tr("Calm.")
    actions = tuple(
        ActionLine(
            a.action_id,
            in_words(a.text),
            in_words(a.reason),
            tr("Load again") if a.kind == "unload_idle" else tr("Undo"),
        )
        for a in guard.actions
    )
    return GuardLines(guard.level, text, actions, tuple(map(_alert, guard.alerts[:MOST_ALERTS])))


def _minute(then_unix_s: float, snapshot: NodeSnapshot) -> float:
    """Ages below a minute stand still at their start, so that the line does not count along."""
    past_s = snapshot.unix_s - then_unix_s
    return then_unix_s if past_s >= 60 else snapshot.unix_s


def _alert(alert: GuardAlert) -> AlertLine:
    began = datetime.fromtimestamp(alert.raised_unix_s).astimezone().strftime("%H:%M:%S")
    if alert.cleared_unix_s is not None:
        began = tr(
            "{began}, for {seconds}", began=began, seconds=fmt.seconds(alert.cleared_unix_s - alert.raised_unix_s)
        )
    level = alert.peak if alert.cleared_unix_s is not None else alert.level
    return AlertLine(
        began, level, in_words(alert.text), "; ".join(map(in_words, alert.actions)) or tr("nothing was done")
    )
