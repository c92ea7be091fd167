"""Two configurations compared, in words: one short line per difference. Pure; any thread."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from laya_desktop.config.frozen import SECRET_FIELDS, shown
from laya_desktop.config.keys import ApiKey
from laya_desktop.config.schema import MatchConfig, ModelConfig, NodeConfig, RouteConfig, UpstreamConfig

Item = ModelConfig | UpstreamConfig | RouteConfig

LISTS = {"models": "model", "upstreams": "upstream", "routes": "route"}
_RULES = ("path", "prefix", "regex")
_AIMS = ("target", "targets")
_IDENTITY = {"models": "path", "upstreams": "url", "routes": "match"}
"""The field that tells a renamed item from a new one."""


def describe(old: NodeConfig, new: NodeConfig) -> tuple[str, ...]:
    """Lines such as ``route chat: priority normal → batch`` or ``model my-llm: added``; none where both are equal."""
    if old == new:
        return ()
    lines: list[str] = []
    for part in ("server", "log", "guard"):
        lines += [f"{part}: {text}" for text in _fields(getattr(old, part), getattr(new, part))]
    if old.model_folders != new.model_folders:
        lines.append(f"model_folders {_shown(_texts(old.model_folders))} → {_shown(_texts(new.model_folders))}")
    for kind, noun in LISTS.items():
        lines += _items(noun, kind, getattr(old, kind), getattr(new, kind))
    return tuple(lines)


def pair(kind: str, old: tuple[Item, ...], new: tuple[Item, ...]) -> list[int | None]:
    """For each new item the index of the old one that it continues (same name, or renamed), or None."""
    by_name = {item.name: i for i, item in enumerate(old)}
    pairs: list[int | None] = [by_name.get(item.name) for item in new]
    taken = {i for i in pairs if i is not None}
    for tag, a, a_end, b, b_end in SequenceMatcher(
        None, [i.name for i in old], [i.name for i in new], autojunk=False
    ).get_opcodes():
        if tag != "replace":
            continue
        for i, j in zip(range(a, a_end), range(b, b_end), strict=False):
            if pairs[j] is None and i not in taken and _is_renamed(kind, old[i], new[j]):
                pairs[j] = i
                taken.add(i)
    return pairs


def _is_renamed(kind: str, old: Item, new: Item) -> bool:
    """True where two items of different names are the same one: same file, url or match, or mostly the same keys."""
    if bool(getattr(old, _IDENTITY[kind]) == getattr(new, _IDENTITY[kind])):
        return True
    before, after = (i.model_dump(mode="json", exclude_defaults=True, exclude={"name"}) for i in (old, new))
    keys = before.keys() | after.keys()
    equal = len([k for k in keys if before.get(k) == after.get(k)])
    return 2 * equal >= len(keys)


def _items(noun: str, kind: str, old: tuple[Item, ...], new: tuple[Item, ...]) -> list[str]:
    pairs = pair(kind, old, new)
    kept = [i for i in pairs if i is not None]
    lines = [f"{noun} {item.name}: removed" for i, item in enumerate(old) if i not in kept]
    for j, i in enumerate(pairs):
        if i is None:
            lines.append(f"{noun} {new[j].name}: added")
        else:
            lines += [f"{noun} {old[i].name}: {text}" for text in _fields(old[i], new[j])]
    if kept != sorted(kept):
        lines.append(f"{kind}: order changed to {', '.join(item.name for item in new)}")
    return lines


def _fields(old: BaseModel, new: BaseModel, path: str = "") -> list[str]:
    lines: list[str] = []
    if old == new:
        return lines
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    if isinstance(old, MatchConfig) and isinstance(new, MatchConfig) and _rule(old)[0] != _rule(new)[0]:
        lines.append(f"match {' '.join(_rule(old))} → {' '.join(_rule(new))}")
        before |= dict.fromkeys(_RULES)
        after |= dict.fromkeys(_RULES)
    if isinstance(old, RouteConfig) and isinstance(new, RouteConfig) and _aim(old) != _aim(new):
        lines.append(f"target {_aim(old)} → {_aim(new)}")
        before |= dict.fromkeys(_AIMS)
        after |= dict.fromkeys(_AIMS)
    for name in type(old).model_fields:
        a, b = getattr(old, name), getattr(new, name)
        if before[name] == after[name]:
            continue
        if name == "name" and not path:
            lines.append(f"renamed to {b}")
        elif isinstance(a, BaseModel) and isinstance(b, BaseModel):
            lines += _fields(a, b, f"{path}{name}.")
        elif name == "api_keys":
            lines.append(f"{path}{name}: {_keys(a, b)}")
        elif name in SECRET_FIELDS:
            lines.append(f"{path}{name} {'set' if a is None else 'removed' if b is None else 'changed'}")
        elif name == "headers":
            lines.append(f"{path}{name} {_shown(shown(name, a))} → {_shown(shown(name, b))}")
        else:
            lines.append(f"{path}{name} {_shown(before[name])} → {_shown(after[name])}")
    return lines


def _keys(old: tuple[str | ApiKey, ...], new: tuple[str | ApiKey, ...]) -> str:
    """How many keys came and went, and no key."""
    added, removed = len([k for k in new if k not in old]), len([k for k in old if k not in new])
    counts = [f"{n} {word}" for n, word in ((added, "added"), (removed, "removed")) if n]
    return ", ".join(counts) or "order changed"


def _rule(match: MatchConfig) -> tuple[str, str]:
    """Which rule a match has, and what it says."""
    return next((name, str(value)) for name in _RULES if (value := getattr(match, name)) is not None)


def _texts(paths: tuple[Path, ...]) -> list[str]:
    return [str(p) for p in paths]


def _aim(route: RouteConfig) -> str:
    return route.model_copy(update={"fallback": ()}).target_text


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        text = ", ".join(f"{k}: {'any value' if v is None else _shown(v)}" for k, v in value.items()) or "none"
    else:
        text = ", ".join(map(_shown, value)) or "none" if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
