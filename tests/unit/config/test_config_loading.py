"""How a model is loaded: combinations that cannot work are refused with a way out."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from laya_desktop.config.schema import ModelConfig


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
    "changes", [{"kv_type": "q8_0"}, {"mlock": True}, {"mmap": False}, {"rope": {"freq_base": 1e5}}]
)
def test_pytorch_refuses_what_is_llama_cpps(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="works with engine llama_cpp only"):
        model(engine="transformers", **changes)
    assert model(engine="transformers", rope={}, mmap=True).mmap
