"""Which configured model is "small" and which "larger", and what a run asks. Looks at file sizes; any thread."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from laya_desktop.bench.jobs import Part
from laya_desktop.bench.results import Scenario
from laya_desktop.config.paths import resolve_model_path
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError, near

ROUTING_PATH = "/health"


def by_size(config: NodeConfig, folder: Path | None) -> tuple[str, ...]:
    """Names of all models, the smallest file first; those whose size is unknown come last, in file order."""
    sizes = {m.name: _size(m, folder) for m in config.models}
    return tuple(sorted(sizes, key=lambda name: (sizes[name] is None, sizes[name] or 0)))


def part(config: NodeConfig | None, scenario: Scenario, model: str = "") -> Part:
    """What a scenario asks.

    Raises:
        LayaError: there is no such model.
    """
    if scenario is Scenario.ROUTING:
        return Part(scenario, ROUTING_PATH, ROUTING_PATH)
    found = config.model(model) if config is not None else None
    if config is not None and found is None:
        hint = near(model, config.target_names).strip() or "Add one on the Models page."
        raise LayaError(f"There is no model '{model}'.", hint=hint, code="model_not_found", status=404)
    return Part(scenario, model, settings=settings(found) if found else {})


def settings(model: ModelConfig) -> dict[str, str]:
    """What of a model's configuration matters for speed."""
    names = ("engine", "device", "gpu_layers", "batch_size", "max_seq_len", "num_worker", "replicas")
    return {name: str(getattr(model, name)) for name in names}


def _size(model: ModelConfig, folder: Path | None) -> int | None:
    with suppress(LayaError, OSError):
        path = resolve_model_path(model, folder)
        if path.is_dir():
            return sum(f.stat().st_size for f in path.glob("*.safetensors")) or None
        return path.stat().st_size
    return None
