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
from laya_desktop.node.engines.base import AnswerFormat, Generate, Sampling
from laya_desktop.node.server import wire
from laya_desktop.node.server.unsupported import RULES

HI = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


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


def test_the_samplers_of_llama_cpp_reach_the_engine() -> None:
    given: dict[str, Any] = {
        "typical_p": 0.5, "top_n_sigma": 1.5, "repeat_last_n": -1, "dynatemp_range": 0.2, "dynatemp_exponent": 2.0,
        "mirostat": 2, "mirostat_tau": 4.0, "mirostat_eta": 0.2, "dry_multiplier": 0.8, "dry_base": 2.0,
        "dry_allowed_length": 3, "dry_penalty_last_n": 99, "dry_sequence_breakers": ["."], "xtc_probability": 0.3,
        "xtc_threshold": 0.2,
    }  # fmt: skip
    expected = Sampling(**(given | {"dry_sequence_breakers": (".",)}))
    assert chat(**given).sampling == expected
    assert completion(**given).sampling == expected


def test_lengths_and_stop_tokens_reach_the_engine() -> None:
    got = completion(min_tokens=3, ignore_eos=True, stop_token_ids=[1, 2], n=2, logprobs=4)
    assert (got.min_tokens, got.ignore_eos, got.stop_tokens, got.n, got.logprobs) == (3, True, (1, 2), 2, 4)
    assert chat(logprobs=True).logprobs == 0
    assert chat(logprobs=True, top_logprobs=5).logprobs == 5
    assert chat(logprobs=False).logprobs is None


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"response_format": {"type": "json_object"}}, "json_schema", '{"type":"object"}'),
        ({"response_format": {"type": "json_object", "schema": {"a": 1}}}, "json_schema", '{"a":1}'),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}}},
            "json_schema",
            '{"a":1}',
        ),
        ({"response_format": {"type": "grammar", "grammar": "g"}}, "grammar", "g"),
        ({"grammar": "g"}, "grammar", "g"),
        ({"json_schema": {"a": 1}}, "json_schema", '{"a":1}'),
        ({"guided_json": '{"a": 1}'}, "json_schema", '{"a":1}'),
        ({"guided_choice": ["a", 'b"']}, "grammar", 'root ::= "a" | "b\\""'),
        ({"guided_grammar": "g"}, "grammar", "g"),
        ({"structured_outputs": {"choice": ["a"]}}, "grammar", 'root ::= "a"'),
        ({"structured_outputs": {"json": {"a": 1}, "regex": None}}, "json_schema", '{"a":1}'),
    ],
)
def test_every_spelling_of_a_format(fields: dict[str, Any], kind: Any, text: str) -> None:
    assert chat(**fields).answer_format == AnswerFormat(kind, text)
    assert completion(**fields).answer_format == AnswerFormat(kind, text)


def test_text_is_no_format() -> None:
    assert chat(response_format={"type": "text"}, grammar="", structured_outputs={}).answer_format is None


def test_tools_reach_the_engine() -> None:
    assert chat(tools=TOOLS).tools == TOOLS
    assert chat(tools=TOOLS, tool_choice="none") == chat()
    forced = chat(tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert (forced.tool_choice, forced.tool_name, forced.parallel_tool_calls) == ("required", None, False)
    named = chat(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "weather"}})
    assert (named.tool_choice, named.tool_name) == ("required", "weather")


def test_calls_and_results_in_the_history() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    history = [
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "dry"}]},
    ]
    assert chat(messages=history).messages == [
        *HI,
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "a", "content": "dry"},
    ]


def test_what_the_template_is_told() -> None:
    assert chat(reasoning_effort="high").template_values == {"reasoning_effort": "high"}
    assert chat(reasoning_effort="none").template_values == {"reasoning_effort": "none", "enable_thinking": False}
    told = chat(reasoning_effort="none", chat_template_kwargs={"enable_thinking": True, "x": 1}).template_values
    assert told == {"reasoning_effort": "none", "enable_thinking": True, "x": 1}


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
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool"}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function"),
        (
            {"messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]},
            "messages[0].tool_calls",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"type": "x", "function": {"name": "f"}}]}]},
            "messages[0].tool_calls[0].type",
        ),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"logprobs": 1}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"mirostat": 3}, "mirostat"),
        ({"xtc_probability": 1.5}, "xtc_probability"),
        ({"dry_multiplier": -1}, "dry_multiplier"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"response_format": {"type": "json_object"}, "grammar": "root ::= [a]"}, "grammar"),
        ({"guided_json": "{"}, "guided_json"),
        ({"structured_outputs": {"regex": "a"}}, "structured_outputs.regex"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}]}, "tools[0].function.parameters"),
        ({"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "wether"}}}, "tool_choice"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
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
    assert refused(best_of=True).param == "best_of"


@pytest.mark.parametrize("name", ["user", "metadata", "store", "service_tier", "anything"])
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
        "tools",
        "tool_choice",
        "response_format",
        "guided_choice",
        "structured_outputs",
        "chat_template_kwargs",
        "logprobs",
        "mirostat",
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
