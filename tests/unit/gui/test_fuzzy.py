"""Finding commands by a few letters."""

from __future__ import annotations

import pytest

from laya_desktop.gui.qtmodels.fuzzy import ranked, score

TEXTS = ["Go to Settings", "Go to Routes", "Load my-llm-7b", "Unload qwen3", "Save", "Save as…", "Appearance: dark"]


@pytest.mark.parametrize(
    ("query", "first"),
    [("gs", "Go to Settings"), ("save", "Save"), ("load my", "Load my-llm-7b"), ("dark", TEXTS[-1]),
     ("unl", "Unload qwen3"), ("LOAD", "Load my-llm-7b"), ("7b", "Load my-llm-7b")],
)  # fmt: skip
def test_the_best_comes_first(query, first):
    assert TEXTS[ranked(query, TEXTS)[0]] == first


def test_letters_in_another_order_do_not_match():
    assert score("evas", "Save") is None
    assert ranked("zzz", TEXTS) == []


def test_nothing_typed_keeps_everything_in_order():
    assert ranked("  ", TEXTS) == list(range(len(TEXTS)))
