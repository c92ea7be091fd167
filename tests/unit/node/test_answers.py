"""To which files and settings a kept answer belongs."""

from __future__ import annotations

from pathlib import Path

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.answers import identity
from laya_desktop.node.engines.base import EngineParams
from laya_desktop.node.params import changed_load_keys, engine_params


def test_an_adapter_is_a_part_of_what_answers(tmp_path: Path) -> None:
    model, adapter = tmp_path / "m.gguf", tmp_path / "style.gguf"
    model.write_bytes(b"model")
    plain = ModelConfig(name="m", path=model)
    styled = ModelConfig(name="m", path=model, lora=[{"path": "style.gguf"}])  # type: ignore[list-item]
    softer = ModelConfig(name="m", path=model, lora=[{"path": "style.gguf", "scale": 0.5}])  # type: ignore[list-item]
    assert changed_load_keys(plain, styled) == changed_load_keys(styled, softer) == ("lora",)

    def params(config: ModelConfig) -> EngineParams:
        return engine_params(config, "cpu", tmp_path)

    missing = identity(params(styled))
    adapter.write_bytes(b"one")
    there = identity(params(styled))
    adapter.write_bytes(b"another")
    assert len({identity(params(plain)), missing, there, identity(params(styled))}) == 4
