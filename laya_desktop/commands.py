"""Subcommands that look and exit: check, route, estimate, models. No window, no listener."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from laya_desktop import paths
from laya_desktop.config.paths import model_folders
from laya_desktop.config.report import check
from laya_desktop.config.schema import ModelConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.keystore import KeyStore
from laya_desktop.node.engines.model_file import is_model_folder
from laya_desktop.node.model_tools import MEASURED_FILE, ModelTools, free_bytes
from laya_desktop.node.params import engine_params
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.telemetry import Telemetry
from laya_desktop.state.snapshot import FoundModel, MemoryEstimate, RouteExplanation

__all__ = ["check", "describe_estimate", "describe_models", "estimate", "explain", "find_models", "key_store"]


def explain(config: Path, method: str, path: str, headers: dict[str, str], model: str | None) -> RouteExplanation:
    """Which route of a file would win. Raises ConfigError."""
    document = load_file(config)
    return RoutingTable.compile(document.config).explain(method, path, headers, model)


def estimate(file: Path, device: str, max_seq_len: int, batch_size: int, **settings: object) -> MemoryEstimate:
    """What a model file would take, against what is free now.

    Args:
        file: the model file or folder.
        device: ``auto``, ``cpu``, ``gpu`` or ``gpu:N``.
        max_seq_len: tokens of context per slot.
        batch_size: slots.
        settings: more of ``ModelConfig``'s fields, e.g. ``kv_type``.

    Raises:
        LayaError: a setting is not valid.
    """
    try:
        model = ModelConfig(
            name=file.stem,
            path=file.absolute(),
            engine="transformers" if is_model_folder(file) else "llama_cpp",
            device=device,
            max_seq_len=max_seq_len,
            batch_size=batch_size,
            **settings,
        )
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
        raise LayaError(f"Not a valid model setting: {faults}", code="invalid_config", status=400) from None
    return asyncio.run(_estimate(model))


def key_store(warn: Callable[[str], None]) -> KeyStore:
    """Where this user's keys of upstreams are kept."""
    return KeyStore(paths.config_dir(), warn=warn)


def find_models(config: Path | None) -> tuple[FoundModel, ...]:
    """Models on this machine; a configuration adds its ``model_folders``. Raises ConfigError."""
    folders: tuple[Path, ...] = ()
    if config is not None:
        document = load_file(config)
        folders = model_folders(document.config, document.folder)
    return asyncio.run(_find(folders))


def describe_models(found: Sequence[FoundModel]) -> str:
    """Found models as a table for a terminal, and below it what is wrong with any."""
    if not found:
        return f"No models found. Put GGUF files into {paths.data_dir() / 'models'}, or set model_folders."
    rows = [(m.name, fmt.size(m.size_bytes), _kind(m), m.source, m.path) for m in found]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row[:4], widths, strict=True)), row[4]]) for row in rows]
    return "\n".join([*lines, *(f"{m.name}: {m.problem}" for m in found if m.problem)])


def _kind(model: FoundModel) -> str:
    what = model.info.quantisation if model.info else None
    return what or ("cannot be loaded" if model.problem else "–")


def describe_estimate(found: MemoryEstimate) -> str:
    """The estimate as lines for a terminal."""
    parts = (
        ("weights", found.weights_bytes),
        ("KV cache", found.kv_cache_bytes),
        ("compute", found.compute_bytes),
        ("worker", found.other_bytes),
        ("total", found.total_bytes),
        ("free", found.free_bytes),
    )
    verdict = found.verdict.value.replace("_", " ")
    lines = [f"{verdict} on {found.device}: {found.reason}"]
    lines += [f"  {name:<9} {fmt.size(value)}" for name, value in parts if name != "worker" or value is not None]
    if found.proposal is not None:
        lines.append(f"  proposal  {found.proposal.text}")
    return "\n".join(lines)


async def _find(folders: tuple[Path, ...]) -> tuple[FoundModel, ...]:
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as executor:
        return await ModelTools(executor).find(folders)


async def _estimate(model: ModelConfig) -> MemoryEstimate:
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as executor:
        tools = ModelTools(executor, paths.state_dir() / MEASURED_FILE)
        await tools.inspect(model.path)
        machine = Telemetry(Path.cwd()).sample({}).machine
        params = engine_params(model, None, Path.cwd())
        return await tools.estimate(
            model, Path(params.path), params.device, free_bytes(machine, params.device, reserve_bytes=0)
        )
