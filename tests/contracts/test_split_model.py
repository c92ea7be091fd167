"""A model in several files: llama.cpp takes the first part, our checks take all of them, the finder shows one."""

from __future__ import annotations

from pathlib import Path

import pytest

from laya_desktop.node.engines import gguf
from laya_desktop.node.engines.base import EngineLoadError, EngineParams, Sampling
from laya_desktop.node.engines.worker_main import create_engine
from laya_desktop.node.model_finder import ModelFinder
from laya_desktop.node.model_places import Place
from tests.helpers.engine_harness import DirectHarness, Talk, demo_model

pytestmark = pytest.mark.e2e
GREEDY = Sampling(temperature=0)


def split(source: str, folder: Path) -> list[Path]:
    """The model again, at most 100 tensors a file."""
    library = pytest.importorskip("gguf")
    reader = library.GGUFReader(source)
    writer = library.GGUFWriter(folder / "split.gguf", "llama", split_max_tensors=100)
    for field in reader.fields.values():
        if field.name == "general.architecture" or field.name.startswith("GGUF."):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == library.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.iterdir())


def answer(path: str) -> str:
    params = EngineParams("m", path, device="cpu", slots=1, max_seq_len=256, threads=2)
    harness = DirectHarness(create_engine("llama_cpp"), params)
    text, _ = Talk(harness).say(prompt="The capital of France is", max_tokens=12, sampling=GREEDY)
    harness.close()
    return text


def test_a_split_model_is_one_model(tmp_path: Path) -> None:
    first, *others = split(demo_model(), tmp_path)
    assert len(others) == 2
    whole = gguf.inspect(demo_model())
    info = gguf.inspect(first)
    assert (info.parameters, info.layers, info.quantisation) == (whole.parameters, whole.layers, whole.quantisation)
    assert info.size_bytes == sum(p.stat().st_size for p in (first, *others))
    (found,) = ModelFinder().find([Place("x", tmp_path)])
    assert (found.name, found.path, found.info, found.problem) == ("split", str(first), info, None)
    assert answer(str(first)) == answer(demo_model())
    with pytest.raises(EngineLoadError, match="part 2") as caught:
        gguf.check(others[0])
    assert str(first) in str(caught.value.hint)
    others[1].unlink()
    with pytest.raises(EngineLoadError, match=others[1].name):
        gguf.check(first)
