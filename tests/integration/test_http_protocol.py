"""HTTP/1.1 over real sockets: order, keep-alive, limits, deadlines, disconnects, the end of the listener."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.server.listener import Listener
from laya_desktop.state.enums import Phase
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_both_loops, serving, wait_for

MODEL = {"name": "m", "path": "/m.gguf", "engine": "fake"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}


def gateway(**server: object) -> FakeGateway:
    return FakeGateway(NodeConfig.model_validate({"server": server, "models": [MODEL]}))


# -- answers


@on_both_loops
async def test_health_is_answered_and_the_connection_kept() -> None:
    async with serving(gateway()) as (listener, port), RawClient(port) as client:
        ids = set()
        for _ in range(4):
            got = await client.ask("GET", "/health")
            assert (got.status, got.json) == (200, {"status": "ok"})
            assert float(got.headers["x-laya-routing-us"]) > 0
            ids.add(got.headers["x-request-id"])
        assert len(ids) == 4
        assert (listener.connections, listener.requests_total) == (1, 4)


@on_both_loops
async def test_health_counts_as_routed_under_no_route() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as client:
        for _ in range(3):
            await client.ask("GET", "/health")
    assert node.metrics.routing.count == 3
    assert node.metrics.responses["2xx"] == 3


@on_both_loops
async def test_head_has_the_length_and_no_body() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        got = await client.ask("HEAD", "/health")
        assert (got.status, got.headers["content-length"]) == (200, "15")
        models = await client.ask("HEAD", "/v1/models")
        assert models.status == 200
        assert (await client.ask("GET", "/health")).body == b'{"status":"ok"}'


@on_both_loops
async def test_a_sane_request_id_is_echoed_and_another_replaced() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        assert (await client.ask("GET", "/health", X_Request_Id="abc-1")).headers["x-request-id"] == "abc-1"
        assert (await client.ask("GET", "/health", X_Request_Id="a b")).headers["x-request-id"] != "a b"
        assert (await client.ask("GET", "/health", X_Request_Id="x" * 200)).headers["x-request-id"] != "x" * 200


@on_both_loops
async def test_pipelined_requests_are_answered_in_order() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", CHAT, X_Request_Id="first")
        client.request("GET", "/health", X_Request_Id="second")
        client.request("GET", "/nothing", X_Request_Id="third")
        await wait_for(lambda: len(node.generations) == 1)
        node.script.start_gate.set()
        got = [await client.response() for _ in range(3)]
        assert [g.headers["x-request-id"] for g in got] == ["first", "second", "third"]
        assert [g.status for g in got] == [200, 200, 404]


@on_both_loops
async def test_many_pipelined_requests_pause_reading_and_are_all_answered() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", CHAT)
        await wait_for(lambda: len(node.generations) == 1)
        for i in range(200):
            client.request("GET", "/health", X_Request_Id=f"n{i}")
            await client.writer.drain()
        node.script.start_gate.set()
        assert (await client.response()).status == 200
        assert [(await client.response()).headers["x-request-id"] for _ in range(200)] == [f"n{i}" for i in range(200)]


@on_both_loops
async def test_connection_close_closes_after_the_answer() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        got = await client.ask("GET", "/health", Connection="close")
        assert got.headers["connection"] == "close"
        assert await client.rest() == b""


@on_both_loops
async def test_http_1_0_closes_unless_it_asks_to_be_kept() -> None:
    async with serving(gateway()) as (_, port):
        async with RawClient(port) as client:
            client.send(f"GET /health HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n")
            assert (await client.rest()).endswith(b'{"status":"ok"}')
        async with RawClient(port) as client:
            for _ in range(3):
                client.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                assert (await client.response()).headers["connection"] == "keep-alive"


@on_both_loops
async def test_http_1_0_streams_until_the_close() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
        client.send(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        got = await client.response()
        assert "transfer-encoding" not in got.headers
        assert got.events[-1] == "[DONE]"


@on_both_loops
async def test_a_request_may_arrive_byte_by_byte() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        for byte in f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Request-Id: slow\r\n\r\n".encode():
            client.send(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert (await client.response()).headers["x-request-id"] == "slow"


@on_both_loops
async def test_a_chunked_body_is_joined_and_its_trailers_ignored() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/completions", Transfer_Encoding="chunked")
        for part in (b'{"model":"m",', b'"prompt":', b'"hi"}'):
            client.send(b"%x;note=1\r\n%b\r\n" % (len(part), part))
        client.send(b"0\r\nHost: evil\r\nX-Late: 1\r\n\r\n")
        assert (await client.response()).status == 200
        assert node.generations[0].request.prompt == "hi"
        assert (await client.ask("GET", "/health")).status == 200


@on_both_loops
async def test_an_offer_to_upgrade_is_declined_and_its_body_served() -> None:
    node = gateway()
    async with serving(node) as (_, port), RawClient(port) as client:
        headers = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AAMAAABkAAQ"}
        got = await client.ask("POST", "/v1/completions", {"model": "m", "prompt": "hi"}, **headers)
        assert got.status == 200
        assert node.generations[0].request.prompt == "hi"
        assert (await client.ask("GET", "/health", Connection="Upgrade", Upgrade="websocket")).status == 200
        assert (await client.ask("GET", "/health")).status == 200


@on_both_loops
async def test_a_body_that_is_awaited_is_asked_for() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        body = b'{"model":"m","prompt":"hi"}'
        client.request("POST", "/v1/completions", Expect="100-continue", Content_Length=str(len(body)))
        assert (await client.response()).status == 100
        client.send(body)
        assert (await client.response()).status == 200


@on_both_loops
async def test_a_body_is_not_asked_for_where_the_head_is_refused() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        got = await client.ask("POST", "/nothing", Expect="100-continue", Content_Length="5")
        assert (got.status, got.headers["connection"]) == (404, "close")
        assert await client.rest() == b""


@on_both_loops
async def test_an_unknown_expectation_is_417() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        assert (await client.ask("POST", "/v1/completions", {"model": "m"}, Expect="200-ok")).status == 417


@on_both_loops
async def test_a_small_body_of_a_refused_request_is_read_and_the_connection_kept() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        assert (await client.ask("POST", "/nothing", {"a": 1})).status == 404
        assert (await client.ask("GET", "/health")).status == 200


@on_both_loops
@pytest.mark.parametrize("method", ["TRACE", "PROPFIND", "CONNECT"])
async def test_methods_that_nobody_needs_are_refused(method: str) -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        client.send(f"{method} /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await client.response()).status == 501


@on_both_loops
async def test_a_wrong_method_names_the_right_ones() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        got = await client.ask("DELETE", "/health")
        assert (got.status, got.headers["allow"]) == (405, "GET, HEAD")
        got = await client.ask("GET", "/v1/chat/completions")
        assert (got.status, got.headers["allow"]) == (405, "POST")


# -- limits


@on_both_loops
async def test_a_large_head_is_431() -> None:
    async with serving(gateway()) as (_, port):
        for filler in ("X-A: " + "a" * 17_000 + "\r\n", "X-A: b\r\n" * 3_000):
            async with RawClient(port) as client:
                client.send(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n{filler}\r\n")
                assert (await client.response()).status == 431
                assert await client.rest() == b""


@on_both_loops
async def test_a_head_without_end_is_431() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        client.send("GET /health HTTP/1.1\r\nX-A: ")
        for _ in range(200):
            client.send("a" * 4096)
            await asyncio.sleep(0)
        assert (await client.response()).status == 431


@on_both_loops
@pytest.mark.parametrize("framing", ["Content-Length: 5000", "Transfer-Encoding: chunked"])
async def test_a_large_body_is_413(framing: str) -> None:
    async with serving(gateway(max_body="1KiB")) as (_, port), RawClient(port) as client:
        client.send(f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n{framing}\r\n\r\n")
        for _ in range(5):
            client.send(b"3e8\r\n" + b"a" * 1000 + b"\r\n")
        got = await client.response()
        assert (got.status, got.error["code"]) == (413, "body_too_large")


@on_both_loops
async def test_a_refused_upload_is_answered_although_it_is_still_being_sent() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        client.request("POST", "/nothing", Content_Length="20000000")
        for _ in range(300):
            client.send(b"a" * 65536)
            await asyncio.sleep(0)
        got = await client.response()
        assert (got.status, got.headers["connection"]) == (404, "close")


@on_both_loops
async def test_a_body_of_framing_only_is_refused() -> None:
    async with serving(gateway()) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/completions", Transfer_Encoding="chunked")
        client.send(b"1;" + b"a" * 200_000 + b"\r\na\r\n")
        for _ in range(50):
            client.send(b"1;" + b"a" * 20_000 + b"\r\na\r\n")
            await asyncio.sleep(0)
        assert (await client.response()).status == 400


@on_both_loops
async def test_one_connection_too_many_is_503_and_the_others_go_on() -> None:
    async with serving(gateway(max_connections=2)) as (listener, port):
        async with RawClient(port) as one, RawClient(port) as two:
            await one.ask("GET", "/health")
            await two.ask("GET", "/health")
            async with RawClient(port) as three:
                got = await three.response()
                assert (got.status, got.error["code"]) == (503, "too_many_connections")
                assert got.headers["retry-after"] == "1"
                assert got.headers["retry-after-ms"] == "1000"
                assert await three.rest() == b""
            assert (await one.ask("GET", "/health")).status == 200
        await wait_for(lambda: listener.connections == 0)
        async with RawClient(port) as four:
            assert (await four.ask("GET", "/health")).status == 200


@on_both_loops
async def test_bodies_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laya_desktop.node.server.hub.MIN_BODY_BUDGET", 0)
    monkeypatch.setattr("laya_desktop.node.server.hub.BODIES_IN_FLIGHT", 1)
    async with serving(gateway(max_body="1KiB")) as (_, port):
        async with RawClient(port) as one, RawClient(port) as two:
            one.request("POST", "/v1/completions", Content_Length="1000")
            one.send(b" " * 900)
            await one.writer.drain()
            await asyncio.sleep(0.02)
            got = await two.ask("POST", "/v1/completions", b" " * 900)
            assert (got.status, got.error["code"]) == (503, "bodies_in_memory")
        async with RawClient(port) as three:
            assert (await three.ask("POST", "/v1/completions", b" " * 900)).status == 400


# -- deadlines


@on_both_loops
async def test_a_slow_head_is_408() -> None:
    async with serving(gateway(head_timeout="100ms")) as (_, port), RawClient(port) as client:
        client.send("GET /health HTTP/1.1\r\nHost: ")
        got = await client.response()
        assert (got.status, got.error["code"]) == (408, "timeout")
        assert await client.rest() == b""


@on_both_loops
async def test_a_trickle_does_not_extend_the_head_deadline() -> None:
    async with serving(gateway(head_timeout="150ms")) as (_, port), RawClient(port) as client:

        async def trickle() -> None:
            while True:
                client.send("X: y\r\n")
                await asyncio.sleep(0.01)

        client.send("GET /health HTTP/1.1\r\n")
        feeding = asyncio.get_running_loop().create_task(trickle())
        assert (await client.response()).status == 408
        feeding.cancel()


@on_both_loops
async def test_a_slow_body_is_408() -> None:
    async with serving(gateway(body_timeout="100ms")) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/completions", Content_Length="100")
        client.send("{")
        assert (await client.response()).status == 408


@on_both_loops
async def test_idle_connections_are_closed_without_a_word() -> None:
    async with serving(gateway(idle_timeout="100ms", head_timeout="100ms")) as (listener, port):
        async with RawClient(port) as fresh, RawClient(port) as used:
            await used.ask("GET", "/health")
            assert await used.rest() == b""
            assert await fresh.rest() == b""
        assert listener.connections == 0


@on_both_loops
async def test_waiting_for_an_answer_is_not_idling() -> None:
    node = gateway(idle_timeout="50ms", head_timeout="50ms", body_timeout="50ms")
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", CHAT)
        await asyncio.sleep(0.2)
        node.script.start_gate.set()
        assert (await client.response()).status == 200


# -- clients that leave or do not read


@on_both_loops
async def test_a_client_that_leaves_a_stream_cancels_it() -> None:
    node = gateway()
    node.script.text_gate = asyncio.Event()
    async with serving(node) as (_, port):
        async with RawClient(port) as client:
            client.request("POST", "/v1/chat/completions", STREAM)
            assert (await client.head()).status == 200
            await client.chunk()
        await wait_for(lambda: node.generations[0].cancelled is not None)
        await wait_for(lambda: node.records[0].phase is Phase.CANCELLED)
        assert node.records[0].status == 499
        assert node.generations[0].sent == 1


@on_both_loops
async def test_a_client_that_leaves_the_queue_never_runs() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port):
        async with RawClient(port) as client:
            client.request("POST", "/v1/chat/completions", CHAT)
            await wait_for(lambda: len(node.generations) == 1)
        await wait_for(lambda: node.records[0].phase is Phase.CANCELLED)
        node.script.start_gate.set()
        assert node.generations[0].cancelled == "the client disconnected"
        assert node.generations[0].sent == 0


@on_both_loops
async def test_a_reset_is_seen_as_well() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", CHAT)
        await wait_for(lambda: len(node.generations) == 1)
        client.writer.transport.abort()
        await wait_for(lambda: node.generations[0].cancelled is not None)


@on_both_loops
async def test_requests_behind_a_left_one_are_dropped() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port):
        async with RawClient(port) as client:
            client.request("POST", "/v1/chat/completions", CHAT)
            client.request("POST", "/v1/chat/completions", CHAT)
            await wait_for(lambda: len(node.generations) == 1)
        await wait_for(lambda: node.generations[0].cancelled is not None)
        await wait_for(lambda: node.records[0].finished_s is not None)
        assert len(node.generations) == 1


def _narrow_socket(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", port))
    return sock


@on_both_loops
async def test_a_reader_that_stalls_holds_the_writer_back_and_is_cut() -> None:
    node = gateway(body_timeout="300ms")
    node.script.texts = ("x" * 100_000,) * 1000
    async with serving(node) as (listener, port):
        with _narrow_socket(port) as sock:
            body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
            sock.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            await wait_for(lambda: bool(node.generations) and node.generations[0].sent > 0)
            await wait_for(lambda: node.generations[0].cancelled is not None)
            assert node.generations[0].sent < 1000
            assert "read nothing" in str(node.generations[0].cancelled)
            await wait_for(lambda: node.records[0].phase is Phase.CANCELLED)
            await wait_for(lambda: listener.connections == 0)


@on_both_loops
async def test_a_reader_that_is_slow_gets_everything() -> None:
    node = gateway()
    node.script.texts = tuple(f"{i}-" + "x" * 50_000 for i in range(100))
    async with serving(node) as (_, port), RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", STREAM)
        await wait_for(lambda: bool(node.generations) and node.generations[0].sent > 2)
        got = await client.response()
        texts = [e["choices"][0]["delta"].get("content") for e in got.events[1:-2]]
        assert texts == list(node.script.texts)


@on_both_loops
async def test_a_client_that_sends_and_never_reads_is_not_read_for_ever() -> None:
    node = gateway(body_timeout="200ms")
    async with serving(node) as (listener, port):
        with _narrow_socket(port) as sock:
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
            sent = 0
            with suppress(OSError):
                while sent < 1_000_000:
                    await asyncio.wait_for(loop.sock_sendall(sock, request), 5)
                    sent += 100
            assert sent < 1_000_000
            await wait_for(lambda: listener.connections == 0)


# -- the listener's life


@on_both_loops
async def test_a_taken_port_is_named_with_a_free_one() -> None:
    async with serving(gateway()) as (_, port):
        other = Listener()
        with pytest.raises(LayaError, match=f"Port {port} is taken") as caught:
            await other.start(gateway(), "127.0.0.1", port)
        assert caught.value.hint is not None
        free = int(caught.value.hint.split("server.port to ")[1].split(",")[0])
        assert free != port
        assert other.connections == 0
        await other.stop(0)


@on_both_loops
async def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(LayaError, match="Cannot listen on"):
        await Listener().start(gateway(api_keys=["secret-key-12345"]), "192.0.2.7", 0)
    with pytest.raises(LayaError, match="unknown on this machine"):
        await Listener().start(gateway(), "no-such-host.invalid", 0)


@on_both_loops
async def test_the_network_is_not_opened_without_a_key() -> None:
    with pytest.raises(LayaError, match="needs an API key") as caught:
        await Listener().start(gateway(), "0.0.0.0", 0)
    assert caught.value.code == "key_required"


@on_both_loops
async def test_localhost_is_one_port_for_all_its_addresses() -> None:
    async with serving(gateway(), host="localhost") as (_, port), RawClient(port) as client:
        assert (await client.ask("GET", "/health")).status == 200


@on_both_loops
async def test_stopping_lets_an_answer_finish_and_closes_idle_connections() -> None:
    node = gateway()
    node.script.text_gate = asyncio.Event()
    listener = Listener()
    port = await listener.start(node, "127.0.0.1", 0)
    async with RawClient(port) as busy, RawClient(port) as idle:
        await idle.ask("GET", "/health")
        busy.request("POST", "/v1/chat/completions", STREAM)
        assert (await busy.head()).status == 200
        stopping = asyncio.get_running_loop().create_task(listener.stop(5))
        assert await idle.rest() == b""
        assert not stopping.done()
        node.script.text_gate.set()
        assert b"[DONE]" in await busy.rest()
        await stopping
    assert node.records[0].phase is Phase.DONE


@on_both_loops
async def test_stopping_cuts_what_outlives_the_grace_and_says_so() -> None:
    node = gateway()
    node.script.text_gate = asyncio.Event()
    listener = Listener()
    port = await listener.start(node, "127.0.0.1", 0)
    async with RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", STREAM)
        await client.head()
        await listener.stop(0.05)
        rest = await client.rest()
    assert b"the node is stopping" in rest
    assert b"[DONE]" not in rest
    assert listener.connections == 0
    assert node.records[0].phase is Phase.CANCELLED


@on_both_loops
async def test_stopping_answers_who_still_waits_with_503() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    listener = Listener()
    port = await listener.start(node, "127.0.0.1", 0)
    async with RawClient(port) as client:
        client.request("POST", "/v1/chat/completions", CHAT)
        await wait_for(lambda: len(node.generations) == 1)
        await listener.stop(0.05)
        got = await client.response()
    assert (got.status, got.error["code"], got.headers["retry-after"]) == (503, "draining", "5")
    assert node.generations[0].cancelled == "the node is stopping"


@on_both_loops
async def test_a_port_can_be_used_again_at_once() -> None:
    port = 0
    for _ in range(3):
        listener = Listener()
        port = await listener.start(gateway(), "127.0.0.1", port)
        async with RawClient(port) as client:
            assert (await client.ask("GET", "/health")).status == 200
            await listener.stop(0.2)


@on_both_loops
async def test_a_new_connection_is_refused_after_the_stop() -> None:
    listener = Listener()
    port = await listener.start(gateway(), "127.0.0.1", 0)
    await listener.stop(0)
    with pytest.raises(OSError, match=r"(?i)connect"):
        await asyncio.open_connection("127.0.0.1", port)
    await listener.stop(0)
