"""Reads YAML text into plain data and remembers where every key stands. Pure; any thread.

It uses libyaml's parser and builds plain values only. It refuses whatever a configuration does not need: aliases,
anchors, tags, several documents, deep nesting, doubled keys, and plain values that YAML 1.1 and 1.2 read differently.
It does not know the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from laya_desktop.errors import Problem

Loc = tuple[str | int, ...]

MAX_BYTES = 1024**2
MAX_DEPTH = 32
_TOO_DEEP = f"Nested more than {MAX_DEPTH} deep. A configuration needs five levels."

_INT_12 = re.compile(r"[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+")
_FLOAT_12 = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.[0-9_]+([eE][-+][0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")
_TAG = "tag:yaml.org,2002:"
_Constructor = yaml.constructor.SafeConstructor


class UnreadableYamlError(Exception):
    """The text cannot be read any further; carries the problems found so far."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class Document:
    """One YAML document as data, with its places.

    Attributes:
        data: dicts, lists and plain values.
        root: libyaml's nodes, None for an empty document.
        nodes: the value at each path.
        keys: the key at each path that ends in a mapping's key.
        written: plain values as they stand in the text.
        problems: faults that did not stop the reading (doubled keys, ambiguous values).
        doubtful: paths of the ambiguous values; whatever else is said of them is beside the point.
    """

    data: Any = None
    root: yaml.Node | None = None
    nodes: dict[Loc, yaml.Node] = field(default_factory=dict)
    keys: dict[Loc, yaml.ScalarNode] = field(default_factory=dict)
    written: dict[Loc, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    doubtful: set[Loc] = field(default_factory=set)

    def place(self, loc: Loc) -> tuple[int, int]:
        """1-based line and column of the key (or list item) at ``loc``, else of the nearest thing around it."""
        for end in range(len(loc), 0, -1):
            node = self.keys.get(loc[:end]) or self.nodes.get(loc[:end])
            if node is not None:
                return node.start_mark.line + 1, node.start_mark.column + 1
        return (1, 1) if self.root is None else (self.root.start_mark.line + 1, self.root.start_mark.column + 1)


def read(text: str) -> Document:
    """Read one document.

    Raises:
        UnreadableYamlError: the text is not YAML, or holds what a configuration may not hold.
    """
    try:
        _refuse_extras(text)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except UnicodeEncodeError as error:
        raise UnreadableYamlError(
            Problem(f"Not valid Unicode at character {error.start}. Save the file as UTF-8.")
        ) from None
    except yaml.YAMLError as error:
        raise UnreadableYamlError(_syntax_problem(text, error)) from None
    document = Document(root=root)
    if root is not None:
        document.data = _build(document, root, ())
    return document


def _refuse_extras(text: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _refused(event, "A second YAML document begins here. Keep one; remove '---' and what follows.")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused(event, "Anchors (&) and aliases (*) are not read. Write the values out.")
        if tag := getattr(event, "tag", None):
            shown = tag.replace(_TAG, "!!")
            raise _refused(event, f"The tag '{shown}' is not read. Remove it; quote a value to make it text.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refused(event, _TOO_DEEP)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _refused(event: yaml.Event, message: str) -> UnreadableYamlError:
    mark = event.start_mark
    assert mark is not None
    return UnreadableYamlError(Problem(message, line=mark.line + 1, column=mark.column + 1))


def _syntax_problem(text: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        position = getattr(error, "position", 0)
        before = text[:position]
        return Problem(
            "A control character stands here, which YAML does not allow. Remove it.",
            line=before.count("\n") + 1,
            column=position - before.rfind("\n"),
        )
    line, column = mark.line + 1, mark.column + 1
    lines = text.splitlines()
    here = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or here[mark.column : mark.column + 1] == "\t":
        return Problem("A tab stands here. YAML is indented with spaces.", line=line, column=column)
    reason = getattr(error, "problem", None) or "it cannot be read"
    if "nesting depth" in reason:  # libyaml's own limit, met while it looks ahead
        return Problem(_TOO_DEEP, line=line, column=column)
    context = getattr(error, "context", None)
    began = getattr(error, "context_mark", None)
    since = f" {context} that begins on line {began.line + 1}" if context and began is not None else ""
    return Problem(f"Not valid YAML{since}: {reason}.", line=line, column=column)


def _build(document: Document, node: yaml.Node, loc: Loc) -> Any:
    document.nodes[loc] = node
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(document, node, loc)
    if isinstance(node, yaml.SequenceNode):
        return [_build(document, child, (*loc, i)) for i, child in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _build_scalar(document, node, loc)


def _build_mapping(document: Document, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            document.problems.append(_at(key_node, "A key is one word, not a list or a mapping.", loc))
            continue
        key = str(key_node.value)
        here = (*loc, key)
        if key in data:
            first = document.keys[here].start_mark.line + 1
            text = f"The key '{key}' is written twice; the first one is on line {first}. Remove one."
            document.problems.append(_at(key_node, text, here))
            continue
        if not key_node.style and (key_node.tag != f"{_TAG}str" or _ambiguous(key_node)):
            text = f'The key {key} is not read as text by every YAML reader. Put it in quotes: "{key}".'
            document.problems.append(_at(key_node, text, here))
            document.doubtful.add(here)
        document.keys[here] = key_node
        data[key] = _build(document, value_node, here)
    return data


def _build_scalar(document: Document, node: yaml.ScalarNode, loc: Loc) -> Any:
    if node.style:
        return node.value
    document.written[loc] = node.value
    if _ambiguous(node):
        text = (
            f"{node.value} is one thing to YAML 1.1 and another to YAML 1.2. "
            f'For text write "{node.value}" in quotes; for a number write plain decimal digits.'
        )
        document.problems.append(_at(node, text, loc))
        document.doubtful.add(loc)
        return node.value
    try:
        return _Constructor().construct_object(node)
    except (ValueError, yaml.YAMLError):  # a date such as 2026-99-99, a number of 5,000 digits
        shown = node.value if len(node.value) <= 40 else f"{node.value[:39]}…"
        document.problems.append(_at(node, f'{shown} cannot be read as a value. Quote it: "{shown}".', loc))
        document.doubtful.add(loc)
        return node.value


def _ambiguous(node: yaml.Node) -> bool:
    """True where PyYAML (1.1) and ruamel.yaml (1.2) read a plain number differently; yes/no/on/off are let through."""
    text = node.value
    tag = node.tag.removeprefix(_TAG)
    if tag in ("value", "merge"):
        return True
    if _INT_12.fullmatch(text):
        return tag != "int" or _LEADING_ZERO.fullmatch(text) is not None
    if _FLOAT_12.fullmatch(text):
        return bool(tag != "float")
    return tag in ("int", "float")


def _at(node: yaml.Node, message: str, loc: Loc) -> Problem:
    return Problem(message, loc, node.start_mark.line + 1, node.start_mark.column + 1)
