"""A PyTorch model in the real node: over HTTP as clients use it, and what the window and ``/admin`` say about it."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import openai
import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import ModelState, Verdict
from tests.e2e.conftest import Running
from tests.helpers.tiny_transformer import tiny_model

CONFIG = """
    version: 1
    server: {port: 0}
    guard: {reserve_ram: 256MiB}
    model_folders: [models]
    models:
      - {name: tiny, path: models/tiny, engine: transformers, batch_size: 2, max_seq_len: 256, num_worker: 1}
    routes:
      - {name: chat, match: {prefix: /v1/model}, target: tiny}
"""
MESSAGES = [{"role": "user", "content": "red green blue"}]


@pytest.fixture
def node(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    tiny = tiny_model(tmp_path_factory)
    for variable in ("LAYA_HOME", "HOME", "HF_HOME", "OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    shutil.copytree(tiny, tmp_path / "models" / "tiny")
    config = tmp_path / "laya.yaml"
    config.write_text(dedent(CONFIG))
    running = Running(config)
    try:
        yield running
    finally:
        running.session.close()


def client(node: Running, path: str = "/v1/model") -> openai.OpenAI:
    return openai.OpenAI(base_url=node.url + path, api_key="unused", max_retries=0, timeout=60)


def test_a_chat_loads_the_model_and_streams(node: Running) -> None:
    api = client(node)
    whole = api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=12, temperature=0)
    text = whole.choices[0].message.content
    assert text
    assert whole.usage.completion_tokens == 12
    stream = api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=12, temperature=0, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == text
    model = node.until(lambda s: s.model("tiny").state is ModelState.READY).model("tiny")
    assert (model.device, model.total_layers, len(model.slots)) == ("CPU", 2, 2)

    def ask(_: int) -> str:
        answer = api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=12, temperature=0)
        return answer.choices[0].message.content

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [text] * 4
    with pytest.raises(openai.BadRequestError, match="256"):
        api.completions.create(model="tiny", prompt="word " * 400)


def test_a_dropped_stream_frees_its_slot(node: Running) -> None:
    stream = client(node).completions.create(model="tiny", prompt="Emojis: ", max_tokens=200, stream=True)
    next(stream)
    stream.close()
    snapshot = node.until(lambda s: s.model("tiny").running == 0 and bool(s.requests) and s.requests[0].finish_reason)
    assert (snapshot.requests[0].completion_tokens or 0) < 200


def test_the_model_is_described_estimated_and_found(node: Running, tmp_path: Path) -> None:
    info = node.service.inspect_model(Path("models/tiny")).result(20)
    assert (info.architecture, info.quantisation, info.layers, info.context_length) == ("llama", "F32", 2, 512)
    config = node.snapshot.config or pytest.fail("no configuration")
    estimate = node.service.estimate_model(config.models[0], "cpu").result(20)
    assert estimate.verdict is Verdict.FITS
    (found,) = node.service.find_models().result(20)
    assert (found.name, found.source, found.engine) == ("tiny", "your folders", "transformers")
    assert found.path == str(tmp_path / "models" / "tiny")
    with urllib.request.urlopen(f"{node.url}/admin/models/found", timeout=20) as response:
        (row,) = json.load(response)
    assert (row["path"], row["info"]["parameters"]) == (found.path, info.parameters)


def test_a_load_that_cannot_be_says_why(node: Running, tmp_path: Path) -> None:
    model = ModelConfig(name="none", path=tmp_path / "models" / "none", engine="transformers")
    node.service.apply_config(node.snapshot.config.with_model(model)).result(10)
    with pytest.raises(LayaError, match="There is no folder"):
        node.service.load_model("none").result(60)
    with pytest.raises(LayaError, match="device gpu"):
        node.service.load_model("tiny", "gpu").result(60)
