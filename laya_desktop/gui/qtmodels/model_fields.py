"""A model as its form holds it: text fields ↔ configuration data. Pure; runs on the Qt thread; imports no Qt.

The form keeps what people typed, also where it is wrong; ``config.parts.check_part`` judges it. Keys that the form
does not show are carried along untouched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import yaml

from laya_desktop.config import units
from laya_desktop.config.schema import ModelConfig, QueueConfig
from laya_desktop.gui.i18n import QT_TR_NOOP, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laya_desktop.config.schema import NodeConfig
    from laya_desktop.errors import Problem

POLICIES = ("fifo", "priority")

_QUEUE = QueueConfig()
_SHOWN = frozenset(
    (
        "name", "aliases", "path", "engine", "device", "gpu_layers", "batch_size", "max_seq_len", "num_worker",
        "mem_fraction", "preload", "idle_unload", "pin", "replicas", "warmup", "queue", "cache",
        "kv_type", "flash_attention", "mmap", "mlock", "lora", "pooling",
    )
)  # fmt: skip
_FIELDS = (_SHOWN - {"mem_fraction", "queue"}) | {"mem_percent", "policy", "max_waiting", "max_wait"}
_YAML_WIDTH = 40
"""Characters that fit beside the form."""
_SUFFIX = re.compile(r"\.(gguf|bin)$", re.IGNORECASE)
_QUANTISATION = re.compile(r"[-._ ](i?q\d\w*|b?f16|f32)$", re.IGNORECASE)
_PERCENT_HINT = QT_TR_NOOP("Not a share of memory. Write a percentage from 1 to 100, or nothing for the guard's share.")


@dataclass(frozen=True, slots=True)
class ModelFields:
    """Every field of the form, as typed. Empty text means the default ("auto", "never", the guard's)."""

    name: str = ""
    path: str = ""
    device: str = "auto"
    gpu_layers: str = ""
    batch_size: str = "4"
    max_seq_len: str = "4096"
    num_worker: str = ""
    mem_percent: str = ""
    policy: str = "fifo"
    max_waiting: str = str(_QUEUE.max_waiting)
    max_wait: str = units.format_duration(_QUEUE.max_wait)
    idle_unload: str = ""
    preload: bool = False
    warmup: bool = True
    aliases: str = ""
    """Names with commas between."""
    engine: str = "llama_cpp"
    replicas: str = ""
    cache: bool = False
    pin: bool = False
    kv_type: str = "f16"
    flash_attention: str = "auto"
    mmap: bool = True
    mlock: bool = False
    lora: str = ""
    """Adapters with semicolons between, each ``PATH`` or ``PATH:SCALE``."""
    pooling: str = "auto"
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Keys that the form does not show."""
    kept_cache: Mapping[str, Any] = field(default_factory=dict)


def fields_of(model: ModelConfig) -> ModelFields:
    """The form of a model in force."""
    data = model.model_dump(mode="json", exclude_defaults=True)
    cache = data.get("cache", {})
    return ModelFields(
        name=model.name,
        path=str(model.path),
        device=model.device,
        gpu_layers="" if model.gpu_layers == "auto" else str(model.gpu_layers),
        batch_size=str(model.batch_size),
        max_seq_len=str(model.max_seq_len),
        num_worker="" if model.num_worker == "auto" else str(model.num_worker),
        mem_percent="" if model.mem_fraction is None else f"{model.mem_fraction * 100:g}",
        policy=model.queue.policy,
        max_waiting=str(model.queue.max_waiting),
        max_wait=units.format_duration(model.queue.max_wait),
        idle_unload="" if model.idle_unload is None else units.format_duration(model.idle_unload),
        preload=model.preload,
        warmup=model.warmup,
        aliases=", ".join(model.aliases),
        engine=model.engine,
        replicas="" if model.replicas == 1 else str(model.replicas),
        cache=model.cache.enabled,
        pin=model.pin,
        kv_type=model.kv_type,
        flash_attention=model.flash_attention,
        mmap=model.mmap,
        mlock=model.mlock,
        lora="; ".join(str(a.path) if a.scale == 1 else f"{a.path}:{a.scale:g}" for a in model.lora),
        pooling=model.pooling,
        kept={key: value for key, value in data.items() if key not in _SHOWN},
        kept_cache={key: value for key, value in cache.items() if key != "enabled"},
    )


def data_of(fields: ModelFields) -> dict[str, Any]:
    """Configuration data, as it would stand in the file: defaults are left out, wrong text is kept."""
    data: dict[str, Any] = {"name": fields.name.strip()}
    if aliases := [name for name in (n.strip() for n in fields.aliases.split(",")) if name]:
        data["aliases"] = aliases
    data["path"] = fields.path.strip()
    _put(data, "engine", fields.engine, "llama_cpp")
    if fields.device != "auto":
        data["device"] = fields.device.strip()
    _put(data, "gpu_layers", _number(fields.gpu_layers), "auto")
    _put(data, "batch_size", _number(fields.batch_size), 4)
    _put(data, "max_seq_len", _number(fields.max_seq_len), 4096)
    _put(data, "num_worker", _number(fields.num_worker), "auto")
    _put(data, "mem_fraction", _fraction(fields.mem_percent), None)
    _put(data, "warmup", fields.warmup, True)
    _put(data, "preload", fields.preload, False)
    _put(data, "idle_unload", fields.idle_unload.strip(), None)
    _put(data, "pin", fields.pin, False)
    _put(data, "replicas", _number(fields.replicas), 1)
    _put(data, "kv_type", fields.kv_type, "f16")
    _put(data, "flash_attention", fields.flash_attention, "auto")
    _put(data, "mmap", fields.mmap, True)
    _put(data, "mlock", fields.mlock, False)
    if adapters := [_adapter(text) for text in (t.strip() for t in fields.lora.split(";")) if text]:
        data["lora"] = adapters
    _put(data, "pooling", fields.pooling, "auto")
    queue: dict[str, Any] = {}
    _put(queue, "policy", fields.policy, _QUEUE.policy)
    _put(queue, "max_waiting", _number(fields.max_waiting), _QUEUE.max_waiting)
    _put(queue, "max_wait", fields.max_wait.strip(), units.format_duration(_QUEUE.max_wait))
    if queue:
        data["queue"] = queue
    cache = ({"enabled": True} if fields.cache else {}) | dict(fields.kept_cache)
    if cache:
        data["cache"] = cache
    return data | dict(fields.kept)


def yaml_of(fields: ModelFields) -> str:
    """The item of ``models:`` that the form makes."""
    return yaml.safe_dump(
        [data_of(fields)], sort_keys=False, default_flow_style=None, allow_unicode=True, width=_YAML_WIDTH
    )


def problems_by_field(problems: Iterable[Problem]) -> dict[str | None, str]:
    """Texts to show by field; several problems of one field are joined."""
    shown: dict[str | None, str] = {}
    for problem in problems:
        key = field_of(problem.loc)
        message = tr(_PERCENT_HINT) if key == "mem_percent" else problem.message
        if key is None and problem.loc:
            message = f"{problem.key}: {message}"
        earlier = shown.get(key)
        shown[key] = f"{earlier} {message}" if earlier else message
    return shown


def field_of(loc: Sequence[str | int]) -> str | None:
    """The field under which a problem at ``loc`` (relative to the model) belongs; None: the whole form."""
    words = [part for part in loc if isinstance(part, str)]
    if words[:1] == ["queue"]:
        words = words[1:] or ["max_waiting"]
    word = {"mem_fraction": "mem_percent"}.get(words[0], words[0]) if words else None
    return word if word in _FIELDS else None


def new_model(config: NodeConfig, path: str = "") -> ModelFields:
    """A draft with the schema's defaults, named after its file."""
    return ModelFields(name=free_name(name_from_path(path) or "model", config), path=path)


def copy_of(model: ModelConfig, config: NodeConfig) -> ModelFields:
    """A draft like ``model`` under a free name; its aliases stay with the original."""
    return replace(fields_of(model), name=free_name(model.name, config), aliases="")


def renamed_after_path(fields: ModelFields, config: NodeConfig) -> ModelFields:
    """The draft under its file's name, where that says more than the placeholder."""
    name = name_from_path(fields.path)
    return replace(fields, name=free_name(name, config)) if name else fields


def name_from_path(path: str) -> str:
    """``SmolLM2-135M-Instruct.Q4_1.gguf`` → ``smollm2-135m-instruct``: quantisation marks are dropped."""
    stem = _SUFFIX.sub("", PurePath(path.strip().replace("\\", "/")).name)
    return re.sub(r"[\s_.]+", "-", _QUANTISATION.sub("", stem)).strip("-").lower()


def free_name(name: str, config: NodeConfig) -> str:
    """``name``, or ``name-2``, ``name-3`` … where it is taken by a model or an upstream."""
    taken = set(config.target_names)
    return next(n for n in (name, *(f"{name}-{i}" for i in range(2, 10_000))) if n not in taken)


def _put(data: dict[str, Any], key: str, value: Any, default: Any) -> None:
    if value != "" and value != default:
        data[key] = value


def _number(text: str) -> int | str:
    """An int where the text is one (``4 096`` and ``4,096`` too), else the text for the schema to refuse."""
    plain = text.strip().replace(",", "").replace("\N{NO-BREAK SPACE}", "").replace(" ", "")
    return int(plain) if plain.isascii() and plain.isdigit() else text.strip()


def _adapter(text: str) -> dict[str, Any]:
    """``style.gguf:0.8`` with its scale; what stands after a drive's colon is no number."""
    path, colon, scale = text.rpartition(":")
    try:
        return {"path": path.strip(), "scale": float(scale)} if colon else {"path": text}
    except ValueError:
        return {"path": text}


def _fraction(percent: str) -> float | str:
    text = percent.strip().rstrip("%").strip()
    try:
        return round(float(text) / 100, 6)
    except ValueError:
        return percent.strip()
