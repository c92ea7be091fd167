"""The window's language. Qt main thread; Qt is imported when a language is set, so that commands do without it.

Every text that the window shows is written in English inside ``tr()``. ``make translations`` collects them into
``resources/translations/*.ts`` (Qt Linguist) and compiles those; ``set_language`` installs one. Texts that are chosen
before the language is known (tables at module level) are marked with ``QT_TR_NOOP`` and passed to ``tr`` when shown.

What the node says in its answers and logs is English in every language: callers and searches depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from laya_desktop import paths

if TYPE_CHECKING:
    from PySide6.QtCore import QTranslator

LANGUAGES = {"": "", "en": "English", "zh_CN": "简体中文"}
"""What can be chosen, each in its own language; the empty code follows the system."""
_installed: list[QTranslator] = []  # like the translators that Qt holds: one list per process, main thread only
_language = "en"
_translate: Callable[[str, str, str | None, int], str] | None = None
"""Qt's, once a language was set: commands that write sizes need no Qt."""


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
    shown = text.replace("%n", str(n)) if _translate is None else _translate("", text, note, n)
    return shown.format_map(values) if values else shown


def translated(choices: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Keys with their texts, the texts (marked with ``QT_TR_NOOP``) in the window's language."""
    return [(key, tr(text)) for key, text in choices]


def language() -> str:
    """The code of the language that is shown."""
    return _language


def set_language(code: str) -> str:
    """Show the window's language from now on; widgets that exist keep their texts. Returns the code in use.

    Args:
        code: of ``LANGUAGES``; empty or unknown: the first of the system's languages that there is, else English.
    """
    from PySide6.QtCore import QCoreApplication, QLibraryInfo, QTranslator

    global _language, _translate
    _translate = QCoreApplication.translate
    app = QCoreApplication.instance()
    _language = code if code and code in LANGUAGES else _system_language()
    if app is None:
        return _language
    for translator in _installed:
        app.removeTranslator(translator)
    _installed.clear()
    own = paths.resources_dir() / "translations"
    for name, folder in (
        (f"qtbase_{_language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
        (f"laya_desktop_{_language}", str(own)),
    ):
        translator = QTranslator()
        if translator.load(name, folder):
            app.installTranslator(translator)
            _installed.append(translator)
    return _language


def _system_language() -> str:
    from PySide6.QtCore import QLocale

    for tag in QLocale.system().uiLanguages():
        locale = QLocale(tag)
        if locale.language() is QLocale.Language.Chinese and locale.script() in (
            QLocale.Script.SimplifiedHanScript,
            QLocale.Script.AnyScript,
        ):
            return "zh_CN"
        if locale.language() is QLocale.Language.English:
            return "en"
    return "en"
