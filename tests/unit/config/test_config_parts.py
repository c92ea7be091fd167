"""One part checked for a form: places relative to the part, and the rest of the configuration taken into account."""

from __future__ import annotations

from typing import Any

import pytest

from laya_desktop.config.parts import Kind, check_part
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import Problem

CONFIG = NodeConfig.model_validate(
    {
        "models": [{"name": "a", "path": "a.gguf"}, {"name": "b", "path": "b.gguf"}],
        "upstreams": [{"name": "box", "url": "http://h/v1"}],
        "routes": [{"name": "chat", "match": {"prefix": "/x"}, "target": "a"}],
    }
)
ROUTE = {"name": "new", "match": {"prefix": "/y"}, "target": "a"}


def by_key(problems: tuple[Problem, ...]) -> dict[str, str]:
    return {p.key: p.message for p in problems}


def test_text_from_a_form_becomes_values() -> None:
    part, problems = check_part(
        "models", {"name": "c", "path": "c.gguf", "batch_size": "8", "gpu_layers": "12", "idle_unload": "10m"}, CONFIG
    )

    assert problems == ()
    assert part is not None
    assert part.model_dump(include={"batch_size", "gpu_layers"}) == {"batch_size": 8, "gpu_layers": 12}


def test_every_fault_of_a_route_is_keyed_by_its_field() -> None:
    part, problems = check_part(
        "routes", {"name": "chat", "match": {"prefix": "x"}, "target": "aa", "timeout": "soon"}, CONFIG
    )

    assert part is None
    assert by_key(problems) == {
        "match.prefix": "A path starts with '/'. Write '/x'.",
        "name": "The name 'chat' is taken by another route. Write another one.",
        "target": "No model or upstream 'aa'. Did you mean 'a'?",
        "timeout": "Not a duration. Write 300s, 5m or 1h.",
    }


@pytest.mark.parametrize(
    ("kind", "data", "replacing", "key"),
    [
        ("models", {"name": "b", "path": "x"}, None, "name"),
        ("models", {"name": "b", "path": "x"}, "a", "name"),
        ("models", {"name": "box", "path": "x"}, "a", "name"),
        ("upstreams", {"name": "a", "url": "http://h"}, "box", "name"),
        ("routes", {**ROUTE, "name": "chat"}, None, "name"),
        ("routes", {**ROUTE, "target": "gone"}, "chat", "target"),
        ("server", {"port": 99999}, None, "port"),
        ("log", {"keep": 0}, None, "keep"),
        ("guard", {"mode": "of"}, None, "mode"),
    ],
)
def test_what_is_refused(kind: Kind, data: dict[str, Any], replacing: str | None, key: str) -> None:
    part, problems = check_part(kind, data, CONFIG, replacing)

    assert part is None
    assert list(by_key(problems)) == [key]


@pytest.mark.parametrize(
    ("kind", "data", "replacing"),
    [
        ("models", {"name": "a", "path": "x"}, "a"),
        ("models", {"name": "renamed", "path": "x"}, "a"),
        ("upstreams", {"name": "box", "url": "https://h"}, "box"),
        ("routes", {**ROUTE, "name": "chat"}, "chat"),
        ("routes", {**ROUTE, "target": "box"}, None),
        ("server", {"port": "8080"}, None),
    ],
)
def test_what_is_taken(kind: Kind, data: dict[str, Any], replacing: str | None) -> None:
    part, problems = check_part(kind, data, CONFIG, replacing)

    assert problems == ()
    assert part is not None


def test_without_a_context_only_the_part_itself_is_checked() -> None:
    part, problems = check_part("routes", {**ROUTE, "target": "anything"})

    assert part is not None
    assert problems == ()
