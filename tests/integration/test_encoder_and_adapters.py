"""An encoder and adapters through the whole application: files beside the configuration, real workers, real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from laya_desktop.state.enums import ModelState
from tests.helpers.gguf_writer import write_gguf
from tests.helpers.lora_writer import change, write_adapter
from tests.helpers.session import Running, running
from tests.helpers.tiny_bert import CLS, SEP, WIDTH, TinyBert, write_tiny_bert

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: bert, path: bert.gguf, device: cpu, max_seq_len: 32, pooling: cls}
      - {name: styled, path: bert.gguf, device: cpu, max_seq_len: 32, lora: [{path: style.gguf, scale: 0.5}]}
    routes:
      - {name: vectors, match: {prefix: /vectors}, target: bert}
"""


@pytest.fixture
def bert(tmp_path: Path) -> TinyBert:
    return write_tiny_bert(tmp_path / "bert.gguf")


@pytest.fixture
def node(tmp_path: Path, bert: TinyBert, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "node.yaml", CONFIG) as node:
        yield node


def test_an_encoder_is_asked_for_vectors_and_refuses_chats(node: Running, bert: TinyBert) -> None:
    body = {"input": "a cat sleeps", "dimensions": 4, "encoding_format": "float"}
    status, answer, _ = node.ask("POST", "/vectors/embeddings", body)
    row = bert.rows([CLS, 5, 6, 8, SEP])[0, :4]
    assert status == 200, answer
    found = json.loads(answer)["data"][0]["embedding"]
    assert found == pytest.approx(row / np.linalg.norm(row), abs=1e-3)
    wrong = json.loads(node.ask("POST", "/vectors/embeddings", {**body, "dimensions": WIDTH + 1})[1])["error"]
    assert (wrong["param"], str(WIDTH) in wrong["message"]) == ("dimensions", True)
    hello = [{"role": "user", "content": "Hello"}]
    for stream in (False, True):
        status, answer, _ = node.ask("POST", "/vectors", {"messages": hello, "stream": stream})
        error = json.loads(answer)["error"]
        assert (status, error["code"]) == (400, "not_supported")
        assert "encoder" in error["message"]
        assert "/v1/embeddings" in error["message"]


def test_a_missing_and_a_wrong_adapter_are_said_and_the_right_one_acts(
    node: Running, bert: TinyBert, tmp_path: Path
) -> None:
    ask = {"model": "styled", "input": "a cat"}
    status, answer, _ = node.ask("POST", "/v1/embeddings", ask)
    assert status >= 500
    assert f"There is no adapter file {tmp_path / 'style.gguf'}" in json.loads(answer)["error"]["message"]
    write_gguf(tmp_path / "style.gguf")
    _, answer, _ = node.ask("POST", "/admin/models/styled/load", {})
    assert f"{tmp_path / 'style.gguf'} is a GGUF file but no adapter" in json.loads(answer)["error"]["message"]
    write_adapter(tmp_path / "style.gguf", ("blk.0.attn_output.weight",), architecture="bert", width=WIDTH)
    assert node.ask("POST", "/admin/models/styled/load", {})[0] < 300
    node.until(lambda s: s.model("styled").state is ModelState.READY)
    with_it = json.loads(node.ask("POST", "/v1/embeddings", ask)[1])["data"][0]["embedding"]
    bert.weights["blk.0.attn_output.weight"] += 0.5 * change(1, width=WIDTH)[0]
    row = bert.rows([CLS, 5, 6, SEP]).mean(axis=0)
    assert with_it == pytest.approx(row / np.linalg.norm(row), abs=2e-3)
