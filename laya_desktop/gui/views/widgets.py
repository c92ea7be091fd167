"""The window's own widgets, named in one place. Qt main thread; none of them knows a node.

- Layout: ``row(*widgets)``, ``column(*widgets)`` (None: stretch, number: px), ``divider()``, ``scrolled(widget)``
- Text: ``label(text, role)``, ``SectionTitle``, ``FigureLabel``, ``ElidedLabel``, ``MonoLabel``
- Controls: ``button(text, role, icon, on_click)`` with the roles primary, secondary, danger, ghost, segment;
  ``IconButton``, ``CopyButton(source)``
- Panels: ``Card(title)`` with ``body``; ``EmptyState(title, text, button_text, icon)``
- State: ``Pill(text, tone)``, ``StateDot``, ``HBar`` with ``BarPart(share, role, name)``
- Forms: ``FieldRow(label, editor, hint=, key=)`` with ``set_error``
- Style: ``set_property(widget, name, value)``, ``repolish(widget)``
"""

from __future__ import annotations

from laya_desktop.gui.views.basics import (
    BarPart,
    Card,
    FigureLabel,
    HBar,
    IconButton,
    Pill,
    SectionTitle,
    StateDot,
    button,
    column,
    divider,
    label,
    repolish,
    row,
    scrolled,
    set_property,
)
from laya_desktop.gui.views.fields import LABEL_WIDTH, CopyButton, ElidedLabel, EmptyState, FieldRow, MonoLabel

__all__ = [
    "LABEL_WIDTH",
    "BarPart",
    "Card",
    "CopyButton",
    "ElidedLabel",
    "EmptyState",
    "FieldRow",
    "FigureLabel",
    "HBar",
    "IconButton",
    "MonoLabel",
    "Pill",
    "SectionTitle",
    "StateDot",
    "button",
    "column",
    "divider",
    "label",
    "repolish",
    "row",
    "scrolled",
    "set_property",
]
