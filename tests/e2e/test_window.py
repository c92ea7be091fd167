"""The real window on the real node with the real model: what a person does in the first two minutes."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from laya_desktop.gui import window
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.views.main_window import MainWindow
from laya_desktop.state.enums import ModelState, NodeState
from tests.e2e.conftest import Running
from tests.helpers.fake_dialogs import FakeDialogs

pytestmark = pytest.mark.e2e
MODEL = "smollm2-135m"


class Person:
    """Someone in front of the window."""

    def __init__(self, qtbot, running: Running) -> None:
        self.qtbot, self.node = qtbot, running
        self.dialogs = FakeDialogs()
        self.bridge = NodeBridge(running.service)
        self.window: MainWindow = window.build(self.bridge, running.session.log.ring, self.dialogs)
        qtbot.addWidget(self.window)
        self.bridge.start()
        self.window.show()
        self.pages = self.window.pages

    def until(self, condition: Callable[[], bool], timeout_ms: int = 30_000) -> None:
        self.qtbot.waitUntil(condition, timeout=timeout_ms)

    def click(self, widget) -> None:
        assert widget.isEnabled()
        self.qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)

    def type(self, editor, text: str) -> None:
        editor.setFocus()
        editor.selectAll()
        self.qtbot.keyClicks(editor, text)

    def state(self, model: str = MODEL) -> ModelState:
        return self.bridge.snapshot.model(model).state

    def load_on_cpu(self) -> None:
        self.window.show_page("Models")
        self.click(self.pages["Models"].cards[MODEL].cpu_button)
        self.until(lambda: self.state() is ModelState.READY)

    def add_route(self, name: str, prefix: str) -> None:
        self.window.show_page("Routes")
        routes = self.pages["Routes"]
        routes.add_button.click()
        self.type(routes.form.name, name)
        self.type(routes.form.path, prefix)
        self.click(routes.panel.add_button)
        self.until(lambda: self.bridge.snapshot.config.route(name) is not None)

    def chat(self, path: str, max_tokens: int = 12) -> dict:
        connection = http.client.HTTPConnection(self.node.url.removeprefix("http://"), timeout=60)
        body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": max_tokens, "temperature": 0}
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    @contextmanager
    def chatting(self, path: str) -> Iterator[None]:
        """One answer after another from a thread of their own, so that every sample sees the model at work."""
        enough = threading.Event()

        def talk() -> None:
            while not enough.is_set():
                self.chat(path, max_tokens=64)

        with ThreadPoolExecutor(1) as pool:
            talking = pool.submit(talk)
            try:
                yield
            finally:
                enough.set()
                talking.result(timeout=60)


@pytest.fixture
def person(qtbot, running: Running) -> Iterator[Person]:
    someone = Person(qtbot, running)
    yield someone
    someone.bridge.stop()
    someone.window.hide()


def test_load_route_chat_see_save_and_export(person: Person, tmp_path: Path) -> None:
    person.load_on_cpu()
    model = person.bridge.snapshot.model(MODEL)
    assert model.device == "CPU"
    assert model.offloaded_layers == 0
    person.add_route("mine", "/mine")
    assert person.chat("/mine")["choices"][0]["message"]["content"]
    person.until(lambda: any(r.name == "mine" and r.hits == 1 for r in person.bridge.snapshot.routes))
    person.until(lambda: person.bridge.snapshot.config_status.unsaved != ())
    assert "mine" not in person.node.config_path.read_text()

    person.dialogs.path = tmp_path / "copy.yaml"
    person.window.actions_.export.trigger()
    person.until(lambda: person.dialogs.path.exists())
    assert person.bridge.snapshot.config_status.unsaved != ()
    person.click(person.window.header.save)
    person.until(lambda: person.bridge.snapshot.config_status.unsaved == ())
    for saved in (person.node.config_path, person.dialogs.path):
        assert "mine" in saved.read_text()
        assert "# the bundled one" in saved.read_text()


def test_every_plot_moves_while_the_model_generates(person: Person) -> None:
    person.load_on_cpu()
    person.window.show_page("Overview")
    history = person.pages["Overview"]._history

    def moved(key: str) -> bool:
        _, values = history.view(key, 60.0)
        return len(values) > 0 and bool(np.nanmax(values, initial=0) > 0)

    moving = ["routing.p50", "routing.p99", "tokens.decode", "tokens.prefill", "queue.running", "cpu", "ram"]
    moving += [f"cpu:{MODEL}", f"ram:{MODEL}", f"decode:{MODEL}"]
    with person.chatting("/v1/model"):
        person.until(lambda: all(moved(key) for key in moving))
    assert person.bridge.snapshot.machine.gpus or person.bridge.snapshot.machine.gpu_reason


def test_without_a_gpu_load_on_gpu_is_disabled_and_says_why(person: Person) -> None:
    person.until(lambda: person.bridge.snapshot.capability.probed)
    if person.bridge.snapshot.capability.gpu_available:
        pytest.skip("this machine has a GPU that llama.cpp can use")
    person.window.show_page("Models")
    card = person.pages["Models"].cards[MODEL]
    person.until(lambda: not card.gpu_button.isEnabled())
    assert "GPU" in card.gpu_button.toolTip()


def test_unload_and_revert(person: Person) -> None:
    person.load_on_cpu()
    person.click(person.pages["Models"].cards[MODEL].unload_button)
    person.until(lambda: person.state() is ModelState.UNLOADED)
    person.add_route("mine", "/mine")
    person.until(lambda: person.window.actions_.revert.isEnabled())
    person.window.actions_.revert.trigger()
    person.until(lambda: person.bridge.snapshot.config.route("mine") is None)


def test_stop_and_start_the_node(person: Person) -> None:
    person.until(lambda: person.bridge.snapshot.node.state is NodeState.RUNNING)
    person.click(person.window.header.start_stop)
    person.until(lambda: person.bridge.snapshot.node.state is NodeState.STOPPED)
    person.click(person.window.header.start_stop)
    person.until(lambda: person.bridge.snapshot.node.state is NodeState.RUNNING)


def test_closing_during_a_prefill_leaves_nothing_running(person: Person) -> None:
    person.load_on_cpu()
    pid = person.bridge.snapshot.model(MODEL).pid
    connection = http.client.HTTPConnection(person.node.url.removeprefix("http://"), timeout=60)
    body = json.dumps({"model": MODEL, "prompt": "word " * 900, "max_tokens": 50, "stream": True})
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    person.until(lambda: person.bridge.snapshot.running > 0)
    person.window.close()
    person.bridge.stop()
    person.node.session.close()
    assert not Path(f"/proc/{pid}").exists()
    connection.close()


def test_a_model_file_that_is_no_model_fails_with_the_way_out_and_the_rest_goes_on(
    person: Person, tmp_path: Path
) -> None:
    bad = tmp_path / "old.bin"
    bad.write_bytes(b"tjgg" + b"\0" * 64)
    config = person.bridge.snapshot.config
    person.bridge.apply_config(config.with_model(config.model("second").model_copy(update={"path": bad})
                                                 , replacing="second"))  # fmt: skip
    person.until(lambda: person.bridge.snapshot.config.model("second").path == bad)
    person.load_on_cpu()
    person.click(person.pages["Models"].cards["second"].cpu_button)
    person.until(lambda: person.state("second") is ModelState.FAILED)
    error = person.bridge.snapshot.model("second").error
    assert "GGUF" in error
    assert person.state() is ModelState.READY
    person.until(lambda: any("GGUF" in label.text() for label in person.window.banners.findChildren(QLabel)))


def test_the_playground_streams_a_real_answer_through_a_route(person: Person) -> None:
    person.window.show_page("Playground")
    page = person.pages["Playground"]
    person.until(lambda: person.bridge.snapshot.node.url is not None)
    assert page.destination.value() == "route:chat"
    page.max_tokens.setValue(12)
    page.temperature.setValue(0.0)
    person.type(page.message, "Say hello.")
    person.qtbot.keyClick(page.message, Qt.Key.Key_Return)
    person.until(lambda: bool(page.transcript.turns) and page.transcript.turns[-1].kind in ("note", "error"))
    assert [turn.kind for turn in page.transcript.turns] == ["user", "assistant", "note"]
    assert page.transcript.turns[1].text.strip()
    assert all(value.text() != "–" for value in page.values.values())
