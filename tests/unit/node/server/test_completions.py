"""Answer bodies: the fast chunk is the same JSON as the slow one would be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.engines.base import Delta, Finished, Started, TokenLogprob, ToolCallPart
from laya_desktop.node.records import RequestRecord
from laya_desktop.node.server.choices import Choices
from laya_desktop.node.server.completions import Completion, Outcome
from laya_desktop.node.server.openai_api import Operation, operation_of


def events(data: bytes) -> list[Any]:
    parts = data.decode().split("\n\n")
    assert parts.pop() == ""
    return [json.loads(p.removeprefix("data: ")) for p in parts if p != "data: [DONE]"]


def gathered(*deltas: Delta, count: int = 1) -> Choices:
    choices = Choices(count)
    for delta in deltas:
        choices.add(delta)
    return choices


def outcome_of(reason: str = "stop", **fields: Any) -> Outcome:
    finished = Finished("r", reason, prompt_tokens=3, completion_tokens=4, **fields)  # type: ignore[arg-type]
    return Outcome.of(finished, RequestRecord("r", "POST", "/", None, "m"))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.text(max_size=10), st.booleans(), st.booleans())
def test_a_delta_is_one_event_with_that_text(text: str, model: str, chat: bool, usage: bool) -> None:
    chunk = Completion("id", model, chat=chat, include_usage=usage).delta(Delta("r", text))
    if not text:
        assert chunk == b""
        return
    (event,) = events(chunk)
    choice = event["choices"][0]
    assert (choice["delta"]["content"] if chat else choice["text"]) == text
    assert event["model"] == model
    assert ("usage" in event) == usage


def test_unknown_times_are_null() -> None:
    record = RequestRecord("r", "POST", "/", None, "m")
    outcome = Outcome.of(Finished("r", "length", prompt_tokens=1, completion_tokens=1), record)
    body = Completion("r", "m", chat=True, include_usage=False).whole(gathered(Delta("r", "x")), outcome)
    assert body["timings"] == dict.fromkeys(("queue_ms", "prefill_ms", "ttft_ms", "decode_tokens_per_s"))
    assert body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", (Operation.BARE, "")),
        ("/", (Operation.BARE, "")),
        ("/v1", (Operation.BARE, "")),
        ("/chat/completions", (Operation.CHAT, "")),
        ("/v1/chat/completions", (Operation.CHAT, "")),
        ("/v1/models", (Operation.MODELS, "")),
        ("/v1/models/a%2Fb", (Operation.MODEL, "a/b")),
        ("/models/a/b", (Operation.MODEL, "a/b")),
        ("/v1/v1/models", None),
        ("/v1x/models", None),
        ("/chat", None),
    ],
)
def test_paths_of_the_api(path: str, expected: tuple[Operation, str] | None) -> None:
    assert operation_of(path) == expected


A, B = TokenLogprob(1, b"\xc3", -0.5, ((b"\xc3", -0.5), (b"x", -1.0))), TokenLogprob(2, b"\xbc ok", -9999.0)
CALL = (
    ToolCallPart(0, "id0", "weather"),
    ToolCallPart(0, arguments='{"city": '),
    ToolCallPart(0, arguments='"Bern"}'),
    ToolCallPart(1, "id1", "time", "{}"),
)


def test_a_whole_chat_with_thinking_and_calls() -> None:
    deltas = [
        Delta("r", "", reasoning="Hm"),
        Delta("r", "", reasoning="m."),
        *(Delta("r", "", tool_calls=(c,)) for c in CALL),
    ]
    body = Completion("r", "m", chat=True, include_usage=False).whole(
        gathered(*deltas), outcome_of("tool_calls", reasoning_tokens=2)
    )
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hmm.",
        "tool_calls": [
            {"id": "id0", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}},
            {"id": "id1", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        ],
    }
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_a_stream_with_thinking_and_calls() -> None:
    shape = Completion("r", "m", chat=True, include_usage=True)
    (thought,) = events(shape.delta(Delta("r", "", reasoning="Hm")))
    assert thought["choices"][0]["delta"] == {"reasoning_content": "Hm"}
    (called,) = events(shape.delta(Delta("r", "", tool_calls=CALL[:2])))
    assert called["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "id": "id0", "type": "function", "function": {"name": "weather", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"city": '}},
    ]
    last, usage = events(shape.closing(outcome_of("tool_calls")))
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["choices"] == []


def test_several_answers_of_a_stream_end_one_by_one() -> None:
    shape = Completion("r", "m", chat=True, include_usage=False, count=3)
    assert [c["choices"][0]["index"] for c in events(shape.opening(Started("r", 0, 5)))] == [0, 1, 2]
    (second,) = events(shape.delta(Delta("r", "b", index=1)))
    assert (second["choices"][0]["index"], second["choices"][0]["delta"]) == (1, {"content": "b"})
    (ended,) = events(shape.delta(Delta("r", "", 0, 1, finish_reason="length")))
    assert (ended["choices"][0]["finish_reason"], ended["choices"][0]["delta"]) == ("length", {})
    rest = events(shape.closing(outcome_of("stop")))
    assert [(c["choices"][0]["index"], c["choices"][0]["finish_reason"]) for c in rest] == [(0, "stop"), (2, "stop")]


def test_several_whole_answers_keep_their_own_ends() -> None:
    deltas = (Delta("r", "b", index=1), Delta("r", "a"), Delta("r", "", 0, 1, finish_reason="length"))
    body = Completion("r", "m", chat=False, include_usage=False, count=2).whole(
        gathered(*deltas, count=2), outcome_of()
    )
    assert [(c["index"], c["text"], c["finish_reason"]) for c in body["choices"]] == [
        (0, "a", "stop"),
        (1, "b", "length"),
    ]


def test_probabilities_of_a_chat() -> None:
    shape = Completion("r", "m", chat=True, include_usage=False, logprobs=True)
    body = shape.whole(gathered(Delta("r", "ü ok", logprobs=(A, B))), outcome_of())
    first, second = body["choices"][0]["logprobs"]["content"]
    assert (first["bytes"], first["logprob"], len(first["top_logprobs"])) == ([0xC3], -0.5, 2)
    assert bytes([*first["bytes"], *second["bytes"]]).decode() == "ü ok"
    (chunk,) = events(shape.delta(Delta("r", "ü ok", logprobs=(A, B))))
    assert chunk["choices"][0]["logprobs"]["content"] == [first, second]


def test_probabilities_of_a_text_completion_know_their_place() -> None:
    tokens = tuple(TokenLogprob(i, text, -1.0, ((text, -1.0),)) for i, text in enumerate((b"ab", b"c", b" d")))
    shape = Completion("r", "m", chat=False, include_usage=False, logprobs=True)
    whole = shape.whole(gathered(Delta("r", "abc d", logprobs=tokens)), outcome_of())["choices"][0]["logprobs"]
    assert whole == {
        "tokens": ["ab", "c", " d"],
        "token_logprobs": [-1.0] * 3,
        "top_logprobs": [{"ab": -1.0}, {"c": -1.0}, {" d": -1.0}],
        "text_offset": [0, 2, 3],
    }
    stream = Completion("r", "m", chat=False, include_usage=False, logprobs=True)
    pieces = [stream.delta(Delta("r", "ab", logprobs=tokens[:1])), stream.delta(Delta("r", "c d", logprobs=tokens[1:]))]
    assert [events(p)[0]["choices"][0]["logprobs"]["text_offset"] for p in pieces] == [[0], [2, 3]]


def test_no_probabilities_are_null() -> None:
    body = Completion("r", "m", chat=True, include_usage=False).whole(gathered(Delta("r", "x")), outcome_of())
    assert body["choices"][0]["logprobs"] is None
