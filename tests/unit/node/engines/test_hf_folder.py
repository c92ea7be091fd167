"""What is in a Hugging Face model folder, and what is wrong with it, without PyTorch."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import gguf, hf_folder, model_file
from laya_desktop.node.engines.base import EngineLoadError
from tests.helpers.safetensors_writer import write_model_folder, write_safetensors


def refusal(path: Path) -> EngineLoadError:
    with pytest.raises(EngineLoadError) as caught:
        hf_folder.check(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_metadata(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "tiny")
    info = model_file.inspect(folder)
    assert (info.architecture, info.name, info.quantisation) == ("llama", "tiny", "BF16")
    assert (info.parameters, info.context_length, info.layers, info.embedding_length) == (6464, 2048, 2, 64)
    assert info.size_bytes == (folder / "model.safetensors").stat().st_size
    assert not info.has_chat_template
    (folder / "tokenizer_config.json").write_text('{"chat_template": "x"}')
    assert model_file.inspect(folder).has_chat_template


def test_weights_in_several_files_are_one_model(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m", parts=3)
    assert hf_folder.inspect(folder).parameters == 3 * 6464
    (folder / "model-00002-of-00003.safetensors").unlink()
    error = refusal(folder)
    assert "model-00002-of-00003.safetensors" in error.message
    assert error.code == "model_file_missing"


def test_the_language_part_of_a_multimodal_model_counts(tmp_path: Path) -> None:
    inner = {"model_type": "inner", "num_hidden_layers": 9, "hidden_size": 32, "max_position_embeddings": 77}
    info = hf_folder.inspect(write_model_folder(tmp_path / "m", {"text_config": inner, "model_type": "outer"}))
    assert (info.architecture, info.layers, info.context_length) == ("inner", 9, 77)


def test_quantised_weights_are_named_by_their_method(tmp_path: Path) -> None:
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    assert hf_folder.inspect(write_model_folder(tmp_path / "m", config)).quantisation == "GPTQ 4-bit"


def test_the_cache_of_a_token(tmp_path: Path) -> None:
    assert hf_folder.check(write_model_folder(tmp_path / "a")).kv_bytes_per_token == 2 * 2 * 2 * 16 * 2
    latent = write_model_folder(tmp_path / "b", {"kv_lora_rank": 8})
    assert hf_folder.check(latent).kv_bytes_per_token is None


def test_a_pickle_is_refused_and_never_opened(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    error = refusal(folder)
    assert error.code == "pickled_weights"
    assert "safetensors" in str(error.hint)


def test_cut_off_weights(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m")
    path = write_safetensors(folder / "model.safetensors", {"w": ("F32", (100,))}, cut_bytes=1)
    with pytest.raises(EngineLoadError, match="is cut off: its tensors need") as caught:
        hf_folder.check(folder)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"12345678",
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 4) + b"[1] ",
        struct.pack("<Q", 13) + b'{"w": "text"}',
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write_model_folder(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(content)
    assert refusal(folder).code == "bad_model_file"


@pytest.mark.parametrize("text", ["", "[]", "{}", "{" * 5000, '{"a": 1}'])
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    folder = write_model_folder(tmp_path / "m")
    (folder / "config.json").write_text(text)
    assert refusal(folder).code == "bad_model_file"


def test_an_index_cannot_point_outside_the_folder(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    write_safetensors(tmp_path / "other.safetensors", {"w": ("F32", (1,))})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "../other.safetensors"}}))
    assert "no weights" in refusal(folder).message


def test_missing_pieces_are_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").code == "model_file_missing"
    assert "config.json" in refusal(tmp_path).message
    folder = write_model_folder(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    assert "tokenizer" in refusal(folder).message
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    assert "adapter" in str(refusal(folder).hint)


def test_the_other_engine_points_here(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "m")
    with pytest.raises(EngineLoadError) as caught:
        gguf.check(folder)
    assert "engine: transformers" in str(caught.value.hint)


def test_a_fault_of_a_folder_is_a_request_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(LayaError) as caught:
        model_file.inspect(tmp_path)
    assert (caught.value.status, caught.value.param) == (400, "path")
