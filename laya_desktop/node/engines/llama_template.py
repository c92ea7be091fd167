"""The model's own chat template: messages to one prompt text. Runs in the worker only; knows no llama_cpp.

A template comes with the model file and is code (CVE-2024-34359): it is rendered in Jinja's immutable sandbox, whose
``range`` is bounded, and under a deadline, which cannot interrupt one long call inside C; the worker is a process of
its own for that. The length of the output is bounded too.

Control tokens in what users write: the text around them is tokenised with control tokens recognised, because the
template needs that, so ``<|im_end|>`` typed by a user would end the user's turn. Each such spelling in the content of
any role but ``assistant`` is therefore broken by a mark before its last character, and the text is cut there before
it is tokenised: the letters arrive, the control token does not. Assistant content is left alone: templates search it
(``</think>``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from laya_desktop.node.engines.deadline import DeadlineError, within
from laya_desktop.node.engines.dialect import Dialect, describe_tools, dialect_of

RENDER_LIMIT_S = 1.0
OUTPUT_LIMIT_CHARS = 32 * 1024**2
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Used where the model has no template of its own: the form that most models without one were tuned on."""
_MARKS = range(0xE000, 0xF900)  # private use: means nothing to anybody


@dataclass(frozen=True)
class Prompt:
    """What a request begins with, and how its answer will be written."""

    tokens: list[int]
    dialect: Dialect = field(default_factory=Dialect)
    thinking: bool = False
    """The prompt ends inside the model's thinking."""


class TemplateError(Exception):
    """The messages cannot be rendered; the text is fit to show."""


class _Generation(Extension):
    """``{% generation %}`` marks what the model said, for training; here it is transparent."""

    tags = {"generation"}  # noqa: RUF012  Jinja's own interface

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _ControlTexts:
    """Spellings of control tokens, thousands in some models: looked up, because one pattern of them all is slow."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known = frozenset(t for t in texts if len(t) > 1)
        lengths: dict[str, set[int]] = {}
        for text in self._known:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = lengths
        firsts = "".join(map(re.escape, self._lengths))
        self._first = re.compile(f"[{firsts}]") if firsts else None

    def cut(self, text: str, mark: str) -> str:
        """The text with a mark before the last character of every spelling in it."""
        if self._first is None:
            return text
        starts = ((m.start(), n) for m in self._first.finditer(text) for n in self._lengths[m[0]])
        cuts = sorted({at + n - 1 for at, n in starts if text[at : at + n] in self._known})
        return mark.join(text[a:b] for a, b in pairwise([0, *cuts, len(text)]))


class ChatTemplate:
    """A compiled template.

    Attributes:
        source: the template's text.
        dialect: how the model that it belongs to writes calls and thinking.
    """

    def __init__(self, source: str, bos: str, eos: str, control_texts: Iterable[str] = ()) -> None:
        """Compile. Raises TemplateError where the text is no template."""
        self.source = source
        self._tokens = {"bos_token": bos, "eos_token": eos}
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _raise, "strftime_now": _strftime_now}
        try:
            self._template = environment.from_string(source)
            self.dialect = dialect_of(source, meta.find_undeclared_variables(environment.parse(source)))
        except jinja2.TemplateError as error:
            raise TemplateError(f"The model's chat template does not compile: {error}.") from error
        self._control = _ControlTexts(control_texts)

    def render(
        self,
        messages: list[dict[str, object]],
        tools: list[dict[str, object]] | None = None,
        limit_s: float = RENDER_LIMIT_S,
        more: Mapping[str, object] | None = None,
    ) -> list[str]:
        """The prompt, in pieces that are tokenised one by one.

        Args:
            messages: in OpenAI's form.
            tools: in OpenAI's form, or None; a template that knows no tools gets them described in the messages.
            limit_s: seconds after which rendering is given up.
            more: variables that the template may know (``enable_thinking`` …).

        Raises:
            TemplateError: bad messages, or a template that fails, refuses or takes too long.
        """
        mark = _unused_mark([messages, tools])
        prepared = [self._prepare(i, m, mark) for i, m in enumerate(messages)]
        shown = self._cut_all(tools, mark) if tools else None
        if not self.dialect.knows_tools and (tools or "tool_calls" not in self.source):
            prepared, shown = describe_tools(prepared, shown or []), None
        values = {**(more or {}), **self._tokens, "messages": prepared, "tools": shown, "add_generation_prompt": True}
        try:
            text = within(limit_s, lambda: self._collect(values))
        except TemplateError:
            raise
        except DeadlineError:
            raise TemplateError(f"The model's chat template took longer than {limit_s:g} s.") from None
        except (MemoryError, RecursionError) as error:
            raise TemplateError("The model's chat template grew without bounds.") from error
        except Exception as error:  # a template may fail in any way
            raise TemplateError(f"The model's chat template refused these messages: {error}.") from error
        return [piece for piece in text.split(mark) if piece]

    def _collect(self, values: Mapping[str, object]) -> str:
        out, size = [], 0
        for piece in self._template.generate(values):
            out.append(piece)
            size += len(piece)
            if size > OUTPUT_LIMIT_CHARS:
                raise TemplateError(f"The rendered prompt is longer than {OUTPUT_LIMIT_CHARS:,} characters.")
        return "".join(out)

    def opens_thinking(self, pieces: list[str]) -> bool:
        """True where the prompt ends inside the model's thinking."""
        thinking = self.dialect.thinking
        return thinking is not None and bool(pieces) and pieces[-1].rstrip().endswith(thinking[0])

    def _cut_all(self, value: Any, mark: str) -> Any:
        """Control spellings broken in every text of a JSON value."""
        if isinstance(value, str):
            return self._control.cut(value, mark)
        if isinstance(value, list):
            return [self._cut_all(v, mark) for v in value]
        return {k: self._cut_all(v, mark) for k, v in value.items()} if isinstance(value, dict) else value

    def _prepare(self, index: int, message: Mapping[str, object], mark: str) -> dict[str, object]:
        """A copy that templates can read: plain text content, arguments as objects, control spellings broken."""
        out = dict(message)
        content = plain_content(index, message.get("content"))
        if message.get("role") != "assistant":
            content = self._control.cut(content, mark)
        out["content"] = content
        if isinstance(calls := message.get("tool_calls"), list):
            out["tool_calls"] = [_with_object_arguments(c) for c in calls]
        return out


def plain_content(index: int, content: object) -> str:
    """Text of a message's content: a string, null, or OpenAI's list of parts.

    Raises:
        TemplateError: a part that is no text.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        text = part.get("text") if isinstance(part, dict) else None
        if kind not in ("text", "input_text") or not isinstance(text, str):
            raise TemplateError(f"messages[{index}].content has a part of type '{kind}'; this model reads text only.")
        texts.append(text)
    return "".join(texts)


def _with_object_arguments(call: object) -> object:
    """OpenAI sends a call's arguments as JSON text, templates expect the object."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return call
    return call | {"function": function | {"arguments": arguments}}


def _unused_mark(values: object) -> str:
    """A private-use character that none of the values contains."""
    text = json.dumps(values, ensure_ascii=False, default=str)
    for code in _MARKS:
        if (mark := chr(code)) not in text:
            return mark
    raise TemplateError("The messages use every private-use character.")


def _to_json(value: object, indent: int | None = None, ensure_ascii: bool = False, **_ignored: object) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)
