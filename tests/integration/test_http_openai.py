"""The OpenAI API through the official client and on the wire: answers, streams, targets, errors, headers, records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import Phase
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, Response, on_loop, serving, wait_for

HI: list[Any] = [{"role": "user", "content": "hi"}]
CHAT = "/v1/chat/completions"


def gateway(*routes: dict[str, Any], models: tuple[str, ...] = ("m", "other")) -> FakeGateway:
    return FakeGateway(
        NodeConfig.model_validate({"models": [{"name": n, "path": f"/{n}.gguf"} for n in models], "routes": routes})
    )


def route(name: str, target: str = "m", **match: Any) -> dict[str, Any]:
    return {"name": name, "match": match, "target": target, "timeout": "42s"}


@asynccontextmanager
async def client(port: int, path: str = "/v1", key: str = "none") -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}{path}", api_key=key, max_retries=0) as made:
        yield made


async def ask(node: FakeGateway, method: str, path: str, body: Any = None, **headers: str) -> Response:
    async with serving(node) as (_, port), RawClient(port) as raw:
        return await raw.ask(method, path, body, **headers)


# -- answers


@on_loop
async def test_a_chat_is_answered_whole() -> None:
    node = gateway()
    async with serving(node) as (_, port), client(port) as api:
        got = await api.chat.completions.create(model="m", messages=HI, max_tokens=5, temperature=0.1, stop="\n")
    assert got.choices[0].message.content == "Hello, world"
    assert (got.choices[0].finish_reason, got.model, got.object) == ("stop", "m", "chat.completion")
    assert got.usage is not None
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (7, 3, 10)
    assert got.usage.prompt_tokens_details is not None
    assert got.usage.prompt_tokens_details.cached_tokens == 3
    request = node.generations[0].request
    assert (request.max_tokens, request.sampling.temperature, request.stop) == (5, 0.1, ("\n",))
    assert request.messages == [{"role": "user", "content": "hi"}]


@on_loop
async def test_a_chat_is_streamed() -> None:
    async with serving(gateway()) as (_, port), client(port) as api:
        stream = await api.chat.completions.create(
            model="m", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello, world"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10
    assert all(c.usage is None for c in chunks[:-1])
    assert len({c.id for c in chunks}) == 1


@on_loop
async def test_a_stream_has_no_usage_unless_asked() -> None:
    got = await ask(gateway(), "POST", CHAT, {"model": "m", "messages": HI, "stream": True})
    assert got.events[-1] == "[DONE]"
    assert all("usage" not in event for event in got.events[:-1])


@on_loop
@pytest.mark.parametrize("stream", [False, True])
async def test_a_completion_is_answered(stream: bool) -> None:
    async with serving(gateway()) as (_, port), client(port) as api:
        got: Any = await api.completions.create(model="m", prompt="Once", stream=stream)
        if stream:
            chunks = [c async for c in got]
            assert "".join(c.choices[0].text for c in chunks) == "Hello, world"
            assert chunks[-1].choices[0].finish_reason == "stop"
            assert chunks[0].object == "text_completion"
        else:
            assert got.choices[0].text == "Hello, world"
            assert got.usage.total_tokens == 10


@on_loop
async def test_the_last_chunk_and_the_body_carry_timings() -> None:
    names = {"queue_ms", "prefill_ms", "ttft_ms", "decode_tokens_per_s"}
    whole = await ask(gateway(), "POST", CHAT, {"model": "m", "messages": HI})
    assert set(whole.json["timings"]) == names
    assert whole.json["timings"]["prefill_ms"] == 10.0
    stream = await ask(gateway(), "POST", CHAT, {"model": "m", "messages": HI, "stream": True})
    assert set(stream.events[-2]["timings"]) == names


@on_loop
async def test_text_that_json_must_escape_survives_the_stream() -> None:
    node = gateway()
    node.script.texts = ('"\n\u2028', "é😀\x00", "\\")
    got = await ask(node, "POST", CHAT, {"model": "m", "messages": HI, "stream": True})
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in got.events[:-1]) == "".join(node.script.texts)


@on_loop
async def test_the_head_says_route_time_and_queue() -> None:
    node = gateway(route("chat", prefix="/x"))
    for stream in (False, True):
        got = await ask(node, "POST", "/x/v1/chat/completions", {"messages": HI, "stream": stream})
        assert got.headers["x-laya-route"] == "chat"
        assert float(got.headers["x-laya-routing-us"]) > 0
        assert float(got.headers["x-laya-queue-ms"]) >= 0
        assert got.headers["x-request-id"].startswith("req-")
    assert node.metrics.route_stats("chat").count == 2


@on_loop
async def test_the_time_in_the_queue_is_measured() -> None:
    node = gateway()
    node.script.start_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as raw:
        raw.request("POST", CHAT, {"model": "m", "messages": HI, "stream": True})
        await wait_for(lambda: len(node.generations) == 1)
        await asyncio.sleep(0.05)
        node.script.start_gate.set()
        got = await raw.response()
    assert float(got.headers["x-laya-queue-ms"]) >= 50
    assert float(got.headers["x-laya-routing-us"]) < 50_000


@on_loop
async def test_a_route_name_with_odd_characters_fits_into_a_header() -> None:
    got = await ask(gateway(route("Café ☕", prefix="/x")), "POST", "/x", {"messages": HI})
    assert got.headers["x-laya-route"] == "Caf%C3%A9 %E2%98%95"


@on_loop
async def test_the_record_tells_what_happened() -> None:
    node = gateway(route("chat", prefix="/x"))
    await ask(node, "POST", "/x?key=secret", {"messages": HI, "stream": True})
    record = node.records[0]
    assert (record.route, record.target, record.path, record.method) == ("chat", "m", "/x", "POST")
    assert (record.phase, record.status, record.stream) == (Phase.DONE, 200, True)
    assert record.routing_us is not None
    assert record.finish_reason == "stop"
    assert node.timeouts_s == [42.0]


# -- which target


@on_loop
@pytest.mark.parametrize("path", ["/x/v1/chat/completions", "/x/chat/completions", "/x", "/x/", "/x/v1"])
async def test_what_follows_a_prefix_names_the_api_with_or_without_v1(path: str) -> None:
    node = gateway(route("chat", prefix="/x"))
    got = await ask(node, "POST", path, {"messages": HI})
    assert (got.status, got.json["object"]) == (200, "chat.completion")


@on_loop
async def test_a_bare_post_is_dispatched_by_its_body() -> None:
    node = gateway(route("chat", prefix="/x"))
    async with serving(node) as (_, port), RawClient(port) as raw:
        assert (await raw.ask("POST", "/x", {"messages": HI})).json["object"] == "chat.completion"
        assert (await raw.ask("POST", "/x", {"prompt": "hi"})).json["object"] == "text_completion"
        assert (await raw.ask("POST", "/x", {"input": "hi"})).json["object"] == "list"
        for body in ({}, {"messages": HI, "prompt": "hi"}):
            assert (await raw.ask("POST", "/x", body)).status == 400


@on_loop
async def test_the_official_client_works_behind_a_prefix() -> None:
    node = gateway(route("chat", "other", prefix="/v1/model"))
    async with serving(node) as (_, port), client(port, "/v1/model") as api:
        got = await api.chat.completions.create(model="whatever", messages=HI)
        assert got.model == "other"
        assert [m.id async for m in await api.models.list()] == ["other"]


@on_loop
async def test_the_route_decides_whatever_model_the_body_names() -> None:
    node = gateway(route("chat", "other", prefix="/x"))
    got = await ask(node, "POST", "/x", {"model": "m", "messages": HI})
    assert got.json["model"] == "other"
    assert node.records[0].target == "other"


@on_loop
async def test_a_rule_on_the_model_waits_for_the_body() -> None:
    node = gateway(route("big", "other", path=CHAT, model="large"))
    async with serving(node) as (_, port), RawClient(port) as raw:
        large = await raw.ask("POST", CHAT, {"model": "large", "messages": HI})
        assert (large.headers["x-laya-route"], large.json["model"]) == ("big", "other")
        plain = await raw.ask("POST", CHAT, {"model": "m", "messages": HI})
        assert "x-laya-route" not in plain.headers
        assert plain.json["model"] == "m"
        assert (await raw.ask("POST", CHAT, b"{")).status == 400


@on_loop
async def test_conditions_on_headers_choose_the_route() -> None:
    node = gateway(route("gold", "other", prefix="/x", headers={"X-Tier": "gold"}), route("rest", prefix="/x"))
    async with serving(node) as (_, port), RawClient(port) as raw:
        assert (await raw.ask("POST", "/x", {"messages": HI}, X_Tier="gold")).headers["x-laya-route"] == "gold"
        assert (await raw.ask("POST", "/x", {"messages": HI})).headers["x-laya-route"] == "rest"


@on_loop
async def test_an_unknown_model_is_404_with_what_there_is() -> None:
    node = gateway(models=("qwen3-8b", "other"))
    async with serving(node) as (_, port), client(port) as api:
        with pytest.raises(openai.NotFoundError) as caught:
            await api.chat.completions.create(model="qwen3-8B", messages=HI)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert "Did you mean 'qwen3-8b'?" in caught.value.message
    assert "Available: qwen3-8b, other." in caught.value.message


@on_loop
async def test_without_a_model_the_only_one_is_taken() -> None:
    assert (await ask(gateway(models=("m",)), "POST", CHAT, {"messages": HI})).status == 200
    got = await ask(gateway(), "POST", CHAT, {"messages": HI})
    assert (got.status, got.error["param"]) == (400, "model")


@on_loop
async def test_models_are_listed_and_shown() -> None:
    async with serving(gateway()) as (_, port), client(port) as api:
        assert [m.id async for m in await api.models.list()] == ["m", "other"]
        assert (await api.models.retrieve("other")).id == "other"
        with pytest.raises(openai.NotFoundError, match="No model 'othr'"):
            await api.models.retrieve("othr")


# -- errors


@on_loop
@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, openai.RateLimitError), (503, openai.InternalServerError), (400, openai.BadRequestError)],
)
async def test_a_refused_admission_has_its_status(status: int, kind: type[openai.APIStatusError]) -> None:
    node = gateway()
    node.script.admit_error = LayaError("Full.", hint="Wait.", code="queue_full", status=status, retry_after_s=1.5)
    async with serving(node) as (_, port), client(port) as api:
        with pytest.raises(kind) as caught:
            await api.chat.completions.create(model="m", messages=HI, stream=True)
    headers = caught.value.response.headers
    if status == 400:
        assert "retry-after" not in headers
    else:
        assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1500")
    assert (node.records[0].phase, node.records[0].status) == (Phase.FAILED, status)


@on_loop
@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_before_the_start_has_its_status_even_for_a_stream(stream: bool) -> None:
    node = gateway()
    node.script.error_after = -1
    got = await ask(node, "POST", CHAT, {"model": "m", "messages": HI, "stream": stream})
    assert (got.status, got.error["code"], got.error["type"]) == (503, "worker_died", "server_error")
    assert got.headers["content-type"] == "application/json"
    assert node.records[0].phase is Phase.FAILED


@on_loop
async def test_an_error_in_a_stream_is_said_in_it_and_the_connection_closed() -> None:
    node = gateway()
    node.script.error_after = 2
    async with serving(node) as (_, port), RawClient(port) as raw:
        raw.request("POST", CHAT, {"model": "m", "messages": HI, "stream": True})
        got = await raw.response()
        assert got.status == 200
        assert got.events[-1]["error"]["code"] == "worker_died"
        assert "Load it again." in got.events[-1]["error"]["message"]
        assert "[DONE]" not in got.events
        assert await raw.rest() == b""
    assert (node.records[0].phase, node.records[0].error) == (Phase.FAILED, "The worker died. Load it again.")


@on_loop
async def test_the_official_client_sees_an_error_in_a_stream() -> None:
    node = gateway()
    node.script.error_after = 1
    async with serving(node) as (_, port), client(port) as api:
        stream = await api.chat.completions.create(model="m", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match="The worker died"):
            _ = [chunk async for chunk in stream]


@on_loop
async def test_an_error_in_a_whole_answer_has_its_status() -> None:
    node = gateway()
    node.script.error_after = 2
    assert (await ask(node, "POST", CHAT, {"model": "m", "messages": HI})).status == 503


@on_loop
@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancelled_answer_says_so(stream: bool) -> None:
    node = gateway()
    node.script.text_gate = asyncio.Event()
    async with serving(node) as (_, port), RawClient(port) as raw:
        raw.request("POST", CHAT, {"model": "m", "messages": HI, "stream": stream})
        await wait_for(lambda: bool(node.generations) and node.generations[0].sent == 1)
        assert node.cancel_request("req-1")
        got = await raw.response()
    error = got.events[-1]["error"] if stream else got.error
    assert got.status == (200 if stream else 499)
    assert "cancelled by the user" in error["message"]
    assert node.records[0].phase is Phase.CANCELLED


@on_loop
async def test_a_fault_of_ours_is_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    node = gateway()
    node.script.error = RuntimeError("boom")  # type: ignore[assignment]
    node.script.error_after = -1
    got = await ask(node, "POST", CHAT, {"model": "m", "messages": HI})
    assert (got.status, got.error["code"]) == (500, "internal_error")
    assert "boom" not in got.body.decode()
    assert "boom" in caplog.text
    assert node.records[0].phase is Phase.FAILED


@on_loop
async def test_what_is_not_json_is_named_with_its_place() -> None:
    got = await ask(gateway(), "POST", CHAT, b'{"model": "m",\n  "messages": [}')
    assert (got.status, got.error["code"]) == (400, "invalid_json")
    assert "line 2 column 16" in got.error["message"]


@on_loop
async def test_a_wrong_content_type_is_tolerated_where_the_body_is_json() -> None:
    got = await ask(gateway(), "POST", CHAT, {"model": "m", "messages": HI}, Content_Type="text/plain")
    assert got.status == 200


@on_loop
async def test_a_wrong_field_is_named() -> None:
    async with serving(gateway()) as (_, port), client(port) as api:
        with pytest.raises(openai.BadRequestError) as caught:
            await api.chat.completions.create(model="m", messages=HI, temperature=9)
        assert caught.value.param == "temperature"
        with pytest.raises(openai.BadRequestError) as caught:
            await api.chat.completions.create(model="m", messages=HI, extra_body={"best_of": 2})
        assert caught.value.param == "best_of"
        assert caught.value.code == "unsupported_parameter"


@on_loop
async def test_an_unknown_path_lists_what_there_is() -> None:
    got = await ask(gateway(route("chat", prefix="/x")), "GET", "/v2/chat")
    assert (got.status, got.error["code"]) == (404, "not_found")
    assert "/v1/chat/completions" in got.error["message"]
    assert "/x/…" in got.error["message"]
    assert "add a route" in got.error["message"]


@on_loop
async def test_an_unknown_part_below_a_route_is_explained() -> None:
    got = await ask(gateway(route("chat", prefix="/x")), "POST", "/x/v1/chats", {})
    assert got.status == 404
    assert "Route 'chat'" in got.error["message"]


@on_loop
async def test_a_bad_path_is_400() -> None:
    assert (await ask(gateway(), "GET", "/a%00b")).error["code"] == "bad_path"


@on_loop
async def test_many_streams_at_once_do_not_mix() -> None:
    node = gateway()
    async with serving(node) as (_, port), client(port) as api:

        async def one(i: int) -> str:
            stream = await api.chat.completions.create(
                model="m", messages=HI, stream=True, extra_headers={"X-Request-Id": f"caller-{i}"}
            )
            return "".join([c.choices[0].delta.content or "" async for c in stream])

        assert await asyncio.gather(*(one(i) for i in range(20))) == ["Hello, world"] * 20
    assert {r.phase for r in node.records} == {Phase.DONE}
