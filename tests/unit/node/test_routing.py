"""Which route takes a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import ConfigError
from laya_desktop.node.routing import NEED_MODEL, UNREAD, Decision, RoutingTable
from laya_desktop.node.routing_rules import Request, Rule, bare_host


def route(name: str, target: str = "m", *, enabled: bool = True, **match: Any) -> dict[str, Any]:
    if "regex" in match:
        match["use_regex"] = True
    return {"name": name, "target": target, "enabled": enabled, "match": match}


def config(*routes: dict[str, Any], **server: Any) -> NodeConfig:
    return NodeConfig.model_validate(
        {
            "server": server,
            "models": [{"name": "m", "path": "/data/m.gguf"}],
            "upstreams": [{"name": "big-box", "url": "http://127.0.0.1:9/v1"}],
            "routes": list(routes),
        }
    )


def table(*routes: dict[str, Any]) -> RoutingTable:
    return RoutingTable.compile(config(*routes))


def winner(
    table: RoutingTable,
    path: str,
    *,
    method: str = "POST",
    host: str = "127.0.0.1:5292",
    headers: Mapping[str, str] | None = None,
    model: str | None = None,
) -> str | None:
    decision = table.decide(method, path, host, headers or {}, model)
    return decision.route.name if isinstance(decision, Decision) else None


def test_an_exact_path_wins_over_prefixes_and_these_over_regexes():
    t = table(
        route("regex", regex="/v1/.*"), route("short", prefix="/v1"), route("exact", path="/v1/chat"),
        route("long", prefix="/v1/chat"),
    )  # fmt: skip
    assert winner(t, "/v1/chat") == "exact"
    assert winner(t, "/v1/chat/x") == "long"
    assert winner(t, "/v1/x") == "short"
    assert winner(t, "/v2") is None


def test_a_prefix_ends_between_segments_only():
    t = table(route("model", prefix="/v1/model"))
    assert winner(t, "/v1/model") == "model"
    assert winner(t, "/v1/model/x") == "model"
    assert winner(t, "/v1/models") is None
    assert winner(t, "/v1/model%2Fx") is None
    assert winner(t, "/x/v1/model") is None
    assert winner(t, "/v1") is None


def test_a_slash_at_the_end_of_a_rule_makes_no_difference():
    t = table(route("a", prefix="/v1/model/"), route("b", path="/status/"))
    assert winner(t, "/v1/model/x") == "a"
    assert winner(t, "/status") == "b"


def test_the_prefix_root_takes_everything_but_the_asterisk():
    t = table(route("all", prefix="/"), route("regex", regex=".*"))
    assert winner(t, "/") == "all"
    assert winner(t, "/a/b") == "all"
    assert t.decide("OPTIONS", "*", "", {}, None) is None


def test_what_is_left_of_the_path():
    t = table(
        route("prefix", prefix="/v1/model"), route("root", prefix="/"), route("exact", path="/ask"),
        route("api", path="/x/v1/chat/completions"),
    )  # fmt: skip

    def left(path: str) -> str:
        decision = t.decide("POST", path, "", {}, None)
        assert isinstance(decision, Decision)
        return decision.stripped_path

    assert left("/v1/model") == ""
    assert left("/v1/model/chat/completions") == "/chat/completions"
    assert left("/") == ""
    assert left("/v1/embeddings") == "/v1/embeddings"
    assert left("/ask") == ""
    assert left("/x/v1/chat/completions") == "/chat/completions"


def test_regexes_match_whole_paths_in_file_order():
    t = table(
        route("users", regex="/u/(?P<id>[0-9]+)/chat"), route("rest", regex="/u/(?P<id>[0-9]+)(?P<rest>/.*)?"),
        route("api", regex="/t-[a-z]+/chat/completions"),
    )  # fmt: skip
    first = t.decide("POST", "/u/12/chat", "", {}, None)
    assert isinstance(first, Decision)
    assert (first.route.name, first.groups, first.stripped_path) == ("users", {"id": "12"}, "")
    second = t.decide("POST", "/u/12/embeddings", "", {}, None)
    assert isinstance(second, Decision)
    assert (second.route.name, second.stripped_path) == ("rest", "/embeddings")
    bare = t.decide("POST", "/u/12", "", {}, None)
    assert isinstance(bare, Decision)
    assert (bare.groups, bare.stripped_path) == ({"id": "12"}, "")
    third = t.decide("POST", "/t-a/chat/completions", "", {}, None)
    assert isinstance(third, Decision)
    assert (third.route.name, third.stripped_path) == ("api", "/chat/completions")
    assert winner(t, "/x/u/12/chat") is None


def test_hundreds_of_regexes_keep_their_order():
    t = table(*(route(f"r{i}", regex=f"/t{i % 300}/[a-z]+|/any/{i}.*") for i in range(600)))
    assert winner(t, "/t299/abc") == "r299"
    assert winner(t, "/any/12345") == "r1"
    assert winner(t, "/t599/abc") is None


def test_more_conditions_win_and_a_failed_one_falls_back():
    t = table(
        route("chat", prefix="/v1/model"),
        route("fast", prefix="/v1/model", headers={"X-Tier": "pro"}),
        route("fast-post", prefix="/v1/model", headers={"x-tier": "pro"}, methods=["POST"]),
        route("outer", prefix="/v1", methods=["GET"]),
        route("regex", regex="/v1/.*", methods=["PUT"]),
        route("inner", prefix="/v1/only", methods=["POST"]),
    )
    assert winner(t, "/v1/model/x") == "chat"
    assert winner(t, "/v1/model/x", headers={"x-tier": "free"}) == "chat"
    assert winner(t, "/v1/model/x", headers={"x-tier": "pro"}) == "fast-post"
    assert winner(t, "/v1/model/x", headers={"x-tier": "pro"}, method="GET") == "fast"
    assert winner(t, "/v1/only/x", method="GET") == "outer"
    assert winner(t, "/v1/only/x", method="PUT") == "regex"
    assert winner(t, "/v1/only/x", method="DELETE") is None


def test_an_exact_path_whose_conditions_fail_falls_back_to_a_prefix():
    t = table(route("exact", path="/v1/chat", methods=["PUT"]), route("prefix", prefix="/v1"))
    assert winner(t, "/v1/chat") == "prefix"
    assert winner(t, "/v1/chat", method="PUT") == "exact"


def test_header_conditions_are_exact_present_or_a_prefix_and_the_narrower_wins():
    t = table(
        route("exact", prefix="/a", headers={"X-Key": "team-red"}), route("any", prefix="/a", headers={"X-Key": None}),
        route("longer", prefix="/a", headers={"X-Key": "team-r*"}),
        route("team", prefix="/a", headers={"X-Key": "team-*"}),
    )  # fmt: skip
    assert winner(t, "/a", headers={"x-key": "team-red"}) == "exact"
    assert winner(t, "/a", headers={"x-key": "team-rose"}) == "longer"
    assert winner(t, "/a", headers={"x-key": "team-"}) == "team"
    assert winner(t, "/a", headers={"x-key": ""}) == "any"
    assert winner(t, "/a") is None


def test_hosts_are_compared_without_case_and_a_rule_without_port_takes_every_port():
    t = table(
        route("host", prefix="/", host="Box.local"), route("port", prefix="/", host="box.local:81"),
        route("six", prefix="/", host="[::1]"),
    )  # fmt: skip
    assert winner(t, "/", host="box.LOCAL") == "host"
    assert winner(t, "/", host="box.local:80") == "host"
    assert winner(t, "/", host="box.local:81") == "port"
    assert winner(t, "/", host="[::1]:5292") == "six"
    assert winner(t, "/", host="other") is None
    assert bare_host("::1") == "::1"


def test_the_body_is_asked_for_only_where_it_matters():
    t = table(
        route("big", prefix="/v1", model="qwen3"), route("vip", prefix="/v1", headers={"A": "1", "B": "1"}),
        route("plain", prefix="/v1"), route("only-put", prefix="/put", model="qwen3", methods=["PUT"]),
        route("put", prefix="/put"),
    )  # fmt: skip
    assert t.decide("POST", "/v1/x", "", {}, UNREAD) is NEED_MODEL
    assert winner(t, "/v1/x", model="qwen3") == "big"
    assert winner(t, "/v1/x", model="other") == "plain"
    assert winner(t, "/v1/x", model=None) == "plain"
    vip = t.decide("POST", "/v1/x", "", {"a": "1", "b": "1"}, UNREAD)
    assert isinstance(vip, Decision)
    assert vip.route.name == "vip"
    put = t.decide("POST", "/put", "", {}, UNREAD)
    assert isinstance(put, Decision)
    assert put.route.name == "put"
    assert t.decide("PUT", "/put", "", {}, UNREAD) is NEED_MODEL
    assert t.decide("POST", "/else", "", {}, UNREAD) is None


def test_routes_that_are_off_take_no_part():
    t = table(
        route("on", prefix="/a"), route("off", prefix="/a", enabled=False), route("bad", path="/%", enabled=False)
    )
    assert winner(t, "/a") == "on"


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ({}, {}, "no conditions"),
        ({"methods": ["POST"]}, {"methods": ["POST"]}, "the same conditions"),
        ({"headers": {"X-A": "1"}}, {"headers": {"x-a": "1"}}, "the same conditions"),
        ({"headers": {"X-A": "1"}}, {"headers": {"X-B": "1"}}, "header X-A"),
        ({"methods": ["POST", "GET"]}, {"methods": ["POST", "PUT"]}, "equally many"),
        ({"model": "a"}, {"methods": ["POST"]}, "equally many"),
        ({"headers": {"X-A": "1", "X-B": None}}, {"headers": {"X-A": None, "X-B": "1"}}, "equally many"),
        ({"headers": {"X-A": "p*"}, "model": "a"}, {"headers": {"X-A": "pro"}, "methods": ["POST"]}, "equally many"),
        ({"headers": {"X-A": "pro"}, "model": "a"}, {"headers": {"X-A": "p*"}, "methods": ["POST"]}, "equally many"),
        ({"host": "box"}, {"host": "BOX"}, "the same conditions"),
        ({"host": "box", "model": "a"}, {"host": "box:80", "methods": ["POST"]}, "equally many"),
    ],
)
def test_a_tie_is_refused_with_both_names_and_what_to_change(first: dict[str, Any], second: dict[str, Any], says: str):
    with pytest.raises(ConfigError) as refused:
        table(route("one", prefix="/v1", **first), route("else", path="/x"), route("two", prefix="/v1/", **second))
    [problem] = refused.value.problems
    assert problem.loc == ("routes", 2, "match")
    assert "'one'" in problem.message
    assert "'two'" in problem.message
    assert says in problem.message
    assert "Add one more" in problem.message or "Change or add" in problem.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"methods": ["POST"]}, {"methods": ["GET"]}),
        ({"methods": ["POST"]}, {"methods": ["GET", "POST"]}),
        ({"model": "a"}, {"model": "b"}),
        ({"headers": {"X-A": "1"}}, {"headers": {"X-A": "2"}}),
        ({"headers": {"X-A": "a*"}}, {"headers": {"X-A": "b*"}}),
        ({"headers": {"X-A": "a*"}}, {"headers": {"X-A": "ab"}}),
        ({"headers": {"X-A": None}}, {"headers": {"X-A": "ab"}}),
        ({"headers": {"X-A": "abc*"}, "model": "a"}, {"headers": {"X-A": "b"}, "methods": ["POST"]}),
        ({"host": "a"}, {"host": "b"}),
        ({"host": "a:80"}, {"host": "a:81"}),
        ({"model": "a"}, {}),
    ],
)
def test_rules_that_exclude_or_contain_each_other_are_no_tie(first: dict[str, Any], second: dict[str, Any]):
    assert table(route("one", prefix="/v1", **first), route("two", prefix="/v1", **second)).shadowed == {}


def test_the_same_regex_twice_is_a_tie_and_different_ones_are_not():
    with pytest.raises(ConfigError, match="neither wins"):
        table(route("one", regex="/a.*"), route("two", regex="/a.*"))
    assert winner(table(route("one", regex="/a.*"), route("two", regex="/a.+")), "/ab") == "one"


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigError) as refused:
        table(
            route("a", prefix="/x"), route("b", prefix="/x"), route("c", path="/%zz"),
            route("d", path="/h", host="*.box"), route("e", prefix="/x"),
        )  # fmt: skip
    assert [p.loc[1] for p in refused.value.problems] == [1, 2, 3, 4]
    assert "one host name" in refused.value.problems[2].message


@pytest.mark.parametrize(
    ("before", "regex", "by"),
    [
        ({"prefix": "/"}, "/u/[0-9]+", "first"),
        ({"prefix": "/u"}, "/u/[0-9]+", "first"),
        ({"prefix": "/u"}, "/u", "first"),
        ({"path": "/u"}, "/u", "first"),
        ({"regex": ".*"}, "/u/[0-9]+", "first"),
        ({"prefix": "/u"}, "/u[0-9]+", None),
        ({"prefix": "/v"}, "/u/[0-9]+", None),
        ({"prefix": "/u", "methods": ["GET"]}, "/u/[0-9]+", None),
        ({"path": "/u"}, "/u/?", None),
    ],
)
def test_a_regex_that_never_wins_is_flagged(before: dict[str, Any], regex: str, by: str | None):
    t = table(route("first", **before), route("late", regex=regex))
    assert t.shadowed == ({} if by is None else {"late": by})
    assert [w.loc for w in t.warnings] == ([] if by is None else [("routes", 1, "match")])
    assert all("'first'" in w.message for w in t.warnings)


def test_other_rules_that_never_win_are_warned_of():
    t = RoutingTable.compile(
        config(
            route("get", prefix="/a", methods=["GET"], model="x"), route("host", prefix="/b", host="box.local:80"),
            route("known", prefix="/c", host="ok.local"), route("part", regex="u/.*"), route("slash", regex="/u/.*/"),
            allowed_hosts=["ok.local"],
        )
    )  # fmt: skip
    assert [w.loc[1] for w in t.warnings] == [0, 1, 3, 4]
    assert "no body" in t.warnings[0].message
    assert "server.allowed_hosts" in t.warnings[1].message
    assert t.shadowed == {}


_VALUES = st.sampled_from(["a", "ab", "b", ""])
_WHERE = [("prefix", "/a"), ("prefix", "/a/b"), ("prefix", "/"), ("path", "/a/b"), ("regex", "/a.*"), ("regex", ".*b")]
_ASKED = ["a", "ab", "b", "a*", "*", None]
_MATCH = st.fixed_dictionaries(
    {"where": st.sampled_from(_WHERE)},
    optional={
        "methods": st.lists(st.sampled_from(["GET", "POST", "PUT"]), min_size=1, max_size=2, unique=True),
        "host": st.sampled_from(["box", "box:80", "lap"]),
        "headers": st.dictionaries(st.sampled_from(["X-A", "X-B"]), st.sampled_from(_ASKED), max_size=2),
        "model": st.sampled_from(["m1", "m2"]),
    },
)
_REQUEST = st.tuples(
    st.sampled_from(["GET", "POST", "DELETE"]),
    st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/b"]),
    st.sampled_from(["box", "BOX:80", "lap:1", ""]),
    st.dictionaries(st.sampled_from(["x-a", "x-b", "x-c"]), _VALUES),
    st.sampled_from([None, "m1", "m2", "m3"]),
)


def _without_ties(matches: list[dict[str, Any]]) -> NodeConfig:
    """The routes in order, leaving out those that a table refuses."""
    routes = []
    for i, match in enumerate(matches):
        kind, text = match["where"]
        routes.append(route(f"r{i}", **{kind: text}, **{k: v for k, v in match.items() if k != "where"}))
    while True:
        found = config(*routes)
        try:
            RoutingTable.compile(found)
        except ConfigError as refused:
            gone = {p.loc[1] for p in refused.problems}
            routes = [r for i, r in enumerate(routes) if i not in gone]
        else:
            return found


def _reference(conf: NodeConfig, request: Request, path: str) -> str | None:
    """The precedence of the manual, rule by rule, without any index."""
    rules = [Rule.parse(r, i) for i, r in enumerate(conf.routes)]
    first_of = {}
    for rule in rules:
        first_of.setdefault(rule.path, rule.index)

    def fits(rule: Rule) -> bool:
        below = rule.path.rstrip("/") + "/"
        on_path = {
            "path": path == rule.path,
            "prefix": path == rule.path or path.startswith(below),
            "regex": (rule.path == "/a.*" and path.startswith("/a")) or (rule.path == ".*b" and path.endswith("b")),
        }
        return on_path[rule.kind] and not rule.misses(request)

    def order(rule: Rule) -> tuple[Any, ...]:
        kind = ("path", "prefix", "regex").index(rule.kind)
        return kind, -len(rule.path) if kind == 1 else first_of[rule.path], rule.order

    fitting = sorted(filter(fits, rules), key=order)
    return fitting[0].name if fitting else None


@settings(max_examples=300, deadline=None)
@given(st.lists(_MATCH, min_size=1, max_size=25), st.lists(_REQUEST, min_size=1, max_size=8))
def test_the_index_decides_as_the_manual_says(matches: list[dict[str, Any]], requests: list[tuple[Any, ...]]):
    conf = _without_ties(matches)
    t = RoutingTable.compile(conf)
    for method, path, host, headers, model in requests:
        expected = _reference(conf, Request(method, host, headers, model), path)
        assert winner(t, path, method=method, host=host, headers=headers, model=model) == expected
        explained = t.explain(method, path, {**headers, "Host": host}, model)
        assert explained.winner == expected
        assert len(explained.candidates) == len(conf.routes)
        assert all(c.reason for c in explained.candidates)
        unread = t.decide(method, path, host, headers, UNREAD)
        answers = {_reference(conf, Request(method, host, headers, m), path) for m in (None, "m1", "m2", "m3")}
        if unread is NEED_MODEL:
            assert len(answers) > 1
        else:
            assert answers == {unread.route.name if isinstance(unread, Decision) else None}


def test_thousands_of_rules_on_one_path_are_found_by_header_by_model_and_by_both():
    routes = [route(f"h{i}", prefix="/v1", headers={"X-Tenant": f"t{i}"}) for i in range(2000)]
    routes += [route(f"m{i}", prefix="/m", model=f"model-{i}") for i in range(2000)]
    routes += [
        route(f"b{i}", prefix="/b", headers={"X-Tenant": f"t{i % 40}"}, model=f"model-{i // 40}") for i in range(1600)
    ]
    t = table(*routes)
    assert winner(t, "/v1/x", headers={"x-tenant": "t1234"}) == "h1234"
    assert winner(t, "/v1/x", headers={"x-tenant": "t2000"}) is None
    assert winner(t, "/m/x", model="model-77") == "m77"
    assert t.decide("POST", "/m/x", "", {}, UNREAD) is NEED_MODEL
    assert winner(t, "/b/x", headers={"x-tenant": "t7"}, model="model-3") == "b127"
    assert t.decide("POST", "/b/x", "", {"x-tenant": "t7"}, UNREAD) is NEED_MODEL
    assert t.decide("POST", "/b/x", "", {"x-tenant": "none"}, UNREAD) is None
