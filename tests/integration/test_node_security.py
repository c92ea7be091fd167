"""The real node, composed as the product composes it: who gets in, what gets out, and where requests go."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from keyring.backends import fail

from laya_desktop import app
from laya_desktop.config.keys import describe
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.keystore import FILE
from laya_desktop.node.parts import Overrides
from laya_desktop.node.server import listener as listener_module
from laya_desktop.node.server.listener import Listener
from laya_desktop.state.events import Notice
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, Response, on_loop, wait_for
from tests.helpers.upstream_server import Line, ScriptedServer, Seen

UP_A, UP_B = "up-a-0123456789abcdef", "up-b-0123456789abcdef"
CALLER = "caller-0123456789abcdef"


class Node:
    """A session that listens."""

    def __init__(self, session: app.Session, file: Path) -> None:
        self.session, self.service, self.file = session, session.service, file

    @property
    def port(self) -> int:
        return self.service.snapshot.node.port

    @property
    def config(self) -> Any:
        return self.service.snapshot.config

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        async with RawClient(self.port) as raw:
            return await raw.ask(method, path, body, **headers)

    async def do(self, call: Any) -> Any:
        """A command's result, once the snapshot that follows it is out."""
        before = self.service.snapshot.seq
        result = await asyncio.wrap_future(call)
        await wait_for(lambda: self.service.snapshot.seq > before)
        return result

    async def log(self) -> str:
        await asyncio.to_thread(self.session.log.flush)
        return "\n".join(line.message for line in self.session.log.ring.since(0, 10_000))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("keyring.get_keyring", fail.Keyring)
    return tmp_path


@asynccontextmanager
async def node(home: Path, overrides: Overrides | None = None, **parts: Any) -> AsyncIterator[Node]:
    """A real node on a free port, without models."""
    parts.setdefault("server", {})
    parts["server"].setdefault("port", 0)
    file = home / "laya.yaml"
    file.write_text(json.dumps({"version": 1, "log": {"level": "debug"}, **parts}))
    session = await asyncio.to_thread(app.open_session, load_file(file), overrides or Overrides(), console=False)
    try:
        running = Node(session, file)
        await running.do(session.service.start_node())
        await wait_for(lambda: session.service.snapshot.node.url is not None)
        yield running
    finally:
        await asyncio.to_thread(session.close)


def upstreams(*servers: ScriptedServer, **keys: str) -> dict[str, Any]:
    """Parts of a configuration with upstreams a, b … and a route to each."""
    names = "abc"[: len(servers)]
    return {
        "upstreams": [
            {"name": n, "url": f"http://127.0.0.1:{s.port}/v1", **({"api_key": keys[n]} if n in keys else {})}
            for n, s in zip(names, servers, strict=True)
        ],
        "routes": [{"name": f"to-{n}", "match": {"prefix": f"/{n}"}, "target": n} for n in names],
    }


# -- callers' keys


@on_loop
async def test_a_key_is_made_shown_once_stored_hashed_and_revoked(home: Path) -> None:
    async with node(home) as n:
        assert (await n.ask("GET", "/v1/models")).status == 200
        laptop = await n.do(n.service.create_api_key("laptop"))
        phone = await n.do(n.service.create_api_key("phone"))
        assert (await n.ask("GET", "/v1/models")).status == 401
        for key in (laptop, phone):
            assert (await n.ask("GET", "/v1/models", x_api_key=key)).status == 200
            assert (await n.ask("GET", "/v1/models", Authorization=f"Bearer {key}")).status == 200
        assert n.service.snapshot.config_status.unsaved == ("server: api_keys: 2 added",)
        diff = await n.do(n.service.diff_config())
        await n.do(n.service.save_config())
        text = n.file.read_text()
        assert hashlib.sha256(laptop.encode()).hexdigest() in text
        assert hashlib.sha256(laptop.encode()).hexdigest() not in diff
        assert [describe(k).label for k in load_file(n.file).config.server.api_keys] == ["laptop", "phone"]
        await n.do(n.service.revoke_api_key("laptop"))
        assert (await n.ask("GET", "/v1/models", x_api_key=laptop)).status == 401
        assert (await n.ask("GET", "/v1/models", x_api_key=phone)).status == 200
        for place in (text, diff, repr(n.service.snapshot), await n.log()):
            assert laptop not in place
            assert phone not in place


