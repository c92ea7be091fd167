"""Where the parts of a YAML text begin and end, comments included. Pure look-ups on text and libyaml's nodes.

A comment belongs to the entry below it where it stands directly above it, no deeper than it; deeper comments below an
entry belong to that entry. Comments set off by an empty line belong to no entry and stay where they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``text[start:end]`` with ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Span:
    """One entry of a block list or mapping: whole lines from ``head`` to ``tail``, comments included."""

    head: int
    start: int
    """Of the dash or the key itself."""
    tail: int


def apply(text: str, edits: list[Edit], start: int = 0, end: int | None = None) -> str:
    """``text[start:end]`` with the edits, which must lie inside and not overlap."""
    out: list[str] = []
    at = start
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        out += [text[at : edit.start], edit.new]
        at = edit.end
    out.append(text[at : len(text) if end is None else end])
    return "".join(out)


def begin_of(node: yaml.Node) -> int:
    """Index of a node's first character."""
    assert node.start_mark is not None
    return int(node.start_mark.index)


def column_of(node: yaml.Node) -> int:
    """0-based column of a node."""
    assert node.start_mark is not None
    return int(node.start_mark.column)


def end_of(text: str, node: yaml.Node) -> int:
    """Index after a node's last character; libyaml's own mark runs on to the next token for block styles."""
    assert node.end_mark is not None
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return end_of(text, last[1] if isinstance(last, tuple) else last)
    end = int(node.end_mark.index)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return begin_of(node) + len(text[begin_of(node) : end].rstrip())
    return end


def after_colon(text: str, key: yaml.Node) -> int:
    """Index after the colon that follows a key."""
    return text.index(":", end_of(text, key)) + 1


def line_start(text: str, at: int) -> int:
    """Index of the first character of the line."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Index after the line's end."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def item_spans(text: str, node: yaml.SequenceNode) -> list[Span]:
    """The items of a block list."""
    column = column_of(node)
    dash = re.compile(rf"^ {{{column}}}-(?=\s)", re.MULTILINE)
    starts: list[int] = []
    at = line_start(text, begin_of(node))
    for child in node.value:
        found = dash.search(text, at)
        assert found is not None
        starts.append(found.end() - 1)
        at = line_end(text, end_of(text, child))
    return _spans(text, list(zip(starts, node.value, strict=True)), column, column + 1)


def entry_spans(text: str, node: yaml.MappingNode) -> list[Span]:
    """The entries of a block mapping."""
    column = column_of(node)
    return _spans(text, [(begin_of(k), v) for k, v in node.value], column, column + 1)


def _spans(text: str, entries: list[tuple[int, yaml.Node]], column: int, deeper: int) -> list[Span]:
    spans: list[Span] = []
    floor = 0
    for start, value in entries:
        tail = _with_deeper_comments(text, line_end(text, max(start, end_of(text, value))), deeper)
        spans.append(Span(_with_comments_above(text, line_start(text, start), floor, column), start, tail))
        floor = tail
    return spans


def _with_comments_above(text: str, at: int, floor: int, column: int) -> int:
    while at > floor:
        above = line_start(text, at - 1)
        line = text[above:at]
        indent = len(line) - len(line.lstrip(" "))
        if not line.lstrip(" ").startswith("#") or indent > column:
            break
        at = above
    return at


def _with_deeper_comments(text: str, at: int, deeper: int) -> int:
    kept = at
    while at < len(text):
        end = line_end(text, at)
        line = text[at:end]
        if line.strip():
            if not line.lstrip(" ").startswith("#") or len(line) - len(line.lstrip(" ")) < deeper:
                break
            kept = end
        at = end
    return kept
