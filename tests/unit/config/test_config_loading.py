"""How a model is loaded: combinations that cannot work are refused with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from laya_desktop.config import report
from laya_desktop.config.paths import absolute_paths, with_adapters_found
from laya_desktop.config.schema import ModelConfig, NodeConfig


def model(**changes: object) -> ModelConfig:
    return ModelConfig(name="m", path="m.gguf", **changes)  # type: ignore[arg-type]


def test_yaml_switches_are_meant_as_words() -> None:
    assert [model(flash_attention=v).flash_attention for v in (True, False, "auto")] == ["on", "off", "auto"]


def test_a_quantised_cache_without_flash_attention_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs flash attention, which is off"):
        model(kv_type="q8_0", flash_attention="off")
    assert model(kv_type="q8_0").kv_type == "q8_0"
    assert model(kv_type="f32", flash_attention="off").kv_type == "f32"


@pytest.mark.parametrize(
    "changes",
    [
        {"kv_type": "q8_0"},
        {"mlock": True},
        {"mmap": False},
        {"rope": {"freq_base": 1e5}},
        {"lora": [{"path": "a.gguf"}]},
        {"pooling": "cls"},
    ],
)
def test_pytorch_refuses_what_is_llama_cpps(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="works with engine llama_cpp only"):
        model(engine="transformers", **changes)
    assert model(engine="transformers", rope={}, mmap=True).mmap


@pytest.mark.parametrize(
    ("lora", "words"),
    [
        ([{"path": ""}], "needs the path of its file"),
        ([{"path": "package:x/a.gguf"}], "a file of its own"),
        ([{"path": "a.gguf", "scale": float("nan")}], "greater than or equal to -100"),
        ([{"path": "a.gguf", "scale": 1e6}], "less than or equal to 100"),
        ([{"path": "a.gguf", "scale": True}], "Not a number"),
        ([{"path": "a.gguf"}, {"path": "a.gguf", "scale": 2}], "named twice"),
        ([{"file": "a.gguf"}], "path"),
    ],
)
def test_wrong_adapters_are_refused(lora: list[dict[str, object]], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        model(lora=lora)


def test_adapters_start_from_the_configurations_folder(tmp_path: Path) -> None:
    found = with_adapters_found(model(lora=[{"path": "a.gguf", "scale": 0.5}, {"path": "/b.gguf"}]), tmp_path).lora
    assert [(a.path, a.scale) for a in found] == [(tmp_path / "a.gguf", 0.5), (Path("/b.gguf"), 1.0)]
    moved = absolute_paths(NodeConfig(models=(model(lora=[{"path": "a.gguf"}]),)), tmp_path)
    assert moved.models[0].lora[0].path == tmp_path / "a.gguf"
    assert "models[0].lora[0].path: There is no file" in "\n".join(report.warnings(moved, tmp_path))
