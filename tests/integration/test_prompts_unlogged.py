"""What callers say reaches no log, at the most talkative level and through every fault, unless it is switched on."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from laya_desktop.state.enums import ModelState
from laya_desktop.state.events import ModelFailed
from tests.helpers.session import Running, running

SECRET = "zanzibar-7f3q"
CONFIG = """
    version: 1
    server: {port: 0}
    log: {level: debug}
    models:
      - {name: m, engine: fake, path: "fake:tokens=100000,itl_ms=5", max_seq_len: 100000}
      - {name: brief, engine: fake, path: "fake:tokens=3", cache: {enabled: true}}
"""


def logged(node: Running) -> str:
    """Everything in the ring and in the files."""
    assert node.session.log.flush()
    folder = node.session.log.directory
    assert folder is not None
    files = [p.read_text(encoding="utf-8") for p in Path(folder).rglob("*") if p.is_file()]
    return "\n".join(files + [str(line) for line in node.session.log.ring.since(0, 10_000)])


def ask(node: Running, path: str, body: object) -> int:
    return node.ask("POST", path, body)[0]


def test_no_prompt_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    messages = [{"role": "user", "content": SECRET}]
    with running(tmp_path / "laya.yaml", CONFIG) as node:
        for stream in (False, True):
            chat = {"model": "brief", "messages": messages, "stream": stream, "temperature": 0}
            assert ask(node, "/v1/chat/completions", chat) == 200
        assert ask(node, "/v1/completions", {"model": "brief", "prompt": SECRET}) == 200
        assert ask(node, "/v1/messages", {"model": "brief", "messages": messages, "max_tokens": 3}) == 200
        assert ask(node, "/tokenize", {"model": "brief", "content": SECRET}) == 200
        assert ask(node, "/v1/chat/completions", {"model": "brief", "messages": [{"role": SECRET}]}) == 400
        assert ask(node, "/v1/completions", {"model": "brief", "prompt": SECRET, "temperature": SECRET}) == 400
        assert ask(node, "/v1/completions", {"model": "gone", "prompt": SECRET}) == 404

        stream = {"model": "m", "messages": messages, "max_tokens": 90_000, "stream": True}
        victim = threading.Thread(target=ask, args=(node, "/v1/chat/completions", stream))
        victim.start()
        pid = node.until(lambda s: s.model("m").state is ModelState.READY and s.model("m").running == 1).model("m").pid
        connection = http.client.HTTPConnection(node.netloc, timeout=10)
        connection.request("POST", "/v1/chat/completions", json.dumps(stream), {"Content-Type": "application/json"})
        node.until(lambda s: s.model("m").running + s.model("m").waiting == 2)
        connection.close()  # the caller leaves in the middle of its answer
        os.kill(pid, signal.SIGKILL)
        node.wait_told(ModelFailed)
        victim.join(20)
        text = logged(node)
    assert "/v1/chat/completions" in text, "the log is on"
    assert SECRET not in text


def test_prompts_and_answers_are_logged_where_that_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    key = "sk-" + "a1" * 20
    messages = [{"role": "user", "content": f"{SECRET} Authorization: Bearer {key}"}]
    with running(tmp_path / "laya.yaml", CONFIG.replace("level: debug", "prompts: true")) as node:
        for _ in range(2):  # the second one comes from the cache
            assert ask(node, "/v1/chat/completions", {"model": "brief", "messages": messages, "temperature": 0}) == 200
        assert ask(node, "/v1/completions", {"model": "brief", "prompt": "y" * 9_000, "stream": True}) == 200
        status, body, _ = node.ask("POST", "/v1/completions", {"model": "brief", "prompt": "what?"})
        answer = json.loads(body)["choices"][0]["text"]
        before = logged(node)
        quiet = node.snapshot.config.log.model_copy(update={"prompts": False})
        node.session.service.apply_config(node.snapshot.config.model_copy(update={"log": quiet})).result(10)
        assert ask(node, "/v1/completions", {"model": "brief", "prompt": "not for you"}) == 200
        after = logged(node)
    assert status == 200
    assert before.count("(choice 0)") == 8  # four answers, in the file and in the window
    assert answer.strip() in before
    assert key not in before
    assert "5002 characters" in before
    assert "not for you" not in after
