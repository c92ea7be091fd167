"""The models' cards in a column that scrolls. Qt main thread; shows what it is given.

A card takes some ten milliseconds to make and to lay out, so with many models only those that are in view are made, a
few at a time; the room of the others is kept free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.model_cards import CardValues
from laya_desktop.gui.views.model_card import ModelCard
from laya_desktop.gui.views.widgets import scrolled

FIRST_CARDS = 4
_AT_ONCE = 1
_AHEAD_PX = 300
"""Cards are made before they come into view."""
_CARD_PX = 104


class CardList(QWidget):
    """One card a model, in file order.

    Args:
        make: makes a model's card, connected to whoever acts on it.
    """

    def __init__(self, make: Callable[[str], ModelCard]) -> None:
        super().__init__()
        self._make = make
        self.cards: dict[str, ModelCard] = {}
        """Those that are made."""
        self._values: dict[str, CardValues] = {}
        self._shown: tuple[str, ...] = ()
        self._selected: str | None = None
        inner = QWidget()
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.SPACE_3)
        self._rest = QWidget()
        self._column.addWidget(self._rest)
        self._column.addStretch(1)
        self._area = scrolled(inner)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._area)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._fill)
        self._area.verticalScrollBar().valueChanged.connect(self._on_scrolled)

    def set_values(self, values: Sequence[CardValues], words: str = "") -> None:
        """Show these models, as far as they mention the words; scroll position and open logs stay."""
        self._values = {v.name: v for v in values}
        self._shown = tuple(v.name for v in values if v.mentions(words))
        for name in self.cards.keys() - self._values.keys():
            card = self.cards.pop(name)
            self._column.removeWidget(card)
            card.hide()
            card.deleteLater()
        shown = set(self._shown)
        for name, card in self.cards.items():
            card.set_values(self._values[name])
            card.setVisible(name in shown)
        order = [name for name in self._values if name in self.cards]
        for place, name in enumerate(order):
            if self._column.indexOf(self.cards[name]) != place:
                self._column.insertWidget(place, self.cards[name])
        self._add(FIRST_CARDS - sum(name in self.cards for name in self._shown))
        self._soon.start()

    def select(self, name: str | None) -> None:
        """Show which one the form edits; its card is made, wherever it is."""
        self._selected = name
        if name is not None and name not in self.cards:
            self._add_up_to(name)
        for other, card in self.cards.items():
            card.set_selected(other == name)

    def reveal(self, name: str) -> None:
        """Scroll to a model's card."""
        self._add_up_to(name)
        if name in self.cards:
            self._area.ensureWidgetVisible(self.cards[name], 0, theme.SPACE_3)

    def _add_up_to(self, name: str) -> None:
        if name in self._shown:
            up_to = self._shown[: self._shown.index(name) + 1]
            self._add(sum(other not in self.cards for other in up_to))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More may have come into view."""
        super().resizeEvent(event)
        self._soon.start()

    def _on_scrolled(self) -> None:
        self._soon.start()

    def _fill(self) -> None:
        bottom_px = self._area.verticalScrollBar().value() + self._area.viewport().height() + _AHEAD_PX
        if self._rest.isVisible() and self._rest.y() < bottom_px:
            self._add(_AT_ONCE)
            self._soon.start()

    def _add(self, count: int) -> None:
        """Make the next cards."""
        missing = [name for name in self._shown if name not in self.cards]
        for name in islice(missing, max(count, 0)):
            card = self.cards[name] = self._make(name)
            card.set_values(self._values[name])
            card.set_selected(name == self._selected)
            made = [other for other in self._values if other in self.cards]
            self._column.insertWidget(made.index(name), card)
        left = len(missing) - max(count, 0)
        self._rest.setVisible(left > 0)
        self._rest.setFixedHeight(max(left, 0) * _CARD_PX)
