"""The client of an upstream against a real server that does what its script says, on both event loops."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.upstream import Upstream, UpstreamPool
from tests.helpers.upstream_server import Line, Script, ScriptedServer, Seen, answer_ok

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(coroutine, 20))

    return run


def config(port: int, *, scheme: str = "http", host: str = "127.0.0.1", path: str = "/v1", **more: Any) -> NodeConfig:
    return NodeConfig.model_validate(
        {"upstreams": [{"name": "big-box", "url": f"{scheme}://{host}:{port}{path}", **more}]}
    )


@asynccontextmanager
async def client(script: Script = answer_ok, pool: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[Any]:
    async with ScriptedServer(script) as server:
        upstreams = UpstreamPool(config(server.port, **more), **(pool or {}))
        try:
            yield server, upstreams.get("big-box")
        finally:
            await upstreams.close()


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 (what is waited for sets no event)
        await asyncio.sleep(0.002)


async def whole(upstream: Upstream, *args: Any, **more: Any) -> tuple[int, bytes]:
    response = await upstream.request(*(args or ("GET", "/x", {})), **more)
    return response.status, b"".join([part async for part in response])


def in_flight(upstream: Upstream) -> int:
    return upstream.snapshot().in_flight


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_request_and_answer_pass(run: Run):
    async def script(line: Line, _: Seen) -> None:
        await line.answer(b'{"a":1}', "201 Created", "Content-Type: application/json\r\nConnection: keep-alive\r\n")

    async def main() -> None:
        async with client(script, api_key="secret") as (server, upstream):
            headers = {"authorization": "Bearer caller", "x-request-id": "r1", "content-type": "text/x"}
            response = await upstream.request("POST", "/chat/completions?a=b", headers, b"\x00body", 5.0)
            assert response.status == 201
            assert ("Content-Type", "application/json") in response.headers
            assert "connection" not in {name.lower() for name, _ in response.headers}
            assert in_flight(upstream) == 1
            assert [part async for part in response.body] == [b'{"a":1}']
            assert in_flight(upstream) == 0
            [seen] = server.seen
            assert (seen.method, seen.target, seen.body) == ("POST", "/v1/chat/completions?a=b", b"\x00body")
            assert seen.header("host") == f"127.0.0.1:{server.port}"
            assert seen.header("authorization") == "Bearer secret"
            assert seen.header("x-request-id") == "r1"
            assert seen.header("x-laya-hops") == "1"
            assert upstream.snapshot().healthy is True

    run(main())


def test_parts_come_as_they_are_sent(run: Run):
    steps = asyncio.Queue[bytes]()

    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while part := await steps.get():
            await line.send(b"%x\r\n%s\r\n" % (len(part), part))
        await line.send(b"0\r\nX-Trailer: 1\r\n\r\n")

    async def main() -> None:
        async with client(script) as (server, upstream):
            for _ in range(2):
                response = await upstream.request("GET", "/x", {})
                parts = aiter(response)
                for sent in (b"data: 1\n\n", b"data: 2\n\n", b"x"):
                    steps.put_nowait(sent)
                    assert await anext(parts) == sent
                steps.put_nowait(b"")
                with pytest.raises(StopAsyncIteration):
                    await anext(parts)
                assert "X-Trailer" not in dict(response.headers)
            assert server.connections == 1

    run(main())


def test_connections_are_used_again_and_apart_when_needed(run: Run):
    async def main() -> None:
        async with client() as (server, upstream):
            for _ in range(3):
                assert await whole(upstream) == (200, b"ok")
            assert server.connections == 1
            first = await upstream.request("GET", "/x", {})
            second = await upstream.request("GET", "/x", {})
            assert server.connections == 2
            assert [b async for b in first] == [b async for b in second] == [b"ok"]
            assert {s.connection for s in server.seen} == {0, 1}

    run(main())


def test_an_answer_without_a_length_ends_when_the_server_closes(run: Run):
    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        line.writer.close()

    async def main() -> None:
        async with client(script) as (server, upstream):
            assert await whole(upstream) == (200, b"all of it")
            assert await whole(upstream) == (200, b"all of it")
            assert server.connections == 2

    run(main())


def test_answers_without_a_body(run: Run):
    async def script(line: Line, seen: Seen) -> None:
        if seen.method == "HEAD":
            await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        else:
            await line.send(b"HTTP/1.1 100 Continue\r\nX-No: 1\r\n\r\nHTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n")

    async def main() -> None:
        async with client(script) as (_, upstream):
            response = await upstream.request("HEAD", "/x", {})
            assert ("Content-Length", "1000") in response.headers
            assert [b async for b in response] == []
            response = await upstream.request("DELETE", "/x", {})
            assert (response.status, response.headers) == (204, [("X-A", "1")])
            assert [b async for b in response] == []
            assert in_flight(upstream) == 0

    run(main())


def test_a_redirect_is_an_answer_like_any_other(run: Run):
    async def main() -> None:
        async with ScriptedServer() as other:

            async def script(line: Line, _: Seen) -> None:
                await line.answer(b"", "307 Temporary Redirect", f"Location: http://127.0.0.1:{other.port}/\r\n")

            async with client(script, api_key="secret") as (_, upstream):
                response = await upstream.request("POST", "/x", {}, b"body")
                assert response.status == 307
                assert dict(response.headers)["Location"] == f"http://127.0.0.1:{other.port}/"
                response.cancel()
                assert other.connections == 0

    run(main())


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced_once(run: Run):
    async def script(line: Line, _: Seen) -> None:
        if line.number == 0 and len(server.seen) == 2:
            line.cut()  # the request was read, no byte of an answer sent
        else:
            await line.answer()

    server: ScriptedServer

    async def main() -> None:
        nonlocal server
        async with client(script) as (server, upstream):
            assert await whole(upstream, "POST", "/x", {}, b"1") == (200, b"ok")
            assert await whole(upstream, "POST", "/x", {}, b"2") == (200, b"ok")
            assert [(s.connection, s.body) for s in server.seen] == [(0, b"1"), (0, b"2"), (1, b"2")]
            assert upstream.snapshot().healthy is True

    run(main())


def test_a_kept_connection_that_the_server_closes_is_forgotten(run: Run):
    async def script(line: Line, _: Seen) -> None:
        await line.answer(b"ok")
        if line.number == 0:
            line.writer.close()

    async def main() -> None:
        async with client(script) as (server, upstream):
            assert await whole(upstream) == (200, b"ok")
            await until(lambda: not upstream._live)
            assert await whole(upstream) == (200, b"ok")
            assert server.connections == 2

    run(main())


def test_a_fresh_connection_that_dies_is_not_asked_twice(run: Run):
    async def script(line: Line, _: Seen) -> None:
        line.cut()

    async def main() -> None:
        async with client(script) as (server, upstream):
            with pytest.raises(LayaError) as failed:
                await upstream.request("POST", "/x", {}, b"1")
            assert (failed.value.status, failed.value.code) == (502, "upstream_broken")
            assert "'big-box'" in failed.value.message
            assert len(server.seen) == 1
            assert in_flight(upstream) == 0

    run(main())


def test_a_kept_connection_that_dies_within_its_answer_is_not_asked_twice(run: Run):
    async def script(line: Line, _: Seen) -> None:
        if len(server.seen) == 1:
            await line.answer()
        else:
            await line.send(b"HTTP/1.1 200 O")
            line.cut()

    server: ScriptedServer

    async def main() -> None:
        nonlocal server
        async with client(script) as (server, upstream):
            await whole(upstream)
            with pytest.raises(LayaError, match="middle of its answer"):
                await upstream.request("POST", "/x", {}, b"1")
            assert len(server.seen) == 2

    run(main())


@pytest.mark.parametrize(
    "head", [b"Content-Length: 100\r\n\r\npart", b"Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"]
)
@pytest.mark.parametrize("orderly", [True, False])
def test_an_answer_that_breaks_off_is_never_taken_for_whole(run: Run, head: bytes, orderly: bool):
    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\n" + head)
        await read.wait()
        line.writer.close() if orderly else line.cut()

    read = asyncio.Event()

    async def main() -> None:
        async with client(script) as (_, upstream):
            response = await upstream.request("GET", "/x", {})
            assert await anext(response) == b"part"
            read.set()
            with pytest.raises(LayaError) as failed:
                await anext(response)
            assert failed.value.status == 502
            assert "'big-box'" in failed.value.message
            assert "middle of its answer" in failed.value.message
            assert in_flight(upstream) == 0
            assert upstream.snapshot().healthy is False
            with pytest.raises(StopAsyncIteration):
                await anext(response)

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(run: Run, answer: bytes):
    async def script(line: Line, _: Seen) -> None:
        await line.send(answer)
        await line.closed()

    async def main() -> None:
        async with client(script) as (server, upstream):
            with pytest.raises(LayaError) as failed:
                await upstream.request("GET", "/x", {})
            assert (failed.value.status, failed.value.code) == (502, "upstream_broken")
            await until(lambda: not server._tasks)

    run(main())


def test_what_a_server_sends_unasked_does_not_answer_the_next_request(run: Run):
    async def script(line: Line, _: Seen) -> None:
        extra = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison" if line.number == 0 else b""
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + extra)

    async def main() -> None:
        async with client(script) as (server, upstream):
            assert await whole(upstream) == (200, b"ok")
            assert await whole(upstream) == (200, b"ok")
            assert server.connections == 2

    run(main())


def test_cancelling_an_answer_closes_its_socket(run: Run):
    closed = asyncio.Event()

    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await line.closed()
        closed.set()

    async def main() -> None:
        async with client(script) as (_, upstream):
            response = await upstream.request("GET", "/x", {})
            assert await anext(response) == b"a"
            response.cancel()
            response.cancel()
            await closed.wait()
            assert in_flight(upstream) == 0
            assert [part async for part in response] == []

    run(main())


@pytest.mark.parametrize("begun", [True, False])
def test_a_cancelled_task_closes_the_socket(run: Run, begun: bool):
    closed, asked = asyncio.Event(), asyncio.Event()

    async def script(line: Line, _: Seen) -> None:
        if begun:
            await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        asked.set()
        await line.closed()
        closed.set()

    async def main() -> None:
        async with client(script) as (_, upstream):
            task = asyncio.get_running_loop().create_task(whole(upstream))
            await asked.wait()
            if begun:
                await until(lambda: next(iter(upstream._live)).status)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await closed.wait()
            assert in_flight(upstream) == 0
            assert upstream.snapshot().healthy is not False

    run(main())


def test_a_reader_that_is_behind_holds_the_server_back(run: Run):
    total = 64 * 1024 * 1024
    sent = 0

    async def script(line: Line, _: Seen) -> None:
        nonlocal sent
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        piece = bytes(64 * 1024)
        while sent < total:
            await line.send(piece)
            sent += len(piece)

    async def main() -> None:
        async with client(script) as (_, upstream):
            response = await upstream.request("GET", "/x", {})
            [connection] = upstream._live
            await until(lambda: connection._paused)
            assert connection._buffered_bytes < 1024 * 1024
            assert sent < total
            got = 0
            async for part in response:
                got += len(part)
                assert connection._buffered_bytes < 1024 * 1024
            assert got == total

    run(main())


def test_a_large_body_arrives_whole(run: Run):
    body = bytes(range(256)) * 40_000

    async def main() -> None:
        async with client() as (server, upstream):
            assert await whole(upstream, "POST", "/x", {}, body) == (200, b"ok")
            assert server.seen[0].body == body

    run(main())


def test_time_limits(run: Run):
    async def script(line: Line, seen: Seen) -> None:
        if seen.target.endswith("/begun"):
            await line.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await line.closed()

    async def main() -> None:
        async with client(script, {"silence_s": 0.05}) as (server, upstream):
            with pytest.raises(LayaError) as failed:
                await upstream.request("GET", "/never", {}, timeout_s=0.05)
            assert (failed.value.status, failed.value.code) == (504, "upstream_timeout")
            assert "did not begin" in failed.value.message
            response = await upstream.request("GET", "/begun", {}, timeout_s=10.0)
            assert await anext(response) == b"a"
            with pytest.raises(LayaError) as failed:
                await anext(response)
            assert failed.value.status == 504
            assert "silent for 0.05 s" in failed.value.message
            upstream._effects = type(upstream._effects)(lambda _: None)
            response = await upstream.request("GET", "/begun", {}, timeout_s=0.1)
            assert await anext(response) == b"a"
            with pytest.raises(LayaError, match="time that the route gives"):
                await anext(response)
            await until(lambda: not server._tasks)
            assert in_flight(upstream) == 0
            assert upstream.snapshot().healthy is not False, "slow is not down"

    run(main())


def test_a_server_that_does_not_accept_in_time(run: Run):
    """A listener whose backlog is full takes no further connection."""

    async def main() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            port = listener.getsockname()[1]
            fillers = [socket.socket() for _ in range(4)]
            try:
                for filler in fillers:
                    filler.setblocking(False)
                    filler.connect_ex(("127.0.0.1", port))
                pool = UpstreamPool(config(port, connect_timeout=0.1))
                with pytest.raises(LayaError) as failed:
                    await pool.get("big-box").request("GET", "/x", {})
                assert failed.value.status == 504
                assert "within 0.1 s" in failed.value.message
                await pool.close()
            finally:
                for filler in fillers:
                    filler.close()

    run(main())


def test_a_server_that_is_not_there(run: Run):
    async def main() -> None:
        pool = UpstreamPool(config(free_port()))
        upstream = pool.get("big-box")
        for _ in range(3):
            with pytest.raises(LayaError) as failed:
                await upstream.request("GET", "/x", {})
            assert (failed.value.status, failed.value.code) == (502, "upstream_unreachable")
            assert "nothing listens there" in failed.value.message
            assert failed.value.hint
        with pytest.raises(LayaError) as refused:
            await upstream.request("GET", "/x", {})
        assert (refused.value.status, refused.value.code) == (503, "upstream_down")
        assert refused.value.retry_after_s == pytest.approx(10.0, abs=1)
        assert "nothing listens there" in refused.value.message
        assert pool.snapshot()[0].healthy is False
        await pool.close()

    run(main())


def test_a_host_that_has_no_address(run: Run):
    async def main() -> None:
        pool = UpstreamPool(config(80, host="no-such-host.invalid"))
        with pytest.raises(LayaError, match="host name is not known"):
            await pool.get("big-box").request("GET", "/x", {})
        await pool.close()

    run(main())


def test_a_key_from_the_keyring_is_read_once_and_again_after_a_401(run: Run):
    asked: list[str] = []

    def resolve(name: str) -> str | None:
        asked.append(name)
        return f"key-{len(asked)}"

    async def script(line: Line, _: Seen) -> None:
        await line.answer(status="401 Unauthorized" if len(server.seen) == 2 else "200 OK")

    server: ScriptedServer

    async def main() -> None:
        nonlocal server
        async with client(script, {"resolve_key": resolve}, api_key="keyring:box") as (server, upstream):
            assert [(await whole(upstream))[0] for _ in range(3)] == [200, 401, 200]
            assert asked == ["box", "box"]
            assert [s.header("authorization") for s in server.seen] == ["Bearer key-1", "Bearer key-1", "Bearer key-2"]

    run(main())


def test_a_key_that_the_keyring_lacks(run: Run):
    async def main() -> None:
        async with client(api_key="keyring:box") as (server, upstream):
            with pytest.raises(LayaError) as failed:
                await upstream.request("GET", "/x", {})
            assert failed.value.code == "upstream_key_missing"
            assert "'box'" in failed.value.message
            assert server.connections == 0

    run(main())


def test_health_checks_close_and_open_the_way(run: Run, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "laya_desktop.node.upstream_client")
    well = False

    async def script(line: Line, seen: Seen) -> None:
        if seen.target == "/health":
            await line.answer(b"{}", "200 OK" if well else "503 Service Unavailable")
        else:
            await line.answer()

    async def main() -> None:
        nonlocal well
        async with ScriptedServer(script) as server:
            settings = config(server.port, health={"path": "/health", "interval": 0.02}, api_key="secret")
            pool = UpstreamPool(settings)
            upstream = pool.get("big-box")
            assert pool.snapshot()[0].healthy is None
            assert await whole(upstream) == (200, b"ok")
            pool.update(settings)
            await until(lambda: upstream._circuit.is_open)
            with pytest.raises(LayaError) as refused:
                await upstream.request("GET", "/x", {})
            assert refused.value.status == 503
            assert refused.value.retry_after_s is not None
            assert "/health answered 503" in refused.value.message
            assert all(s.header("authorization") == "Bearer secret" for s in server.seen)
            well = True
            await until(lambda: pool.snapshot()[0].healthy)
            assert await whole(upstream) == (200, b"ok")
            assert server.connections == 1
            await pool.close()
            assert upstream._watch is not None
            assert upstream._watch.cancelled()

    run(main())
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    assert "'big-box' is down" in caplog.messages[0]


def test_an_update_keeps_what_did_not_change_and_lets_running_answers_finish(run: Run):
    go_on = asyncio.Event()

    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        await go_on.wait()
        await line.send(b"b")

    async def main() -> None:
        async with ScriptedServer(script) as server:
            pool = UpstreamPool(config(server.port))
            upstream = pool.get("big-box")
            pool.update(config(server.port))
            assert pool.get("big-box") is upstream
            response = await upstream.request("GET", "/x", {})
            pool.update(config(server.port, path="/v2"))
            assert pool.get("big-box") is not upstream
            pool.update(NodeConfig())
            assert pool.snapshot() == ()
            with pytest.raises(LayaError) as gone:
                pool.get("big-box")
            assert gone.value.status == 503
            go_on.set()
            assert b"".join([part async for part in response]) == b"ab"
            await until(lambda: not upstream._live)
            await pool.close()

    run(main())


def test_closing_cuts_running_answers(run: Run):
    async def script(line: Line, _: Seen) -> None:
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        await line.closed()

    async def main() -> None:
        async with ScriptedServer(script) as server:
            pool = UpstreamPool(config(server.port))
            response = await pool.get("big-box").request("GET", "/x", {})
            pool.update(NodeConfig())
            await pool.close()
            assert await anext(response) == b"a"
            with pytest.raises(LayaError):
                await anext(response)
            await until(lambda: not server._tasks)

    run(main())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", "-x509", *kind, *names, "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return key, cert


def test_tls_checks_the_certificate(run: Run, certificate: tuple[Path, Path]):
    key, cert = certificate
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(cert, key)

    def trusting() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(cert))

    async def main() -> None:
        async with ScriptedServer(tls=serving) as server:
            good = UpstreamPool(config(server.port, scheme="https", host="localhost"), make_tls=trusting)
            assert await whole(good.get("big-box")) == (200, b"ok")
            assert await whole(good.get("big-box")) == (200, b"ok")
            assert server.connections == 1
            await good.close()
            unknown = UpstreamPool(config(server.port, scheme="https", host="localhost"))
            other_name = UpstreamPool(config(server.port, scheme="https"), make_tls=trusting)
            for pool in (unknown, other_name):
                with pytest.raises(LayaError) as failed:
                    await pool.get("big-box").request("GET", "/x", {})
                assert failed.value.status == 502
                assert "certificate is not trusted" in failed.value.message
                await pool.close()

    run(main())


def test_tls_where_plain_http_is_spoken(run: Run):
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as plain:
            pool = UpstreamPool(config(plain.sockets[0].getsockname()[1], scheme="https"))
            with pytest.raises(LayaError) as failed:
                await pool.get("big-box").request("GET", "/x", {})
            assert "does not speak TLS" in failed.value.message
            assert failed.value.hint
            assert "http://" in failed.value.hint
            await pool.close()

    run(main())