@on_loop
async def test_names_of_keys_are_unique_and_known(home: Path) -> None:
    async with node(home) as n:
        await n.do(n.service.create_api_key("laptop"))
        for call, code in (
            (n.service.create_api_key("laptop"), "key_exists"),
            (n.service.create_api_key(" "), "bad_name"),
            (n.service.revoke_api_key("nobody"), "key_not_found"),
            (n.service.revoke_admin_key(), "key_not_found"),
        ):
            with pytest.raises(LayaError) as caught:
                await asyncio.wrap_future(call)
            assert caught.value.code == code


@on_loop
async def test_admin_has_a_key_of_its_own_which_is_made_and_revoked_alike(home: Path) -> None:
    async with node(home) as n:
        made = (await n.ask("POST", "/admin/keys", {"name": "laptop"})).json
        got = await n.ask("POST", "/admin/admin-key")
        admin = got.json["key"]
        assert got.headers["cache-control"] == "no-store"
        assert (await n.ask("GET", "/admin/config")).status == 401
        assert (await n.ask("GET", "/admin/config", x_api_key=made["key"])).status == 401
        assert (await n.ask("GET", "/v1/models", x_api_key=admin)).status == 401
        assert (await n.ask("POST", "/admin/keys/laptop/revoke", x_api_key=admin)).json["revoked"]
        assert (await n.ask("GET", "/v1/models", x_api_key=made["key"])).status == 200  # no key left: open on loopback
        assert (await n.ask("DELETE", "/admin/admin-key", Authorization=f"Bearer {admin}")).status == 200
        assert (await n.ask("GET", "/admin/config")).status == 200


# -- what leaves the node


@on_loop
async def test_admin_shows_no_secret_and_takes_its_own_picture_back(home: Path) -> None:
    hashed = "sha256:" + hashlib.sha256(b"other").hexdigest()
    server = {"api_keys": [CALLER, hashed, {"name": "laptop", "hash": hashed}], "admin_key": "admin-0123456789"}
    secrets = (CALLER, hashed, "admin-0123456789", UP_A)
    async with ScriptedServer() as a, node(home, server=server, **upstreams(a, a=UP_A)) as n:
        auth = {"x_api_key": "admin-0123456789"}
        pictures = [await n.ask("GET", f"/admin/{what}", **auth) for what in ("config", "snapshot")]
        for got in pictures:
            assert got.status == 200
            assert not [s for s in secrets if s.encode() in got.body]
        before = n.config
        data = pictures[0].json
        assert (await n.ask("PUT", "/admin/config", data, **auth)).status == 200
        assert n.config == before
        data["server"]["max_connections"] = 77
        got = await n.ask("PUT", "/admin/config", data, **auth)
        assert got.status == 200
        await wait_for(lambda: n.config.server.max_connections == 77)
        assert n.config.server.api_keys == before.server.api_keys
        assert n.config.upstreams == before.upstreams
        assert not [s for s in secrets if s.encode() in got.body]
        data["upstreams"][0]["url"] = "http://127.0.0.1:9/v1"
        got = await n.ask("PUT", "/admin/config", data, **auth)
        assert got.status == 400
        assert got.error["problems"][0]["key"] == "upstreams[0].api_key"
        data["server"]["api_keys"] = [CALLER + " "]
        got = await n.ask("PUT", "/admin/config", data, **auth)
        assert got.status == 400
        assert CALLER.encode() not in got.body
        diff = await n.ask("GET", "/admin/diff", **auth)
        assert b"max_connections" in diff.body
        assert not [
            s for s in secrets if s in await n.log() or s in repr(n.service.snapshot) or s.encode() in diff.body
        ]


@on_loop
async def test_a_file_that_is_refused_repeats_no_key(home: Path) -> None:
    async with node(home, server={"api_keys": [CALLER]}) as n:
        n.file.write_text(f"server: {{port: 0, api_keys: [0123456789, {{name: x, hash: {UP_A}}}, [{UP_B}]]}}\n")
        with pytest.raises(LayaError) as caught:
            await asyncio.wrap_future(n.service.revert_config())
        assert not [s for s in (UP_A, UP_B, "0123456789") if s in str(caught.value)]
        assert (await n.ask("GET", "/v1/models", x_api_key=CALLER)).status == 200


