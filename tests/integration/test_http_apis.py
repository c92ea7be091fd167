"""Embeddings, the Responses and the Messages API, and tokens, over a whole node with a fake model."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.helpers.session import Running, running

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=12", engine: fake, batch_size: 2, max_seq_len: 64}
      - {name: thinker, path: "fake:tokens=5,think=4", engine: fake}
    routes:
      - {name: own, match: {prefix: /mine}, target: quick}
"""
HI = [{"role": "user", "content": "Say hello."}]
GREEDY = {"temperature": 0}
CITY = "x"
"""What the fake engine says for a required text."""
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("apis")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYA_HOME", str(folder / "home"))
        with running(folder / "node.yaml", CONFIG) as node:
            yield node


@pytest.fixture
def oai(node: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(node: Running) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=node.url, api_key="none", max_retries=0) as client:
        yield client


# -- embeddings


def test_vectors_in_both_encodings(node: Running, oai: openai.OpenAI) -> None:
    found = oai.embeddings.create(model="quick", input=["one text", "another", "one text"])  # base64 on the wire
    assert [e.index for e in found.data] == [0, 1, 2]
    assert found.data[0].embedding == found.data[2].embedding != found.data[1].embedding
    assert found.usage.prompt_tokens == found.usage.total_tokens == 5
    plain = oai.embeddings.create(model="quick", input="one text", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(found.data[0].embedding)
    _, body, _ = node.ask("POST", "/v1/embeddings", {"model": "quick", "input": "x", "encoding_format": "base64"})
    packed = base64.b64decode(json.loads(body)["data"][0]["embedding"])
    assert sum(v * v for v in struct.unpack(f"<{len(packed) // 4}f", packed)) == pytest.approx(1)


def test_fewer_dimensions(oai: openai.OpenAI) -> None:
    whole = oai.embeddings.create(model="quick", input="one text").data[0].embedding
    cut = oai.embeddings.create(model="quick", input="one text", dimensions=3).data[0].embedding
    length = sum(v * v for v in whole[:3]) ** 0.5
    assert cut == pytest.approx([v / length for v in whole[:3]], abs=1e-6)


def test_a_bare_post_with_input_to_a_route(node: Running) -> None:
    status, body, headers = node.ask("POST", "/mine", {"input": [[1, 2, 3], [4]]})
    assert (status, len(json.loads(body)["data"]), headers["x-laya-route"]) == (200, 2, "own")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": [1, "a"]}, "input[0]"),
        ({"input": "word " * 65}, "input"),
        ({"input": "a", "dimensions": 9}, "dimensions"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({}, "input"),
    ],
)
def test_bad_embedding_requests_name_the_field(oai: openai.OpenAI, fields: dict[str, object], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        oai.post("/embeddings", body={"model": "quick", **fields}, cast_to=object)
    assert caught.value.body["param"] == param  # type: ignore[index]


def test_an_embedding_has_a_record(node: Running, oai: openai.OpenAI) -> None:
    oai.embeddings.create(model="quick", input="a record")
    shown = node.until(lambda s: any(r.path == "/v1/embeddings" and r.status == 200 for r in s.requests))
    record = next(r for r in shown.requests if r.path == "/v1/embeddings" and r.status == 200)
    assert record.prompt_tokens
    assert record.completion_tokens == 0


# -- tokens


def test_text_to_tokens_and_back(node: Running) -> None:
    _, body, _ = node.ask("POST", "/tokenize", {"model": "quick", "content": "one two", "with_pieces": True})
    tokens = json.loads(body)["tokens"]
    assert [t["piece"] for t in tokens] == ["one", " two"]
    ids = [t["id"] for t in tokens]
    assert json.loads(node.ask("POST", "/mine/tokenize", {"content": "one two"})[1]) == {"tokens": ids}
    assert json.loads(node.ask("POST", "/v1/detokenize", {"model": "quick", "tokens": ids})[1]) == {
        "content": "one two"
    }
    status, body, _ = node.ask("POST", "/detokenize", {"model": "quick", "tokens": [-1]})
    assert (status, json.loads(body)["error"]["param"]) == (400, "tokens[0]")


# -- the Responses API


def test_a_response_whole_and_streamed(oai: openai.OpenAI) -> None:
    asked = {"model": "quick", "input": "Say hello.", "instructions": "Be brief.", "temperature": 0}
    whole = oai.responses.create(**asked)
    assert (whole.status, whole.store if hasattr(whole, "store") else False) == ("completed", False)
    assert whole.output_text
    assert whole.usage.output_tokens == 12
    events = list(oai.responses.create(**asked, stream=True))
    kinds = [e.type for e in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
    assert events[-1].response.output_text == whole.output_text
    assert events[-1].response.usage.input_tokens == whole.usage.input_tokens


def test_a_response_that_is_cut_says_so(oai: openai.OpenAI) -> None:
    cut = oai.responses.create(model="quick", input="Say hello.", max_output_tokens=3)
    assert (cut.status, cut.incomplete_details.reason, cut.usage.output_tokens) == (
        "incomplete",
        "max_output_tokens",
        3,
    )


def test_thinking_is_an_item_of_its_own(oai: openai.OpenAI) -> None:
    whole = oai.responses.create(model="thinker", input="Think.", reasoning={"effort": "low"})
    assert [item.type for item in whole.output] == ["reasoning", "message"]
    assert whole.output[0].content[0].text.strip()
    kinds = {e.type for e in oai.responses.create(model="thinker", input="Think.", stream=True)}
    assert {"response.reasoning_text.delta", "response.reasoning_text.done"} <= kinds


def test_a_call_and_its_output_go_round(oai: openai.OpenAI) -> None:
    tool = {"type": "function", "name": "weather", "description": "Of a city.", "parameters": WEATHER}
    asked = {"model": "quick", "tools": [tool], "tool_choice": "required"}
    whole = oai.responses.create(**asked, input=HI)
    (call,) = whole.output
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": CITY})
    events = list(oai.responses.create(**asked, input=HI, stream=True))
    done = next(e for e in events if e.type == "response.function_call_arguments.done")
    assert json.loads(done.arguments) == {"city": CITY}
    history = [*HI, call.model_dump(), {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny."}]
    after = oai.responses.create(model="quick", input=history)
    assert after.output_text
    named = oai.responses.create(**{**asked, "tool_choice": {"type": "function", "name": "weather"}}, input=HI)
    assert named.output[0].type == "function_call"


def test_a_schema_is_followed(oai: openai.OpenAI) -> None:
    form = {"format": {"type": "json_schema", "name": "w", "schema": WEATHER, "strict": True}}
    assert json.loads(oai.responses.create(model="quick", input="Go.", text=form).output_text) == {"city": CITY}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "c"}, "conversation"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": []}, "input"),
    ],
)
def test_what_needs_a_memory_or_eyes_is_refused(oai: openai.OpenAI, fields: dict[str, object], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        oai.post("/responses", body={"model": "quick", "input": "Hi", **fields}, cast_to=object)
    assert caught.value.body["param"] == param  # type: ignore[index]


# -- the Messages API


def test_a_message_whole_and_streamed(claude: anthropic.Anthropic) -> None:
    asked = {"model": "quick", "max_tokens": 50, "messages": HI, "system": "Be brief.", "extra_body": GREEDY}
    whole = claude.messages.create(**asked)
    assert (whole.type, whole.role, whole.stop_reason) == ("message", "assistant", "end_turn")
    assert [block.type for block in whole.content] == ["text"]
    assert whole.usage.output_tokens == 12
    with claude.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 12)


def test_limits_and_stop_sequences(claude: anthropic.Anthropic) -> None:
    assert claude.messages.create(model="quick", max_tokens=2, messages=HI).stop_reason == "max_tokens"
    stopped = claude.messages.create(
        model="quick", max_tokens=50, messages=HI, extra_body=GREEDY, stop_sequences=["answers"]
    )
    assert "answers" not in stopped.content[0].text


def test_thinking_is_a_block_of_its_own(claude: anthropic.Anthropic) -> None:
    asked = {"model": "thinker", "max_tokens": 50, "messages": HI}
    whole = claude.messages.create(**asked, thinking={"type": "enabled", "budget_tokens": 1024})
    assert [block.type for block in whole.content] == ["thinking", "text"]
    history = [*HI, {"role": "assistant", "content": whole.model_dump()["content"]}, *HI]
    assert claude.messages.create(**{**asked, "messages": history}).content


def test_tools_go_round(claude: anthropic.Anthropic) -> None:
    tool = {"name": "weather", "description": "Of a city.", "input_schema": WEATHER}
    asked = {"model": "quick", "max_tokens": 50, "tools": [tool], "tool_choice": {"type": "any"}}
    whole = claude.messages.create(**asked, messages=HI)
    assert whole.stop_reason == "tool_use"
    (call,) = whole.content
    assert (call.type, call.name, call.input) == ("tool_use", "weather", {"city": CITY})
    with claude.messages.stream(**asked, messages=HI) as stream:
        assert stream.get_final_message().content[0].input == {"city": CITY}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "Sunny."}]}
    history = [
        *HI,
        {"role": "assistant", "content": [call.model_dump()]},
        {"role": "user", "content": [result, {"type": "text", "text": "And now?"}]},
    ]
    assert claude.messages.create(**{**asked, "tool_choice": {"type": "none"}}, messages=history).content[0].text


def test_tokens_are_counted(claude: anthropic.Anthropic) -> None:
    counted = claude.messages.count_tokens(model="quick", messages=HI, system="Be brief.")
    asked = claude.messages.create(model="quick", messages=HI, system="Be brief.", max_tokens=1)
    assert counted.input_tokens == asked.usage.input_tokens > 0


def test_errors_have_that_apis_form(node: Running, claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        claude.messages.create(model="nobody", max_tokens=5, messages=HI)
    assert missing.value.body["type"] == "error"  # type: ignore[index]
    assert missing.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    status, body, _ = node.ask("POST", "/v1/messages", {"model": "quick", "messages": HI})
    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")
    assert "max_tokens" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"messages": []}, "messages"),
    ],
)
def test_bad_messages_name_the_field(claude: anthropic.Anthropic, fields: dict[str, object], word: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=word.replace("[", r"\[").replace("]", r"\]")):
        claude.post("/v1/messages", body={"model": "quick", "max_tokens": 5, "messages": HI, **fields}, cast_to=object)
