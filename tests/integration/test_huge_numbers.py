"""A number that cannot be sent to a worker is refused, and holds no slot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.session import running

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: m, engine: fake, path: "fake:tokens=3", batch_size: 1}
"""
HUGE = 10**30
HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": [HUGE], "max_tokens": 4}),
        ("/v1/chat/completions", {"messages": HI, "max_tokens": HUGE}),
        ("/v1/messages", {"messages": HI, "max_tokens": 10**20}),
        ("/v1/responses", {"input": "hi", "max_output_tokens": 10**20}),
        ("/v1/embeddings", {"input": "hi", "dimensions": HUGE}),
        ("/detokenize", {"tokens": [HUGE]}),
    ],
)
def test_a_number_beyond_64_bits_is_refused_and_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, object]
) -> None:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "laya.yaml", CONFIG) as node:
        for _ in range(3):  # there is one slot
            status, answer, _headers = node.ask("POST", path, {"model": "m", **body})
            assert status == 400, answer
            assert "error" in json.loads(answer)
        assert node.ask("POST", "/v1/chat/completions", {"model": "m", "messages": HI})[0] == 200
        node.until(lambda s: s.model("m").running == 0)