# -- the network


@on_loop
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "::ffff:0.0.0.0"])
async def test_the_network_needs_a_key_through_a_live_edit(home: Path, host: str) -> None:
    async with node(home) as n:
        config = n.config
        open_to_all = config.model_copy(update={"server": config.server.model_copy(update={"host": host})})
        with pytest.raises(LayaError) as caught:
            await asyncio.wrap_future(n.service.apply_config(open_to_all))
        assert (caught.value.code, caught.value.status) == ("key_required", 409)
        assert n.config == config
        assert (await n.ask("GET", "/health")).status == 200


@on_loop
async def test_the_last_key_cannot_be_taken_from_a_node_on_the_network(home: Path) -> None:
    async with node(home) as n:
        key = await n.do(n.service.create_api_key("only"))
        config = n.config
        server = config.server.model_copy(update={"host": "0.0.0.0"})
        await n.do(n.service.apply_config(config.model_copy(update={"server": server})))
        await wait_for(lambda: n.service.snapshot.node.host == "0.0.0.0" and n.service.snapshot.node.url is not None)
        without = n.config.model_copy(update={"server": server.model_copy(update={"api_keys": ()})})
        for call in (n.service.revoke_api_key("only"), n.service.apply_config(without)):
            with pytest.raises(LayaError) as caught:
                await asyncio.wrap_future(call)
            assert caught.value.code == "key_required"
        assert (await n.ask("GET", "/v1/models", x_api_key=key)).status == 200
        assert (await n.ask("GET", "/v1/models")).status == 401
        back = n.config.server.model_copy(update={"host": "127.0.0.1", "api_keys": ()})
        await n.do(n.service.apply_config(n.config.model_copy(update={"server": back})))
        await wait_for(lambda: n.service.snapshot.node.host == "127.0.0.1")


@on_loop
async def test_a_flag_does_not_open_the_network_either(home: Path) -> None:
    with pytest.raises(LayaError, match="API key"):
        async with node(home, Overrides(host="0.0.0.0")):
            pass
    masked = {"api_keys": ["masked:" + "0" * 32]}
    with pytest.raises(LayaError, match="API key"):
        async with node(home, Overrides(host="0.0.0.0"), server=masked):
            pass


@on_loop
async def test_a_host_name_counts_as_the_widest_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(_host: str, port: int) -> Any:
        return [(2, ("127.0.0.1", port)), (2, ("192.0.2.7", port))]

    monkeypatch.setattr(listener_module, "_resolve", resolve)
    with pytest.raises(LayaError) as caught:
        await Listener().start(FakeGateway(NodeConfig()), "box.example", 0)
    assert caught.value.code == "key_required"


# -- browsers

PAGE = "https://chat.example"


@on_loop
async def test_a_listed_page_may_read_answers_and_no_other(home: Path) -> None:
    async with node(home, server={"cors_origins": [PAGE, "http://localhost:3000"], "api_keys": [CALLER]}) as n:
        got = await n.ask("GET", "/v1/models", Origin=PAGE, x_api_key=CALLER)
        assert got.status == 200
        assert got.headers["access-control-allow-origin"] == PAGE
        assert got.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in got.headers
        refused = await n.ask("GET", "/v1/models", Origin=PAGE)
        assert refused.status == 401
        assert refused.headers["access-control-allow-origin"] == PAGE  # so that the page can say why
        plain = await n.ask("GET", "/v1/models", x_api_key=CALLER)
        assert plain.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in plain.headers
        for other in ("https://chat.example.evil", "http://chat.example", "https://chat.example:444", "null", "*"):
            got = await n.ask("GET", "/v1/models", Origin=other, x_api_key=CALLER)
            assert got.status == 403
            assert not [h for h in got.headers if h.startswith("access-control")]


