"""What PyTorch would need, from headers alone; the verdict and its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node import memory_torch
from laya_desktop.node.memory_torch import Needs, judge
from laya_desktop.state.enums import Verdict
from tests.helpers.gguf_writer import write_gguf
from tests.helpers.safetensors_writer import write_model_folder

MIB = 2**20


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_torch, "installed", lambda: True)


def config(path: Path, **fields: object) -> ModelConfig:
    return ModelConfig(name="m", path=path, engine="transformers", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(99, Verdict.WILL_NOT_FIT), (101, Verdict.TIGHT), (119, Verdict.TIGHT), (130, Verdict.FITS)],
)
def test_the_verdict_leaves_room_for_what_is_not_known(free: int, verdict: Verdict) -> None:
    found = judge(Needs(60 * MIB, MIB, None), 4, 10, "cpu", free * MIB)
    assert (found.verdict, found.total_bytes, found.kv_cache_bytes) == (verdict, 100 * MIB, 40 * MIB)
    assert found.compute_bytes is None
    assert "working memory" in found.reason
    assert f"{free} MiB" in found.reason


def test_the_context_ends_where_the_model_ends() -> None:
    assert judge(Needs(MIB, 10, 100), 2, 4096, "cpu", None).kv_cache_bytes == 2 * 100 * 10


def test_an_unknown_cache_makes_the_verdict_unknown_unless_the_weights_are_too_large() -> None:
    unknown = judge(Needs(60 * MIB, None, None), 1, 10, "cpu", 1000 * MIB)
    assert (unknown.verdict, unknown.total_bytes) == (Verdict.UNKNOWN, None)
    assert judge(Needs(60 * MIB, None, None), 1, 10, "cpu", MIB).verdict is Verdict.WILL_NOT_FIT
    assert judge(Needs(60 * MIB, 1, None), 1, 10, "cpu", None).verdict is Verdict.UNKNOWN


@pytest.mark.usefixtures("_installed")
def test_a_folder_is_counted_at_its_own_precision(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m")
    found = memory_torch.estimate(config(folder, batch_size=2, max_seq_len=100), folder, "cpu", 10 * MIB)
    assert found.weights_bytes == 6400 * 2 + 64 * 4
    assert found.kv_cache_bytes == 2 * 100 * 256
    assert found.verdict is Verdict.FITS


@pytest.mark.usefixtures("_installed")
def test_a_gguf_is_counted_unpacked(tmp_path: Path) -> None:
    metadata = {
        "llama.block_count": 2, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
        "llama.embedding_length": 64,
    }  # fmt: skip
    path = write_gguf(tmp_path / "m.gguf", metadata)
    for device, width in (("cpu", 4), ("gpu", 2)):
        found = memory_torch.estimate(config(path, batch_size=1, max_seq_len=16), path, device, None)
        assert (found.weights_bytes, found.kv_cache_bytes) == (64 * width, 16 * 2 * 2 * 2 * 16 * width)


def test_without_pytorch_the_reason_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_torch, "installed", lambda: False)
    found = memory_torch.estimate(config(tmp_path), tmp_path, "cpu", MIB)
    assert found.verdict is Verdict.UNKNOWN
    assert "pip install 'laya-desktop[torch]'" in found.reason


@pytest.mark.usefixtures("_installed")
def test_a_faulty_folder_is_unknown_with_the_reason(tmp_path: Path) -> None:
    found = memory_torch.estimate(config(tmp_path), tmp_path, "cpu", MIB)
    assert (found.verdict, found.total_bytes) == (Verdict.UNKNOWN, None)
    assert "config.json" in found.reason
