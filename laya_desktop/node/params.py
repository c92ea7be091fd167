"""From a model's configuration to what its worker loads. Pure but for looking at the core count and the path."""

from __future__ import annotations

from pathlib import Path

import psutil

from laya_desktop.config.paths import resolve_model_path, with_adapters_found
from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import Adapter, EngineParams

LOAD_KEYS = (
    "path", "engine", "device", "gpu_layers", "batch_size", "max_seq_len", "num_worker", "replicas",
    "kv_type", "flash_attention", "mmap", "mlock", "rope", "lora", "pooling",
)  # fmt: skip
"""Settings that act when a model is loaded; the others act at once."""


def changed_load_keys(loaded: ModelConfig, wanted: ModelConfig) -> tuple[str, ...]:
    """Settings of ``wanted`` that wait for the next load."""
    return tuple(key for key in LOAD_KEYS if getattr(loaded, key) != getattr(wanted, key))


def auto_threads(physical: int | None, logical: int | None) -> int:
    """Compute threads for ``num_worker: auto``: the physical cores, one left free where there are more than two."""
    cores = physical or logical or 1
    return cores - 1 if cores > 2 else cores


def engine_params(model: ModelConfig, device: str | None, config_dir: Path | None) -> EngineParams:
    """Resolve what can be resolved without the engine; the device itself is the worker's to choose.

    Args:
        model: the configuration.
        device: ``cpu``, ``gpu``, ``gpu:N`` or ``auto``; None takes the configured one.
        config_dir: folder that relative paths of models and adapters start from.

    Raises:
        LayaError: the path names a package that is not installed, or a home folder that does not exist.
    """
    threads = (
        max(1, auto_threads(psutil.cpu_count(logical=False), psutil.cpu_count()) // model.replicas)
        if model.num_worker == "auto"
        else model.num_worker
    )
    path = str(model.path) if model.engine == "fake" else str(resolve_model_path(model, config_dir))
    return params_at(with_adapters_found(model, config_dir), path, device or model.device, threads)


def params_at(model: ModelConfig, path: str, device: str, threads: int = 1) -> EngineParams:
    """The model's settings for a file, and adapters, that have been found already."""
    return EngineParams(
        name=model.name,
        path=path,
        engine=model.engine,
        device=device,
        gpu_layers=None if model.gpu_layers == "auto" else model.gpu_layers,
        slots=model.batch_size,
        max_seq_len=model.max_seq_len,
        threads=threads,
        warmup=model.warmup,
        kv_type=model.kv_type,
        flash_attention=model.flash_attention,
        mmap=model.mmap,
        mlock=model.mlock,
        rope_freq_base=model.rope.freq_base,
        rope_freq_scale=model.rope.freq_scale,
        lora=tuple(Adapter(str(adapter.path), adapter.scale) for adapter in model.lora),
        pooling=model.pooling,
    )
