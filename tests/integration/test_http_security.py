"""Who is let in, over real sockets: Host first, then Origin, then keys."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from laya_desktop.config.schema import NodeConfig
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, Response, on_loop, serving

KEY = "k-0123456789abcdef"
ADMIN = "a-0123456789abcdef"


def gateway(**server: Any) -> FakeGateway:
    return FakeGateway(
        NodeConfig.model_validate({"server": server, "models": [{"name": "m", "path": "/m.gguf", "engine": "fake"}]})
    )


async def get(node: FakeGateway, path: str, head: str = "", host: str | None = "localhost") -> Response:
    async with serving(node) as (_, port), RawClient(port) as raw:
        line = f"Host: {host}\r\n" if host is not None else ""
        raw.send(f"GET {path} HTTP/1.1\r\n{line}{head}Connection: close\r\n\r\n")
        return await raw.response()


@on_loop
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:5292", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]:5292", "localhost."]
)
async def test_loopback_names_are_ours(host: str) -> None:
    assert (await get(gateway(), "/health", host=host)).status == 200


@on_loop
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("path", ["/health", "/v1/models", "/admin/snapshot", "/nothing"])
async def test_other_names_are_refused_everywhere(host: str, path: str) -> None:
    got = await get(gateway(), path, host=host)
    assert (got.status, got.error["code"]) == (403, "host_not_allowed")
    assert "server.allowed_hosts" in got.error["message"]


@on_loop
@pytest.mark.parametrize("host", [None, "", "a b", "a/b", "localhost:x", "localhost:99999", "user@localhost", "[::1"])
async def test_a_missing_or_malformed_host_is_400(host: str | None) -> None:
    got = await get(gateway(), "/health", host=host)
    assert (got.status, got.error["code"]) == (400, "bad_host")


@on_loop
async def test_allowed_hosts_are_allowed() -> None:
    node = gateway(allowed_hosts=["box.lan", "*.lab.example"])
    assert (await get(node, "/health", host="BOX.lan:80")).status == 200
    assert (await get(node, "/health", host="a.lab.example")).status == 200
    assert (await get(node, "/health", host="lab.example")).status == 403


@on_loop
async def test_the_host_is_checked_before_the_key() -> None:
    assert (await get(gateway(api_keys=[KEY]), "/v1/models", host="evil.example")).status == 403


@on_loop
async def test_an_answer_remembered_by_its_bytes_follows_a_change_of_settings() -> None:
    node = gateway(allowed_hosts=["box.lan"])
    async with serving(node) as (_, port), RawClient(port) as raw:
        request = "GET /health HTTP/1.1\r\nHost: box.lan\r\n\r\n"
        for expected in (200, 200, 200):
            raw.send(request)
            assert (await raw.response()).status == expected
        node.config = gateway().config
        raw.send(request)
        assert (await raw.response()).status == 403


@on_loop
@pytest.mark.parametrize(
    "head",
    [
        "Origin: http://evil.example\r\n",
        "Origin: http://localhost:3000\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/admin/snapshot", "/metrics"])
async def test_pages_of_other_sites_are_refused(head: str, path: str) -> None:
    got = await get(gateway(), path, head)
    assert (got.status, got.error["code"]) == (403, "origin_not_allowed")


@on_loop
@pytest.mark.parametrize("head", ["Origin: http://localhost\r\n", "Sec-Fetch-Site: same-origin\r\n", ""])
async def test_own_pages_and_programs_are_let_in(head: str) -> None:
    assert (await get(gateway(), "/v1/models", head)).status == 200


@on_loop
async def test_a_page_on_an_allowed_host_is_let_in_but_a_star_is_no_invitation() -> None:
    head = "Origin: http://box.lan:3000\r\n"
    assert (await get(gateway(allowed_hosts=["box.lan"]), "/v1/models", head)).status == 200
    assert (await get(gateway(allowed_hosts=["*"]), "/v1/models", head)).status == 403


@on_loop
async def test_a_preflight_gets_no_cors_headers() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as raw:
        got = await raw.ask("OPTIONS", "/v1/models", Origin="http://evil.example", Access_Control_Request_Method="POST")
        assert got.status == 403
        assert not [name for name in got.headers if name.startswith("access-control")]


@on_loop
@pytest.mark.parametrize("stored", [KEY, "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()])
@pytest.mark.parametrize(
    "head", [f"Authorization: Bearer {KEY}\r\n", f"authorization: bearer {KEY}\r\n", f"x-api-key: {KEY}\r\n"]
)
async def test_a_key_opens_in_either_header(stored: str, head: str) -> None:
    assert (await get(gateway(api_keys=["another-key-0000", stored]), "/v1/models", head)).status == 200


@on_loop
@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("", "missing_api_key"),
        ("Authorization: Basic abc\r\n", "missing_api_key"),
        ("Authorization: Bearer\r\n", "missing_api_key"),
        ("Authorization: Bearer wrong\r\n", "invalid_api_key"),
        (f"x-api-key: {KEY}x\r\n", "invalid_api_key"),
    ],
)
async def test_without_the_key_it_is_401(head: str, code: str) -> None:
    got = await get(gateway(api_keys=[KEY]), "/v1/models", head)
    assert (got.status, got.error["code"], got.error["type"]) == (401, code, "authentication_error")
    assert got.headers["www-authenticate"].startswith("Bearer")


@on_loop
async def test_a_hash_is_not_a_key() -> None:
    stored = "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()
    assert (await get(gateway(api_keys=[stored]), "/v1/models", f"x-api-key: {stored}\r\n")).status == 401


@on_loop
async def test_health_is_open_and_unknown_paths_are_not() -> None:
    node = gateway(api_keys=[KEY])
    assert (await get(node, "/health")).status == 200
    assert (await get(node, "/nothing")).status == 401
    assert (await get(node, "/metrics")).status == 401


@on_loop
async def test_admin_has_its_own_key() -> None:
    node = gateway(api_keys=[KEY], admin_key=ADMIN)
    assert (await get(node, "/admin/config", f"x-api-key: {ADMIN}\r\n")).status == 200
    assert (await get(node, "/admin/config", f"x-api-key: {KEY}\r\n")).status == 401
    assert (await get(node, "/admin/config")).status == 401
    assert (await get(node, "/metrics", f"x-api-key: {ADMIN}\r\n")).status == 200
    assert (await get(node, "/v1/models", f"x-api-key: {ADMIN}\r\n")).status == 401


@on_loop
async def test_admin_without_a_key_is_for_this_machine_only() -> None:
    assert (await get(gateway(api_keys=[KEY]), "/admin/config")).status == 200
    got = await get(gateway(), "/admin/config", "X-Forwarded-For: 10.0.0.1\r\n")
    assert (got.status, got.error["code"]) == (403, "admin_key_required")


@on_loop
async def test_a_node_on_the_network_that_lost_its_keys_answers_nobody() -> None:
    node = gateway(api_keys=[KEY], host="0.0.0.0")
    async with serving(node, host="0.0.0.0") as (_, port), RawClient(port) as raw:
        assert (await raw.ask("GET", "/v1/models", x_api_key=KEY)).status == 200
        node.config = gateway(host="0.0.0.0").config
        assert (await raw.ask("GET", "/v1/models", x_api_key=KEY)).status == 403
        assert (await raw.ask("GET", "/health")).status == 200
