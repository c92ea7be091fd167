"""Brings a YAML text up to date with a changed configuration and touches nothing else in it. Pure; any thread.

Only the values, keys and list items that changed are rewritten; every other character stays: comments, order, quotes,
spacing, flow style. New items get only the keys that differ from the defaults. It does not check its own work: the
caller reads the result back.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import yaml

from laya_desktop.config import changes, emit, spans
from laya_desktop.config.legacy import SHORT, Places
from laya_desktop.config.reader import Document
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.spans import Edit, Span

_RULES = ("path", "prefix", "regex")
_AIMS = ("target", "targets")
_NEW = -1


class NeedsLongFormError(Exception):
    """The file is in the short form, and its one model or route is gone or no longer the first."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value before and after.

    Attributes:
        old: as plain data with every default.
        new: the same of the new value.
        lean: the new value without defaults: what is written where nothing stands yet.
        pairs: for lists, the old place of each new item, ``_NEW`` for a new one; None: items are told apart by value.
        top: True for the parts of the whole configuration, which get lines of their own.
    """

    old: Any
    new: Any
    lean: Any
    pairs: tuple[int, ...] | None = None
    top: bool = False

    def at(self, key: str) -> Change:
        """The change of one key."""
        new = self.new.get(key)
        lean = self.lean.get(key, new) if isinstance(self.lean, dict) else new
        return Change((self.old or {}).get(key), new, lean)


def patch(text: str, document: Document, places: Places, old: NodeConfig, new: NodeConfig) -> str:
    """The text with every difference between ``old`` (what the text says) and ``new`` written into it.

    Raises:
        NeedsLongFormError: the short form cannot hold the new configuration.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    body = text if text.endswith("\n") or not text else text + newline
    before, after, lean = _data(old), _data(new), new.model_dump(mode="json", exclude_defaults=True)
    parts: dict[str, Change] = {}
    for name in type(new).model_fields:
        change = Change(before[name], after[name], lean.get(name, after[name]), None, top=True)
        if name in changes.LISTS:
            pairs = changes.pair(name, getattr(old, name), getattr(new, name))
            change = Change(
                change.old, change.new, change.lean, tuple(_NEW if p is None else p for p in pairs), top=True
            )
        parts[name] = change
    edits: list[Edit] = []
    root = document.root
    patcher = _Patcher(body, root)
    for short in sorted(places.short):
        parts[short] = patcher.short_form(document, places, short, parts[short], edits)
    added = {name: c for name, c in parts.items() if c.old != c.new and (name,) not in document.nodes}
    for name, change in parts.items():
        if name not in added and (name,) in document.nodes:
            patcher.value(document.nodes[(name,)], change, edits, key=document.keys[(name,)])
    if added and isinstance(root, yaml.MappingNode):
        patcher.insert(root, {name: c.lean for name, c in added.items()}, edits, deep=True)
    elif added:
        lines = emit.document({name: c.lean for name, c in added.items()})
        edits.append(Edit(len(body), len(body), lines))
    if not edits:
        return text
    return spans.apply(body, [Edit(e.start, e.end, _lines(e.new, newline)) for e in edits])


def _data(config: NodeConfig) -> dict[str, Any]:
    return config.model_dump(mode="json")


def _lines(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)


