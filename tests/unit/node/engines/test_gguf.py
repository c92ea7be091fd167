"""What is in a model file, and what is wrong with it: every refusal names the file, the reason and the way out."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import gguf
from laya_desktop.node.engines.base import EngineLoadError
from laya_desktop.node.engines.gguf_reader import GgufError, read_header
from tests.helpers.engine_harness import demo_model
from tests.helpers.gguf_writer import write_gguf


def refusal(path: Path) -> EngineLoadError:
    with pytest.raises(EngineLoadError) as caught:
        gguf.check(path)
    assert str(path) in caught.value.message or path.name in caught.value.message
    assert caught.value.hint
    return caught.value


def test_metadata_without_the_vocabulary(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "m.gguf",
        {
            "general.name": "Tiny",
            "general.file_type": 15,
            "llama.context_length": 2048,
            "llama.block_count": 7,
            "llama.embedding_length": 64,
            "llama.rope.freq_base": 10000.0,
            "tokenizer.ggml.tokens": ["a", "bc", "é"] * 1000,
            "tokenizer.ggml.token_type": [1, 2, 3],
            "tokenizer.chat_template": "{{ messages }}",
            "tokenizer.ggml.add_bos_token": True,
        },
        (("a", (32, 2), 2, 36), ("b", (5,), 0, 20)),
    )
    info = gguf.inspect(path)
    assert (info.architecture, info.name, info.quantisation) == ("llama", "Tiny", "Q4_K_M")
    assert (info.context_length, info.layers, info.embedding_length) == (2048, 7, 64)
    assert (info.parameters, info.has_chat_template) == (69, True)
    assert info.size_bytes == path.stat().st_size
    assert read_header(path).array_lengths == {"tokenizer.ggml.tokens": 3000, "tokenizer.ggml.token_type": 3}


def test_what_a_file_does_not_say_is_unknown(tmp_path: Path) -> None:
    info = gguf.inspect(write_gguf(tmp_path / "m.gguf"))
    assert (info.name, info.context_length, info.layers, info.has_chat_template) == (None, None, None, False)
    assert info.quantisation == "Q4_0"  # by its tensors


def test_the_demo_model() -> None:
    info = gguf.inspect(demo_model())
    assert (info.architecture, info.quantisation, info.context_length) == ("llama", "Q4_1", 8192)
    assert (info.parameters, info.layers) == (134_515_008, 30)


@pytest.mark.parametrize("magic", [b"ggml", b"lmgg", b"ggmf", b"fmgg", b"ggjt", b"tjgg"])
def test_legacy_files_are_recognised(tmp_path: Path, magic: bytes) -> None:
    path = tmp_path / "old-ggml-4bit.bin"
    path.write_bytes(magic + bytes(100))
    error = refusal(path)
    assert error.code == "legacy_ggml"
    assert "before August 2023" in error.message
    assert "GGUF" in (error.hint or "")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html>", "web page"),
        (b"version https://git-lfs", "Git LFS"),
        (b"PK\x03\x04", "PyTorch"),
        (b"hello", "begins with b'hell'"),
        (b"GGUF", "ends inside its header"),
        (b"GGUF" + struct.pack("<I", 1), "version is 1"),
        (b"GGUF" + struct.pack(">I", 3), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 1), "claims"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 1, 1, 2**50), "more than 256 MiB"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    assert says in refusal(path).message


def test_a_truncated_download(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tensors=(("w", (32, 100), 2, 1800),), data_bytes=1000)
    error = refusal(path)
    assert "cut off" in error.message
    assert f"{path.stat().st_size:,}" in error.message


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"general.architecture": "clip"}, "the vision part (mmproj)"),
        ({"general.architecture": "llama", "general.type": "mmproj"}, "the vision part (mmproj)"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "an adapter (LoRA)"),
        ({"general.architecture": "llama", "adapter.type": "lora"}, "an adapter (LoRA)"),
    ],
)
def test_what_only_goes_with_a_model_is_named(tmp_path: Path, metadata: dict[str, object], says: str) -> None:
    path = write_gguf(tmp_path / "part.gguf", metadata)
    with pytest.raises(EngineLoadError) as caught:
        gguf.check(path)
    assert says in caught.value.message
    assert caught.value.code == "bad_model_file"
    assert "Give the path of" in (caught.value.hint or "")


def test_a_vocabulary_is_no_model(tmp_path: Path) -> None:
    assert "no weights" in refusal(write_gguf(tmp_path / "vocab.gguf", tensors=())).message


def test_a_folder_lists_its_models(tmp_path: Path) -> None:
    assert "no GGUF" in (refusal(tmp_path).hint or "")
    for name in "abcde":
        (tmp_path / f"{name}.gguf").touch()
    assert refusal(tmp_path).hint == "It contains a.gguf, b.gguf, c.gguf and 2 more: give the path of one."


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.gguf").code == "model_file_missing"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refusal(tmp_path / "pipe").message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    path.chmod(0)
    assert refusal(path).code == "model_file_unreadable"


def test_a_system_error_is_passed_on_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_args: object) -> object:
        raise PermissionError(13, "Permission denied")

    path = write_gguf(tmp_path / "m.gguf")
    monkeypatch.setattr(Path, "open", denied)
    error = refusal(path)
    assert (error.code, "Permission denied" in error.message) == ("model_file_unreadable", True)


def test_a_split_model_is_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"m-{i:05d}-of-00002.gguf" for i in (1, 2)]
    write_gguf(paths[0], {"split.count": 2, "split.no": 0})
    assert paths[1].name in refusal(paths[0]).message
    write_gguf(paths[1], {"split.count": 2, "split.no": 1})
    info = gguf.inspect(paths[0])
    assert (info.parameters, info.size_bytes) == (128, sum(p.stat().st_size for p in paths))
    with pytest.raises(EngineLoadError) as caught:
        gguf.check(paths[1])
    assert str(paths[0]) in (caught.value.hint or "")


def test_inspect_speaks_to_people(tmp_path: Path) -> None:
    with pytest.raises(LayaError) as caught:
        gguf.inspect(tmp_path / "none")
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "model_file_missing", "path")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_damage_never_raises_anything_else(tmp_path: Path, at: int, damage: bytes) -> None:
    path = write_gguf(tmp_path / "m.gguf", {"a": "b", "t": ["x", "y"], "n": [1, 2], "general.alignment": 32})
    data = bytearray(path.read_bytes())
    data[at : at + len(damage)] = damage
    path.write_bytes(data)
    try:
        header = read_header(path)
    except GgufError:
        return
    assert header.file_size == len(data)
