"""Form fields of a route ↔ configuration data: pure mapping, no widgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from laya_desktop.config.parts import check_part
from laya_desktop.config.schema import NodeConfig, RouteConfig
from laya_desktop.errors import Problem
from laya_desktop.gui.qtmodels import route_fields as rf
from laya_desktop.gui.qtmodels.route_fields import RouteFields
from laya_desktop.gui.qtmodels.route_rows import route_rows
from tests.helpers.sample_data import sample_config, sample_snapshot

ROUTES = (
    {"name": "a", "match": {"path": "/x"}, "target": "m"},
    {"name": "b", "match": {"prefix": "/v1", "methods": ["GET", "POST"], "host": "h.example"}, "target": "m"},
    {"name": "c", "match": {"regex": "/u/[0-9]+", "use_regex": True, "model": "q"}, "target": "m", "enabled": False},
    {
        "name": "d",
        "match": {"prefix": "/", "headers": {"X-A": "1", "X-B": None, "X-C": "pro*"}},
        "target": "m",
        "priority": "batch",
        "timeout": "90s",
    },
    {"name": "e", "match": {"prefix": "/e"}, "target": "m", "fallback": ["n", "o"]},
    {
        "name": "f",
        "match": {"prefix": "/f"},
        "targets": [{"name": "m", "weight": 2}, "n"],
        "rewrite": "/v1",
        "response_headers": {"Cache-Control": "no-store"},
    },
)


@pytest.mark.parametrize("data", ROUTES, ids=lambda d: d["name"])
def test_a_route_survives_the_form(data: dict) -> None:
    route = RouteConfig.model_validate(data)
    again, problems = check_part("routes", rf.data_of(rf.fields_of(route)))
    assert problems == ()
    assert again == route


@pytest.mark.parametrize("data", ROUTES, ids=lambda d: d["name"])
def test_the_yaml_on_show_is_the_route(data: dict) -> None:
    route = RouteConfig.model_validate(data)
    (item,) = yaml.safe_load(rf.yaml_of(rf.fields_of(route)))
    assert RouteConfig.model_validate(item) == route


def test_defaults_are_not_written() -> None:
    assert rf.data_of(RouteFields(name="a", path="/v1", target="m")) == {
        "name": "a",
        "match": {"prefix": "/v1"},
        "target": "m",
    }


def test_wrong_text_is_kept_for_the_check() -> None:
    fields = RouteFields(name="a", path="/v1", target="m", timeout="300 parsecs", methods="fetch")
    assert rf.data_of(fields)["timeout"] == "300 parsecs"
    part, problems = check_part("routes", rf.data_of(fields))
    shown = rf.problems_by_field(problems, fields.kind)
    assert part is None
    assert shown["timeout"] == "Not a duration. Write 300s, 5m or 1h."
    assert set(shown) == {"timeout", "methods"}


def test_one_target_takes_the_place_of_shared_ones() -> None:
    fields = rf.fields_of(RouteConfig.model_validate(ROUTES[-1]))
    assert (fields.target, fields.shares) == ("", "m ×2, n")
    data = rf.data_of(replace(fields, shares="", target="o"))
    assert data["target"] == "o"
    assert "targets" not in data
    assert data["rewrite"] == "/v1"


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("a ×2, b", [{"name": "a", "weight": 2}, "b"]),
        ("a x2,b * 3 ,", [{"name": "a", "weight": 2}, {"name": "b", "weight": 3}]),
        ("box, xx", ["box", "xx"]),
        ("a ×much", [{"name": "a", "weight": "much"}]),
    ],
)
def test_shares_are_read_as_people_write_them(text: str, targets: list) -> None:
    assert rf.targets_of(text) == targets


def test_a_wrong_weight_is_the_shares_problem() -> None:
    _, problems = check_part("routes", rf.data_of(RouteFields(name="a", path="/v1", shares="a ×much")))
    assert set(rf.problems_by_field(problems, "prefix")) == {"shares"}


@pytest.mark.parametrize("key", rf.TEMPLATES)
def test_templates_make_routes_that_work(key: str) -> None:
    config = sample_config()
    part, problems = check_part("routes", rf.data_of(rf.from_template(key, config)))
    assert problems == ()
    assert config.with_route(part, None).routes[-1] == part


def test_a_problem_of_a_key_that_is_not_shown_names_it() -> None:
    problems = [Problem("Not a number.", ("weight",))]
    assert rf.problems_by_field(problems, "prefix") == {None: "weight: Not a number."}


def test_a_regex_without_its_switch_is_the_switchs_problem() -> None:
    fields = RouteFields(name="a", kind="regex", path="/u/[0-9]+", target="m")
    _, problems = check_part("routes", rf.data_of(fields))
    assert set(rf.problems_by_field(problems, "regex")) == {"use_regex"}


@pytest.mark.parametrize(
    ("loc", "field"),
    [
        (("match", "prefix"), "path"),
        (("match", "regex"), "path"),
        (("match",), "path"),
        (("match", "methods", 0), "methods"),
        (("match", "headers"), "headers"),
        (("target",), "target"),
        ((), None),
    ],
)
def test_every_place_has_a_field(loc: tuple, field: str | None) -> None:
    assert rf.field_of(loc) == field


def test_problems_of_one_field_are_joined() -> None:
    problems = [Problem("One.", ("name",)), Problem("Two.", ("name",))]
    assert rf.problems_by_field(problems, "prefix") == {"name": "One. Two."}


def test_a_new_route_would_be_accepted_as_it_is() -> None:
    config = sample_config()
    draft = rf.new_route(config)
    part, problems = check_part("routes", rf.data_of(draft), config)
    assert problems == ()
    assert isinstance(part, RouteConfig)
    assert part.target == "my-llm-7b"
    assert part.match.prefix not in {r.match.prefix for r in config.routes}


def test_a_new_route_without_any_target_says_so() -> None:
    _, problems = check_part("routes", rf.data_of(rf.new_route(NodeConfig())), NodeConfig())
    assert "target" in rf.problems_by_field(problems, "prefix")


def test_a_copy_has_a_free_name() -> None:
    config = sample_config()
    assert rf.copy_of(config.routes[1], config).name == "chat 2"


def test_rows_say_what_the_match_is() -> None:
    rows = {row.name: row for row in route_rows(sample_snapshot(), sample_config(), {"chat"})}
    assert rows["health-check"].match == "= /ping"
    assert (rows["fast lane"].match, rows["fast lane"].conditions) == ("/v1/model/*", "X-Tier: pro")
    assert rows["users"].notes == ("regex: slower, checked last",)
    assert rows["chat"].notes == ("edits not in force",)
    assert rows["big box"].upstream
    assert rows["big box"].conditions == "model: qwen3-32b"
    assert rows["users"].p99_us is None


@pytest.mark.parametrize(
    ("text", "headers", "wrong"),
    [
        ("", {}, None),
        ("X-Tier: pro", {"X-Tier": "pro"}, None),
        ("X-Tier: pro; X-Url: http://a", {"X-Tier": "pro", "X-Url": "http://a"}, None),
        ("nonsense", {}, "nonsense"),
        (": x", {}, ": x"),
    ],
)
def test_headers_from_text(text: str, headers: dict, wrong: str | None) -> None:
    assert rf.headers_from_text(text) == (headers, wrong)
