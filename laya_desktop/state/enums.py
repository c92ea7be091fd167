"""The words of the field as enums. Pure values; their string values appear in YAML, JSON and logs."""

from __future__ import annotations

from enum import StrEnum


class NodeState(StrEnum):
    """Life of the node's listener."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


class ModelState(StrEnum):
    """Life of a model."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    READY = "ready"
    UNLOADING = "unloading"
    FAILED = "failed"


class Phase(StrEnum):
    """Where a request is."""

    QUEUED = "queued"
    PREFILL = "prefill"
    DECODE = "decode"
    PROXY = "proxy"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """True once nothing more will happen to the request."""
        return self in (Phase.DONE, Phase.CANCELLED, Phase.FAILED)


class Priority(StrEnum):
    """Scheduling class of a route's requests."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    BATCH = "batch"


class Level(StrEnum):
    """How near the machine is to its limits."""

    CALM = "calm"
    WATCH = "watch"
    WARN = "warn"
    CRITICAL = "critical"


class Verdict(StrEnum):
    """Would a model fit?"""

    FITS = "fits"
    TIGHT = "tight"
    WILL_NOT_FIT = "will_not_fit"
    UNKNOWN = "unknown"
