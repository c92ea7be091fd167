"""Checks of a head that llhttp does not make."""

from __future__ import annotations

import pytest

from laya_desktop.node.server import framing


def test_a_plain_head_has_no_fault() -> None:
    assert framing.check_head("1.1", "GET", {"host": "a"}, None) is None
    assert framing.check_head("1.1", "POST", {"transfer-encoding": "Chunked"}, None) is None


@pytest.mark.parametrize(
    ("version", "method", "headers", "repeated", "status"),
    [
        ("2.0", "GET", {}, None, 505),
        ("0.9", "GET", {}, None, 505),
        ("1.1", None, {}, None, 501),
        ("1.1", "GET", {}, "host", 400),
        ("1.1", "POST", {"transfer-encoding": "gzip"}, None, 400),
        ("1.0", "POST", {"transfer-encoding": "chunked"}, None, 400),
        ("1.1", "POST", {"content_length": "5"}, None, 400),
    ],
)
def test_faults(version: str, method: str | None, headers: dict[str, str], repeated: str | None, status: int) -> None:
    fault = framing.check_head(version, method, headers, repeated)
    assert fault is not None
    assert fault.status == status
    assert fault.hint


def test_repeated_headers_are_joined_unless_that_is_ambiguous() -> None:
    headers = {"accept": "a", "cookie": "a=1", "host": "x"}
    assert framing.join_repeated(headers, "accept", "b") is None
    assert framing.join_repeated(headers, "cookie", "b=2") is None
    assert framing.join_repeated(headers, "host", "y") == "host"
    assert headers == {"accept": "a, b", "cookie": "a=1; b=2", "host": "x"}
