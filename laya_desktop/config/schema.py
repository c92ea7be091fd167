"""The configuration as frozen pydantic models. Parsed once at the edge; trusted everywhere inside.

Unknown keys are refused. Nothing here reads a file, touches a device or imports the node. ``NodeConfig`` checks
what spans several parts (names are unique, targets exist, one match rule a route).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from laya_desktop.config import units
from laya_desktop.errors import near
from laya_desktop.state.enums import Priority

Duration = Annotated[
    float, BeforeValidator(units.parse_duration), PlainSerializer(units.format_duration, return_type=str)
]
"""Seconds; written as ``300s``, ``5m`` or ``1h``."""

Size = Annotated[int, BeforeValidator(units.parse_size), PlainSerializer(units.format_size, return_type=str)]
"""Bytes; written as ``512MiB`` or ``2GiB``."""


def _check_name(value: str) -> str:
    if not value or len(value) > 128 or value != value.strip() or any(ord(c) < 32 for c in value):
        raise ValueError("A name has 1 to 128 characters, no control characters, and no space at its ends.")
    return value


def _check_path_rule(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"A path starts with '/'. Write '/{value}'.")
    if "?" in value or "#" in value:
        raise ValueError("A path rule has no query string and no fragment. Match the path alone.")
    return value


def _check_methods(value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    return [m.upper() if isinstance(m, str) else m for m in value] if isinstance(value, list | tuple) else value


Name = Annotated[str, AfterValidator(_check_name)]
PathRule = Annotated[str, AfterValidator(_check_path_rule)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, str_strip_whitespace=False)


class ServerConfig(_Frozen):
    """Where and how the node listens."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 5292
    """0 takes a free port (tests, demo)."""
    api_keys: tuple[str, ...] = ()
    """Keys that callers present; each is plain text or ``sha256:<hex>``."""
    admin_key: str | None = None
    """Key of ``/admin``; None: ``/admin`` answers loopback callers only."""
    allowed_hosts: tuple[str, ...] = ()
    """Extra Host header names; loopback names and the listening address are always allowed."""
    max_body: Size = 32 * 1024**2
    max_connections: Annotated[int, Field(ge=1, le=65536)] = 4096
    head_timeout: Duration = 10.0
    body_timeout: Duration = 60.0
    idle_timeout: Duration = 75.0


class LogConfig(_Frozen):
    """Log files."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    dir: Path | None = None
    """None: the platform's log folder."""
    rotate: Literal["daily", "none"] = "daily"
    keep: Annotated[int, Field(ge=1, le=365)] = 7
    max_total: Size = 1024**3


class GuardConfig(_Frozen):
    """How the machine is kept alive."""

    mem_fraction: Fraction = 0.9
    reserve_ram: Size = 2 * 1024**3
    reserve_vram: Size = 1024**3
    mode: Literal["off", "warn", "shed"] = "shed"


class QueueConfig(_Frozen):
    """A model's bounded queue."""

    policy: Literal["fifo", "priority"] = "fifo"
    max_waiting: Annotated[int, Field(ge=0, le=100_000)] = 64
    max_wait: Duration = 120.0


class CacheConfig(_Frozen):
    """A model's response cache."""

    enabled: bool = False
    max_entries: Annotated[int, Field(ge=1)] = 1000
    max_bytes: Size = 64 * 1024**2
    ttl: Duration = 600.0


class ModelConfig(_Frozen):
    """One LLM and how it is loaded."""

    name: Name
    path: Path
    engine: Literal["llama_cpp", "fake"] = "llama_cpp"
    device: Annotated[str, Field(pattern=r"^(auto|cpu|gpu(:\d+)?)$")] = "auto"
    gpu_layers: Literal["auto"] | Annotated[int, Field(ge=0, le=10_000)] = "auto"
    batch_size: Annotated[int, Field(ge=1, le=256)] = 4
    """Sequences decoded together (slots)."""
    max_seq_len: Annotated[int, Field(ge=16, le=16_777_216)] = 4096
    """Tokens of context per sequence."""
    num_worker: Literal["auto"] | Annotated[int, Field(ge=1, le=1024)] = "auto"
    """Compute threads of this model's own pool; auto: physical cores, less one where there are more than two."""
    mem_fraction: Fraction | None = None
    preload: bool = False
    idle_unload: Duration | None = None
    warmup: bool = True
    queue: QueueConfig = QueueConfig()
    cache: CacheConfig = CacheConfig()

    @field_validator("device", mode="before")
    @classmethod
    def _device_words(cls, value: object) -> object:
        words = ("auto", "cpu", "gpu")
        if isinstance(value, str) and value not in words and not value.startswith("gpu:"):
            raise ValueError(f"Unknown device '{value}'. Write auto, cpu, gpu or gpu:1.{near(value.lower(), words)}")
        return value


