"""The configuration as frozen pydantic models. Parsed once at the edge; trusted everywhere inside; any thread.

Unknown keys are refused. Nothing here reads a file, touches a device or imports the node. ``NodeConfig`` checks
what spans several parts (names are unique, targets exist, one match rule a route) and offers edits that return a new
configuration. Field docstrings are the descriptions in the JSON schema.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from laya_desktop.config import rules
from laya_desktop.config.cross import cross_faults
from laya_desktop.config.edits import edit, invalid, put, refuse_if_used, without
from laya_desktop.config.frozen import Frozen as _Frozen
from laya_desktop.config.keys import ApiKey, CallerKey
from laya_desktop.config.route_schema import MatchConfig, RouteConfig, TargetConfig
from laya_desktop.config.rules import Fraction, Name, PathRule, PositiveDuration, PositiveSize, Size

__all__ = [
    "CacheConfig", "GuardConfig", "HealthConfig", "LogConfig", "LoraConfig", "MatchConfig", "ModelConfig", "NodeConfig",
    "QueueConfig", "RouteConfig", "ServerConfig", "TargetConfig", "UpstreamConfig",
]  # fmt: skip

VERSION = 1
"""The newest version of the file format that this program reads, and the one it writes."""


class ServerConfig(_Frozen):
    """Where and how the node listens."""

    host: rules.Host = "127.0.0.1"
    """Address to listen on; loopback by default. Another address needs api_keys."""
    port: Annotated[int, Field(ge=0, le=65535), rules.DIGITS] = 5292
    """TCP port; 0 takes a free one (tests, demo)."""
    api_keys: tuple[CallerKey, ...] = ()
    """Keys that callers present; each is ``{name, hash, created}``, ``sha256:<hex>`` or plain text."""
    admin_key: CallerKey | None = None
    """Key of ``/admin``, written like one of api_keys; null: ``/admin`` answers loopback callers only."""
    allowed_hosts: tuple[rules.HostRule, ...] = ()
    """Extra Host header names; loopback names and the listening address are always allowed."""
    cors_origins: tuple[rules.Origin, ...] = ()
    """Web pages that may call the routes from a browser, by exact origin, e.g. ``https://chat.example``."""
    max_body: PositiveSize = 32 * 1024**2
    """Largest request body, e.g. 32MiB."""
    max_connections: Annotated[int, Field(ge=1, le=65536), rules.DIGITS] = 4096
    """Connections held at once."""
    head_timeout: PositiveDuration = 10.0
    """Time for a request's head to arrive, e.g. 10s."""
    body_timeout: PositiveDuration = 60.0
    """Time for a request's body to arrive, e.g. 60s."""
    idle_timeout: PositiveDuration = 75.0
    """Time that an idle connection is kept open, e.g. 75s."""

    @model_validator(mode="after")
    def _unique_key_names(self) -> Self:
        names = [key.name for key in self.api_keys if isinstance(key, ApiKey)]
        twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise invalid("ServerConfig", [(("api_keys",), "Two keys have the same name. Give one another name.")])
        return self


class LogConfig(_Frozen):
    """Log files."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    """Least severe messages that are written."""
    dir: rules.Folder | None = None
    """Folder of the log files; a relative one starts at this configuration's folder; null: the platform's."""
    rotate: Literal["daily", "none"] = "daily"
    """When a new file is begun; a file that grows too large is always followed by a new one."""
    keep: Annotated[int, Field(ge=1, le=365), rules.DIGITS] = 7
    """Rotated files kept."""
    max_total: PositiveSize = 1024**3
    """Size of all log files together, e.g. 1GiB; the oldest go first."""
    prompts: bool = False
    """Write prompts and answers too, at level info."""


class GuardConfig(_Frozen):
    """How the machine is kept alive."""

    mem_fraction: Fraction = 0.9
    """Share of a device's memory that models may fill, above 0 and up to 1."""
    reserve_ram: Size = 2 * 1024**3
    """RAM left to everything else, e.g. 2GiB."""
    reserve_vram: Size = 1024**3
    """Memory left free on each GPU, e.g. 1GiB."""
    mode: rules.GuardMode = "shed"
    """off: only watch; warn: say so; shed: also refuse new work before the machine is overwhelmed."""


