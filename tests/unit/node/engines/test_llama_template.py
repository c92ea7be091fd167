"""Chat templates are foreign code: rendered in a sandbox, bounded, and never a way past the deadline."""

from __future__ import annotations

import sys
import time

import pytest

from laya_desktop.node.engines.llama_template import CHATML, ChatTemplate, TemplateError

USER = [{"role": "user", "content": "Hi"}]


def render(source: str, messages: list[dict[str, object]] = USER, **fields: object) -> str:
    return "".join(ChatTemplate(source, "<s>", "</s>").render(messages, **fields))  # type: ignore[arg-type]


def test_chatml() -> None:
    assert render(CHATML) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def test_blocks_are_trimmed() -> None:
    assert (
        render("{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}") == "Hi\n"
    )


def test_helpers_of_hugging_face() -> None:
    assert render("{{ bos_token }}{{ strftime_now('%Y') }}") == f"<s>{time.strftime('%Y')}"
    assert render("{{ tools | tojson }}", tools=[{"a": "<é>"}]) == '[{"a": "<é>"}]'
    assert (
        render("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}{% endfor %}")
        == "Hi"
    )


def test_a_template_may_refuse() -> None:
    with pytest.raises(TemplateError, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ raise_exception.__globals__ }}",
        "{{ range(10000000) }}",
    ],
)
def test_the_sandbox_holds(source: str) -> None:
    try:
        out = render(source)
    except TemplateError:
        return
    assert out == ""  # Jinja answers some forbidden names with "undefined"


def test_an_endless_template_ends_at_the_deadline() -> None:
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    before, began_s = sys.gettrace(), time.monotonic()
    with pytest.raises(TemplateError, match=r"longer than 0\.2 s"):
        render(loops, limit_s=0.2)
    assert time.monotonic() - began_s < 5
    assert sys.gettrace() is before


def test_an_endless_recursion_is_refused() -> None:
    with pytest.raises(TemplateError):
        render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laya_desktop.node.engines.llama_template.OUTPUT_LIMIT_CHARS", 1000)
    with pytest.raises(TemplateError, match="1,000 characters"):
        render("{% for i in range(99999) %}{{ i }}{% endfor %}")


def test_a_broken_template_says_so() -> None:
    with pytest.raises(TemplateError, match="does not compile"):
        ChatTemplate("{% for %}", "", "")


def test_control_tokens_in_user_text_are_cut() -> None:
    template = ChatTemplate(CHATML, "", "", ["<|im_start|>", "<|im_end|>"])
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "a<|im_end|>b"},
        {"role": "assistant", "content": "c<|im_end|>"},
    ]
    pieces = template.render(messages)
    assert "".join(pieces) == "".join(ChatTemplate(CHATML, "", "").render(messages))
    assert pieces[0].endswith("a<|im_end|")
    assert pieces[1].startswith(">b")
    assert "c<|im_end|>" in pieces[1]


def test_every_spelling_is_cut_however_they_overlap() -> None:
    spellings = ["<a>", "<a><b>", "><"]
    template = ChatTemplate("{{ messages[0].content }}", "", "", spellings)
    pieces = template.render([{"role": "user", "content": "x<a><b><a>"}])
    assert "".join(pieces) == "x<a><b><a>"
    assert not any(s in p for s in spellings for p in pieces)


def test_thousands_of_spellings_are_cheap() -> None:
    template = ChatTemplate("{{ messages[0].content }}", "", "", [f"<unused{i}>" for i in range(6000)])
    content = "<p>text</p><unused17>" * 5000
    began_s = time.monotonic()
    assert len(template.render([{"role": "user", "content": content}])) == 5001
    assert time.monotonic() - began_s < 2


def test_a_mark_in_the_text_is_no_mark() -> None:
    template = ChatTemplate(CHATML, "", "", ["<|im_end|>"])
    assert "\ue000" in "".join(template.render([{"role": "user", "content": "\ue000<|im_end|>"}]))


def test_content_forms() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert render("{{ messages[0].content }}", [{"role": "user", "content": parts}]) == "ab"
    assert render("{{ messages[0].content }}", [{"role": "assistant", "content": None}]) == ""
    with pytest.raises(TemplateError, match=r"messages\[0\].*image_url"):
        render("x", [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])


def test_call_arguments_become_objects() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages: list[dict[str, object]] = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert render("{{ messages[0].tool_calls[0].function.arguments.a }}", messages) == "1"
    assert call["function"]["arguments"] == '{"a": 1}'  # type: ignore[index]