class HealthConfig(_Frozen):
    """How an upstream is checked."""

    path: PathRule = "/health"
    interval: Duration = 5.0


class UpstreamConfig(_Frozen):
    """A remote OpenAI-compatible server."""

    name: Name
    url: str
    api_key: str | None = None
    """Plain text or ``keyring:NAME``; sent to this upstream only."""
    health: HealthConfig | None = None
    connect_timeout: Duration = 5.0

    @field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")) or not value.split("://", 1)[1].strip("/"):
            raise ValueError("An upstream's url starts with http:// or https:// and names a host.")
        if "@" in value or "?" in value or "#" in value:
            raise ValueError("An upstream's url has no user, query or fragment. Put the key into api_key.")
        return value.rstrip("/")


class MatchConfig(_Frozen):
    """What a route matches: exactly one of path, prefix and regex, plus conditions that must all hold."""

    path: PathRule | None = None
    prefix: PathRule | None = None
    regex: str | None = None
    use_regex: bool = False
    methods: Annotated[tuple[Method, ...], BeforeValidator(_check_methods)] = ()
    host: str | None = None
    headers: dict[str, str | None] = {}
    """Name to exact value; ``null``: present with any value; a value ending in ``*``: that prefix."""
    model: str | None = None
    """The body's ``model``."""

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        given = [k for k in ("path", "prefix", "regex") if getattr(self, k) is not None]
        if len(given) != 1:
            found = f"both {' and '.join(given)}" if given else "none of them"
            raise ValueError(f"A match has exactly one of path, prefix and regex; found {found}.")
        if self.regex is not None and not self.use_regex:
            raise ValueError(
                "A regex is checked on every request that no path or prefix takes, about 7 µs each instead of "
                "0.1 µs. Write use_regex: true beside it to accept that, or use path or prefix."
            )
        if self.use_regex and self.regex is None:
            raise ValueError("use_regex: true has no regex beside it. Remove it or write a regex.")
        return self

    @field_validator("regex")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        if value is not None:
            import re2  # google-re2: linear time, so a rule cannot hang the router

            try:
                re2.compile(value)
            except re2.error as error:
                detail = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
                raise ValueError(f"Not a regular expression that RE2 accepts: {detail}.") from None
        return value


class RouteConfig(_Frozen):
    """A match rule plus policy."""

    name: Name
    match: MatchConfig
    target: Name
    """Name of a model or an upstream."""
    enabled: bool = True
    priority: Priority = Priority.NORMAL
    timeout: Duration = 300.0


class NodeConfig(_Frozen):
    """The whole configuration of a node."""

    version: Literal[1] = 1
    server: ServerConfig = ServerConfig()
    log: LogConfig = LogConfig()
    guard: GuardConfig = GuardConfig()
    models: tuple[ModelConfig, ...] = ()
    upstreams: tuple[UpstreamConfig, ...] = ()
    routes: tuple[RouteConfig, ...] = ()

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        errors = [*self._duplicate_names(), *self._dangling_targets()]
        if errors:
            raise ValidationError.from_exception_data("NodeConfig", errors)
        return self

    def _duplicate_names(self) -> list[InitErrorDetails]:
        errors = []
        seen: dict[str, str] = {}
        for kind, items in (("models", self.models), ("upstreams", self.upstreams)):
            for i, item in enumerate(items):
                if item.name in seen:
                    errors.append(_fault((kind, i, "name"), f"The name '{item.name}' is taken by {seen[item.name]}."))
                seen.setdefault(item.name, f"{kind}[{i}]")
        routes: dict[str, int] = {}
        for i, route in enumerate(self.routes):
            if route.name in routes:
                taken = f"The name '{route.name}' is taken by routes[{routes[route.name]}]."
                errors.append(_fault(("routes", i, "name"), taken))
            routes.setdefault(route.name, i)
        return errors

    def _dangling_targets(self) -> list[InitErrorDetails]:
        known = self.target_names
        return [
            _fault(
                ("routes", i, "target"),
                f"No model or upstream '{route.target}'.{near(route.target, known)}"
                + ("" if known else " Add a model or an upstream first."),
            )
            for i, route in enumerate(self.routes)
            if route.target not in known
        ]

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all models and upstreams, in file order."""
        return tuple(m.name for m in self.models) + tuple(u.name for u in self.upstreams)

    def model(self, name: str) -> ModelConfig | None:
        """The model of that name, or None."""
        return next((m for m in self.models if m.name == name), None)

    def upstream(self, name: str) -> UpstreamConfig | None:
        """The upstream of that name, or None."""
        return next((u for u in self.upstreams if u.name == name), None)

    def route(self, name: str) -> RouteConfig | None:
        """The route of that name, or None."""
        return next((r for r in self.routes if r.name == name), None)


def _fault(loc: tuple[str | int, ...], message: str) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError("laya", "{text}", {"text": message}), loc=loc, input=None)
