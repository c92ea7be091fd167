"""What only llama.cpp does: prefixes copied between slots, every sampler, grammars at their limits. Demo model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from laya_desktop.node.engines.base import (
    AnswerFormat,
    EngineParams,
    Finished,
    Generate,
    Sampling,
    Started,
    TokenLogprob,
)
from laya_desktop.node.engines.llama_schema import FormatError, grammar_of
from laya_desktop.node.engines.llama_slots import Slot, plan
from laya_desktop.node.engines.llama_template import CHATML, ChatTemplate
from laya_desktop.node.engines.worker_main import create_engine
from tests.helpers.engine_harness import DirectHarness, Talk, demo_model

pytestmark = pytest.mark.e2e
GREEDY = Sampling(temperature=0)
STORY = "Once upon a time there was a little"
ASK = [{"role": "user", "content": "Weather in Paris?"}]
SYSTEM = "You are a careful assistant. " + "Answer in one short sentence and name your source. " * 12
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]


@pytest.fixture(scope="module")
def harness() -> Iterator[DirectHarness]:
    params = EngineParams("m", demo_model(), device="cpu", slots=3, max_seq_len=512, threads=2)
    made = DirectHarness(create_engine("llama_cpp"), params)
    yield made
    made.close()


@pytest.fixture
def talk(harness: DirectHarness) -> Iterator[Talk]:
    """Slots that hold nothing at the beginning of each test."""
    talk = Talk(harness)
    empty(talk)
    yield talk
    for request_id in {e.request_id for e in harness.events}:
        harness.cancel(request_id)
    harness.events.clear()


def chat(question: str) -> list[dict[str, object]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


# -- prefixes


def empty(talk: Talk) -> None:
    for slot in talk.harness.engine._slots:  # type: ignore[attr-defined]
        talk.harness.engine._cells.empty(slot)  # type: ignore[attr-defined]


def odds(talk: Talk, question: str) -> tuple[str, list[TokenLogprob], int]:
    """Text, probabilities to the last bit, and cached tokens of an answer."""
    request_id = talk.give(messages=chat(question), max_tokens=16, sampling=GREEDY, logprobs=3)
    talk.wait_over(request_id)
    tokens = [t for d in talk.deltas(request_id) for t in d.logprobs]
    return talk.text(request_id), tokens, talk.of(request_id)[0].cached_tokens  # type: ignore[union-attr]


@pytest.fixture
def in_place(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[TokenLogprob], int]:
    """The answer of a slot that keeps its own prefix, without any copy: what copies must reproduce."""
    with monkeypatch.context() as patch:
        patch.setattr(talk.harness.engine._cells, "gain", None)  # type: ignore[attr-defined]
        talk.say(messages=chat(LONG), max_tokens=8, sampling=GREEDY)
        expected = odds(talk, "Name a river.")
    empty(talk)
    assert expected[2] > 100
    return expected


LONG = "Tell me a story. " * 60


def test_a_prefix_copied_from_a_busy_slot_gives_the_same_numbers(talk: Talk, in_place: object) -> None:
    talk.say(messages=chat(LONG), max_tokens=1, sampling=GREEDY)
    before = odds(talk, LONG)
    empty(talk)
    busy = talk.give(messages=chat(LONG), max_tokens=40, sampling=GREEDY)
    talk.harness.wait(lambda: len(talk.deltas(busy)) >= 3)
    assert odds(talk, "Name a river.") == in_place
    talk.wait_over(busy)
    assert odds(talk, LONG) == before, "the donor is unharmed"


def test_a_prefix_copied_from_a_free_slot_leaves_its_conversation(talk: Talk, in_place: object) -> None:
    first, _ = talk.say(messages=chat(LONG), max_tokens=8, sampling=GREEDY)
    assert odds(talk, "Name a river.") == in_place
    again, kept = talk.say(messages=chat(LONG), max_tokens=8, sampling=GREEDY)
    assert (kept.cached_tokens, again) == (kept.prompt_tokens - 1, first)


def test_several_answers_share_one_prefill(talk: Talk) -> None:
    before = talk.harness.stats()
    request_id = talk.give(messages=chat("Name a river."), max_tokens=12, sampling=GREEDY, n=3)
    talk.wait_over(request_id)
    finished = talk.last(request_id)
    assert isinstance(finished, Finished)
    after = talk.harness.stats()
    assert after.prefill_tokens - before.prefill_tokens == finished.prompt_tokens
    texts = ["".join(d.text for d in talk.deltas(request_id) if d.index == i) for i in range(3)]
    empty(talk)
    assert texts == [talk.say(messages=chat("Name a river."), max_tokens=12, sampling=GREEDY)[0]] * 3


def test_a_copy_of_a_copy(talk: Talk, in_place: object) -> None:
    """Copies are carried out at the next decode, in order: one slot may be source and target before it."""
    first = talk.give(messages=chat(LONG), max_tokens=40, sampling=GREEDY)
    talk.harness.wait(lambda: len(talk.deltas(first)) >= 2)
    second = talk.give(messages=chat("Name a river."), max_tokens=16, sampling=GREEDY, logprobs=3)
    third = talk.give(messages=chat("Name a river."), max_tokens=16, sampling=GREEDY, logprobs=3)
    assert talk.harness.engine.free_slots == 0  # type: ignore[attr-defined]
    talk.wait_over(first, second, third)
    for request_id in (second, third):
        assert (talk.text(request_id), talk.of(request_id)[0].cached_tokens) == (in_place[0], in_place[2])  # type: ignore[index, union-attr]


def slots_of(*held: tuple[list[int], bool]) -> list[Slot]:
    return [Slot(i, list(tokens), busy, freed_at=i) for i, (tokens, busy) in enumerate(held)]


PREFIX = list(range(100))


@pytest.mark.parametrize(
    ("held", "slot", "keep", "donor"),
    [
        ([([], False), ([], False)], 0, 0, None),
        ([([], False), (PREFIX, False)], 1, 100, None),
        ([([], False), (PREFIX, True)], 0, 100, 1),
        ([([9], False), ([], False), (PREFIX, True)], 1, 100, 2),
        ([(PREFIX[:90], False), (PREFIX, True)], 0, 90, None),
        ([(PREFIX[:20], False), (PREFIX, True)], 0, 100, 1),
        ([([], False), (PREFIX + [7] * 400, False)], 0, 100, 1),
        ([([9], False), (PREFIX + [7] * 30, False)], 1, 100, None),
        ([(PREFIX + [7] * 400, False)], 0, 100, None),
    ],
)
def test_the_plan(held: list[tuple[list[int], bool]], slot: int, keep: int, donor: int | None) -> None:
    slots = slots_of(*held)
    made = plan(slots, [*PREFIX, 1, 2, 3], gain=32)
    assert (made.slot.slot_id, made.keep, made.donor and made.donor.slot_id) == (slot, keep, donor)
    assert plan(slots, [*PREFIX, 1], gain=None).donor is None
    assert plan(slots, [*PREFIX, 1], gain=32, fresh=True).keep == 0


# -- samplers

SETTINGS: list[dict[str, Any]] = [
    {"typical_p": 0.3},
    {"top_n_sigma": 0.5},
    {"mirostat": 1, "mirostat_tau": 3.0},
    {"mirostat": 2, "mirostat_tau": 3.0},
    {"xtc_probability": 1.0, "xtc_threshold": 0.01},
    {"dynatemp_range": 1.0, "temperature": 1.0},
    {"repeat_penalty": 1.5, "repeat_last_n": -1},
    {"repeat_penalty": 1.5, "repeat_last_n": 5},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "+".join(s))
def test_every_sampler_changes_the_answer_and_repeats(talk: Talk, settings: dict[str, Any]) -> None:
    base = Sampling(temperature=1.5, seed=11, top_k=0, top_p=1.0, min_p=0.0)
    sampling = msgspec.structs.replace(base, **settings)
    plain, _ = talk.say(prompt="la la la la la la", max_tokens=24, sampling=base)
    first, _ = talk.say(prompt="la la la la la la", max_tokens=24, sampling=sampling)
    second, _ = talk.say(prompt="la la la la la la", max_tokens=24, sampling=sampling)
    assert first == second != plain


def test_dry_breaks_repetitions(talk: Talk) -> None:
    verse = " red green blue yellow,"
    plain, _ = talk.say(prompt=verse * 8, max_tokens=12, ignore_eos=True, sampling=GREEDY)
    assert "green blue yellow" in plain
    dry = Sampling(temperature=0, dry_multiplier=8.0, dry_allowed_length=2, dry_sequence_breakers=())
    assert "green blue yellow" not in talk.say(prompt=verse * 8, max_tokens=12, ignore_eos=True, sampling=dry)[0]


def test_no_penalty_looks_at_nothing(talk: Talk) -> None:
    sampling = Sampling(temperature=0, repeat_penalty=5.0, repeat_last_n=0)
    assert (
        talk.say(prompt=STORY, max_tokens=8, sampling=sampling)[0]
        == talk.say(prompt=STORY, max_tokens=8, sampling=GREEDY)[0]
    )


@pytest.mark.parametrize(
    ("sampling", "param"),
    [
        (Sampling(mirostat_tau=float("nan")), "mirostat_tau"),
        (Sampling(dynatemp_range=-1), "dynatemp_range"),
        (Sampling(dry_multiplier=-1), "dry_multiplier"),
        (Sampling(dry_sequence_breakers=("x" * 41,)), "dry_sequence_breakers"),
        (Sampling(dry_sequence_breakers=("a\0b",)), "dry_sequence_breakers"),
        (Sampling(repeat_last_n=2**31), "repeat_last_n"),
    ],
)
def test_impossible_settings_are_refused(talk: Talk, sampling: Sampling, param: str) -> None:
    assert talk.refusal(prompt=STORY, sampling=sampling).param == param


def test_stop_tokens(talk: Talk) -> None:
    comma = 28
    text, finished = talk.say(prompt=STORY, max_tokens=40, sampling=GREEDY)
    assert "," in text
    cut, stopped = talk.say(prompt=STORY, max_tokens=40, sampling=GREEDY, stop_tokens=(comma,))
    assert (cut, stopped.finish_reason) == (text[: text.index(",")], "stop")
    later, _ = talk.say(prompt=STORY, max_tokens=40, sampling=GREEDY, stop_tokens=(comma,), min_tokens=20)
    assert len(later) > len(cut)
    assert "," not in later[: len(cut) + 2]
    assert talk.refusal(prompt=STORY, stop_tokens=(10**6,)).param == "stop_token_ids"
    assert talk.refusal(prompt=STORY, logprobs=21).param == "top_logprobs"
    assert finished.completion_tokens == 40


# -- grammars


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        ("root ::= foo", "Undefined rule identifier 'foo'"),
        ("rot ::= [a-z]", "root"),
        ('root ::= root "a"', "left recursion"),
        ("root ::= [a", "unexpected end"),
        ('root ::= "a"{0,5000}', "2,000"),
        ('root ::= "a"{9,2}', "at least 9 and at most 2"),
        ('root ::= ("a"{0,2000} "b"{0,2000}){0,9} | ' + " | ".join(['"c"{2000}'] * 12), "20,000"),
        ("root ::= " + "(" * 500 + '"a"' + ")" * 500, "nested"),
        ("root ::= " + '"a" ' * 100_000, "KiB"),
        ('root ::= "\0"', "NUL"),
    ],
)
def test_a_bad_grammar_is_refused_with_the_reason(talk: Talk, grammar: str, reason: str, capfd: Any) -> None:
    refused = talk.refusal(prompt=STORY, answer_format=AnswerFormat("grammar", grammar))
    assert (refused.status, refused.param) == (400, "grammar")
    assert reason in refused.message
    assert "grammar" not in capfd.readouterr().err, "what callers send stays out of the log"


def test_braces_in_texts_are_no_repetitions(talk: Talk) -> None:
    text, _ = talk.say(prompt=STORY, max_tokens=20, answer_format=AnswerFormat("grammar", 'root ::= "{90000}" [{}(]'))
    assert text[:7] == "{90000}"


def test_a_grammar_rules_whatever_the_settings(talk: Talk) -> None:
    wanted = AnswerFormat("grammar", 'root ::= ("yes" | "no") "!"')
    for settings in ({"mirostat": 2}, {"typical_p": 0.1}, {"top_k": 1}, {"xtc_probability": 1.0}, {"min_p": 1.0}):
        for seed in range(3):
            sampling = Sampling(temperature=2.0, seed=seed, **settings)  # type: ignore[arg-type]
            text, finished = talk.say(prompt="7 +", max_tokens=9, sampling=sampling, answer_format=wanted)
            assert text in ("yes!", "no!")
            assert finished.finish_reason == "stop"


def test_no_control_token_slips_into_a_text(talk: Talk) -> None:
    """llama.cpp spells them like text to the grammar; the bias would draw one."""
    wanted = AnswerFormat("grammar", "root ::= [^\\n]{3,9}")
    sampling = Sampling(temperature=0, logit_bias={1: 100.0})  # <|im_start|>
    text, finished = talk.say(prompt=STORY, max_tokens=12, sampling=sampling, answer_format=wanted)
    assert 3 <= len(text) <= 9
    assert finished.finish_reason == "stop"


def test_a_dead_end_ends_the_request_and_nobody_else(talk: Talk) -> None:
    other = talk.give(prompt=STORY, max_tokens=20, sampling=GREEDY)
    wanted = AnswerFormat("grammar", 'root ::= "a"')
    refused = talk.refusal(prompt=STORY, sampling=GREEDY, answer_format=wanted, min_tokens=5, n=2)
    assert refused.code == "invalid_format"
    talk.wait_over(other)
    assert isinstance(talk.last(other), Finished)
    assert talk.harness.engine.free_slots == 3  # type: ignore[attr-defined]


def test_answers_are_json_however_wild_the_sampling(talk: Talk) -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 8},
            "numbers": {"type": "array", "items": {"type": "number"}, "maxItems": 2},
            "next": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"type": "null"}]},
        },
        "required": ["text", "numbers", "next"],
        "$defs": {"leaf": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}},
    }
    wanted = AnswerFormat("json_schema", json.dumps(schema))
    for seed in range(4):
        sampling = Sampling(temperature=3.0, seed=seed, top_k=0, top_p=1.0, min_p=0.0)
        text, finished = talk.say(prompt="{", max_tokens=200, sampling=sampling, answer_format=wanted)
        assert finished.finish_reason == "stop", text
        value = json.loads(text)
        assert set(value) == {"text", "numbers", "next"}
        assert len(value["numbers"]) <= 2
        assert value["next"] is None or isinstance(value["next"]["on"], bool)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strong"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/nowhere"},
        {"type": "string", "maxLength": 10**9},
        {"type": "array", "items": {}, "maxItems": 10**6},
        {"properties": {"a": 5}},
        {"allOf": [1]},
        {"type": "string", "pattern": "no anchors"},
        {"type": "string", "minLength": 9, "maxLength": 2},
        {"type": "array", "items": {}, "minItems": 3, "maxItems": 1},
        {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 1}}},
        {"type": "object", "properties": 5},
        {"enum": []},
    ],
)
def test_schemas_that_cannot_be_enforced(schema: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as caught:
        grammar_of(Generate("r", answer_format=AnswerFormat("json_schema", json.dumps(schema))), "hermes")
    assert caught.value.param == "response_format"


def test_a_schema_bomb_is_given_up_in_time() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(24):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    request = Generate("r", answer_format=AnswerFormat("json_schema", '{"$ref":"#/d","d":' + _doubling(40) + "}"))
    began_s = time.monotonic()
    with pytest.raises(FormatError):
        grammar_of(request, "hermes")
    assert time.monotonic() - began_s < 10


def _doubling(depth: int) -> str:
    """Each level names the one below twice without a reference's name to remember it by."""
    text = '{"type":"string"}'
    for _ in range(min(depth, 14)):
        text = f'{{"type":"object","properties":{{"a":{text},"b":{text}}}}}'
    return text


