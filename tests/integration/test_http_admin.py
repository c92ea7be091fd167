"""The admin API, the events and the Prometheus figures over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import ConfigError, LayaError, Problem
from laya_desktop.state.events import ModelLoaded, Notice
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_loop, serving, wait_for

CONFIG = {
    "models": [{"name": "m", "path": "/m.gguf"}, {"name": "org/big model", "path": "/b.gguf"}],
    "routes": [{"name": "chat", "match": {"prefix": "/x"}, "target": "m"}],
}


def gateway() -> FakeGateway:
    return FakeGateway(NodeConfig.model_validate(CONFIG))


@on_loop
async def test_the_snapshot_has_the_configuration_in_it() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as raw:
        got = (await raw.ask("GET", "/admin/snapshot")).json
    assert got["models"][0]["state"] == "ready"
    assert NodeConfig.model_validate(got["config"]) == NodeConfig.model_validate(CONFIG)


@on_loop
async def test_models_are_loaded_and_unloaded() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        assert (await raw.ask("POST", "/admin/models/m/load", {"device": "gpu"})).status == 200
        assert (await raw.ask("POST", "/admin/models/m/load")).status == 200
        assert (await raw.ask("POST", "/admin/models/org%2Fbig%20model/unload")).status == 200
        unknown = await raw.ask("POST", "/admin/models/n/load")
        assert (unknown.status, unknown.error["code"]) == (404, "model_not_found")
        wrong = await raw.ask("POST", "/admin/models/m/load", {"devise": "gpu"})
        assert wrong.status == 400
        assert "devise" in wrong.error["message"]
    assert node.commands == [("load", "m", "gpu"), ("load", "m", None), ("unload", "org/big model")]


@on_loop
async def test_an_estimate_with_other_settings() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        got = await raw.ask("POST", "/admin/models/m/estimate", {"device": "cpu", "settings": {"max_seq_len": 512}})
        assert (got.status, got.json["verdict"], got.json["proposal"]["kv_type"]) == (200, "will_not_fit", "q8_0")
        wrong = await raw.ask("POST", "/admin/models/m/estimate", {"settings": {"max_seq_len": -1}})
        assert (wrong.status, wrong.error["code"]) == (400, "invalid_config")
        assert "max_seq_len" in wrong.error["message"]
    assert node.commands == [("estimate", "m", "cpu", 512)]


@on_loop
async def test_a_command_that_fails_says_why() -> None:
    node = gateway()
    node.command_error = LayaError("No room.", hint="Unload one.", code="out_of_memory", status=503, retry_after_s=2)
    async with serving(node) as (_, port), RawClient(port) as raw:
        got = await raw.ask("POST", "/admin/models/m/load", {})
        assert (got.status, got.error["message"]) == (503, "No room. Unload one.")
        assert got.headers["retry-after"] == "2"


@on_loop
async def test_a_command_goes_on_when_its_caller_leaves() -> None:
    node = gateway()
    done = asyncio.Event()

    async def load(name: str, device: str | None = None, *, override: bool = False) -> None:
        started.set()
        await gate.wait()
        done.set()

    started, gate = asyncio.Event(), asyncio.Event()
    node.load_model = load  # type: ignore[method-assign]
    async with serving(node) as (listener, port):
        async with RawClient(port) as raw:
            raw.request("POST", "/admin/models/m/load", {})
            await started.wait()
        await wait_for(lambda: listener.connections == 0)
        gate.set()
        await asyncio.wait_for(done.wait(), 5)


@on_loop
async def test_the_guard_is_shown_and_its_actions_are_taken_back() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        shown = (await raw.ask("GET", "/admin/guard")).json
        assert (shown["mode"], shown["level"], shown["actions"]) == ("shed", "calm", [])
        done = (await raw.ask("POST", "/admin/guard/g3/undo")).json
        assert done == {"action_id": "g3", "undone": "Batch requests wait"}
        assert node.commands[-1] == ("undo_guard_action", "g3")
        await raw.ask("POST", "/admin/models/m/load", {"override": True})
        assert node.commands[-1] == ("load", "m", None, True)


@on_loop
async def test_a_request_is_cancelled() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as one, RawClient(port) as two:
        one.request("POST", "/x", {"prompt": "hi"})
        await wait_for(lambda: len(node.generations) == 1)
        assert (await two.ask("POST", "/admin/requests/req-1/cancel")).json == {
            "request_id": "req-1",
            "cancelled": True,
        }
        assert (await one.response()).status == 499
        assert not (await two.ask("POST", "/admin/requests/req-1/cancel")).json["cancelled"]


@on_loop
async def test_a_configuration_is_put_in_force_whole_or_not_at_all() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        config = (await raw.ask("GET", "/admin/config")).json
        config["routes"][0]["priority"] = "batch"
        got = await raw.ask("PUT", "/admin/config", config)
        assert (got.status, got.json["routes"][0]["priority"]) == (200, "batch")
        assert node.config.routes[0].priority == "batch"
        config["routes"][0] |= {"target": "nobody", "priorty": "batch"}
        config["models"][0]["batch_size"] = 0
        bad = await raw.ask("PUT", "/admin/config", config)
        assert (bad.status, bad.error["code"]) == (400, "invalid_config")
        keys = {p["key"] for p in bad.error["problems"]}
        assert {"routes[0].priorty", "models[0].batch_size"} <= keys
        assert node.config.routes[0].target == "m"
    assert node.commands == [("apply", "admin")]


@on_loop
async def test_what_the_node_refuses_of_a_configuration_is_listed() -> None:
    node = gateway()
    node.command_error = ConfigError("configuration", [Problem("Two rules tie.", ("routes", 1, "match"))])
    async with serving(node) as (_, port), RawClient(port) as raw:
        got = await raw.ask("PUT", "/admin/config", CONFIG)
    assert got.error["problems"] == [{"key": "routes[1].match", "message": "Two rules tie."}]


@on_loop
async def test_saving_names_no_other_file() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        assert (await raw.ask("POST", "/admin/save")).json == {"path": "app.yaml"}
        assert (await raw.ask("POST", "/admin/save", {"overwrite": True})).status == 200
        assert (await raw.ask("POST", "/admin/save", {"path": "/etc/passwd"})).status == 400
    assert node.commands == [("save", False), ("save", True)]


@on_loop
async def test_a_route_is_explained() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as raw:
        got = await raw.ask("POST", "/admin/routes/explain", {"path": "/x/v1/models", "method": "GET"})
        assert (got.json["winner"], got.json["target"]) == ("chat", "m")
        missing = await raw.ask("POST", "/admin/routes/explain", {})
        assert (missing.status, missing.error["param"]) == (400, "path")


@on_loop
async def test_events_stream_and_end_with_their_reader() -> None:
    node = gateway()
    async with serving(node) as (_, port):
        async with RawClient(port) as raw:
            raw.request("GET", "/admin/events")
            assert (await raw.head()).headers["content-type"].startswith("text/event-stream")
            await wait_for(lambda: node.subscribers == 1)
            node.events.put_nowait(ModelLoaded("m", 1.5, "CPU"))
            node.events.put_nowait(Notice("info", "é"))
            seen = b""
            while b"Notice" not in seen:
                seen += await raw.chunk()
            assert b'event: ModelLoaded\ndata: {"model":"m","load_s":1.5,"device":"CPU"}\n\n' in seen
        await wait_for(lambda: node.subscribers == 0)


@on_loop
async def test_events_do_not_hold_up_the_stop() -> None:
    node = gateway()
    async with serving(node) as (listener, port), RawClient(port) as raw:
        raw.request("GET", "/admin/events")
        await wait_for(lambda: node.subscribers == 1)
        await listener.stop(0.05)
        assert listener.connections == 0
        await wait_for(lambda: node.subscribers == 0)


@on_loop
@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/admin/save", "POST"),
        ("DELETE", "/admin/config", "GET, PUT"),
        ("GET", "/admin/models/m/load", "POST"),
        ("POST", "/metrics", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405(method: str, path: str, allow: str) -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as raw:
        got = await raw.ask(method, path)
        assert (got.status, got.headers["allow"]) == (405, allow)


@on_loop
@pytest.mark.parametrize("path", ["/admin", "/admin/", "/admin/snapshots", "/admin/models//load", "/admin/models/load"])
async def test_an_unknown_admin_path_lists_what_there_is(path: str) -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as raw:
        got = await raw.ask("POST", path)
        assert got.status == 404
        assert "/admin/snapshot" in got.error["message"]


@on_loop
async def test_a_route_cannot_take_the_nodes_own_paths() -> None:
    config: dict[str, Any] = {**CONFIG, "routes": [{"name": "all", "match": {"prefix": "/"}, "target": "m"}]}
    async with serving(FakeGateway(NodeConfig.model_validate(config))) as (_, port), RawClient(port) as raw:
        for path in ("/health", "/metrics", "/admin/config", "/health?x=1", "//health", "/a/../admin/config"):
            got = await raw.ask("GET", path)
            assert got.status == 200
            assert "x-laya-route" not in got.headers


@on_loop
async def test_the_figures_are_prometheus_text() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as raw:
        await raw.ask("GET", "/health")
        await raw.ask("POST", "/x", {"prompt": "hi"})
        got = await raw.ask("GET", "/metrics")
    lines = got.body.decode().splitlines()
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "laya_routing_seconds_count 2.0" in lines
    assert "laya_connections 1.0" in lines
    assert 'laya_responses_total{class="2xx"} 2.0' in lines
    assert 'laya_model_ready{model="org/big model"} 1.0' in lines