class _Patcher:
    """Turns changes of values into edits of one text."""

    def __init__(self, text: str, root: yaml.Node | None) -> None:
        self._text = text
        self._flow_root = isinstance(root, yaml.CollectionNode) and bool(root.flow_style)

    def value(self, node: yaml.Node, change: Change, edits: list[Edit], key: yaml.Node | None = None) -> None:
        """Bring one value up to date. ``key``: the key it stands behind, None for an item of a list."""
        if change.old == change.new:
            return
        if isinstance(node, yaml.MappingNode) and isinstance(change.new, dict) and node.value and change.new:
            self._mapping(node, change, edits, key=key, in_match=_is_match(change.new))
        elif isinstance(node, yaml.SequenceNode) and isinstance(change.new, list) and node.value and change.new:
            self._sequence(node, change, edits)
        else:
            self._replace(node, change, edits, key)

    def short_form(self, document: Document, places: Places, kind: str, change: Change, edits: list[Edit]) -> Change:
        """Bring the short form's entry up to date; returns what is left for the list beside it."""
        short = next(s for s, plural in SHORT.items() if plural == kind)
        node = document.nodes[(short,)]
        pairs = change.pairs or ()
        if pairs[:1] != (0,) or not isinstance(node, yaml.MappingNode):
            raise NeedsLongFormError
        old, new, lean = change.old[0], change.new[0], change.lean[0]
        if kind == "routes" and places.lifted:
            old, new, lean = ({**_less(d, "match"), **d["match"]} for d in (old, new, lean))
            if (short, "name") not in document.keys and old["target"] != new["target"]:
                old = {**old, "name": None}  # the name was made from the target; from now on it is written
        self._mapping(node, Change(old, new, lean), edits, in_match=bool(places.lifted) and kind == "routes")
        rest = tuple(p - 1 if p > 0 else _NEW for p in pairs[1:])
        return Change(change.old[1:], change.new[1:], change.lean[1:], rest, top=True)

    def insert(self, node: yaml.MappingNode, entries: dict[str, Any], edits: list[Edit], *, deep: bool = False) -> None:
        """Add keys behind the last one."""
        if node.flow_style:
            lines = ", ".join(f"{emit.text(k)}: {emit.flow(v)}" for k, v in entries.items())
            last = node.value[-1][1] if node.value else None
            at = spans.begin_of(node) + 1 if last is None else spans.end_of(self._text, last)
            edits.append(Edit(at, at, lines if last is None else f", {lines}"))
            return
        at = spans.entry_spans(self._text, node)[-1].tail
        indent = spans.column_of(node)
        airy = "\n" if deep and "\n\n" in self._text.replace("\r", "") else ""
        lines = "".join(airy + emit.entry(k, v, indent, deep=deep) for k, v in entries.items())
        edits.append(Edit(at, at, lines))

    def _mapping(
        self,
        node: yaml.MappingNode,
        change: Change,
        edits: list[Edit],
        *,
        in_match: bool,
        key: yaml.Node | None = None,
    ) -> None:
        present = {k.value: (k, v) for k, v in node.value}
        keys = [*change.new, *(k for k in change.old or {} if k not in change.new)]
        before, after = change.old or {}, change.new
        changed = [k for k in keys if (k in before, before.get(k)) != (k in after, after.get(k))]
        removed = [k for k in changed if k in present and self._is_gone(present[k][1], change, k, in_match=in_match)]
        added = [k for k in changed if k not in present and change.new.get(k) is not None]
        if not in_match:
            added = [k for k in changed if k not in present and k in change.new]
        if set(removed) == set(present) and key is not None and not in_match:
            self._replace(node, change, edits, key)
            return
        for gone, come in _swapped(removed, added, in_match=in_match):
            rule, value = present[gone]
            edits.append(Edit(spans.begin_of(rule), spans.end_of(self._text, rule), come))
            self._replace(value, change.at(come), edits, rule)
            removed.remove(gone)
            added.remove(come)
            changed.remove(gone)
        for name in changed:
            if name in present and name not in removed:
                self.value(present[name][1], change.at(name), edits, key=present[name][0])
        if removed:
            self._remove(node, removed, edits)
        if added:
            self.insert(node, {k: change.at(k).lean for k in added}, edits)

    @staticmethod
    def _is_gone(node: yaml.Node, change: Change, key: str, *, in_match: bool) -> bool:
        """A value that became None is written as null and keeps its comment; a match and whole blocks lose the key."""
        if key not in change.new or (key in _AIMS and not change.new[key]):
            return True
        return change.new[key] is None and (in_match or isinstance(node, yaml.CollectionNode))

    def _remove(self, node: yaml.MappingNode, names: list[str], edits: list[Edit]) -> None:
        places = [i for i, (k, _) in enumerate(node.value) if k.value in names]
        if node.flow_style:
            ends = [(spans.begin_of(k), spans.end_of(self._text, v)) for k, v in node.value]
            self._remove_from_flow(ends, places, edits)
            return
        entries = spans.entry_spans(self._text, node)
        for i in places:
            span = entries[i]
            shares_line = self._text[spans.line_start(self._text, span.start) : span.start].strip() != ""
            if shares_line and i + 1 < len(entries):  # the first key behind a dash: the next one takes its place
                edits.append(Edit(span.start, entries[i + 1].start, ""))
            else:
                edits.append(Edit(span.start if shares_line else span.head, span.tail, ""))

    @staticmethod
    def _remove_from_flow(ends: list[tuple[int, int]], places: list[int], edits: list[Edit]) -> None:
        """Each removed entry takes the comma before it along; a run at the beginning the comma behind it."""
        kept = [i for i in range(len(ends)) if i not in places]
        first = kept[0] if kept else len(ends)
        if 0 < first < len(ends):
            edits.append(Edit(ends[0][0], ends[first][0], ""))
        edits.extend(Edit(ends[i - 1][1], ends[i][1], "") for i in places if i > first)

    def _sequence(self, node: yaml.SequenceNode, change: Change, edits: list[Edit]) -> None:
        pairs = change.pairs if change.pairs is not None else _pairs_by_value(change.old, change.new)
        if pairs == tuple(range(len(node.value))):
            for i, child in enumerate(node.value):
                self.value(child, Change(change.old[i], change.new[i], change.lean[i]), edits)
        elif node.flow_style:
            self._rebuild_flow(node, pairs, change, edits)
        else:
            self._rebuild_block(node, pairs, change, edits)

    def _rebuild_flow(self, node: yaml.SequenceNode, pairs: tuple[int, ...], change: Change, edits: list[Edit]) -> None:
        """Items change places; what stands between them stays."""
        ends = [(spans.begin_of(c), spans.end_of(self._text, c)) for c in node.value]
        texts = [
            emit.flow(change.lean[j]) if i == _NEW else self._moved(node.value[i], i, j, change, *ends[i])
            for j, i in enumerate(pairs)
        ]
        for (start, end), new in zip(ends, texts, strict=False):
            edits.append(Edit(start, end, new))
        if len(texts) > len(ends):
            at = ends[-1][1]
            edits.append(Edit(at, at, "".join(f", {t}" for t in texts[len(ends) :])))
        elif len(texts) < len(ends):
            edits.append(Edit(ends[len(texts) - 1][1], ends[-1][1], ""))

    def _rebuild_block(
        self, node: yaml.SequenceNode, pairs: tuple[int, ...], change: Change, edits: list[Edit]
    ) -> None:
        items = spans.item_spans(self._text, node)
        gaps = [self._text[a.tail : b.head] for a, b in pairwise(items)]
        usual = gaps[-1] if gaps and not gaps[-1].strip() else ""
        out: list[str] = []
        for j, i in enumerate(pairs):
            if i == _NEW:
                out += [usual if j else "", emit.item(change.lean[j], spans.column_of(node))]
                continue
            gap = _orphans(items, gaps, pairs, i) + (gaps[i - 1] if i else usual)
            out += [
                gap if j or gap.strip() else "",
                self._moved(node.value[i], i, j, change, items[i].head, items[i].tail),
            ]
        out.append(_orphans(items, gaps, pairs, len(items)))
        edits.append(Edit(items[0].head, items[-1].tail, "".join(out)))

    def _moved(self, node: yaml.Node, i: int, j: int, change: Change, start: int, end: int) -> str:
        inner: list[Edit] = []
        self.value(node, Change(change.old[i], change.new[j], change.lean[j]), inner)
        return spans.apply(self._text, inner, start, end)

    def _replace(self, node: yaml.Node, change: Change, edits: list[Edit], key: yaml.Node | None) -> None:
        start, end = spans.begin_of(node), spans.end_of(self._text, node)
        deep = change.top and isinstance(change.lean, dict | list) and bool(change.lean)
        quote = node.style if isinstance(node, yaml.ScalarNode) and node.style in ("'", '"') else None
        new = emit.flow(change.lean) if isinstance(change.new, dict | list) else emit.scalar(change.new, quote)
        if key is not None and deep and not self._flow_root:
            lines = emit.entry(str(key.value), change.lean, spans.column_of(key), deep=True).split("\n", 1)[1]
            at = spans.line_end(self._text, end)
            edits += [Edit(start, end, ""), Edit(at, at, lines)]
        elif isinstance(node, yaml.CollectionNode) and not node.flow_style and key is not None:
            edits.append(Edit(spans.after_colon(self._text, key), end, f" {new}"))
        else:
            edits.append(Edit(start, end, f" {new}" if start == end else new))


def _is_match(value: dict[str, Any]) -> bool:
    return "use_regex" in value and "headers" in value and "target" not in value


def _swapped(removed: list[str], added: list[str], *, in_match: bool) -> list[tuple[str, str]]:
    """Keys of which a part has exactly one: the new one takes the place of the old one."""
    groups = (_RULES, _AIMS) if in_match else (_AIMS,)
    return [
        pair
        for group in groups
        for pair in zip([k for k in removed if k in group], [k for k in added if k in group], strict=False)
    ]


def _less(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k != key}


def _pairs_by_value(old: list[Any], new: list[Any]) -> tuple[int, ...]:
    free = list(range(len(old)))
    pairs: list[int] = []
    for value in new:
        found = next((i for i in free if old[i] == value), _NEW)
        if found != _NEW:
            free.remove(found)
        pairs.append(found)
    return tuple(pairs)


def _orphans(items: list[Span], gaps: list[str], pairs: tuple[int, ...], until: int) -> str:
    """Comments set off by empty lines before removed items that stand directly before item ``until``."""
    kept = ""
    i = until - 1
    while i >= 0 and i not in pairs:
        if i and gaps[i - 1].strip():
            kept = gaps[i - 1] + kept
        i -= 1
    return kept
