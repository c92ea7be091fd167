"""Rewrites the short form (``model:``, ``route:``) of a text into the long one, comments included. Pure; any thread."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import yaml

from laya_desktop.config import emit, spans
from laya_desktop.config.legacy import SHORT, Places
from laya_desktop.config.reader import Document
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.spans import Edit, Span


@dataclass(frozen=True, slots=True)
class _Entry:
    """The short form's one entry: for which list, as lines from column 0, and in flow style."""

    plural: str
    body: str
    flow: str


def to_long_form(text: str, document: Document, places: Places, config: NodeConfig) -> str:
    """The same configuration in the long form.

    Args:
        text: in the short form; ends with a line feed.
        document: its nodes.
        places: which parts are short.
        config: what the text says; supplies the name of a nameless route.
    """
    assert isinstance(document.root, yaml.MappingNode)
    if document.root.flow_style:
        return emit.document(config.model_dump(mode="json", exclude_defaults=True))
    edits: list[Edit] = []
    for short, plural in SHORT.items():
        if plural not in places.short:
            continue
        node = document.nodes[(short,)]
        assert isinstance(node, yaml.MappingNode)
        body = _body(text, node, _extra(document, short, config), places.lifted if short == "route" else frozenset())
        first = getattr(config, plural)[0].model_dump(mode="json", exclude_defaults=True)
        edits += _move(text, document, short, _Entry(plural, body, emit.flow(first)))
    return spans.apply(text, edits)


def _extra(document: Document, short: str, config: NodeConfig) -> str:
    nameless = short == "route" and (short, "name") not in document.keys
    return emit.entry("name", config.routes[0].name, 0) if nameless else ""


def _body(text: str, node: yaml.MappingNode, extra: str, lifted: frozenset[str]) -> str:
    """The entry's keys, one or more lines each, from column 0; the keys of ``lifted`` go below ``match``."""
    own, match = extra, ""
    for name, lines in _entries(text, node):
        if name in lifted:
            own += "" if match else "match:\n\0"
            match += textwrap.indent(lines, "  ")
        else:
            own += lines
    return own.replace("\0", match)


def _entries(text: str, node: yaml.MappingNode) -> list[tuple[str, str]]:
    if node.flow_style:
        return [
            (key.value, f"{emit.text(key.value)}: {text[spans.begin_of(value) : spans.end_of(text, value)]}\n")
            for key, value in node.value
        ]
    column = spans.column_of(node)
    found: list[tuple[str, str]] = []
    at = spans.line_end(text, spans.line_start(text, spans.begin_of(node)) - 1)
    for (key, _), span in zip(node.value, spans.entry_spans(text, node), strict=True):
        lines = text[min(at, span.head) : span.tail].splitlines(keepends=True)
        found.append((key.value, "".join(line[min(column, _indent(line)) :] for line in lines)))
        at = span.tail
    return found


def _move(text: str, document: Document, short: str, entry: _Entry) -> list[Edit]:
    """Put the entry first into the list, or make the list where the short key stands."""
    key = document.keys[(short,)]
    section = _section(text, document, key)
    beside = document.nodes.get((entry.plural,))
    if isinstance(beside, yaml.SequenceNode) and beside.value:
        gone = Edit(section.head, section.tail, "")
        if beside.flow_style:
            at = spans.begin_of(beside.value[0])
            return [gone, Edit(at, at, f"{entry.flow}, ")]
        column = spans.column_of(beside)
        above = textwrap.indent(text[section.head : section.start], " " * column)
        at = spans.item_spans(text, beside)[0].head
        return [gone, Edit(at, at, above + _item(entry.body, column))]
    edits: list[Edit] = []
    if beside is not None:  # an empty list: the new one stands for it
        empty = _section(text, document, document.keys[(entry.plural,)])
        edits.append(Edit(empty.start, empty.tail, ""))
    rest = text[spans.after_colon(text, key) : spans.line_end(text, section.start)].strip()
    comment = f"  {rest}" if rest.startswith("#") else ""
    return [*edits, Edit(section.start, section.tail, f"{entry.plural}:{comment}\n{_item(entry.body, 2)}")]


def _section(text: str, document: Document, key: yaml.Node) -> Span:
    """The lines of a top-level key."""
    root = document.root
    assert isinstance(root, yaml.MappingNode)
    places = [k for k, _ in root.value]
    return spans.entry_spans(text, root)[places.index(key)]


def _item(body: str, column: int) -> str:
    """The body as one item of a block list; comments above its first key come before the dash."""
    lines = body.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    pad = " " * column
    above = "".join(pad + line if line.strip() else line for line in lines[:first])
    rest = "".join(line if not line.strip() else f"{pad}  {line}" for line in lines[first + 1 :])
    return f"{above}{pad}- {lines[first]}{rest}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
