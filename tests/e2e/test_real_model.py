"""The real model over real HTTP, as clients use it: OpenAI's own library, streams, deaths, reloads, bad input."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import psutil
import pytest

from laya_desktop.config.schema import RouteConfig
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import ModelState, Phase
from laya_desktop.state.events import ModelFailed
from tests.e2e.conftest import Running

pytestmark = pytest.mark.e2e
MODEL = "smollm2-135m"
CAPITAL = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]


def client(node: Running, path: str = "/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=node.url + path, api_key="unused", max_retries=0, timeout=60)


def post(node: Running, path: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, dict, dict]:
    connection = http.client.HTTPConnection(node.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}))
        response = connection.getresponse()
        return response.status, json.loads(response.read()), dict(response.headers)
    finally:
        connection.close()


def test_chat_whole_and_streamed_through_a_route_give_the_same_answer(running: Running) -> None:
    running.service.load_model(MODEL, "cpu").result(60)
    api = client(running, "/v1/model")
    whole = api.chat.completions.create(model=MODEL, messages=CAPITAL, max_tokens=8, temperature=0)
    assert "Paris" in whole.choices[0].message.content
    assert whole.usage.prompt_tokens > 10
    assert 0 < whole.usage.completion_tokens <= 8
    stream = api.chat.completions.create(
        model=MODEL, messages=CAPITAL, max_tokens=8, temperature=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    snapshot = running.until(lambda s: len([r for r in s.requests if r.phase is Phase.DONE]) == 2)
    done = snapshot.requests[0]
    assert (done.route, done.target, done.status) == ("chat", MODEL, 200)
    assert done.ttft_s is not None
    assert done.ttft_s > 0
    assert done.routing_us is not None
    assert snapshot.model(MODEL).device == "CPU"
    assert next(r for r in snapshot.routes if r.name == "chat").hits == 2


def test_what_the_worker_held_corrects_the_next_estimate(running: Running) -> None:
    config = next(m for m in running.service.snapshot.config.models if m.name == MODEL)
    assert running.service.estimate_model(config, "cpu").result(60).measured_bytes is None
    running.service.load_model(MODEL, "cpu").result(60)
    client(running, "/v1").chat.completions.create(model=MODEL, messages=CAPITAL, max_tokens=4)
    running.until(lambda _s: running.service.estimate_model(config, "cpu").result(60).measured_bytes is not None)
    found = running.service.estimate_model(config, "cpu").result(60)
    assert found.total_bytes == pytest.approx(found.measured_bytes, rel=0.05)


def test_completions_and_models(running: Running) -> None:
    api = client(running)
    assert [m.id for m in api.models.list()] == [MODEL, "second"]
    answer = api.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, temperature=0)
    assert "Paris" in answer.choices[0].text
    assert answer.choices[0].finish_reason == "length"


def test_four_requests_at_once_load_the_model_once(running: Running) -> None:
    api = client(running)

    def ask(_: int) -> str:
        answer = api.chat.completions.create(model=MODEL, messages=CAPITAL, max_tokens=8, temperature=0)
        return answer.choices[0].message.content

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(4)))
    assert len(answers) == 4
    assert ["Paris" in a for a in answers] == [True] * 4, answers
    assert running.snapshot.model("second").state is ModelState.UNLOADED


def test_a_killed_worker_fails_its_request_and_the_other_model_goes_on(running: Running) -> None:
    for name in (MODEL, "second"):
        running.service.load_model(name).result(60)
    api = client(running)
    pid = running.until(lambda s: s.model(MODEL).pid is not None).model(MODEL).pid
    victim = api.completions.create(model=MODEL, prompt="Count: 1 2 3", max_tokens=900, stream=True)
    survivor = api.completions.create(model="second", prompt="Count: 1 2 3", max_tokens=60, temperature=0, stream=True)
    next(victim)
    next(survivor)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(openai.APIError, match="kill"):
        list(victim)
    assert list(survivor)[-1].choices[0].finish_reason in ("stop", "length")
    failed = [e for e in running.service.drain_events() if isinstance(e, ModelFailed)]
    assert failed[-1].model == MODEL
    assert "SIGKILL" in failed[-1].error
    assert running.snapshot.model("second").state is ModelState.READY
    running.service.load_model(MODEL).result(60)  # it is on its way back by itself, or there already
    running.until(lambda s: s.model(MODEL).state is ModelState.READY and s.model(MODEL).pid not in (None, pid), 60)


def test_a_dropped_stream_frees_its_slot_at_once(running: Running) -> None:
    running.service.load_model("second").result(60)
    stream = client(running).completions.create(model="second", prompt="Once upon a time", max_tokens=400, stream=True)
    next(stream)
    stream.close()
    snapshot = running.until(lambda s: s.model("second").running == 0 and bool(s.requests), 10)
    assert snapshot.requests[0].phase is Phase.CANCELLED
    assert snapshot.requests[0].completion_tokens < 300


def test_reload_while_requests_run_finishes_them(running: Running) -> None:
    running.service.load_model("second").result(60)
    answers: list[int] = []

    def ask() -> None:
        text = client(running).completions.create(model="second", prompt="A list:", max_tokens=40, temperature=0)
        answers.append(text.usage.completion_tokens)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    running.until(lambda s: s.model("second").running == 1 and s.model("second").waiting == 2)
    config = running.snapshot.config
    changed = config.model("second").model_copy(update={"max_seq_len": 256})
    running.service.apply_config(config.with_model(changed, replacing="second")).result(10)
    running.service.load_model("second").result(60)
    for thread in threads:
        thread.join(60)
    assert len(answers) == 3
    assert all(tokens > 0 for tokens in answers)
    assert running.until(lambda s: s.model("second").state is ModelState.READY).model("second").max_seq_len == 256


def test_routes_edited_live_act_on_the_next_request_and_are_saved_with_comments(running: Running) -> None:
    body = json.dumps({"messages": CAPITAL, "max_tokens": 2, "temperature": 0}).encode()
    assert post(running, "/v1/fast/chat/completions", body)[0] == 404
    route = RouteConfig(name="fast", match={"prefix": "/v1/fast"}, target="second")
    running.service.apply_config(running.snapshot.config.with_route(route)).result(10)
    status, answer, headers = post(running, "/v1/fast/chat/completions", body)
    assert status == 200
    assert headers["X-Laya-Route"] == "fast"
    assert float(headers["X-Laya-Routing-Us"]) > 0
    assert answer["choices"][0]["message"]["content"]
    assert running.until(lambda s: s.config_status.unsaved != ()).config_status.unsaved
    assert "fast" not in running.config_path.read_text()
    running.service.save_config().result(10)
    saved = running.config_path.read_text()
    assert "fast" in saved
    assert "# the bundled one" in saved
    assert running.until(lambda s: s.config_status.unsaved == ()).config_status.path == str(running.config_path)


def test_saving_over_a_file_changed_on_disk_is_refused(running: Running) -> None:
    running.config_path.write_text(running.config_path.read_text() + "# edited elsewhere\n")
    route = RouteConfig(name="fast", match={"prefix": "/v1/fast"}, target="second")
    running.service.apply_config(running.snapshot.config.with_route(route)).result(10)
    with pytest.raises(LayaError) as refused:
        running.service.save_config().result(10)
    assert refused.value.code == "changed_on_disk"
    assert running.config_path.read_text().endswith("# edited elsewhere\n")
    assert running.until(lambda s: s.config_status.changed_on_disk).config.route("fast") is not None


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/chat/completions", b"{not json", 400, "JSON"),
        ("/v1/chat/completions", b'{"model": "smollm", "messages": []}', 404, "smollm2-135m"),
        ("/v1/model/chat/completions", b'{"messages": "hi"}', 400, "messages"),
        ("/v1/model/chat/completions", b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": "many"}', 400,
         "max_tokens"),
        ("/nowhere", b"{}", 404, "route"),
    ],
)  # fmt: skip
def test_bad_requests_say_what_where_and_what_next(
    running: Running, path: str, body: bytes, status: int, words: str
) -> None:
    got, answer, _ = post(running, path, body)
    assert got == status
    assert words in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}


def test_a_prompt_beyond_the_context_is_refused_with_the_numbers(running: Running) -> None:
    running.service.load_model("second").result(60)
    body = json.dumps({"prompt": "word " * 600, "max_tokens": 4}).encode()
    status, answer, _ = post(running, "/v1/completions", body[:-1] + b', "model": "second"}')
    assert status == 400
    assert answer["error"]["code"] == "context_length_exceeded"
    assert "512" in answer["error"]["message"]


def test_a_taken_port_is_said_and_the_node_lives_on(running: Running) -> None:
    port = running.snapshot.node.port
    config = running.snapshot.config
    with_port = config.model_copy(update={"server": config.server.model_copy(update={"port": 1})})
    occupied = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    occupied.connect()
    taken = with_port.model_copy(update={"server": config.server.model_copy(update={"port": _taken_port()})})
    with pytest.raises(LayaError, match="taken"):
        running.service.apply_config(taken).result(10)
    occupied.request("GET", "/health")
    assert occupied.getresponse().status == 200
    occupied.close()
    assert running.snapshot.config == config
    _release_port()


def test_closing_the_session_leaves_no_process(running: Running) -> None:
    running.service.load_model(MODEL).result(60)
    workers = psutil.Process().children(recursive=True)
    assert workers
    running.session.close()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []


_holder: list[object] = []


def _taken_port() -> int:
    import socket

    sock = socket.create_server(("127.0.0.1", 0))
    _holder.append(sock)
    return sock.getsockname()[1]


def _release_port() -> None:
    _holder.pop().close()
