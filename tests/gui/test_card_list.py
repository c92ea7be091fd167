"""Cards of many models: made when they come into view, in file order, and kept."""

from __future__ import annotations

import pytest

from laya_desktop.gui.qtmodels.model_cards import CardValues, card_values
from laya_desktop.gui.views.card_list import FIRST_CARDS, CardList
from laya_desktop.gui.views.model_card import ModelCard
from tests.helpers.sample_data import sample_config, sample_snapshot

NAMES = [f"model-{i}" for i in range(50)]


def values(names: list[str]) -> list[CardValues]:
    config = sample_config()
    models = [config.models[0].model_copy(update={"name": name}) for name in names]
    return [card_values(model, sample_snapshot(), config) for model in models]


@pytest.fixture
def cards(qtbot):
    result = CardList(lambda name: ModelCard(name, lambda _name: ""))
    qtbot.addWidget(result)
    result.resize(700, 500)
    result.show()
    return result


def in_order(cards: CardList) -> list[str]:
    """As they stand in the column."""
    return [card.name for card in sorted(cards.cards.values(), key=lambda card: card.y())]


def test_what_is_in_view_is_made_and_the_rest_when_one_scrolls(qtbot, cards):
    cards.set_values(values(NAMES))
    assert list(cards.cards) == NAMES[:FIRST_CARDS]
    bar = cards._area.verticalScrollBar()
    qtbot.waitUntil(lambda: len(cards.cards) > FIRST_CARDS)
    qtbot.wait(50)
    assert len(cards.cards) < 20
    assert bar.maximum() > 3000  # room for all of them
    bar.setValue(bar.maximum())
    qtbot.waitUntil(lambda: bar.setValue(bar.maximum()) or len(cards.cards) == 50, timeout=20_000)
    qtbot.waitUntil(lambda: in_order(cards) == NAMES)


def test_a_card_far_down_can_be_shown_and_selected(qtbot, cards):
    cards.set_values(values(NAMES))
    cards.reveal("model-30")
    assert "model-30" in cards.cards
    cards.select("model-40")
    assert cards.cards["model-40"].property("selected") is True
    assert cards.cards["model-30"].property("selected") is False
    qtbot.waitUntil(lambda: in_order(cards) == NAMES[: len(cards.cards)])


def test_the_filter_shows_what_mentions_its_words_wherever_it_is(qtbot, cards):
    cards.set_values(values(NAMES))
    cards.set_values(values(NAMES), "model-47")
    qtbot.waitUntil(lambda: [name for name, card in cards.cards.items() if card.isVisible()] == ["model-47"])
    cards.set_values(values(NAMES), "")
    assert cards.cards["model-0"].isVisible()
    cards.reveal("model-20")  # though one further down is there already
    assert "model-20" in cards.cards
    qtbot.waitUntil(lambda: in_order(cards)[-1] == "model-47")


def test_models_that_go_take_their_cards_along(qtbot, cards):
    cards.set_values(values(NAMES[:4]))
    kept = cards.cards["model-2"]
    cards.set_values(values([NAMES[2], NAMES[0]]))
    assert set(cards.cards) == {"model-0", "model-2"}
    assert cards.cards["model-2"] is kept
    qtbot.waitUntil(lambda: in_order(cards) == ["model-2", "model-0"])
