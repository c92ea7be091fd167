"""What engines do beyond plain text: several answers, probabilities, forms and tools; or they refuse it by name.

The PyTorch engine refuses most of it; it must say so, never ignore it.
"""

from __future__ import annotations

import json
import math

import pytest

from laya_desktop.node.engines.base import (
    AnswerFormat,
    Delta,
    Finished,
    NoFreeSlotError,
    Refused,
    Sampling,
    Started,
    TokenLogprob,
)
from tests.helpers.engine_harness import MAX_SEQ_LEN, SLOTS, DirectHarness, Harness, Talk

GREEDY = Sampling(temperature=0)
STORY = "Once upon a time there was a little"
ASK = [{"role": "user", "content": "Weather in Paris?"}]
TOOLS: list[dict[str, object]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
                "required": ["city", "unit"],
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer"},
        "kind": {"enum": ['a"b', "ü\\"]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}


def texts(talk: Talk, request_id: str, count: int) -> list[str]:
    return ["".join(d.text for d in talk.deltas(request_id) if d.index == i) for i in range(count)]


def calls(talk: Talk, request_id: str) -> list[tuple[str, str]]:
    found: list[list[str]] = []
    for part in (c for d in talk.deltas(request_id) for c in d.tool_calls):
        if part.name is not None:
            assert part.index == len(found)
            assert part.call_id
            found.append([part.name, ""])
        found[part.index][1] += part.arguments
    return [(name, arguments) for name, arguments in found]


@pytest.fixture
def refuses(is_torch: bool, talk: Talk) -> object:
    """For an engine that does not do it: check that it says so, and skip the rest."""

    def check(param: str, **fields: object) -> None:
        if is_torch:
            refused = talk.refusal(prompt=STORY, **fields) if "messages" not in fields else talk.refusal(**fields)
            assert (refused.status, refused.param) == (400, param)
            pytest.skip("refused by name, as it must be")

    return check


def test_several_answers_to_one_prompt(talk: Talk, refuses: object) -> None:
    refuses("n", n=2)  # type: ignore[operator]
    request_id = talk.give(prompt=STORY, max_tokens=12, sampling=GREEDY, n=2)
    talk.wait_over(request_id)
    started, finished = talk.of(request_id)[0], talk.last(request_id)
    assert isinstance(started, Started)
    assert isinstance(finished, Finished)
    assert {started.slot_id, *started.more_slots} == set(range(SLOTS))
    first, second = texts(talk, request_id, 2)
    assert first == second != ""
    assert finished.completion_tokens == 24
    assert sum(d.tokens for d in talk.deltas(request_id)) == 24
    ends = [(d.index, d.finish_reason) for d in talk.deltas(request_id) if d.finish_reason]
    assert sorted(ends) == [(0, "length"), (1, "length")]
    assert talk.say(prompt=STORY, max_tokens=12, sampling=GREEDY)[0] == first


def test_several_answers_differ_by_their_seeds(talk: Talk, refuses: object) -> None:
    refuses("n", n=2)  # type: ignore[operator]

    def say(**fields: object) -> list[str]:
        request_id = talk.give(prompt=STORY, max_tokens=12, sampling=Sampling(temperature=1.0, seed=7), **fields)
        talk.wait_over(request_id)
        return texts(talk, request_id, 2)

    answers = say(n=2)
    assert answers[0] != answers[1]
    assert say(n=2) == answers
    assert say()[0] == answers[0]


def test_an_answer_may_end_before_the_others(talk: Talk, refuses: object) -> None:
    refuses("n", n=2)  # type: ignore[operator]
    whole = talk.give(prompt=STORY, max_tokens=16, sampling=Sampling(temperature=1.0, seed=7), n=2)
    talk.wait_over(whole)
    first, second = texts(talk, whole, 2)
    stop = next(cut for i in range(len(first)) if (cut := first[i : i + 6]) not in second)
    request_id = talk.give(prompt=STORY, max_tokens=16, sampling=Sampling(temperature=1.0, seed=7), n=2, stop=(stop,))
    talk.wait_over(request_id)
    assert texts(talk, request_id, 2) == [first[: first.index(stop)], second]
    last = talk.last(request_id)
    assert isinstance(last, Finished)
    assert last.finish_reason == "stop"
    ends = {d.index: d.finish_reason for d in talk.deltas(request_id) if d.finish_reason}
    assert ends == {0: "stop", 1: "length"}


def test_more_answers_than_slots_are_refused(talk: Talk, harness: Harness, refuses: object) -> None:
    refuses("n", n=SLOTS + 1)  # type: ignore[operator]
    refused = talk.refusal(prompt=STORY, n=SLOTS + 1)
    assert (refused.code, refused.status, refused.param) == ("too_many_choices", 400, "n")
    assert str(SLOTS) in refused.message
    running = talk.give(prompt=STORY, max_tokens=40)
    if isinstance(harness, DirectHarness):
        with pytest.raises(NoFreeSlotError):
            talk.give(prompt=STORY, n=2)
    else:
        assert talk.refusal(prompt=STORY, n=2).code == "no_free_slot"
    talk.wait_over(running)


@pytest.mark.parametrize("steps", [0, 3])
def test_cancelling_several_answers_frees_all_slots(talk: Talk, harness: Harness, refuses: object, steps: int) -> None:
    refuses("n", n=2)  # type: ignore[operator]
    doomed = talk.give(prompt=STORY, sampling=GREEDY, n=2)
    harness.wait(lambda: len(talk.deltas(doomed)) >= steps)
    harness.cancel(doomed)
    harness.wait(lambda: talk.over(doomed))
    assert [e.finish_reason for e in talk.of(doomed) if isinstance(e, Finished)] == ["cancelled"]
    seen = len(talk.deltas(doomed))
    if isinstance(harness, DirectHarness):
        assert harness.engine.free_slots == SLOTS
        assert not harness.engine.busy
    running = [talk.give(prompt=STORY, max_tokens=4, sampling=GREEDY) for _ in range(SLOTS)]
    talk.wait_over(*running)
    assert all(isinstance(talk.last(r), Finished) for r in running)
    assert len(talk.deltas(doomed)) == seen, "nothing is decoded for it any more"


def test_probabilities_of_the_drawn_tokens(talk: Talk, refuses: object) -> None:
    refuses("logprobs", logprobs=2)  # type: ignore[operator]
    request_id = talk.give(prompt=STORY, max_tokens=8, sampling=GREEDY, logprobs=2)
    talk.wait_over(request_id)
    tokens: list[TokenLogprob] = [t for d in talk.deltas(request_id) for t in d.logprobs]
    assert len(tokens) == 8
    assert b"".join(t.piece for t in tokens).decode() == talk.text(request_id)
    for token in tokens:
        assert -9999 <= token.logprob <= 0
        assert len(token.top) == 2
        assert token.top[0] == (token.piece, token.logprob), "greedy draws the most likely one"
        assert token.top[0][1] >= token.top[1][1]
        assert sum(math.exp(value) for _, value in token.top) <= 1.0001
    bare = talk.give(prompt=STORY, max_tokens=2, sampling=GREEDY, logprobs=0)
    talk.wait_over(bare)
    assert all(t.top == () for d in talk.deltas(bare) for t in d.logprobs)
    assert not [t for d in talk.deltas(talk.give(prompt=STORY, max_tokens=1)) for t in d.logprobs]


def test_probabilities_follow_the_text_to_a_stop(talk: Talk, refuses: object) -> None:
    refuses("logprobs", logprobs=0)  # type: ignore[operator]
    whole, _ = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY)
    stop = whole[len(whole) // 2 :][:4]
    request_id = talk.give(prompt=STORY, max_tokens=16, sampling=GREEDY, stop=(stop,), logprobs=0)
    talk.wait_over(request_id)
    pieces = b"".join(t.piece for d in talk.deltas(request_id) for t in d.logprobs).decode()
    text = talk.text(request_id)
    assert pieces.startswith(text)
    assert len(pieces) < len(text) + 12, "at most the token that the stop began in"


def test_a_schema_is_followed(talk: Talk, refuses: object) -> None:
    wanted = AnswerFormat("json_schema", json.dumps(PERSON))
    refuses("response_format", answer_format=wanted)  # type: ignore[operator]
    for sampling in (GREEDY, Sampling(temperature=1.5, seed=5)):
        text, finished = talk.say(messages=ASK, max_tokens=80, sampling=sampling, answer_format=wanted)
        person = json.loads(text)
        assert finished.finish_reason == "stop"
        assert set(person) == {"name", "age", "kind"}
        assert isinstance(person["age"], int)
        assert 1 <= len(person["name"]) <= 12
        assert person["kind"] in ('a"b', "ü\\")


@pytest.mark.parametrize("schema", ['{"type": "strong"}', '{"$ref": "#/nowhere"}', '{"anyOf": [3]}', "[]"])
def test_a_bad_schema_is_refused(talk: Talk, refuses: object, schema: str) -> None:
    refused = talk.refusal(prompt=STORY, answer_format=AnswerFormat("json_schema", schema))
    assert (refused.status, refused.param) == (400, "response_format")
    assert talk.say(prompt=STORY, max_tokens=1)[1].completion_tokens == 1


def test_a_required_call_is_valid(talk: Talk, refuses: object) -> None:
    refuses("tool_choice", messages=ASK, tools=TOOLS, tool_choice="required")  # type: ignore[operator]
    request_id = talk.give(messages=ASK, max_tokens=80, sampling=GREEDY, tools=TOOLS, tool_choice="required")
    talk.wait_over(request_id)
    assert talk.last(request_id).finish_reason == "tool_calls"  # type: ignore[union-attr]
    assert talk.text(request_id) == ""
    ((name, arguments),) = calls(talk, request_id)
    given = json.loads(arguments)
    assert name in ("get_weather", "now")
    if name == "get_weather":
        assert given["unit"] in ("C", "F")
        assert isinstance(given["city"], str)


def test_a_named_call_is_that_one(talk: Talk, refuses: object) -> None:
    fields: dict[str, object] = {"messages": ASK, "tools": TOOLS, "tool_choice": "required", "tool_name": "now"}
    refuses("tool_choice", **fields)  # type: ignore[operator]
    request_id = talk.give(max_tokens=60, sampling=GREEDY, **fields)
    talk.wait_over(request_id)
    assert calls(talk, request_id) == [("now", "{}")]


def test_the_end_can_be_put_off(talk: Talk, refuses: object, is_llama: bool) -> None:
    refuses("ignore_eos", ignore_eos=True)  # type: ignore[operator]
    _, whole = talk.say(messages=ASK, max_tokens=60, sampling=GREEDY, ignore_eos=True)
    assert (whole.finish_reason, whole.completion_tokens) == ("length", 60)
    if is_llama:  # the fake goes on for 1000 words
        short: dict[str, object] = {"messages": [{"role": "user", "content": "Name a colour."}], "sampling": GREEDY}
        _, ended = talk.say(max_tokens=100, **short)
        _, longer = talk.say(max_tokens=100, min_tokens=ended.completion_tokens + 5, **short)
        assert ended.finish_reason == "stop"
        assert longer.completion_tokens >= ended.completion_tokens + 5


def test_every_request_is_over_and_the_slots_are_free(harness: Harness) -> None:
    if isinstance(harness, DirectHarness):
        assert harness.engine.free_slots == SLOTS
        assert not harness.engine.busy
    assert not [e for e in harness.events if isinstance(e, Refused | Delta)]
    assert harness.loaded.max_seq_len == MAX_SEQ_LEN
