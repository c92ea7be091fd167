"""What happened, in the past tense. Frozen values the node puts on the service's queue; any thread may read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class NodeStateChanged:
    """The listener started, stopped or failed."""

    state: str
    url: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """A model became ready."""

    model: str
    load_s: float
    device: str


@dataclass(frozen=True, slots=True)
class ModelUnloaded:
    """A model's worker is gone as asked."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A load failed or a worker died."""

    model: str
    error: str
    log_tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigApplied:
    """A new configuration is in force."""

    revision: int
    source: str


@dataclass(frozen=True, slots=True)
class ConfigSaved:
    """The configuration was written."""

    path: str


@dataclass(frozen=True, slots=True)
class ConfigChangedOnDisk:
    """The file differs from what was read."""

    path: str


@dataclass(frozen=True, slots=True)
class AlertRaised:
    """A resource came near its limit, or nearer than before."""

    alert_id: str
    resource: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class AlertCleared:
    """It is calm again."""

    alert_id: str
    resource: str


@dataclass(frozen=True, slots=True)
class GuardActed:
    """The guard did something, or took it back."""

    action_id: str
    kind: str
    text: str
    reason: str
    undone: bool = False
    """True: this takes an earlier action back."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Anything else people should see: it becomes a banner in the window and a line in the log."""

    severity: Severity
    text: str
    source: str = "node"


Event = (
    NodeStateChanged
    | ModelLoaded
    | ModelUnloaded
    | ModelFailed
    | ConfigApplied
    | ConfigSaved
    | ConfigChangedOnDisk
    | AlertRaised
    | AlertCleared
    | GuardActed
    | Notice
)
