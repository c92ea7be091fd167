"""The Playground against a real node with the fake engine: over HTTP, streamed, stopped, refused, copied."""

from __future__ import annotations

import ast
import json
import shlex

import pytest
from PySide6.QtCore import Qt

from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.qtmodels import playground
from laya_desktop.gui.qtmodels.playground import Destination, Draft, StreamReader
from laya_desktop.gui.views.playground_page import PlaygroundPage
from laya_desktop.state.enums import Phase
from tests.helpers.session import running

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=12,itl_ms=2", engine: fake, batch_size: 2}
      - {name: slow, path: "fake:tokens=2000,itl_ms=5", engine: fake, max_seq_len: 4096}
    routes:
      - {name: chat, match: {prefix: /v1/model}, target: quick}
"""


@pytest.fixture
def node(tmp_path):
    with running(tmp_path / "node.yaml", CONFIG) as session:
        yield session


@pytest.fixture
def page(qtbot, node):
    made = PlaygroundPage(NodeBridge(node.service))
    qtbot.addWidget(made)
    made.show()
    yield made
    made.client.stop()
    made.hide()


def say(qtbot, page: PlaygroundPage, text: str) -> None:
    page.message.setPlainText(text)
    qtbot.keyClick(page.message, Qt.Key.Key_Return)


def settled(qtbot, page: PlaygroundPage) -> None:
    qtbot.waitUntil(lambda: not page.client.busy, timeout=15_000)


def test_a_chat_through_a_route_streams_and_shows_every_phase(qtbot, page, node):
    assert page.destination.value() == "route:chat"
    pieces = []
    page.client.received.connect(pieces.append)
    say(qtbot, page, "Hello")
    assert page.stop_button.isEnabled()
    assert not page.send_button.isEnabled()
    settled(qtbot, page)
    assert [t.kind for t in page.transcript.turns] == ["user", "assistant", "note"]
    assert page.transcript.turns[1].text == "".join(pieces)
    assert page.transcript.turns[1].text in page.transcript.toPlainText()
    assert len(pieces) > 1
    assert all(value.text() != "–" for value in page.values.values())
    assert page.values["Answer"].text() == "12 tokens"
    assert page.served_by.text() == "Served by quick, through route chat"
    assert page.send_button.isEnabled()
    node.until(lambda s: any(r.route == "chat" and r.phase is Phase.DONE for r in s.requests))


def test_the_conversation_goes_on(qtbot, page):
    say(qtbot, page, "One")
    settled(qtbot, page)
    page.message.setPlainText("Two")
    sent = json.loads(shlex.split(page.curl_text())[-1])
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "user"]
    page.clear()
    assert page.transcript.toPlainText() == ""
    assert [m["content"] for m in json.loads(shlex.split(page.curl_text())[-1])["messages"]] == ["Two"]


def test_stop_hangs_up_and_the_node_cancels(qtbot, page, node):
    page.destination.set_value("model:slow")
    say(qtbot, page, "Go on for long")
    qtbot.waitUntil(lambda: len(page.transcript.turns) == 2, timeout=15_000)
    page.stop_button.click()
    assert not page.client.busy
    assert page.transcript.turns[-1].text.startswith("stopped by you")
    node.until(lambda s: any(r.target == "slow" and r.phase is Phase.CANCELLED for r in s.requests))


def test_shift_enter_makes_a_new_line(qtbot, page):
    page.message.setPlainText("a")
    qtbot.keyClick(page.message, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert "\n" in page.message.toPlainText()
    assert page.transcript.turns == []


def test_a_refusal_stands_inline_with_the_way_out_and_the_text_comes_back(qtbot, page):
    text = ("word " * 5000).strip()
    say(qtbot, page, text)
    settled(qtbot, page)
    assert page.transcript.turns[-1].kind == "error"
    assert page.transcript.turns[-1].text.startswith("400: ")
    assert "max_seq_len" in page.transcript.turns[-1].text
    assert page.message.toPlainText() == text


def test_a_stopped_node_is_said_before_sending(qtbot, page, node):
    node.service.stop_node().result(10)
    node.until(lambda s: s.node.url is None)
    page._bridge.poll()
    say(qtbot, page, "Hello")
    assert "Press Start" in page.hint.text()
    assert page.message.toPlainText() == "Hello"


def test_a_node_with_keys_asks_for_one(qtbot, page, node):
    assert page.key.isHidden()
    key = node.service.create_api_key("mine").result(10)
    node.until(lambda s: bool(s.config.server.api_keys))
    page._bridge.poll()
    page.set_snapshot(page._bridge.snapshot)
    assert not page.key.isHidden()
    say(qtbot, page, "Hello")
    settled(qtbot, page)
    assert page.transcript.turns[-1].text.startswith("401: ")
    page.key.set_value(key)
    say(qtbot, page, "Hello")
    settled(qtbot, page)
    assert page.transcript.turns[-2].kind == "assistant"
    assert key not in page.curl_text() + page.python_text()
    assert "LAYA_API_KEY" in page.curl_text()


@pytest.mark.parametrize("path", ["/v1/model/chat/completions", "/exact"])
@pytest.mark.parametrize("needs_key", [True, False])
def test_python_snippets_compile_and_name_the_address(path, needs_key):
    destination = Destination("k", "t", path, "m", (("X-Tier", "pro"),))
    draft = Draft((("user", 'say "hi"'),), system="short", temperature=0.5, max_tokens=9)
    text = playground.python_text("http://127.0.0.1:1", destination, draft, needs_key=needs_key)
    ast.parse(text)
    assert f"http://127.0.0.1:1{path.removesuffix('/chat/completions')}'" in text
    assert ("LAYA_API_KEY" in text) is needs_key
    assert "X-Tier" in text


def test_events_may_come_in_any_pieces():
    data = b'data: {"choices":[{"delta":{"content":"\xc3\xbc"}}]}\n\n: ping\n\ndata: [DONE]\n\n'
    reader, texts = StreamReader(), []
    for i in range(len(data)):
        texts += [playground.delta_text(c) for c in reader.feed(data[i : i + 1])]
    assert texts == ["ü"]
    assert reader.done
