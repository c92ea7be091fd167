"""Frozen pictures of the node, published four times a second. Any thread may read them; nobody changes them.

Unknown is None and shows as "–"; units are suffixes. Everything here can be encoded as JSON by msgspec.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laya_desktop.state.enums import Level, ModelState, NodeState, Phase, Priority, Verdict

if TYPE_CHECKING:
    from laya_desktop.config.schema import NodeConfig


@dataclass(frozen=True, slots=True)
class LatencyStats:
    """Quantiles of routing latency over the last ten seconds; None where nothing was routed.

    ``count`` is the number of requests ever; ``rate_per_s`` their rate over the same ten seconds.
    """

    count: int = 0
    rate_per_s: float = 0.0
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    max_us: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyWindow:
    """Quantiles of routing latency over the last ``window_s`` seconds; None where nothing was routed."""

    window_s: int
    count: int = 0
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    max_us: float | None = None


@dataclass(frozen=True, slots=True)
class SlotSnapshot:
    """One decoding lane."""

    slot_id: int
    phase: Phase | None = None
    """None: free."""
    request_id: str | None = None
    kv_cache_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """A model's response cache since the node started."""

    enabled: bool = False
    entries: int = 0
    bytes: int = 0
    """Of the answers kept."""
    max_entries: int = 0
    max_bytes: int = 0
    hits: int = 0
    misses: int = 0
    saved_s: float = 0.0
    """Seconds of generation that the hits did not cost."""


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """One configured model and what is really running of it."""

    name: str
    state: ModelState = ModelState.UNLOADED
    progress: float | None = None
    """0.0 to 1.0 while loading."""
    error: str | None = None
    """Why the last load failed or the worker died: what, where, what next."""
    error_code: str | None = None
    """The error's stable word, e.g. ``will_not_fit`` or ``out_of_memory``."""
    restarts: int = 0
    """Unexpected deaths within the last five minutes; three of them end the restarts."""
    log_tail: tuple[str, ...] = ()
    device: str | None = None
    """The device in use as the worker reports it ("CPU", "CUDA0 NVIDIA …"), None while not loaded."""
    device_note: str | None = None
    """Why that device, e.g. "no GPU found, so auto chose the CPU"."""
    offloaded_layers: int | None = None
    total_layers: int | None = None
    slots: tuple[SlotSnapshot, ...] = ()
    waiting: int = 0
    running: int = 0
    queue_limit: int = 0
    max_seq_len: int | None = None
    prefill_tokens_per_s: float = 0.0
    decode_tokens_per_s: float = 0.0
    pid: int | None = None
    cpu_percent: float | None = None
    """Of one core: 200.0 means two cores busy."""
    rss_bytes: int | None = None
    vram_bytes: int | None = None
    ceiling_kind: str | None = None
    """What keeps each worker below its share of RAM: ``cgroup``, ``rlimit``, ``job object`` or ``watched``; None:
    nothing does (not loaded, or on a GPU)."""
    ceiling_bytes: int | None = None
    """As the system has it."""
    ceiling_note: str | None = None
    """Why it is no stronger one."""
    load_s: float | None = None
    requests_total: int = 0
    last_used_unix_s: float | None = None
    changed_keys: tuple[str, ...] = ()
    """Keys of its configuration that changed since it was loaded and act at the next load, e.g. ``num_worker``."""
    replicas: int = 1
    """Processes wanted; ``slots`` and the figures of processor and memory are those of all of them."""
    pids: tuple[int, ...] = ()
    """Process ids of the replicas that run; ``pid`` is the first."""
    pinned: bool = False
    load_note: str | None = None
    """What a load waits for, e.g. "waiting for memory: 'a' finishes 1 answer"; None while it waits for nothing."""
    expected_wait_s: float | None = None
    """Seconds until a request that came now would start, from the measured service rate; None: unknown."""
    cache: CacheSnapshot | None = None
    """None: its cache is off and empty."""


