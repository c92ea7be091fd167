"""Subcommands that look and exit: check, route, estimate. No window, no listener."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from pathlib import Path

from laya_desktop import paths
from laya_desktop.config.report import check
from laya_desktop.config.schema import ModelConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.keystore import KeyStore
from laya_desktop.node.model_tools import ModelTools, free_bytes
from laya_desktop.node.params import engine_params
from laya_desktop.node.routing import RoutingTable
from laya_desktop.node.telemetry import Telemetry
from laya_desktop.state.snapshot import MemoryEstimate, RouteExplanation

__all__ = ["check", "describe_estimate", "estimate", "explain", "key_store"]


def explain(config: Path, method: str, path: str, headers: dict[str, str], model: str | None) -> RouteExplanation:
    """Which route of a file would win. Raises ConfigError."""
    document = load_file(config)
    return RoutingTable.compile(document.config).explain(method, path, headers, model)


def estimate(file: Path, device: str, max_seq_len: int, batch_size: int) -> MemoryEstimate:
    """What a model file would take, against what is free now. Raises LayaError."""
    try:
        model = ModelConfig(
            name=file.stem, path=file.absolute(), device=device, max_seq_len=max_seq_len, batch_size=batch_size
        )
    except ValueError as error:
        raise LayaError(f"Not a valid model setting: {error}", code="invalid_config", status=400) from None
    return asyncio.run(_estimate(model))


def key_store(warn: Callable[[str], None]) -> KeyStore:
    """Where this user's keys of upstreams are kept."""
    return KeyStore(paths.config_dir(), warn=warn)


def describe_estimate(found: MemoryEstimate) -> str:
    """The estimate as lines for a terminal."""
    parts = (
        ("weights", found.weights_bytes),
        ("KV cache", found.kv_cache_bytes),
        ("compute", found.compute_bytes),
        ("total", found.total_bytes),
        ("free", found.free_bytes),
    )
    verdict = found.verdict.value.replace("_", " ")
    lines = [f"{verdict} on {found.device}: {found.reason}"]
    return "\n".join([*lines, *(f"  {name:<9} {fmt.size(value)}" for name, value in parts)])


async def _estimate(model: ModelConfig) -> MemoryEstimate:
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as executor:
        tools = ModelTools(executor)
        await tools.inspect(model.path)
        machine = Telemetry(Path.cwd()).sample({}).machine
        params = engine_params(model, None, Path.cwd())
        return await tools.estimate(
            model, Path(params.path), params.device, free_bytes(machine, params.device, reserve_bytes=0)
        )