# -- tools


def test_several_required_calls_where_they_may_be(talk: Talk) -> None:
    fields: dict[str, Any] = {"messages": ASK, "tools": TOOLS, "tool_choice": "required", "sampling": GREEDY}
    request_id = talk.give(max_tokens=120, parallel_tool_calls=True, **fields)
    talk.wait_over(request_id)
    names = [c.name for d in talk.deltas(request_id) for c in d.tool_calls if c.name]
    assert names
    assert set(names) == {"get_weather"}
    single = talk.give(max_tokens=120, **fields)
    talk.wait_over(single)
    assert [c.name for d in talk.deltas(single) for c in d.tool_calls if c.name] == ["get_weather"]


@pytest.mark.parametrize("style", ["hermes", "mistral", "mistral_args", "llama3"])
def test_a_required_call_in_every_dialect(talk: Talk, monkeypatch: pytest.MonkeyPatch, style: str) -> None:
    prompts = talk.harness.engine._prompts  # type: ignore[attr-defined]
    template = ChatTemplate(CHATML, "", "")
    template.dialect = replace(template.dialect, calls=style)  # type: ignore[arg-type]
    monkeypatch.setattr(prompts, "_tools", template)
    request_id = talk.give(messages=ASK, tools=TOOLS, tool_choice="required", max_tokens=80, sampling=GREEDY)
    talk.wait_over(request_id)
    parts = [c for d in talk.deltas(request_id) for c in d.tool_calls]
    assert [c.name for c in parts if c.name] == ["get_weather"]
    assert set(json.loads("".join(c.arguments for c in parts))) == {"city"}
    assert talk.text(request_id) == ""
    assert talk.last(request_id).finish_reason == "tool_calls"  # type: ignore[union-attr]


