"""Text, thinking and calls are told apart, however the text is cut into pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laya_desktop.node.engines.dialect import CallStyle, Dialect, describe_tools
from laya_desktop.node.engines.llama_template import ChatTemplate
from laya_desktop.node.engines.reply import Parts, Reply

THINK = ("<think>", "</think>")
WEATHER = {"city": 'Zürich "Ost"', "days": [1, {"a": "}"}], "note": "</tool_call> \\ 🙂"}
ARGS = json.dumps(WEATHER, ensure_ascii=False)


def read(
    text: str,
    style: CallStyle = "hermes",
    *,
    size: int = 1,
    think: bool = False,
    thinking: bool = False,
    tools: tuple[str, ...] | None = ("weather", "time"),
) -> tuple[str, str, list[tuple[str | None, str]]]:
    """Text, thinking and calls of an answer that comes in pieces of ``size`` letters."""
    reply = Reply(Dialect(style, THINK if think else None), tools, thinking=thinking)
    out = Parts()
    calls: list[list[Any]] = []
    for parts in [*(reply.push(text[i : i + size]) for i in range(0, len(text), size)), reply.flush()]:
        out.text += parts.text
        out.reasoning += parts.reasoning
        for part in parts.calls:
            if part.name is not None:
                assert part.index == len(calls)
                assert part.call_id is not None
                assert len(part.call_id) == 9
                calls.append([part.name, ""])
            calls[part.index][1] += part.arguments
    assert reply.called == bool(calls)
    return out.text, out.reasoning, [(name, arguments) for name, arguments in calls]


def call(name: str = "weather", arguments: str = ARGS, key: str = "arguments") -> str:
    return f'{{"name": "{name}", "{key}": {arguments}}}'


CASES: list[tuple[CallStyle, str]] = [
    ("hermes", f"<tool_call>\n{call()}\n</tool_call>"),
    ("hermes", f'<tool_call>{{"arguments": {ARGS}, "name": "weather"}}</tool_call>'),
    ("hermes", f'<tool_call>{{"type": "function", "function": {call()}}}</tool_call>'),
    ("hermes", f'<tool_call>{{"name": "weather", "arguments": {json.dumps(ARGS)}}}</tool_call>'),
    ("hermes", f"<tool_call>\n{call()}"),
    ("mistral", f"[TOOL_CALLS][{call()}]"),
    ("mistral", f"[TOOL_CALLS] [{call()}]"),
    ("mistral_args", f"[TOOL_CALLS]weather[ARGS]{ARGS}"),
    ("mistral_args", f"[TOOL_CALLS]weather{ARGS}"),
    ("mistral_args", f"[TOOL_CALLS][{call()}]"),
    ("llama3", call(key="parameters")),
    ("llama3", f"<|python_tag|>{call(key='parameters')}"),
    ("llama3", "\n\n" + call(key="parameters")),
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(("style", "text"), CASES)
def test_a_call_is_read_in_every_form(style: CallStyle, text: str, size: int) -> None:
    said, reasoning, calls = read(text, style, size=size)
    assert (said, reasoning) == ("", "")
    assert [name for name, _ in calls] == ["weather"]
    assert json.loads(calls[0][1]) == WEATHER


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("hermes", f"<tool_call>\n{call()}\n</tool_call>\n<tool_call>\n{call('time', '{}')}\n</tool_call>"),
        ("mistral", f"[TOOL_CALLS][{call()}, {call('time', '{}')}]"),
        ("mistral_args", f"[TOOL_CALLS]weather[ARGS]{ARGS}[TOOL_CALLS]time[ARGS]{{}}"),
        ("llama3", f"{call(key='parameters')}; {call('time', '{}', 'parameters')}"),
    ],
)
def test_several_calls(style: CallStyle, text: str, size: int) -> None:
    said, _, calls = read(text, style, size=size)
    assert said == ""
    assert [(name, json.loads(arguments)) for name, arguments in calls] == [("weather", WEATHER), ("time", {})]


def test_text_before_and_after_a_call_stays_text() -> None:
    text = f"Let me look.\n\n<tool_call>\n{call()}\n</tool_call>\nDone."
    said, _, calls = read(text)
    assert said == "Let me look.Done."
    assert len(calls) == 1


@pytest.mark.parametrize("arguments", ["null", '""', "{}"])
def test_a_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    assert read(f"<tool_call>{call('time', arguments)}</tool_call>")[2] == [("time", "{}")]
    assert read('<tool_call>{"name": "time"}</tool_call>')[2] == [("time", "{}")]


def test_arguments_are_passed_on_while_they_are_written() -> None:
    reply = Reply(Dialect(), ("weather",))
    first = reply.push('<tool_call>{"name": "weather", "arguments": {"city": "Be')
    assert [c.name for c in first.calls] == ["weather", None]
    assert first.calls[1].arguments == '{"city": "Be'
    assert reply.push('rn"').calls[0].arguments == 'rn"'
    assert reply.calls_done == 0
    reply.push("}}")
    assert reply.calls_done == 1


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("hermes", "<tool_call>nonsense</tool_call>"),
        ("hermes", '<tool_call>{"nothing": 1}'),
        ("hermes", "a <tool_ca b"),
        ("hermes", "<tool_call>"),
        ("mistral", "see [TOOL_CALLS] for more"),
        ("mistral_args", "[TOOL_CALLS]never ending"),
        ("llama3", '{"name": "a stranger", "parameters": {}}'),
        ("llama3", '{"a": [1, 2]}'),
        ("llama3", "{ not json"),
        ("llama3", 'I say {"name": "weather", "parameters": {}}'),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_is_no_call_is_text(style: CallStyle, text: str, size: int) -> None:
    assert read(text, style, size=size) == (text, "", [])


def test_without_tools_nothing_is_a_call() -> None:
    text = f"<tool_call>{call()}</tool_call>"
    assert read(text, tools=None) == (text, "", [])


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_thinking_is_apart(size: int) -> None:
    text = f"<think>\nHm, a < b.\n\n</think>\n\nYes.\n<tool_call>{call()}</tool_call>"
    said, reasoning, calls = read(text, size=size, think=True)
    assert (said, reasoning, len(calls)) == ("Yes.", "Hm, a < b.", 1)
    opened = text.removeprefix("<think>")
    assert read(opened, size=size, think=True, thinking=True)[:2] == ("Yes.", "Hm, a < b.")


def test_thinking_that_never_ends_is_thinking() -> None:
    assert read("<think>on and on ", think=True) == ("", "on and on ", [])
    assert read("no marks here", think=True) == ("no marks here", "", [])
    assert read("a<think>b</think>", think=True)[0] == "a<think>b</think>", "only the beginning is thinking"
    assert read("<think>x</think>", think=False, tools=None)[0] == "<think>x</think>"


@given(st.text(alphabet='<tool_cal/>[TOOL]{}":, \nab', max_size=60), st.sampled_from(("hermes", "mistral", "llama3")))
@example(" {", "llama3")
@example("\n {} a", "llama3")
def test_no_letter_of_what_is_no_call_is_lost(text: str, style: CallStyle) -> None:
    said, _, calls = read(text, style)
    assert calls or said == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_arguments_survive(value: Any) -> None:
    arguments = {"value": value}
    for ascii_only in (True, False):
        text = f"<tool_call>{call('time', json.dumps(arguments, ensure_ascii=ascii_only))}</tool_call>"
        assert json.loads(read(text)[2][0][1]) == arguments


TEMPLATES: list[tuple[str, Dialect]] = [
    ("{% if tools %}<tool_call>{% endif %}<think></think>", Dialect("hermes", THINK, knows_tools=True)),
    ("{% if tools %}[TOOL_CALLS]{% endif %}", Dialect("mistral", None, knows_tools=True)),
    ("{% if tools %}[TOOL_CALLS]x[ARGS]{% endif %}", Dialect("mistral_args", None, knows_tools=True)),
    ("<|start_header_id|>{% if tools is not none %}{{ tools | tojson }}{% endif %}", Dialect("llama3", None, True)),
    ("{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}", Dialect()),
    ("{% set tools = 1 %}{{ tools }}", Dialect()),
]


@pytest.mark.parametrize(("source", "expected"), TEMPLATES)
def test_a_dialect_is_read_off_the_template(source: str, expected: Dialect) -> None:
    assert ChatTemplate(source, "", "").dialect == expected


def test_tools_are_described_where_the_template_knows_none() -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    history = [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": "dry"},
    ]  # fmt: skip
    told = describe_tools(history, tools)
    assert [m["role"] for m in told] == ["system", "user", "assistant", "user"]
    assert '{"name": "weather", "parameters": {"type": "object"}}' in told[0]["content"]
    assert read(told[2]["content"]) == ("", "", [("weather", '{"city": "Bern"}')])
    assert told[3]["content"] == "<tool_response>\ndry\n</tool_response>"
    merged = describe_tools([{"role": "system", "content": "Be brief."}], tools)
    assert len(merged) == 1
    assert merged[0]["content"].startswith("Be brief.\n\n")
    assert describe_tools([{"role": "user", "content": "x"}], []) == [{"role": "user", "content": "x"}]
