"""The window's language. Qt main thread.

Every text that the window shows is written in English inside ``tr()``. ``make translations`` collects them into
``resources/translations/*.ts`` (Qt Linguist) and compiles those; ``set_language`` installs one. Texts that are chosen
before the language is known (tables at module level) are marked with ``QT_TR_NOOP`` and passed to ``tr`` when shown.

What the node says in its answers and logs is English in every language: callers and searches depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication


def QT_TR_NOOP(text: str) -> str:
    """``text`` as it is: marked for translation, and to be passed to ``tr`` when it is shown."""
    return text


def tr(text: str, note: str | None = None, n: int = -1, /, **values: object) -> str:
    """``text`` in the window's language.

    Args:
        text: English, a literal so that it can be collected. ``{name}`` marks a value; ``%n`` the number ``n``.
        note: tells the translator (and Qt) apart what has the same English text.
        n: chooses the plural form; only with ``%n`` in the text.
        **values: what replaces ``{name}`` after translation.
    """
    shown = QCoreApplication.translate("", text, note, n)
    return shown.format_map(values) if values else shown


def translated(choices: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Keys with their texts, the texts (marked with ``QT_TR_NOOP``) in the window's language."""
    return [(key, tr(text)) for key, text in choices]