def test_a_schema_beside_tools_allows_either(talk: Talk) -> None:
    wanted = AnswerFormat("json_schema", json.dumps(CITY))
    request_id = talk.give(messages=ASK, tools=TOOLS, answer_format=wanted, max_tokens=80, sampling=GREEDY)
    talk.wait_over(request_id)
    calls = "".join(c.arguments for d in talk.deltas(request_id) for c in d.tool_calls)
    assert set(json.loads(calls or talk.text(request_id))) == {"city"}
    clash = talk.refusal(messages=ASK, tools=TOOLS, answer_format=AnswerFormat("grammar", "root ::= [a]"))
    assert clash.param == "grammar"


def test_the_same_name_in_two_tools_schemas_is_not_mixed_up() -> None:
    def tool(name: str, kind: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": kind}}}
        return {"type": "function", "function": {"name": name, "parameters": schema}}

    tools = [tool("a", "boolean"), tool("b", "null")]
    before = json.dumps(tools)
    grammar = grammar_of(Generate("r", tools=tools, tool_choice="required"), "hermes")
    assert grammar is not None
    assert 'tool-0-x-kv ::= "\\"x\\"" space ":" space boolean' in grammar or "boolean ::=" in grammar
    assert "null ::=" in grammar
    assert json.dumps(tools) == before, "the caller's schemas stay as they are"


# -- thinking


def test_thinking_comes_apart_and_no_grammar_is_in_force_in_it(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = talk.harness.engine._prompts  # type: ignore[attr-defined]
    source = CHATML.replace("<|im_start|>assistant\n{%", "<|im_start|>assistant\n{% if on %}<think>\n{% endif %}{%")
    assert source != CHATML
    monkeypatch.setattr(prompts, "_chat", ChatTemplate(source + "{# </think> #}", "", ""))
    wanted = AnswerFormat("json_schema", '{"type": "object"}')
    fields: dict[str, Any] = {"messages": ASK, "max_tokens": 12, "sampling": GREEDY, "answer_format": wanted}
    request_id = talk.give(template_values={"on": True}, **fields)
    talk.wait_over(request_id)
    thought = "".join(d.reasoning for d in talk.deltas(request_id))
    assert thought
    assert not thought.startswith("{")
    assert talk.text(request_id) == ""
    assert talk.last(request_id).reasoning_tokens == 12  # type: ignore[union-attr]
    plain = talk.give(**fields)
    talk.wait_over(plain)
    assert talk.text(plain).startswith("{")


def test_started_names_all_slots(talk: Talk) -> None:
    request_id = talk.give(prompt=STORY, max_tokens=1, n=3)
    started = talk.of(request_id)[0]
    assert isinstance(started, Started)
    assert {started.slot_id, *started.more_slots} == {0, 1, 2}
    talk.wait_over(request_id)