@on_loop
async def test_preflights_are_answered_for_listed_pages_only_and_never_for_admin(home: Path) -> None:
    asks = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization, content-type"}
    async with node(home, server={"cors_origins": [PAGE], "api_keys": [CALLER]}) as n:
        got = await n.ask("OPTIONS", "/v1/chat/completions", Origin=PAGE, **asks)
        assert (got.status, got.body) == (204, b"")
        assert got.headers["access-control-allow-origin"] == PAGE
        assert got.headers["access-control-allow-headers"] == "authorization, content-type"
        assert "POST" in got.headers["access-control-allow-methods"]
        assert "access-control-allow-credentials" not in got.headers
        for path, origin in (
            ("/v1/chat/completions", "https://evil.example"),
            ("/admin/config", PAGE),
            ("/metrics", PAGE),
        ):
            got = await n.ask("OPTIONS", path, Origin=origin, **asks)
            assert got.status == 403
            assert not [h for h in got.headers if h.startswith("access-control")]
        assert (await n.ask("GET", "/admin/config", Origin=PAGE)).status == 403
        assert (await n.ask("OPTIONS", "/v1/chat/completions", Origin=PAGE, **asks, Host="evil.example")).status >= 400


@on_loop
async def test_an_upstream_opens_this_node_to_no_page(home: Path) -> None:
    async def everybody(line: Line, _: Seen) -> None:
        extra = "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\nSet-Cookie: a=b\r\n"
        await line.answer(extra=extra)

    async with ScriptedServer(everybody) as a, node(home, server={"cors_origins": [PAGE]}, **upstreams(a)) as n:
        got = await n.ask("POST", "/a/chat/completions", ASKED, Origin=PAGE)
        assert (got.status, got.body) == (200, b"ok")
        assert got.headers["access-control-allow-origin"] == PAGE
        assert not {"access-control-allow-credentials", "set-cookie"} & got.headers.keys()
        got = await n.ask("POST", "/a/chat/completions", ASKED)
        assert "access-control-allow-origin" not in got.headers
        assert a.seen[0].header("origin") is None


@on_loop
async def test_without_a_list_nothing_is_said_to_browsers(home: Path) -> None:
    async with node(home) as n:
        asked = await n.ask("OPTIONS", "/v1/models", Origin=PAGE, Access_Control_Request_Method="GET")
        assert asked.status == 403
        for got in (asked, await n.ask("GET", "/v1/models")):
            assert not [h for h in got.headers if h.startswith("access-control") or h == "vary"]


# -- upstreams

ASKED = {"messages": [{"role": "user", "content": "hi"}], "model": "m"}


@on_loop
async def test_an_upstreams_key_goes_to_that_upstream_only(home: Path) -> None:
    async with AsyncExitStack() as stack:
        b = await stack.enter_async_context(ScriptedServer())

        async def redirect(line: Line, _: Seen) -> None:
            await line.answer(status="307 Temporary Redirect", extra=f"Location: http://127.0.0.1:{b.port}/v1/chat\r\n")

        a = await stack.enter_async_context(ScriptedServer(redirect))
        c = await stack.enter_async_context(ScriptedServer())
        n = await stack.enter_async_context(node(home, **upstreams(a, b, c, a=UP_A, b=UP_B)))
        got = await n.ask("POST", "/a/chat/completions", ASKED)
        assert got.status == 307  # an answer like any other: nobody follows it with a key
        assert len(b.seen) == 0
        await n.ask("POST", "/b/chat/completions", ASKED)
        await n.ask("POST", "/c/chat/completions", ASKED)
        assert [s.header("authorization") for s in (*a.seen, *b.seen, *c.seen)] == [
            f"Bearer {UP_A}",
            f"Bearer {UP_B}",
            None,
        ]
        assert UP_A not in await n.log()


@on_loop
async def test_a_fallback_target_gets_its_own_key_and_not_the_first_ones(home: Path) -> None:
    async with AsyncExitStack() as stack:

        async def cut(line: Line, _: Seen) -> None:
            line.cut()

        a = await stack.enter_async_context(ScriptedServer(cut))
        b = await stack.enter_async_context(ScriptedServer())
        parts = upstreams(a, b, a=UP_A, b=UP_B)
        parts["routes"] = [{"name": "r", "match": {"prefix": "/r"}, "target": "a", "fallback": ["b"]}]
        n = await stack.enter_async_context(node(home, **parts))
        assert (await n.ask("POST", "/r/chat/completions", ASKED, Authorization=f"Bearer {CALLER}")).status == 200
        assert {s.header("authorization") for s in a.seen} == {f"Bearer {UP_A}"}
        assert [s.header("authorization") for s in b.seen] == [f"Bearer {UP_B}"]


