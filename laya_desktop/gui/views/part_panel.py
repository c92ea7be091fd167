"""The card around a form: title, fields that scroll, the YAML they make, and the buttons of a draft. Qt main thread."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QStackedLayout, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.views.inputs import Preview
from laya_desktop.gui.views.widgets import (
    Card,
    CopyButton,
    ElidedLabel,
    EmptyState,
    button,
    column,
    divider,
    label,
    row,
    scrolled,
)

PANEL_WIDTH, PANEL_WIDTH_NARROW, NARROW_PAGE = 380, 312, 1000
PANEL_WIDTH_WIDE, WIDE_PAGE = 480, 1800
"""Width of the panel, width of it on a narrow page, and where narrow begins, px."""


class FormState(Enum):
    """What becomes of what the form holds: in words, and in fewer words for a narrow panel."""

    LIVE = (
        QT_TR_NOOP("Changes act at once; they are kept when you save."),
        QT_TR_NOOP("Acts at once, kept when you save."),
    )
    NEXT_LOAD = (QT_TR_NOOP("Changes take effect at the next load."), QT_TR_NOOP("Takes effect at the next load."))
    WRONG = (
        QT_TR_NOOP("Not in force: put right what is marked below."),
        QT_TR_NOOP("Not in force: see what is marked."),
    )
    DRAFT = (QT_TR_NOOP("A draft: it is not in use until you add it."), QT_TR_NOOP("A draft, not in use until added."))

    @classmethod
    def of(cls, *, draft: bool, problems: bool, waits: bool = False) -> FormState:
        """The state that matters most."""
        if draft:
            return cls.DRAFT
        if problems:
            return cls.WRONG
        return cls.NEXT_LOAD if waits else cls.LIVE


class PartPanel(QWidget):
    """Holds one form. ``content`` is its column of fields; ``show_*`` and ``set_*`` fill the rest."""

    add_clicked = Signal()
    discard_clicked = Signal()

    def __init__(self, noun: str, empty: EmptyState) -> None:
        super().__init__()
        self._noun = noun
        self.setFixedWidth(PANEL_WIDTH)
        self.title = ElidedLabel("", "title")
        self.subtitle = ElidedLabel("", "secondary")
        self.error: QLabel = label(role="error", wrap=True)
        self.content = QVBoxLayout()
        self.content.setSpacing(theme.SPACE_2)
        self.preview = Preview(tr("YAML that this form makes"))
        self.add_button = button(tr("Add {noun}", noun=noun), "primary", on_click=self.add_clicked.emit)
        self.discard_button = button(tr("Discard"), on_click=self.discard_clicked.emit)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty_card(empty))
        self._stack.addWidget(self._form_card())
        self.set_error(None)

    def _empty_card(self, empty: EmptyState) -> Card:
        card = Card()
        card.body.addWidget(empty)
        return card

    def _form_card(self) -> Card:
        card = Card(padding=theme.SPACE_4, spacing=theme.SPACE_2)
        card.body.setContentsMargins(15, 12, 0, 12)
        head = column(self.title, self.subtitle, spacing=2)
        head.setContentsMargins(0, 0, 14, 4)
        inner = QWidget()
        body = QVBoxLayout(inner)
        body.setContentsMargins(0, 2, 14, 4)
        body.setSpacing(theme.SPACE_2)
        body.addWidget(self.error)
        body.addLayout(self.content)
        body.addSpacing(4)
        body.addWidget(divider())
        body.addLayout(
            row(label("YAML", "secondary"), None, CopyButton(self.preview.toPlainText, tooltip=tr("Copy YAML")))
        )
        body.addWidget(self.preview)
        body.addStretch(1)
        footer = row(self.add_button, self.discard_button, None)
        footer.setContentsMargins(0, 0, 14, 0)
        card.body.addLayout(head)
        card.body.addWidget(scrolled(inner), 1)
        card.body.addLayout(footer)
        return card

    def fit_page(self, page_width: int) -> None:
        """Leave more room to the rest of a narrow page, and take more in a wide one."""
        normal = PANEL_WIDTH if page_width >= NARROW_PAGE else PANEL_WIDTH_NARROW
        self.setFixedWidth(PANEL_WIDTH_WIDE if page_width >= WIDE_PAGE else normal)

    def show_empty(self) -> None:
        """Nothing is selected."""
        self._stack.setCurrentIndex(0)

    def show_form(self, title: str, state: FormState) -> None:
        """Show the form under a title; a draft can be added, wrong edits can be discarded."""
        draft = state is FormState.DRAFT
        self.title.set_text(title)
        self.subtitle.set_text(*map(tr, state.value))
        self.add_button.setVisible(draft)
        self.discard_button.setVisible(draft or state is FormState.WRONG)
        self.discard_button.setText(tr("Discard draft") if draft else tr("Discard edits"))
        self._stack.setCurrentIndex(1)

    def set_error(self, text: str | None) -> None:
        """What is wrong with the whole form; None: nothing."""
        self.error.setText(text or "")
        self.error.setVisible(bool(text))
