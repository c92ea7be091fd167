"""Edits as values: each returns a new, checked configuration or says why not; and differences in words."""

from __future__ import annotations

import pytest

from laya_desktop.config.changes import describe
from laya_desktop.config.schema import (
    MatchConfig,
    ModelConfig,
    NodeConfig,
    QueueConfig,
    RouteConfig,
    ServerConfig,
    UpstreamConfig,
)
from laya_desktop.errors import ConfigError, LayaError

CONFIG = NodeConfig.model_validate(
    {
        "models": [{"name": "a", "path": "a.gguf"}, {"name": "b", "path": "b.gguf"}],
        "upstreams": [{"name": "box", "url": "http://h/v1"}],
        "routes": [
            {"name": "chat", "match": {"prefix": "/x"}, "target": "a"},
            {"name": "jobs", "match": {"prefix": "/j"}, "target": "a"},
            {"name": "far", "match": {"prefix": "/f"}, "target": "box"},
        ],
    }
)
A, B = CONFIG.models
CHAT = CONFIG.routes[0]


def names(config: NodeConfig) -> list[str]:
    return [r.name for r in config.routes]


def test_a_model_is_added_replaced_and_removed() -> None:
    new = ModelConfig.model_validate({"name": "c", "path": "c.gguf"})

    added = CONFIG.with_model(new)
    replaced = added.with_model(B.model_copy(update={"batch_size": 9}), "b")

    assert [m.name for m in added.models] == ["a", "b", "c"]
    assert [m.batch_size for m in replaced.models] == [4, 9, 4]
    assert added.without_model("c") == CONFIG


def test_renaming_a_model_or_an_upstream_takes_its_routes_along() -> None:
    model = CONFIG.with_model(A.model_copy(update={"name": "z"}), "a")
    upstream = CONFIG.with_upstream(UpstreamConfig(name="y", url="http://h/v1"), "box")

    assert [r.target for r in model.routes] == ["z", "z", "box"]
    assert [r.target for r in upstream.routes] == ["a", "a", "y"]


def test_a_model_that_routes_use_is_not_removed() -> None:
    with pytest.raises(LayaError) as caught:
        CONFIG.without_model("a")

    assert caught.value.code == "target_in_use"
    assert caught.value.message == "The model 'a' is the target of the routes 'chat' and 'jobs'."
    with pytest.raises(LayaError, match="The upstream 'box' is the target of the route 'far'"):
        CONFIG.without_upstream("box")


def test_routes_are_added_moved_and_removed() -> None:
    added = CONFIG.with_route(CHAT.model_copy(update={"name": "new"}))

    assert names(added) == ["chat", "jobs", "far", "new"]
    assert names(added.move_route("new", 0)) == ["new", "chat", "jobs", "far"]
    assert names(added.move_route("chat", 99)) == ["jobs", "far", "new", "chat"]
    assert names(added.move_route("far", -5)) == ["far", "chat", "jobs", "new"]
    assert names(added.without_route("jobs")) == ["chat", "far", "new"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda: CONFIG.with_model(A), "The name 'a' is taken by another model"),
        (lambda: CONFIG.with_model(A, "bb"), "No model 'bb'"),
        (lambda: CONFIG.with_upstream(UpstreamConfig(name="b", url="http://h")), "taken by a model"),
        (lambda: CONFIG.with_route(CHAT), "taken by another route"),
        (lambda: CONFIG.with_route(CHAT.model_copy(update={"target": "boxx"}), "chat"), "Did you mean 'box'"),
        (lambda: CONFIG.without_route("caht"), "No route 'caht'. Did you mean 'chat'"),
        (lambda: CONFIG.move_route("none", 0), "No route 'none'"),
        (lambda: CONFIG.without_upstream("none"), "No upstream 'none'"),
    ],
)
def test_an_impossible_edit_says_why(edit: object, words: str) -> None:
    assert callable(edit)
    with pytest.raises(ConfigError, match=words):
        edit()


def test_an_edit_leaves_the_old_configuration_as_it_was() -> None:
    before = CONFIG.model_dump()

    CONFIG.with_model(A.model_copy(update={"name": "z"}), "a").without_route("far")

    assert CONFIG.model_dump() == before


def route(**changes: object) -> NodeConfig:
    return CONFIG.with_route(RouteConfig.model_validate(CHAT.model_dump() | changes), "chat")


def model(**changes: object) -> NodeConfig:
    return CONFIG.with_model(ModelConfig.model_validate(A.model_dump() | changes), "a")


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (CONFIG, []),
        (route(priority="batch"), ["route chat: priority normal → batch"]),
        (route(timeout="90s"), ["route chat: timeout 5m → 90s"]),
        (route(enabled=False), ["route chat: enabled on → off"]),
        (route(match=MatchConfig(path="/y")), ["route chat: match prefix /x → path /y"]),
        (route(match=MatchConfig(prefix="/y")), ["route chat: match.prefix /x → /y"]),
        (route(match={"prefix": "/x", "methods": ["POST"]}), ["route chat: match.methods none → POST"]),
        (
            route(match={"prefix": "/x", "headers": {"X": "1"}}),
            ["route chat: match.headers none → X: 1"],
        ),
        (
            route(match={"prefix": "/x", "headers": {"X": None}}),
            ["route chat: match.headers none → X: any value"],
        ),
        (model(queue=QueueConfig(policy="priority")), ["model a: queue.policy fifo → priority"]),
        (model(idle_unload="10m"), ["model a: idle_unload none → 10m"]),
        (
            model(name="z"),
            ["model a: renamed to z", "route chat: target a → z", "route jobs: target a → z"],
        ),
        (CONFIG.without_model("b"), ["model b: removed"]),
        (CONFIG.with_route(CHAT.model_copy(update={"name": "n"})), ["route n: added"]),
        (CONFIG.move_route("far", 0), ["routes: order changed to far, chat, jobs"]),
        (
            CONFIG.model_copy(update={"server": ServerConfig(port=1, api_keys=("secret",))}),
            ["server: port 5292 → 1", "server: api_keys: 1 added"],
        ),
    ],
)
def test_differences_are_one_short_line_each(new: NodeConfig, lines: list[str]) -> None:
    assert list(describe(CONFIG, new)) == lines
