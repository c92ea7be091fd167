"""What a benchmark measured. Frozen values without behaviour beyond look-ups; any thread; saved as JSON as they are.

Unknown is None. Latencies are milliseconds, sizes bytes, CPU per cent of one core (200: two cores busy).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

FORMAT = 1
"""Version of the saved form."""


class Scenario(StrEnum):
    """What a request goes through."""

    ROUTING = "routing"
    """The router alone: no model takes part."""
    SMALL = "small"
    """Routing and a small model."""
    LARGE = "large"
    """Routing and a larger model."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Of one figure over all answered requests of a level."""

    p50: float
    p95: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Fault:
    """Requests that were not answered as asked, by what came instead."""

    status: int | None
    """HTTP status; None: no answer came."""
    code: str
    """The node's word for it, e.g. ``queue_full``; else what happened to the connection."""
    count: int
    text: str
    """The node's own sentence, once."""


@dataclass(frozen=True, slots=True)
class Point:
    """One level: a number of requests under way at once."""

    concurrency: int
    requests: int
    """Answered with 200."""
    duration_s: float
    requests_per_s: float
    latency_ms: Quantiles | None = None
    ttft_ms: Quantiles | None = None
    """From sending to the first token."""
    itl_ms: Quantiles | None = None
    """Between two pieces of an answer."""
    routing_us: Quantiles | None = None
    """As the node measures it (``X-Laya-Routing-Us``)."""
    queue_ms: Quantiles | None = None
    prompt_tokens: float | None = None
    """Mean of a request."""
    completion_tokens: int = 0
    """Of all requests."""
    tokens_per_s: float | None = None
    """Completion tokens of all requests over the whole level."""
    faults: tuple[Fault, ...] = ()
    cpu_percent: float | None = None
    """Mean of the node and its workers."""
    ram_peak_bytes: int | None = None
    """Highest sum of the resident memory of the node and its workers."""
    client_cpu_percent: float | None = None
    """Of the client: near 100 it was the client that could do no more."""

    @property
    def failed(self) -> int:
        """Requests that were not answered with 200."""
        return sum(f.count for f in self.faults)


@dataclass(frozen=True, slots=True)
class Series:
    """One scenario over its levels."""

    scenario: Scenario
    target: str
    """The model's name, or the path that was asked."""
    points: tuple[Point, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    """The model's settings that matter for speed, as written."""
    problem: str | None = None
    """Why there are no (more) points."""

    def at(self, concurrency: int) -> Point | None:
        """The level, or None."""
        return next((p for p in self.points if p.concurrency == concurrency), None)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured."""

    system: str
    processor: str
    cores_physical: int | None
    cores_logical: int | None
    ram_bytes: int | None
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One run."""

    result_id: str
    created_unix_s: float
    machine: Machine
    versions: dict[str, str]
    prompt_tokens: int
    max_tokens: int
    requests: int
    rate_per_s: float | None
    """Requests a second that were sent to the router; None: as fast as it answered."""
    series: tuple[Series, ...] = ()
    complete: bool = True
    """False: it was cancelled."""
    format: int = FORMAT

    def of(self, scenario: Scenario) -> Series | None:
        """The series of a scenario, or None."""
        return next((s for s in self.series if s.scenario is scenario), None)


@dataclass(frozen=True, slots=True)
class Setting:
    """What Tune tries: the model's keys of the same names."""

    batch_size: int
    num_worker: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting, measured; or why not."""

    setting: Setting
    point: Point | None = None
    problem: str | None = None
    load_s: float | None = None

    @property
    def tokens_per_s(self) -> float | None:
        """What it gave; None where nothing was answered."""
        return self.point.tokens_per_s if self.point is not None else None


@dataclass(frozen=True, slots=True)
class TuneResult:
    """All trials of a model, the present setting first, and the choice."""

    model: str
    concurrency: int
    trials: tuple[Trial, ...]
    best: Setting | None
    """None: nothing was better than what there is."""
    gain: float | None = None
    """Of tokens per second over the present setting: 0.31 is 31 % more."""
    drift: float | None = None
    """By how much the present setting, measured again at the end, differed from the beginning (0.2: 20 %)."""
    complete: bool = True
