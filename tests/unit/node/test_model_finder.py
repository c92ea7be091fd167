"""Models in other programs' folders: what is one, what is not, under which name, and that a search always ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from laya_desktop.node import model_finder
from laya_desktop.node.model_finder import ModelFinder
from laya_desktop.node.model_places import Place, places
from laya_desktop.state.snapshot import FoundModel
from tests.helpers.gguf_writer import write_gguf
from tests.helpers.safetensors_writer import write_model_folder


def find(*where: Place) -> list[FoundModel]:
    return list(ModelFinder().find(where))


def names(root: Path) -> list[str]:
    return [m.name for m in find(Place("x", root))]


def put(path: Path, metadata: Mapping[str, object] | None = None, **fields: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_gguf(path, dict(metadata or {}), **fields)  # type: ignore[arg-type]


def test_gguf_files_anywhere_below_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "a" / "b" / "Deep-7B.Q4_K_M.gguf", {"general.file_type": 15})
    put(tmp_path / "UPPER.GGUF")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / ".hidden").mkdir()
    put(tmp_path / ".hidden" / "partial.gguf")
    deep, upper = find(Place("LM Studio", tmp_path))
    assert (deep.name, deep.source, deep.engine) == ("Deep-7B.Q4_K_M", "LM Studio", "llama_cpp")
    assert deep.path == str(tmp_path / "a" / "b" / "Deep-7B.Q4_K_M.gguf")
    assert deep.size_bytes == Path(deep.path).stat().st_size
    assert deep.info is not None
    assert deep.info.quantisation == "Q4_K_M"
    assert upper.name == "UPPER"


def test_a_split_model_is_one_even_where_its_first_file_has_no_weights(tmp_path: Path) -> None:
    put(tmp_path / "big-00001-of-00003.gguf", {"split.count": 3}, tensors=())
    for i in (2, 3):
        put(tmp_path / f"big-0000{i}-of-00003.gguf", {"split.count": 3})
    (found,) = find(Place("x", tmp_path))
    assert (found.name, found.problem) == ("big", None)
    assert found.path.endswith("big-00001-of-00003.gguf")
    assert found.size_bytes == sum(p.stat().st_size for p in tmp_path.iterdir())
    assert found.info is not None
    assert found.info.parameters == 2 * 64


def test_a_split_model_that_lacks_a_part_says_so(tmp_path: Path) -> None:
    put(tmp_path / "big-00001-of-00002.gguf", {"split.count": 2})
    (found,) = find(Place("x", tmp_path))
    assert found.info is None
    assert "big-00002-of-00002.gguf" in str(found.problem)


@pytest.mark.parametrize(
    ("name", "metadata", "tensors"),
    [
        ("mmproj-model-f16.gguf", {}, None),
        ("vision.gguf", {"general.architecture": "clip"}, None),
        ("lora.gguf", {"general.type": "adapter", "adapter.type": "lora"}, None),
        ("ggml-vocab.gguf", {"general.type": "vocab"}, ()),
        ("only-vocab.gguf", {}, ()),
        ("imatrix.gguf", {"general.type": "imatrix"}, None),
    ],
)
def test_what_is_no_model_of_its_own(tmp_path: Path, name: str, metadata: dict[str, object], tensors: object) -> None:
    put(tmp_path / name, metadata, **({} if tensors is None else {"tensors": tensors}))
    assert names(tmp_path) == []


def test_a_broken_file_is_listed_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path / "cut.gguf", data_bytes=3)
    (tmp_path / "text.gguf").write_text("<!DOCTYPE html>")
    cut, text = find(Place("x", tmp_path))
    assert cut.info is None
    assert "cut off" in str(cut.problem)
    assert "web page" in str(text.problem)
    write_gguf(tmp_path / "cut.gguf")
    finder = ModelFinder()
    assert [m.problem is None for m in finder.find([Place("x", tmp_path)])] == [True, False]


def test_hugging_face_folders_in_a_tree(tmp_path: Path) -> None:
    write_model_folder(tmp_path / "org" / "chat")
    write_model_folder(tmp_path / "org" / "bert", {"architectures": ["BertForMaskedLM"]})
    write_model_folder(tmp_path / "org" / "t5", {"is_encoder_decoder": True})
    only_config = tmp_path / "org" / "only-config"
    only_config.mkdir()
    (only_config / "config.json").write_text("{}")
    broken = write_model_folder(tmp_path / "org" / "z-broken", parts=2)
    (broken / "model-00002-of-00002.safetensors").unlink()
    chat, cut = find(Place("x", tmp_path))
    assert (chat.name, chat.engine, chat.path) == ("chat", "transformers", str(tmp_path / "org" / "chat"))
    assert chat.info is not None
    assert chat.info.parameters == 6464
    assert (cut.name, cut.info) == ("z-broken", None)
    assert "incomplete" in str(cut.problem)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_the_hugging_face_cache_current_revision_only(tmp_path: Path) -> None:
    model = tmp_path / "models--org--nice-model"
    blobs = model / "blobs"
    blobs.mkdir(parents=True)
    for revision, blob in (("a" * 40, "old"), ("b" * 40, "new")):
        folder = model / "snapshots" / revision
        folder.mkdir(parents=True)
        put(blobs / blob)
        (folder / "m-Q8_0.gguf").symlink_to(blobs / blob)
        write_model_folder(folder)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("b" * 40)
    (tmp_path / "datasets--org--words").mkdir()
    found = find(Place("Hugging Face", tmp_path, "hub"))
    assert [(m.name, m.engine) for m in found] == [("m-Q8_0", "llama_cpp"), ("org/nice-model", "transformers")]
    assert all("b" * 40 in m.path for m in found)
    (model / "refs" / "main").write_text("../../../etc")
    assert len(find(Place("Hugging Face", tmp_path, "hub"))) == 2


def test_ollama_names_and_blobs(tmp_path: Path) -> None:
    digest = "sha256:" + "1" * 64
    put(tmp_path / "blobs" / digest.replace(":", "-"))

    def manifest(where: str, layers: object) -> None:
        path = tmp_path / "manifests" / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"layers": layers}))

    model = {"mediaType": "application/vnd.ollama.image.model", "digest": digest}
    manifest("registry.ollama.ai/library/llama3/8b", [{"mediaType": "x", "digest": digest}, model])
    manifest("registry.ollama.ai/library/gone/latest", [model | {"digest": "sha256:" + "2" * 64}])
    manifest("registry.ollama.ai/library/evil/latest", [model | {"digest": "sha256:../../../etc/passwd"}])
    manifest("registry.ollama.ai/library/odd/latest", "text")
    (found,) = find(Place("Ollama", tmp_path, "ollama"))
    assert (found.name, found.path) == ("llama3:8b", str(tmp_path / "blobs" / digest.replace(":", "-")))
    other = "sha256:" + "3" * 64
    put(tmp_path / "blobs" / other.replace(":", "-"), {"general.name": "x"})
    manifest("hf.co/me/mine/q4", [model | {"digest": other}])
    assert [m.name for m in find(Place("Ollama", tmp_path, "ollama"))] == ["hf.co/me/mine:q4", "llama3:8b"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_in_a_circle_end_and_one_file_is_listed_once(tmp_path: Path) -> None:
    put(tmp_path / "a" / "m.gguf")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "dangling.gguf").symlink_to(tmp_path / "nothing")
    (tmp_path / "z.gguf").symlink_to(tmp_path / "a" / "m.gguf")
    assert names(tmp_path) == ["m"]
    assert [m.source for m in find(Place("first", tmp_path / "a"), Place("second", tmp_path))] == ["first"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_folders_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "m.gguf")
    (tmp_path / "locked").mkdir(mode=0)
    assert names(tmp_path) == ["m"]


def test_missing_places_and_files_in_their_stead(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    kinds = ("tree", "hub", "ollama")
    assert find(*(Place("x", tmp_path / name, kind) for kind in kinds for name in ("none", "file"))) == []  # type: ignore[arg-type]


def test_a_search_ends_after_its_entries_or_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(30):
        put(tmp_path / f"{i:02d}" / "m.gguf", {"general.name": str(i)})
    monkeypatch.setattr(model_finder, "MAX_ENTRIES", 40)
    assert 0 < len(find(Place("x", tmp_path))) < 30
    monkeypatch.undo()
    now = iter(range(10_000))
    assert 0 < len(ModelFinder(lambda: next(now) / 4).find([Place("x", tmp_path)])) < 30
    assert "stopped" in caplog.text


def test_what_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "m.gguf", {"general.name": "one"})
    finder = ModelFinder()
    where = [Place("x", tmp_path)]
    first = finder.find(where)
    monkeypatch.setattr(model_finder, "read_header", None)
    assert finder.find(where) == first
    monkeypatch.undo()
    put(path, {"general.name": "another"})
    os.utime(path, (1, 1))
    (changed,) = finder.find(where)
    assert changed.info is not None
    assert changed.info.name == "another"


def where(platform: str, env: dict[str, str] | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place in places(Path("/own"), [Path("/mine")], Path("/h"), env or {}, platform):
        found.setdefault(place.source, []).append(place.path.as_posix())
    return found


def test_places_of_each_platform() -> None:
    linux = where("linux")
    assert linux["Laya Desktop"] == ["/own"]
    assert linux["your folders"] == ["/mine"]
    assert "/h/.lmstudio/models" in linux["LM Studio"]
    assert linux["Ollama"] == ["/h/.ollama/models", "/usr/share/ollama/.ollama/models"]
    assert linux["Hugging Face"] == ["/h/.cache/huggingface/hub"]
    assert linux["llama.cpp"] == ["/h/.cache/llama.cpp"]
    assert linux["GPT4All"] == ["/h/.local/share/nomic.ai/GPT4All"]
    assert "/h/.config/Jan/data/llamacpp/models" in linux["Jan"]
    assert where("darwin")["GPT4All"] == ["/h/Library/Application Support/nomic.ai/GPT4All"]
    assert where("win32", {"LOCALAPPDATA": "/local"})["GPT4All"] == ["/local/nomic.ai/GPT4All"]


def test_other_programs_variables_are_honoured() -> None:
    env = {"OLLAMA_MODELS": "/o", "HF_HOME": "/hf", "LLAMA_CACHE": "/l", "XDG_DATA_HOME": "/d"}
    found = where("linux", env)
    assert found["Ollama"][0] == "/o"
    assert found["Hugging Face"] == ["/hf/hub"]
    assert found["llama.cpp"] == ["/l"]
    assert found["GPT4All"] == ["/d/nomic.ai/GPT4All"]
    assert where("linux", {"HF_HUB_CACHE": "/c", "HF_HOME": "/hf"})["Hugging Face"] == ["/c"]