class QueueConfig(_Frozen):
    """A model's bounded queue."""

    policy: Literal["fifo", "priority"] = "fifo"
    """fifo: in order of arrival; priority: by the priority of the route, then the shortest expected answer first.
    What waits moves up a class every 15 s, so nothing starves."""
    max_waiting: Annotated[int, Field(ge=0, le=100_000), rules.DIGITS] = 64
    """Requests that may wait; one more is answered with 429."""
    max_prompt_tokens: Annotated[int, Field(ge=1, le=1_000_000_000), rules.DIGITS] | None = None
    """Prompt tokens (estimated from the text) that may wait together; more is answered with 429; null: no limit."""
    max_wait: PositiveDuration = 120.0
    """Longest wait, e.g. 120s; then the request is answered with 503."""


class CacheConfig(_Frozen):
    """A model's response cache."""

    enabled: bool = False
    """Answer an equal request from memory."""
    max_entries: Annotated[int, Field(ge=1, le=10_000_000), rules.DIGITS] = 1000
    """Answers kept."""
    max_bytes: PositiveSize = 64 * 1024**2
    """Memory for all kept answers, e.g. 64MiB."""
    ttl: PositiveDuration = 600.0
    """How long an answer is kept, e.g. 10m."""


KvType = Literal["f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


class RopeConfig(_Frozen):
    """Rotary position embedding; null: the model's own value."""

    freq_base: Annotated[float, Field(gt=0, le=1e12)] | None = None
    """Base frequency."""
    freq_scale: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Frequency scale: 0.5 stretches the context to twice its length."""


class LoraConfig(_Frozen):
    """An adapter (LoRA) that is applied to a model."""

    path: rules.AdapterPath
    """The adapter's GGUF file, made for this very model. A relative path starts at this configuration's folder."""
    scale: Annotated[float, BeforeValidator(rules.no_bool), Field(ge=-100, le=100)] = 1.0
    """How strongly it acts: 1 as it was trained, 0 not at all."""


class ModelConfig(_Frozen):
    """One LLM and how it is loaded."""

    name: Name
    """Its name, which routes and callers use; unique among models and upstreams."""
    aliases: tuple[Name, ...] = ()
    """Other names that callers may write into ``model``, e.g. ``[gpt-4o-mini]``; unique like names."""
    path: rules.ModelPath
    """The GGUF file, or with ``engine: transformers`` a Hugging Face model folder. A relative path starts at this
    configuration's folder; ``~`` is the home folder; ``package:NAME/FILE`` is a file inside an installed Python
    package."""
    engine: Literal["llama_cpp", "transformers", "fake"] = "llama_cpp"
    """What runs it: llama_cpp for GGUF files; transformers (PyTorch; needs ``pip install 'laya-desktop[torch]'``) for
    Hugging Face model folders; fake answers with made-up text, for tests."""
    device: rules.Device = "auto"
    """auto: GPU if the build and the machine have one and the model fits, else CPU; cpu; gpu; gpu:1."""
    gpu_layers: rules.Layers = "auto"
    """Layers offloaded to the GPU; auto: as many as the device takes."""
    batch_size: Annotated[int, Field(ge=1, le=256), rules.DIGITS] = 4
    """Sequences decoded together (slots)."""
    max_seq_len: Annotated[int, Field(ge=16, le=16_777_216), rules.DIGITS] = 4096
    """Tokens of context per sequence."""
    num_worker: rules.Threads = "auto"
    """Compute threads of this model's own pool; auto: physical cores, less one where there are more than two."""
    mem_fraction: Fraction | None = None
    """Share of the device's memory for this model; null: the guard's."""
    preload: bool = False
    """Load it when the node starts."""
    idle_unload: PositiveDuration | None = None
    """Unload it this long after the end of its last request, e.g. 10m; null: never."""
    pin: bool = False
    """Keep it loaded: neither idle_unload nor a load that needs its memory unloads it."""
    replicas: Annotated[int, Field(ge=1, le=64), rules.DIGITS] = 1
    """Processes that each hold the model with batch_size slots; requests go to the least busy one."""
    warmup: bool = True
    """Run a first decode while loading, so that the first answer is not slow."""
    kv_type: KvType = "f16"
    """Type of the KV cache's keys and values. q8_0 takes about half the memory of f16. A quantised one needs flash
    attention. llama_cpp only."""
    flash_attention: Annotated[Literal["auto", "on", "off"], BeforeValidator(rules.on_off)] = "auto"
    """auto: where the device and the model allow it; on; off. llama_cpp only."""
    mmap: bool = True
    """Map the file, so that the system may drop and reread the weights; false: read them into memory. llama_cpp
    only."""
    mlock: bool = False
    """Ask the system to keep the weights in RAM. llama_cpp only."""
    rope: RopeConfig = RopeConfig()
    """Rotary position embedding. llama_cpp only."""
    lora: tuple[LoraConfig, ...] = Field((), max_length=16)
    """Adapters that are applied to the model at every request, e.g. ``[{path: my-style.gguf, scale: 0.8}]``.
    llama_cpp only."""
    pooling: Literal["auto", "none", "mean", "cls", "last", "rank"] = "auto"
    """How /v1/embeddings makes one vector of a text's tokens; auto: as the model's file says, else the mean. With none
    or rank (rerankers) it makes no vectors. llama_cpp only."""
    queue: QueueConfig = QueueConfig()
    """Its bounded queue."""
    cache: CacheConfig = CacheConfig()
    """Its response cache."""

    @model_validator(mode="after")
    def _loading_agrees(self) -> Self:
        faults: list[tuple[tuple[str | int, ...], str]] = []
        if self.flash_attention == "off" and self.kv_type.startswith("q"):
            text = f"A KV cache of type {self.kv_type} needs flash attention, which is off."
            faults.append((("kv_type",), f"{text} Set flash_attention to auto or on, or kv_type to f16."))
        paths = [adapter.path for adapter in self.lora]
        if (twice := next((i for i, path in enumerate(paths) if path in paths[:i]), None)) is not None:
            faults.append((("lora", twice, "path"), "This adapter is named twice. Name it once, with one scale."))
        if self.engine == "transformers":
            changed = [k for k in _LLAMA_ONLY if getattr(self, k) != type(self).model_fields[k].default]
            faults += [((k,), f"{k} works with engine llama_cpp only. Leave it out.") for k in changed]
        if faults:
            raise invalid("ModelConfig", faults)
        return self


_LLAMA_ONLY = ("kv_type", "flash_attention", "mmap", "mlock", "rope", "lora", "pooling")


class HealthConfig(_Frozen):
    """How an upstream is checked."""

    path: PathRule = "/health"
    """Path that answers 200 while the upstream is well."""
    interval: PositiveDuration = 5.0
    """Time between two checks, e.g. 5s."""


class UpstreamConfig(_Frozen):
    """A remote OpenAI-compatible server."""

    name: Name
    """Its name, which routes use; unique among models and upstreams."""
    url: rules.Url
    """Where its API begins, e.g. ``http://192.168.1.20:5292/v1``."""
    api_key: rules.Secret | None = None
    """Plain text or ``keyring:NAME``; sent to this upstream only."""
    health: HealthConfig | None = None
    """How it is checked; null: not at all."""
    connect_timeout: PositiveDuration = 5.0
    """Time to reach it, e.g. 5s."""


class NodeConfig(_Frozen):
    """The whole configuration of a node."""

    version: Annotated[Literal[1], BeforeValidator(rules.no_bool)] = 1
    """Version of this file's format; a missing one means 1."""
    server: ServerConfig = ServerConfig()
    """Where and how the node listens."""
    log: LogConfig = LogConfig()
    """Log files."""
    guard: GuardConfig = GuardConfig()
    """How the machine is kept alive."""
    models: tuple[ModelConfig, ...] = ()
    """LLMs that this node runs."""
    model_folders: tuple[rules.Folder, ...] = ()
    """Folders that "Find models" searches besides the usual ones; a relative one starts at this configuration's
    folder."""
    upstreams: tuple[UpstreamConfig, ...] = ()
    """Remote servers that this node passes requests to."""
    routes: tuple[RouteConfig, ...] = ()
    """Which request goes to which model or upstream."""

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        models, upstreams = [m.name for m in self.models], [u.name for u in self.upstreams]
        routes = [(r.name, r.references) for r in self.routes]
        faults = cross_faults(models, upstreams, routes, [m.aliases for m in self.models])
        if faults:
            raise invalid("NodeConfig", faults)
        return self

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all models and upstreams, in file order."""
        return tuple(m.name for m in self.models) + tuple(u.name for u in self.upstreams)

    def model(self, name: str) -> ModelConfig | None:
        """The model of that name, or None."""
        return next((m for m in self.models if m.name == name), None)

    def model_called(self, name: str) -> ModelConfig | None:
        """The model of that name or alias, or None."""
        return self.model(name) or next((m for m in self.models if name in m.aliases), None)

    def upstream(self, name: str) -> UpstreamConfig | None:
        """The upstream of that name, or None."""
        return next((u for u in self.upstreams if u.name == name), None)

    def route(self, name: str) -> RouteConfig | None:
        """The route of that name, or None."""
        return next((r for r in self.routes if r.name == name), None)

    def with_model(self, model: ModelConfig, replacing: str | None = None) -> Self:
        """Add a model, or put it in the place of ``replacing``; the routes of a renamed model follow it.

        Raises:
            ConfigError: the name is taken, or there is no model ``replacing``.
        """
        return edit(self, models=put("models", self.models, model, replacing), routes=self._follow(replacing, model))

    def without_model(self, name: str) -> Self:
        """Remove a model.

        Raises:
            LayaError: there is none, or routes use it (code ``target_in_use``).
        """
        refuse_if_used("model", name, self.routes)
        return edit(self, models=without("models", self.models, name))

    def with_upstream(self, upstream: UpstreamConfig, replacing: str | None = None) -> Self:
        """Add an upstream, or put it in the place of ``replacing``; the routes of a renamed one follow it.

        Raises:
            ConfigError: the name is taken, or there is no upstream ``replacing``.
        """
        items = put("upstreams", self.upstreams, upstream, replacing)
        return edit(self, upstreams=items, routes=self._follow(replacing, upstream))

    def without_upstream(self, name: str) -> Self:
        """Remove an upstream.

        Raises:
            LayaError: there is none, or routes use it (code ``target_in_use``).
        """
        refuse_if_used("upstream", name, self.routes)
        return edit(self, upstreams=without("upstreams", self.upstreams, name))

    def with_route(self, route: RouteConfig, replacing: str | None = None) -> Self:
        """Add a route, or put it in the place of ``replacing``.

        Raises:
            ConfigError: the name is taken, the target unknown, or there is no route ``replacing``.
        """
        return edit(self, routes=put("routes", self.routes, route, replacing))

    def without_route(self, name: str) -> Self:
        """Remove a route.

        Raises:
            ConfigError: there is none.
        """
        return edit(self, routes=without("routes", self.routes, name))

    def move_route(self, name: str, place: int) -> Self:
        """Move a route to a 0-based place, counted after it was taken out; places beyond the ends mean the ends.

        Raises:
            ConfigError: there is none.
        """
        rest = list(without("routes", self.routes, name))
        rest.insert(max(0, place), next(r for r in self.routes if r.name == name))
        return edit(self, routes=tuple(rest))

    def _follow(self, old: str | None, item: ModelConfig | UpstreamConfig) -> tuple[RouteConfig, ...]:
        if old is None or old == item.name:
            return self.routes
        return tuple(r.renamed(old, item.name) for r in self.routes)
