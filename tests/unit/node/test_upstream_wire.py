"""Paths, heads and headers on the way to an upstream and back."""

from __future__ import annotations

import pytest

from laya_desktop.errors import LayaError
from laya_desktop.node.upstream_wire import Origin, incoming, outgoing, request_head


@pytest.mark.parametrize(
    ("url", "api_path", "target"),
    [
        ("https://h/api/v4", "/v1/chat/completions", "/api/v4/chat/completions"),
        ("https://h/api/v4", "/chat/completions", "/api/v4/chat/completions"),
        ("http://h/v1", "/v1/x", "/v1/x"),
        ("http://h/v1", "/x", "/v1/x"),
        ("http://h", "/v1/x", "/v1/x"),
        ("http://h", "/chat/completions", "/v1/chat/completions"),
        ("http://h", "/models/a", "/v1/models/a"),
        ("http://h", "/tokenize", "/tokenize"),
        ("http://h", "/v1", "/v1"),
        ("http://h/v1", "/v1", "/v1"),
        ("http://h/v1", "/v10/x", "/v1/v10/x"),
        ("http://h", "", "/"),
        ("http://h/v1", "/", "/v1"),
        ("http://h/v1", "/models?limit=2", "/v1/models?limit=2"),
        ("http://h/v1", "?a=/v1/b", "/v1?a=/v1/b"),
        ("http://h/a/b", "/v1/files/x%2Fy", "/a/b/files/x%2Fy"),
    ],
)
def test_the_urls_path_stands_for_v1(url: str, api_path: str, target: str):
    assert Origin.parse(url).join(api_path) == target


@pytest.mark.parametrize(
    ("url", "tls", "host", "port", "authority"),
    [
        ("http://box", False, "box", 80, "box"),
        ("https://box/v1", True, "box", 443, "box"),
        ("http://[::1]:81/v1", False, "::1", 81, "[::1]:81"),
    ],
)
def test_origin_of_a_url(url: str, tls: bool, host: str, port: int, authority: str):
    origin = Origin.parse(url)
    assert (origin.tls, origin.host, origin.port, origin.authority) == (tls, host, port, authority)


def test_callers_keys_and_hop_by_hop_headers_stay_here():
    caller = {
        "Host": "127.0.0.1:5292", "Authorization": "Bearer caller", "X-Api-Key": "caller", "api-key": "caller",
        "Cookie": "session=caller", "Connection": "keep-alive, X-Secret-Hop", "X-Secret-Hop": "1", "TE": "trailers",
        "Transfer-Encoding": "chunked", "Content-Length": "4", "Expect": "100-continue", "Upgrade": "h2c",
        "Proxy-Authorization": "Basic caller", "X-Request-Id": "r1", "Content-Type": "application/json",
    }  # fmt: skip
    assert outgoing(caller, "ours", "box") == [
        ("X-Request-Id", "r1"),
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer ours"),
        ("X-Laya-Hops", "1"),
    ]
    assert outgoing([], None, "box") == [("X-Laya-Hops", "1")]


def test_a_sixth_node_in_a_row_is_refused():
    assert ("X-Laya-Hops", "5") in outgoing({"x-laya-hops": "4"}, None, "box")
    for hops in ("5", "99", "many", "-1"):
        with pytest.raises(LayaError) as refused:
            outgoing({"X-Laya-Hops": hops}, None, "box")
        assert refused.value.status == 508
        assert "'box'" in refused.value.message
        assert refused.value.hint


def test_an_answers_hop_by_hop_headers_stay_here_and_the_rest_keeps_its_order():
    given = [
        ("Set-Cookie", "a=1"), ("Connection", "close, x-hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
        ("Transfer-Encoding", "chunked"), ("Set-Cookie", "b=2"), ("Location", "/elsewhere"),
    ]  # fmt: skip
    assert incoming(given) == [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Location", "/elsewhere")]


def test_a_head():
    head = request_head("POST", "/v1/x?a=b", "box:81", [("X-Name", "café")], 3)
    assert head == "POST /v1/x?a=b HTTP/1.1\r\nHost: box:81\r\nX-Name: café\r\nContent-Length: 3\r\n\r\n".encode(
        "latin-1"
    )
    assert request_head("GET", "/", "box", [], 0) == b"GET / HTTP/1.1\r\nHost: box\r\n\r\n"
    assert request_head("POST", "/", "box", [], 0).endswith(b"Content-Length: 0\r\n\r\n")
    assert "X: 模".encode() in request_head("GET", "/", "box", [("X", "模")], 0)


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("GET /a HTTP/1.1\r\nX:", "/", []),
        ("GET", "/a b", []),
        ("GET", "/a\r\nX: 1", []),
        ("GET", "/", [("X", "1\r\nY: 2")]),
        ("GET", "/", [("X\r\nY", "1")]),
        ("GET", "/", [("X", "a\x00")]),
    ],
)
def test_nothing_breaks_out_of_its_line(method: str, target: str, headers: list[tuple[str, str]]):
    with pytest.raises(LayaError) as refused:
        request_head(method, target, "box", headers, 0)
    assert refused.value.status == 400