@on_loop
async def test_what_a_caller_identifies_itself_with_stays_here(home: Path) -> None:
    async with ScriptedServer() as a, node(home, server={"api_keys": [CALLER]}, **upstreams(a)) as n:
        sent = {
            "Authorization": f"Bearer {CALLER}",
            "x_api_key": CALLER,
            "Cookie": f"s={CALLER}",
            "Proxy_Authorization": f"Basic {CALLER}",
            "api_key": CALLER,
            "x_goog_api_key": CALLER,
            "X_Kept": "yes",
        }
        assert (await n.ask("POST", "/a/chat/completions", ASKED, **sent)).status == 200
        assert not [(k, v) for k, v in a.seen[0].headers if CALLER in v]
        assert a.seen[0].header("X-Kept") == "yes"


@on_loop
async def test_no_part_of_a_request_chooses_the_upstream(home: Path) -> None:
    async with ScriptedServer() as a, ScriptedServer() as b, node(home, **upstreams(a)) as n:
        there = f"127.0.0.1:{b.port}"
        body = {
            **ASKED,
            **dict.fromkeys(("url", "base_url", "api_base", "upstream", "target", "host"), f"http://{there}/v1"),
        }
        hints = {
            "X_Forwarded_Host": there,
            "X_Forwarded_Proto": "https",
            "X_Forwarded_For": there,
            "Forwarded": f"host={there}",
            "X_Original_URL": f"http://{there}/x",
            "X_Rewrite_URL": f"http://{there}/x",
            "X_Upstream": f"http://{there}",
        }
        assert (await n.ask("POST", "/a/chat/completions", body, **hints)).status == 200
        targets = [
            f"http://{there}/a/chat/completions",
            f"/a/http://{there}/x",
            f"/a//{there}/x",
            f"/a/chat/completions?url=http://{there}",
            f"/a/@{there}/x",
            "/a/..%2f..%2fadmin",
            f"/a/\\{there}",
        ]
        for target in targets:
            async with RawClient(n.port) as raw:
                raw.send(f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{n.port}\r\nContent-Length: 2\r\n\r\n{{}}")
                await raw.response()
        async with RawClient(n.port) as raw:  # the Host of another machine, absolute and not
            raw.send(f"POST /a/x HTTP/1.1\r\nHost: evil.example:{b.port}\r\nContent-Length: 2\r\n\r\n{{}}")
            assert (await raw.response()).status == 403
        assert b.connections == 0
        assert {s.header("host") for s in a.seen} == {f"127.0.0.1:{a.port}"}
        assert len(a.seen) >= 2
        assert all(s.target.startswith("/v1/") for s in a.seen)


@on_loop
async def test_a_stored_key_is_found_and_said_to_be_in_a_file(home: Path) -> None:
    path = home / "home" / "config" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": 1, "keys": {"box": UP_A, "evil": "x\r\nX-Evil: 1"}}))
    path.chmod(0o600)
    keys = {"a": "keyring:box", "b": "keyring:evil", "c": "keyring:none"}
    async with AsyncExitStack() as stack:
        a, b, c = [await stack.enter_async_context(ScriptedServer()) for _ in range(3)]
        n = await stack.enter_async_context(node(home, **upstreams(a, b, c, **keys)))
        assert (await n.ask("POST", "/a/chat/completions", ASKED)).status == 200
        assert a.seen[0].header("authorization") == f"Bearer {UP_A}"
        notices = [e for e in n.service.drain_events() if isinstance(e, Notice) and e.source == "keys"]
        assert len(notices) == 1
        assert notices[0].severity == "warning"
        assert str(path) in notices[0].text
        got = await n.ask("POST", "/b/chat/completions", ASKED)
        assert (got.status, got.error["code"]) == (502, "upstream_key_unusable")
        assert b"X-Evil" not in got.body
        got = await n.ask("POST", "/c/chat/completions", ASKED)
        assert (got.status, got.error["code"]) == (502, "upstream_key_missing")
        assert "laya-desktop key set none" in got.error["message"]
        assert b.connections == c.connections == 0
        assert UP_A not in await n.log()
