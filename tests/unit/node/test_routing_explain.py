"""Why a route wins, in the words of the window."""

from __future__ import annotations

from typing import Any

import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.node.routing import RoutingTable


def route(name: str, target: str = "my-llm-7b", *, enabled: bool = True, **match: Any) -> dict[str, Any]:
    return {"name": name, "target": target, "enabled": enabled, "match": match}


@pytest.fixture
def table() -> RoutingTable:
    return RoutingTable.compile(
        NodeConfig.model_validate(
            {
                "models": [{"name": "my-llm-7b", "path": "/data/m.gguf"}],
                "upstreams": [{"name": "big-box", "url": "http://127.0.0.1:9/v1"}],
                "routes": [
                    route("status", path="/status"),
                    route("chat", prefix="/v1/model"),
                    route("fast lane", prefix="/v1/model", headers={"X-Tier": "pro"}),
                    route("posts", prefix="/v1/model", headers={"X-Tier": "pro"}, methods=["POST"], host="box.local"),
                    route("big box", "big-box", prefix="/v1", model="qwen3-32b"),
                    route("users", "big-box", regex="/u/(?P<id>[0-9]+)/chat", use_regex=True, enabled=False),
                    route("any", "big-box", regex="/v1/.*|/x[0-9]", use_regex=True),
                ],
            }
        )
    )


def reasons(table: RoutingTable, *request: Any) -> dict[str, str]:
    return {c.route: c.reason for c in table.explain(*request).candidates}


def test_the_example_of_the_routes_page(table: RoutingTable):
    found = table.explain("post", "/v1/model/chat/completions?x=1", {"X-Tier": "pro"}, None)
    assert (found.winner, found.target, found.stripped_path) == ("fast lane", "my-llm-7b", "/chat/completions")
    assert found.reason == "same prefix as “chat”, one more condition (header X-Tier)"
    assert [(c.route, c.won) for c in found.candidates][:2] == [("fast lane", True), ("status", False)]
    assert {c.route: c.reason for c in found.candidates} == {
        "fast lane": found.reason,
        "status": "path is not /status",
        "posts": "no Host header, box.local is asked for",
        "chat": "fewer conditions",
        "big box": "shorter prefix, and the body names no model",
        "any": "regex, checked last",
        "users": "off",
    }


def test_conditions_that_fail_are_named(table: RoutingTable):
    found = reasons(table, "GET", "/v1/model", {"x-tier": "free", "HOST": "lap.local"}, "llama")
    assert found["fast lane"] == "header X-Tier is “free”, not “pro”"
    assert found["posts"] == (
        "method GET is not among POST, and host lap.local is not box.local, and header X-Tier is “free”, not “pro”"
    )
    assert found["big box"] == "shorter prefix, and the body's model is “llama”, not “qwen3-32b”"
    assert found["chat"] == "a prefix wins over “any”, a regex"
    assert reasons(table, "GET", "/v1/model", {}, None)["fast lane"] == "header X-Tier is missing"


def test_paths_that_do_not_fit_say_so(table: RoutingTable):
    found = reasons(table, "POST", "/v1/models", {}, None)
    assert found["chat"] == "prefix /v1/model ends inside a segment of the path"
    assert found["any"] == "the only route that fits"
    assert found["big box"] == "the body names no model"
    other = reasons(table, "POST", "/x1/y", {}, None)
    assert other["any"] == "regex matches a part of the path only"
    assert other["chat"] == "path does not start with /v1/model"
    assert reasons(table, "POST", "/y", {}, None)["any"] == "regex does not match"


def test_no_winner_and_a_refused_path(table: RoutingTable):
    none = table.explain("POST", "/y", {}, None)
    assert (none.winner, none.target) == (None, None)
    assert "no route fits" in none.reason
    bad = table.explain("POST", "/%zz", {}, None)
    assert bad.winner is None
    assert "two hex digits" in bad.reason


def test_more_reasons_for_winning(table: RoutingTable):
    three = table.explain("POST", "/v1/model", {"X-Tier": "pro", "Host": "box.local:80"}, None)
    assert three.reason == "same prefix as “fast lane”, two more conditions (method, host)"
    longer = table.explain("POST", "/v1/model", {}, "qwen3-32b")
    assert longer.reason == "longer prefix than “big box”"
