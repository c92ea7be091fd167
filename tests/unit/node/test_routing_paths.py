"""One spelling per path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.routing_paths import normalise_path, rule_path


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", ""),
        ("/v1/model/chat", "/v1/model/chat", ""),
        ("/V1/Model", "/V1/Model", ""),
        ("/v1/model?a=b&c=%2f?d", "/v1/model", "a=b&c=%2f?d"),
        ("/v1/model?", "/v1/model", ""),
        ("/v1/m%6Fdel", "/v1/model", ""),
        ("/a%7eb%2D", "/a~b-", ""),
        ("/a%2fb", "/a%2Fb", ""),
        ("/a%2Fb/..", "/", ""),
        ("/caf%c3%a9", "/caf%C3%A9", ""),
        ("//v1///model", "/v1/model", ""),
        ("/v1/model/", "/v1/model", ""),
        ("/v1/model//", "/v1/model", ""),
        ("/a/./b/../c", "/a/c", ""),
        ("/a/%2e%2E/c", "/c", ""),
        ("/a/.", "/a", ""),
        ("/a/..", "/", ""),
        ("/../../a", "/a", ""),
        ("/..a/b..", "/..a/b..", ""),
        ("/...", "/...", ""),
        ("/.well-known/x", "/.well-known/x", ""),
        ("/%252e%252e/a", "/%252e%252e/a", ""),
        ("http://h.example:80/a/b?q=1", "/a/b", "q=1"),
        ("HTTPS://h", "/", ""),
        ("http://h?q", "/", "q"),
        ("*", "*", ""),
        ("/a:b@c;d=e,f", "/a:b@c;d=e,f", ""),
        ('/a"<>^`{|}', '/a"<>^`{|}', ""),
    ],
)
def test_has_one_spelling(target: str, path: str, query: str):
    assert normalise_path(target) == (path, query)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "no path"),
        ("v1/model", "does not start"),
        ("host:443", "does not start"),
        ("?a=b", "does not start"),
        ("/%", "two hex digits"),
        ("/%g1", "two hex digits"),
        ("/%c", "two hex digits"),
        ("/%c3%a", "two hex digits"),
        ("/a%00", "control character"),
        ("/a%0a", "control character"),
        ("/a%7F", "control character"),
        ("/a\x00", "control character"),
        ("/a\nb", "control character"),
        ("/a\x7f", "control character"),
        ("/a b", "space"),
        ("/a#b", "#"),
        ("/a\\..\\b", "backslash"),
        ("/café", "ASCII"),
        ("/a?q=\x01", "control character"),
        ("/a/..%2Fb", "encoded slash"),
        ("/a/%2e%2e%2fb", "encoded slash"),
        ("/a/b%5c%2E", "encoded slash"),
    ],
)
def test_refuses_what_is_no_path(target: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        normalise_path(target)


@pytest.mark.parametrize(
    ("text", "path"), [("/café/my model", "/caf%C3%A9/my%20model"), ("/a%2fb/", "/a%2Fb"), ("/v1/model", "/v1/model")]
)
def test_rules_may_be_written_as_people_write(text: str, path: str):
    assert rule_path(text) == path


_PIECES = st.sampled_from(
    [
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2E",
        "%2f",
        "%5C",
        "%25",
        "%41",
        "%7e",
        "%c3",
        "a",
        "B",
        "~",
        "-",
        "?",
        "=",
        ";",
        "x1",
    ]
)


@given(st.lists(_PIECES, max_size=20).map(lambda pieces: "/" + "".join(pieces)))
def test_a_second_time_changes_nothing(target: str):
    try:
        path, _ = normalise_path(target)
    except ValueError:
        return
    assert normalise_path(path) == (path, "")
    segments = path.split("/")[1:]
    assert path == "/" or all(segments)
    assert not {".", ".."} & set(segments)


@given(st.text(max_size=30))
def test_any_text_gives_a_path_or_a_reason(target: str):
    try:
        path, _ = normalise_path(target)
    except ValueError:
        return
    assert path.isascii()
    assert path == "*" or path.startswith("/")


@given(st.lists(_PIECES, max_size=12).map(lambda pieces: "/" + "".join(pieces)), st.data())
def test_encoding_unreserved_characters_makes_no_difference(target: str, data: st.DataObject):
    plain = target.replace("%", "").replace("?", "")
    index = data.draw(st.integers(0, len(plain) - 1))
    if not (plain[index].isalnum() or plain[index] in "-._~"):
        return
    encoded = f"{plain[:index]}%{ord(plain[index]):02x}{plain[index + 1 :]}"
    assert normalise_path(encoded) == normalise_path(plain)
