"""What the tray icon and the mini view say about a snapshot. Pure but for translation."""

from __future__ import annotations

from dataclasses import dataclass

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.state.enums import Level, ModelState, NodeState
from laya_desktop.state.snapshot import Forecast, NodeSnapshot

_RANK = {Level.CALM: 0, Level.WATCH: 1, Level.WARN: 2, Level.CRITICAL: 3}


@dataclass(frozen=True, slots=True)
class TrayState:
    """Level and words; ``on`` is False while the node does not listen."""

    level: Level
    on: bool
    tip: str
    """A line each: the state, what is loaded, tokens a second, what is tight."""


def worst(snapshot: NodeSnapshot) -> Forecast | None:
    """The forecast that matters most, or None while all is calm."""
    told = [f for f in snapshot.forecasts if f.level is not Level.CALM]
    return max(told, key=lambda f: _RANK[f.level], default=None)


def level_of(snapshot: NodeSnapshot) -> Level:
    """The worst level of the guard and of the forecasts."""
    forecast = worst(snapshot)
    levels = (snapshot.guard.level, forecast.level if forecast else Level.CALM)
    return max(levels, key=lambda level: _RANK[level])


def loaded_models(snapshot: NodeSnapshot) -> tuple[str, ...]:
    """Names of the models that answer."""
    return tuple(m.name for m in snapshot.models if m.state is ModelState.READY)


def tray_state(snapshot: NodeSnapshot) -> TrayState:
    """Everything the icon shows."""
    on, loaded, forecast = snapshot.node.state is NodeState.RUNNING, loaded_models(snapshot), worst(snapshot)
    lines = ["Laya Desktop"]
    if on:
        lines.append(tr("Running at {address}", address=f"{snapshot.node.host}:{snapshot.node.port}"))
    elif snapshot.node.state is NodeState.FAILED:
        lines.append(tr("The node could not start"))
    else:
        lines.append(tr("The node is stopped"))
    lines.append(tr("Loaded: {names}", names=", ".join(loaded)) if loaded else tr("No model loaded"))
    if loaded:
        lines.append(fmt.rate(snapshot.decode_tokens_per_s))
    text = in_words(snapshot.guard.text or (forecast.text if forecast else ""))
    if text:
        lines.append(text)
    return TrayState(level_of(snapshot), on, "\n".join(lines))