@dataclass(frozen=True, slots=True)
class RouteSnapshot:
    """One configured route and its traffic."""

    name: str
    hits: int = 0
    p50_us: float | None = None
    """Routing latency of the last ten seconds, as the other three."""
    p99_us: float | None = None
    shadowed_by: str | None = None
    """Name of a route that always wins before this one."""
    p95_us: float | None = None
    max_us: float | None = None


@dataclass(frozen=True, slots=True)
class RequestSnapshot:
    """One live or recent request."""

    request_id: str
    received_unix_s: float
    route: str | None
    target: str | None
    method: str
    path: str
    phase: Phase
    priority: Priority = Priority.NORMAL
    queue_place: int | None = None
    """1 is next; None when not waiting."""
    stream: bool = False
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    routing_us: float | None = None
    queue_s: float | None = None
    ttft_s: float | None = None
    decode_tokens_per_s: float | None = None
    duration_s: float | None = None
    status: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    expected_wait_s: float | None = None
    """Seconds until it is likely to start; None when not waiting or unknown."""
    waiting_for: str | None = None
    """In words what a queued request waits for: "a free slot", "the model to load (40 %)" …; None when not waiting."""
    cache: str | None = None
    """``hit``, ``miss`` or ``bypass``; None: the model has no response cache."""


@dataclass(frozen=True, slots=True)
class GpuSnapshot:
    """One GPU; a missing sensor is None."""

    index: int
    name: str
    vram_total_bytes: int | None = None
    vram_used_bytes: int | None = None
    utilisation_percent: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: str | None = None
    """Why it runs slower than it could: ``heat``, ``power``, or empty while it does not; None: unknown."""


@dataclass(frozen=True, slots=True)
class MachineSnapshot:
    """The machine's sensors; a missing sensor is None and ``reasons`` says why by field name."""

    cpu_percent: float | None = None
    """Of the whole machine, 0 to 100."""
    cpu_per_core_percent: tuple[float, ...] = ()
    cores_physical: int | None = None
    cores_logical: int | None = None
    load_1min: float | None = None
    ram_total_bytes: int | None = None
    """The machine's RAM, or the cgroup's limit where that is lower."""
    ram_used_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    swap_total_bytes: int | None = None
    own_rss_bytes: int | None = None
    disk_free_bytes: int | None = None
    """Of the volume that holds the logs."""
    log_write_bytes_per_s: float | None = None
    """By which the files of the log folder grow, over about five seconds."""
    cpu_temperature_c: float | None = None
    cpu_throttle: str | None = None
    """``heat`` where the CPU was slowed down in the last ten seconds, else empty; None: unknown."""
    memory_some_avg10_percent: float | None = None
    """Linux's memory pressure (PSI): share of the last 10 s in which some task waited for memory."""
    memory_full_avg10_percent: float | None = None
    """The same for all tasks at once: the machine did nothing but fetch memory."""
    swap_in_bytes_per_s: float | None = None
    swap_out_bytes_per_s: float | None = None
    major_faults_per_s: float | None = None
    """Pages that had to be read from a disk before a program could go on."""
    gpus: tuple[GpuSnapshot, ...] = ()
    gpu_reason: str | None = None
    """Why ``gpus`` is empty, e.g. "no NVIDIA driver found"."""
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where one resource is heading: ``resource`` is ``ram``, ``vram:0`` or ``queue:<model>``."""

    resource: str
    level: Level = Level.CALM
    slope_per_s: float | None = None
    """Bytes (or requests) per second over the last 20 s; None while there are too few samples."""
    time_to_full_s: float | None = None
    """Seconds until headroom is gone at this rate; None when it is not shrinking."""
    text: str = ""
    """In words: "RAM full in about 45 s at this rate"."""
    kind: str = "unknown"
    """The form of ``text``, stable: ``full_in``, ``over_limit``, ``at_limit``, ``near_limit``, ``calm``, ``unknown``;
    of queues ``queue_full``, ``queue_grows``, ``calm``, ``unknown``."""
    headroom: float | None = None
    """Bytes (or places in the queue) to the limit; below zero: over it."""


@dataclass(frozen=True, slots=True)
class GuardAction:
    """Something the guard did to keep the machine alive."""

    action_id: str
    kind: str
    """``hold_batch``, ``unload_idle``, ``refuse_batch`` or ``refuse_loads``."""
    text: str
    """In the past or present tense, e.g. "Batch requests wait"."""
    reason: str
    """What the machine looked like then, e.g. "RAM full in about 45 s at this rate"."""
    began_unix_s: float
    ended_unix_s: float | None = None
    """None: in force."""
    model: str | None = None
    undone: bool = False
    """True: a person took it back before the guard did."""


@dataclass(frozen=True, slots=True)
class GuardAlert:
    """One resource that came near its limit, from the first warning until it was calm again."""

    alert_id: str
    resource: str
    """``ram``, ``vram:0``, ``queue:<model>``, ``pressure``, ``swap``, ``disk``, ``temperature`` or ``throttle``."""
    level: Level
    """Now; of a past alert, the last one before it was calm."""
    peak: Level
    text: str
    raised_unix_s: float
    cleared_unix_s: float | None = None
    """None: still there."""
    actions: tuple[str, ...] = ()
    """What was done about it, oldest first; empty: it was only said."""
    kind: str = ""
    """The form of ``text``, stable: a forecast's, or ``pressure``, ``swap``, ``disk``, ``heat``, ``throttle``."""
    values: dict[str, float] = field(default_factory=dict)
    """The figures in ``text`` by what they are: ``headroom_bytes``, ``time_to_full_s``, ``growth_per_s``, ``percent``,
    ``bytes_per_s``, ``free_bytes``, ``celsius``, ``places``."""


