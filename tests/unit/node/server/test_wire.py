"""OpenAI bodies: what is taken, what is refused by name, and what engines get."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Generate, Sampling
from laya_desktop.node.server import wire
from laya_desktop.node.server.unsupported import RULES

HI = [{"role": "user", "content": "hi"}]


def chat(**fields: Any) -> Generate:
    return wire.chat_to_engine("r", wire.parse_chat({"messages": HI, **fields}))


def completion(**fields: Any) -> Generate:
    return wire.completion_to_engine("r", wire.parse_completion({"prompt": "hi", **fields}))


def status_of(call: Callable[[], object]) -> int:
    """200, or the status of the LayaError; any other exception fails the test."""
    try:
        call()
    except LayaError as error:
        return error.status
    return 200


def refused(**fields: Any) -> LayaError:
    with pytest.raises(LayaError) as caught:
        chat(**fields)
    assert caught.value.status == 400
    return caught.value


def test_defaults_are_the_engines() -> None:
    assert chat() == Generate("r", messages=HI, sampling=Sampling())


def test_every_sampling_field_reaches_the_engine() -> None:
    got = chat(
        temperature=0,
        top_k=5,
        top_p=0.5,
        min_p=0.1,
        repeat_penalty=1.1,
        frequency_penalty=-1,
        presence_penalty=2,
        seed=7,
        logit_bias={"12": -100, "3": 1.5},
        stop=["a", "b"],
        max_tokens=9,
    )
    assert got.sampling == Sampling(0, 5, 0.5, 0.1, 1.1, -1, 2, 7, {12: -100, 3: 1.5})
    assert (got.stop, got.max_tokens) == (("a", "b"), 9)


def test_null_means_not_given() -> None:
    names = (
        "temperature",
        "top_p",
        "seed",
        "stop",
        "max_tokens",
        "stream",
        "stream_options",
        "n",
        "tools",
        "logit_bias",
    )
    assert chat(**dict.fromkeys(names)) == chat()


@pytest.mark.parametrize(("seed", "expected"), [(-1, None), (2**40 + 3, 3), (-2, 2**32 - 2), (0, 0)])
def test_seeds_fit_the_engine(seed: int, expected: int | None) -> None:
    assert chat(seed=seed).sampling.seed == expected


def test_other_spellings_of_the_same_field() -> None:
    assert chat(max_completion_tokens=3, max_tokens=9).max_tokens == 3
    assert chat(repetition_penalty=1.2).sampling.repeat_penalty == 1.2
    assert chat(max_tokens=-1).max_tokens is None
    assert chat(top_k=-1).sampling.top_k == 0
    assert chat(messages=[{"role": "developer", "content": "x"}]).messages == [{"role": "system", "content": "x"}]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": -5}, "max_completion_tokens"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [*HI, {"role": "robot", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    error = refused(**fields)
    assert error.param == param
    assert param in error.message


def test_missing_messages_are_named() -> None:
    with pytest.raises(LayaError, match="messages is missing") as caught:
        wire.parse_chat({})
    assert caught.value.param == "messages"


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert chat(messages=[{"role": "user", "content": parts}]).messages == [{"role": "user", "content": "ab"}]


@pytest.mark.parametrize(
    ("prompt", "expected"), [("a", "a"), (["a"], "a"), ([1, 2], [1, 2]), ([[1, 2]], [1, 2]), ("", "")]
)
def test_prompts_are_a_text_or_tokens(prompt: Any, expected: Any) -> None:
    assert completion(prompt=prompt).prompt == expected


@pytest.mark.parametrize("prompt", [[], ["a", "b"], [[1], [2]], [1, "a"], [True], [-1], [[]], 5, None, [None]])
def test_other_prompts_are_refused(prompt: Any) -> None:
    with pytest.raises(LayaError) as caught:
        completion(prompt=prompt)
    assert caught.value.param == "prompt"


@pytest.mark.parametrize("name", RULES)
def test_what_would_change_the_answer_is_refused_by_name(name: str) -> None:
    error = refused(**{name: {"something": 1}})
    assert (error.code, error.param) == ("unsupported_parameter", name)
    for harmless in RULES[name].harmless:
        assert chat(**{name: harmless}) == chat()


def test_true_is_not_one() -> None:
    assert refused(n=True).param == "n"
    assert refused(logprobs=1).param == "logprobs"


@pytest.mark.parametrize("name", ["user", "metadata", "store", "service_tier", "parallel_tool_calls", "anything"])
def test_harmless_fields_are_ignored(name: str) -> None:
    assert chat(**{name: {"a": 1}}) == chat()


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"{", "line 1 column 2"),
        (b'{"a": 1,\n\n  b}', "line 3 column 3"),
        (b'{"a": "\n"}', "line 1 column 8"),
        (b'{"a": 1} x', "line 1 column 10"),
        (b"\xff", "line 1 column 1"),
    ],
)
def test_what_is_not_json_is_named_with_its_place(body: bytes, place: str) -> None:
    with pytest.raises(LayaError, match=f"not JSON.*{place}"):
        wire.parse_json(body)


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null", b""])
def test_only_an_object_is_a_body(body: bytes) -> None:
    with pytest.raises(LayaError):
        wire.parse_json(body)


def test_endless_nesting_is_an_error_of_the_caller() -> None:
    with pytest.raises(LayaError):
        wire.parse_json(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_an_error_of_the_caller(body: bytes) -> None:
    assert status_of(lambda: wire.parse_json(body)) in {200, 400}


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_names = st.sampled_from(
    [
        "messages",
        "prompt",
        "model",
        "temperature",
        "stop",
        "seed",
        "n",
        "stream",
        "stream_options",
        "logit_bias",
        "top_k",
    ]
)


@given(st.dictionaries(_names, _values))
def test_any_object_is_a_request_or_an_error_of_the_caller(body: dict[str, Any]) -> None:
    body = wire.parse_json(json.dumps(body).encode())
    for parse, to_engine in (
        (wire.parse_chat, wire.chat_to_engine),
        (wire.parse_completion, wire.completion_to_engine),
    ):
        assert status_of(partial(lambda p, e: e("r", p(body)), parse, to_engine)) in {200, 400}
