"""Languages: complete, current, with the same placeholders; no text beside tr(); the window switches while it runs."""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel

from laya_desktop import __version__
from laya_desktop.gui import i18n, window
from laya_desktop.gui.qtmodels.load_words import first_sentence, sentences
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.logs import LogRing
from laya_desktop.node.engines.advice import GET_BACKEND, GET_GPU, NO_BACKEND, NO_GPU
from laya_desktop.node.engines.auto_device import Needs, decide
from laya_desktop.node.forecast import about

ROOT = Path(__file__).resolve().parents[2]
GUI = ROOT / "laya_desktop" / "gui"
CHINESE = ROOT / "resources" / "translations" / "laya_desktop_zh_CN.ts"
SHOWS = {
    "setText", "setToolTip", "setPlaceholderText", "setAccessibleName", "setWindowTitle", "setTitle", "addItem",
    "addAction", "setStatusTip", "label", "button", "QLabel", "QPushButton", "QAction", "SectionTitle", "EmptyState",
    "FieldRow", "Switch", "Card", "Message", "Choice",
}  # fmt: skip
"""Calls whose texts people read."""
NAMES = {"Laya Desktop", "Laya", "YAML", "RAM", "VRAM", "CPU", "TTFT", "p99"}


@pytest.fixture
def english():
    yield
    i18n.set_language("en")


@pytest.fixture(scope="module")
def translations():
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import translations
    finally:
        sys.path.pop(0)
    return translations


def test_every_text_is_collected_translated_and_compiled(translations):
    assert translations.stale() == []


def test_placeholders_are_the_same():
    wrong = []
    for message in ET.parse(CHINESE).iter("message"):
        source, target = message.findtext("source"), message.find("translation")
        text = "".join(target.itertext())
        holes = [sorted(re.findall(r"\{[^{}]*\}|%n", one)) for one in (source, text)]
        if holes[0] != holes[1]:
            wrong.append(source)
    assert wrong == []


@pytest.mark.parametrize("path", sorted(GUI.rglob("*.py")), ids=lambda p: p.stem)
def test_no_text_is_shown_without_tr(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SHOWS:
            texts = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found += [f"line {node.lineno}: {text}" for text in texts if _is_prose(text)]
    assert found == []


def _is_prose(text: str) -> bool:
    return text not in NAMES and re.match(r"[A-Z][a-z]+( |$|…|:|\.)", text) is not None


def test_the_window_speaks_chinese_while_it_runs_and_comes_back(qtbot, bridge, dialogs, english):
    i18n.set_language("en")
    shell = window.Shell(bridge, LogRing(), dialogs)
    first = shell.window
    first.show_page("Settings")
    settings = first.pages["Settings"]
    settings.language.set_value("zh_CN")
    settings.language.edited.emit()
    qtbot.waitUntil(lambda: shell.window is not first)
    QCoreApplication.sendPostedEvents(first, QEvent.Type.DeferredDelete)
    assert shell.window.page == "Settings"
    said_by_node = {str(model.error) for model in bridge.snapshot.models}
    assert _english_texts(shell.window) - said_by_node == set()
    shell.speak("en")
    assert "设置" not in {b.text() for b in shell.window.findChildren(QAbstractButton)}
    shell.habits.close()
    shell.window.deleteLater()


def _english_texts(top) -> set[str]:
    """Words of buttons, captions and choices that are no names: a capital, then small letters, no Chinese."""
    texts = {w.text() for kind in (QLabel, QAbstractButton) for w in top.findChildren(kind)}
    texts |= {w.itemText(i) for w in top.findChildren(QComboBox) for i in range(w.count())}
    plain = {re.sub(r"<[^>]+>", "", t).strip() for t in texts}
    allowed = NAMES | {"English", "Flash attention", f"Laya Desktop {__version__}"}
    return {
        t for t in plain if _is_prose(t) and not re.search(r"[\u4e00-\u9fff]", t) and t not in allowed and len(t) > 3
    }


@pytest.mark.parametrize(
    "text",
    [
        f"RAM full in {about(45)} at this rate",
        f"VRAM of GPU 1 full in {about(400)} at this rate",
        "RAM is 1.2 GB over the limit",
        "1.2 GB to the limit, falling",
        "'m': queue full: new requests are refused",
        "queue grows by 3 a second, full in about 8 s",
        "Programs waited for memory in 12 % of the last 10 s",
        "GPU 0 at 91 °C",
        "Idle model 'x' is unloaded",
    ],
)
def test_what_the_node_says_of_the_machine_is_known(text, qapp, english):
    i18n.set_language("zh_CN")
    said = in_words(text)
    assert re.search(r"[\u4e00-\u9fff]", said)
    assert not re.search(r"\b(full|limit|queue|rate|second|waited|unloaded|falling)\b", said)
    i18n.set_language("en")
    assert in_words(text) == text


def needs(layers: int) -> Needs:
    """What so many layers of 100 MiB take on a GPU that has 10 GiB free."""
    return Needs(layers, 200, layers * 100 * 2**20, 0, 10 * 2**30)


@pytest.mark.parametrize(
    "text",
    [
        decide(needs(0), needs).note,
        decide(needs(30), needs).note,
        decide(needs(200), needs).note,
        decide(needs(200), needs, lambda layers: 20.5 if layers else 9.0).note,
        decide(needs(200), needs, lambda layers: 5.5 if layers else 9.0).note,
        decide(needs(200), needs, lambda layers: None if layers else 9.0).note,
        decide(needs(2000), lambda layers: needs(layers + 1000)).note,
        decide(Needs(30, 30, None), needs).note,
        f"{NO_BACKEND}, so auto chose the CPU. The model has no chat template, so ChatML is used for chats.",
        f"{NO_BACKEND}. {GET_BACKEND}",
        f"{NO_GPU}. {GET_GPU}",
        "This model is an encoder: it makes vectors of texts and generates none.",
        "max_seq_len is 9,000, but the model was trained for 8,192 tokens only.",
    ],
)
def test_what_the_node_says_of_a_load_is_known(text, qapp, english):
    i18n.set_language("zh_CN")
    said = sentences(text)
    assert not re.search(r"\b(chose|found|layers|make|measured|so|the|has|build|used|generates|Install)\b", said)
    assert first_sentence(said).endswith("。")
    i18n.set_language("en")
    assert sentences(text) == text


def test_an_unknown_sentence_is_shown_as_it_is(qapp, english):
    i18n.set_language("zh_CN")
    assert in_words("Something new") == "Something new"


def test_an_unknown_language_is_the_systems(qapp, english, monkeypatch):
    monkeypatch.setattr(i18n, "_system_language", lambda: "zh_CN")
    assert i18n.set_language("tlh") == "zh_CN"