@dataclass(frozen=True, slots=True)
class GuardSnapshot:
    """What the guard sees and does."""

    mode: str = "shed"
    level: Level = Level.CALM
    text: str = ""
    """The worst alert in words; empty while calm."""
    alerts: tuple[GuardAlert, ...] = ()
    """Those that are there, worst first, then the past ones, newest first; bounded."""
    actions: tuple[GuardAction, ...] = ()
    """Those in force or that can be undone, newest first."""


@dataclass(frozen=True, slots=True)
class Capability:
    """What this llama.cpp build and this machine can do with GPUs."""

    probed: bool = False
    gpu_available: bool = False
    reason: str | None = None
    """Why not: no GPU found, or the build has no GPU backend; and how to get one."""
    devices: tuple[str, ...] = ()
    llama_version: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """Configuration in force against the file it came from."""

    path: str | None = None
    revision: int = 0
    """Counts every applied change."""
    unsaved: tuple[str, ...] = ()
    """One short line per difference from the file, e.g. "route chat: priority normal → batch"."""
    changed_on_disk: bool = False


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The listener."""

    state: NodeState = NodeState.STOPPED
    host: str = ""
    port: int = 0
    url: str | None = None
    error: str | None = None
    started_unix_s: float | None = None
    connections: int = 0
    requests_total: int = 0


@dataclass(frozen=True, slots=True)
class UpstreamSnapshot:
    """One upstream's health."""

    name: str
    healthy: bool | None = None
    """None: not checked yet."""
    error: str | None = None
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """Everything the window shows, at one moment."""

    seq: int = 0
    monotonic_s: float = 0.0
    unix_s: float = 0.0
    node: NodeStatus = field(default_factory=NodeStatus)
    config: NodeConfig | None = None
    config_status: ConfigStatus = field(default_factory=ConfigStatus)
    routing: LatencyStats = field(default_factory=LatencyStats)
    routing_windows: tuple[LatencyWindow, ...] = ()
    """Over 1, 5 and 30 minutes."""
    models: tuple[ModelSnapshot, ...] = ()
    routes: tuple[RouteSnapshot, ...] = ()
    upstreams: tuple[UpstreamSnapshot, ...] = ()
    requests: tuple[RequestSnapshot, ...] = ()
    """Live ones first, then the most recent finished ones (200 at most), newest first."""
    machine: MachineSnapshot = field(default_factory=MachineSnapshot)
    forecasts: tuple[Forecast, ...] = ()
    capability: Capability = field(default_factory=Capability)
    guard: GuardSnapshot = field(default_factory=GuardSnapshot)

    @property
    def prefill_tokens_per_s(self) -> float:
        """Over all models."""
        return sum(m.prefill_tokens_per_s for m in self.models)

    @property
    def decode_tokens_per_s(self) -> float:
        """Over all models."""
        return sum(m.decode_tokens_per_s for m in self.models)

    @property
    def waiting(self) -> int:
        """Requests in all queues."""
        return sum(m.waiting for m in self.models)

    @property
    def running(self) -> int:
        """Requests that hold a slot or an upstream."""
        return sum(m.running for m in self.models) + sum(u.in_flight for u in self.upstreams)

    def model(self, name: str) -> ModelSnapshot | None:
        """The model of that name, or None."""
        return next((m for m in self.models if m.name == name), None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings under which a model that does not fit would; None: left as it is."""

    kv_type: str | None = None
    max_seq_len: int | None = None
    batch_size: int | None = None
    gpu_layers: int | None = None
    text: str = ""
    """In words: "kv_type q8_0, max_seq_len 2,048 instead of 4,096"."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What a model would take before it is loaded. Any part may be None (unknown)."""

    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    """In words: why it fits or not, with the numbers and the way out."""
    device: str = "cpu"
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    compute_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    """Free on that device after the guard's reserve."""
    other_bytes: int | None = None
    """RAM of the worker besides those: program, vocabulary, graphs, repacked weights. None on a GPU or unknown."""
    proposal: Proposal | None = None
    """Settings that would fit; None where it fits, nothing would, or nobody knows."""
    measured_bytes: int | None = None
    """What workers with this file and these settings have been seen to hold; ``total_bytes`` counts it already."""


@dataclass(frozen=True, slots=True)
class ModelFileInfo:
    """Metadata of a model file, read without loading it."""

    path: str
    size_bytes: int
    architecture: str | None = None
    name: str | None = None
    parameters: int | None = None
    quantisation: str | None = None
    context_length: int | None = None
    layers: int | None = None
    embedding_length: int | None = None
    has_chat_template: bool = False


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that is on this machine already, in some program's folder."""

    path: str
    name: str
    source: str
    """Whose folder it is in: ``LM Studio``, ``Ollama`` …"""
    size_bytes: int
    info: ModelFileInfo | None = None
    engine: str = "llama_cpp"
    """What would run it: ``llama_cpp`` or ``transformers``."""
    problem: str | None = None
    """Why it cannot be loaded, where it cannot."""


@dataclass(frozen=True, slots=True)
class CandidateExplanation:
    """Why one route won or lost."""

    route: str
    won: bool
    reason: str


@dataclass(frozen=True, slots=True)
class RouteExplanation:
    """Which route a request would take, and why each other one would not. Nothing is sent."""

    winner: str | None
    target: str | None
    reason: str
    stripped_path: str | None = None
    """The path that the target gets, after stripping or rewriting."""
    candidates: tuple[CandidateExplanation, ...] = ()
    targets: tuple[str, ...] = ()
    """All targets that share the winner's requests; ``target`` is the first of them."""
    fallback: tuple[str, ...] = ()
    """Targets that are tried in this order when those cannot take the request."""
    target_text: str = ""
    """Where the request goes, in words: "the least busy of a ×2, b, else c"."""
