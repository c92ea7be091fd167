"""The Models page with real widgets on a fake service: buttons ask, cards follow, edits act or explain themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollArea

from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.qtmodels.model_estimate import file_words
from laya_desktop.gui.views.models_page import ModelsPage
from laya_desktop.state.enums import ModelState, Verdict
from laya_desktop.state.snapshot import CacheSnapshot, MemoryEstimate, ModelFileInfo, ModelSnapshot, Proposal
from tests.helpers.fake_service import FakeService
from tests.helpers.sample_data import sample_config, sample_snapshot


class Desk:
    """A page, its bridge and the service behind it; dialogs are answered by attributes."""

    def __init__(self, qtbot, *, gpu: bool = True, **changes) -> None:
        self.qtbot = qtbot
        self.service = FakeService(sample_snapshot(gpu=gpu, **changes))
        self.bridge = NodeBridge(self.service)
        self.questions: list[str] = []
        self.yes, self.chosen = True, ""
        self.page = ModelsPage(self.bridge, self.ask, self.choose)
        self.bridge.snapshot_changed.connect(self.page.set_snapshot)
        qtbot.addWidget(self.page)
        self.page.resize(1104, 724)
        self.page.show()

    def ask(self, _parent, question: str, _action: str) -> bool:
        self.questions.append(question)
        return self.yes

    def choose(self, _parent, folder: bool) -> str:
        self.asked_for_folder = folder
        return self.chosen

    @property
    def config(self):
        return self.service.snapshot.config

    @property
    def form(self):
        return self.page.form

    def until(self, condition: Callable[[], bool]) -> None:
        def met() -> bool:
            self.bridge.poll()
            return bool(condition())

        self.qtbot.waitUntil(met, timeout=3000)

    def retype(self, editor, text: str) -> None:
        editor.setFocus()
        editor.selectAll()
        self.qtbot.keyClicks(editor, text)

    def click(self, widget) -> None:
        self.qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)

    def publish_model(self, **changes) -> None:
        models = self.service.snapshot.models
        new = tuple(replace(m, **changes) if m.name == "smollm2-135m" else m for m in models)
        self.service.publish(models=new)
        self.bridge.poll()


@pytest.fixture
def desk(qtbot) -> Desk:
    return Desk(qtbot)


def test_load_on_cpu_and_gpu_ask_the_node(desk: Desk) -> None:
    card = desk.page.cards["smollm2-135m"]
    desk.click(card.cpu_button)
    desk.click(card.gpu_button)
    calls = [call.args for call in desk.service.called("load_model")]
    assert calls == [("smollm2-135m", "cpu"), ("smollm2-135m", "gpu")]
    assert card.pill.text == "Not loaded"


def test_a_card_follows_a_load_in_place(desk: Desk) -> None:
    card = desk.page.cards["smollm2-135m"]
    desk.publish_model(state=ModelState.LOADING, progress=0.3)
    assert (card.pill.text, card.progress.isVisible(), card.cpu_button.isVisible()) == ("Loading 30 %", True, False)
    desk.publish_model(state=ModelState.READY, device="CPU", offloaded_layers=0, progress=None)
    assert (card.pill.text, card.progress.isVisible(), card.unload_button.isVisible()) == ("Ready · CPU", False, True)
    assert desk.page.cards["smollm2-135m"] is card
    desk.click(card.unload_button)
    assert desk.service.called("unload_model")[0].args == ("smollm2-135m",)


def test_without_a_gpu_the_button_says_why(qtbot) -> None:
    desk = Desk(qtbot, gpu=False)
    card = desk.page.cards["smollm2-135m"]
    assert not card.gpu_button.isEnabled()
    assert card.gpu_button.toolTip() == "No NVIDIA GPU found."
    assert card.gpu_note.full_text == "No NVIDIA GPU found."
    assert card.gpu_note.isVisible()


def test_a_failed_load_shows_reason_log_and_ways_out(desk: Desk) -> None:
    card = desk.page.cards["qwen3-32b"]
    assert card.pill.text == "Failed: out of memory"
    assert "41 of 65 layers" in card.error.text()
    assert not card.log.isVisible()
    desk.click(card.log_button)
    assert "cudaMalloc failed" in card.log.toPlainText()
    assert card.log.isVisible()
    desk.click(card.retry_button)
    assert desk.service.called("load_model")[0].args == ("qwen3-32b", None)
    desk.click(card.edit_button)
    assert desk.form.name.text() == "qwen3-32b"


def test_copy_curl(desk: Desk) -> None:
    desk.click(desk.page.cards["my-llm-7b"].curl_button)
    assert "http://127.0.0.1:5292/v1/model/chat/completions" in QGuiApplication.clipboard().text()


def test_an_edit_acts_and_offers_a_reload_where_it_must_wait(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.retype(desk.form.batch_size, "8")
    desk.until(lambda: desk.config.model("my-llm-7b").batch_size == 8)
    card = desk.page.cards["my-llm-7b"]
    desk.until(lambda: "slots 4 → 8" in card.reload_note.text())
    assert desk.page.panel.subtitle.full_text == "Changes take effect at the next load."
    desk.click(card.reload_button)
    assert desk.service.called("load_model")[0].args == ("my-llm-7b", None)


def test_a_bad_value_changes_nothing_and_says_what_to_write(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.retype(desk.form.max_wait, "soon")
    desk.until(lambda: desk.form.rows["max_wait"].error == "Not a duration. Write 300s, 5m or 1h.")
    assert desk.service.called("apply_config") == []
    desk.service.publish()
    desk.bridge.poll()
    assert desk.form.max_wait.text() == "soon"
    desk.retype(desk.form.max_wait, "30s")
    desk.until(lambda: desk.config.model("my-llm-7b").queue.max_wait == 30.0)
    assert desk.form.rows["max_wait"].error is None


def test_a_renamed_model_keeps_its_routes(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.retype(desk.form.name, "talker")
    desk.qtbot.keyClick(desk.form.name, Qt.Key.Key_Return)
    desk.until(lambda: desk.config.model("talker") is not None)
    assert desk.config.route("chat").target == "talker"
    assert desk.page.cards["talker"].property("selected")
    assert "my-llm-7b" not in desk.page.cards


def test_the_file_is_inspected_and_described(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.until(lambda: "llama 6.7B · Q4_K_M" in desk.page.cards["my-llm-7b"].meta.text())
    assert "· chat template" in desk.form.rows["path"].hint
    asked = {call.args[0] for call in desk.service.called("inspect_model")}
    assert Path("/data/models/my-llm-7b-q4_k_m.gguf") in asked
    assert len(asked) == len(desk.service.called("inspect_model")) == 4


@pytest.mark.parametrize(
    "fault",
    [
        LayaError("There is no file /x.gguf.", hint="Check the path."),
        LayaError("/x is a directory.", hint="Choose a .gguf file in it."),
        LayaError("/x.bin is a GGML file from before GGUF.", hint="Convert it to GGUF."),
    ],
)
def test_what_is_wrong_with_the_file_stands_under_it(qtbot, fault: LayaError) -> None:
    desk = Desk(qtbot)
    desk.bridge.poll()
    desk.service.answers["inspect_model"] = fault
    desk.page.select("smollm2-135m")
    desk.retype(desk.form.path.line, "/x.bin")
    desk.qtbot.keyClick(desk.form.path.line, Qt.Key.Key_Return)
    desk.form.name.setFocus()
    desk.until(lambda: desk.form.rows["path"].error == str(fault))
    assert desk.page.cards["smollm2-135m"].note.text() == str(fault)


def test_the_estimate_follows_the_form(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.until(lambda: desk.form.estimate.verdict.text() == "fits")
    assert "KV cache 2.1 GB" in desk.form.estimate.caption.text()
    desk.service.answers["estimate_model"] = MemoryEstimate(
        Verdict.WILL_NOT_FIT, "Needs 30 GB, 16 GB are free. Use fewer slots.", "gpu", 20, 10, 0, 30, 16
    )
    desk.retype(desk.form.max_seq_len, "65536")
    desk.until(lambda: desk.form.estimate.verdict.text() == "will not fit")
    assert desk.service.called("estimate_model")[-1].args[0].max_seq_len == 65536
    assert "Use fewer slots" in desk.form.estimate.reason.text()


def test_what_does_not_fit_is_made_to_fit_with_one_click(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.until(lambda: desk.form.estimate.verdict.text() == "fits")
    assert not desk.form.estimate.fit.isVisible()
    desk.service.answers["estimate_model"] = MemoryEstimate(
        Verdict.WILL_NOT_FIT, "Needs 30 GB.", proposal=Proposal("q8_0", 8192, 2, text="kv_type q8_0")
    )
    desk.retype(desk.form.max_seq_len, "65536")
    desk.until(lambda: desk.form.estimate.fit.isVisible())
    assert desk.form.estimate.offer.text().startswith("KV cache q8_0, context 8,192, 2 slot")
    desk.service.answers["estimate_model"] = MemoryEstimate(Verdict.FITS)
    desk.click(desk.form.estimate.fit)
    desk.until(lambda: desk.config.model("my-llm-7b").max_seq_len == 8192)
    wanted = desk.config.model("my-llm-7b")
    assert (wanted.kv_type, wanted.batch_size) == ("q8_0", 2)
    assert desk.form.kv_type.isVisible(), "what was filled in is seen"
    desk.until(lambda: not desk.form.estimate.fit.isVisible())
    assert desk.service.called("estimate_model")[-1].args[0].batch_size == 2


def test_a_late_estimate_of_another_model_is_dropped(qtbot) -> None:
    desk = Desk(qtbot)
    desk.service.manual = True
    desk.page.select("my-llm-7b")
    desk.until(lambda: len(desk.service.called("estimate_model")) == 1)
    desk.page.select("qwen3-32b")
    desk.until(lambda: len(desk.service.called("estimate_model")) == 2)
    desk.service.settle("estimate_model", MemoryEstimate(Verdict.FITS))
    desk.service.settle("estimate_model", MemoryEstimate(Verdict.TIGHT))
    desk.until(lambda: desk.form.estimate.verdict.text() == "tight")


def test_a_new_model_is_named_after_its_file_and_added(desk: Desk) -> None:
    desk.page.add_button.click()
    assert desk.page.editor.is_draft
    assert desk.form.rows["path"].error is None
    desk.chosen = "/data/Gemma3-270M-Q4_K_M.gguf"
    desk.click(desk.form.path.browse)
    assert desk.form.name.text() == "gemma3-270m"
    assert desk.service.called("apply_config") == []
    desk.page.panel.add_button.click()
    desk.until(lambda: desk.config.model("gemma3-270m") is not None)
    desk.until(lambda: "gemma3-270m" in desk.page.cards)


def test_files_that_were_used_lately_are_offered_while_they_are_there(desk: Desk, tmp_path) -> None:
    first, second = tmp_path / "first.gguf", tmp_path / "second.gguf"
    for file in (first, second):
        file.touch()
        desk.page.add_button.click()
        desk.chosen = str(file)
        desk.click(desk.form.path.browse)
        desk.page.panel.discard_button.click()
    desk.form.path.fill_menu()
    assert [action.toolTip() for action in desk.form.path.menu.actions()] == [str(second), str(first)]
    desk.page.add_button.click()
    desk.form.path.menu.actions()[1].trigger()
    assert desk.form.path.value() == str(first)
    assert desk.form.name.text() == "first"
    second.unlink()
    desk.form.path.fill_menu()
    assert [action.toolTip() for action in desk.form.path.menu.actions()] == [str(first)]
    first.unlink()
    desk.form.path.fill_menu()
    assert not desk.form.path.menu.actions()[0].isEnabled()


def test_a_transformers_model_is_a_folder(desk: Desk) -> None:
    desk.page.add_button.click()
    desk.form.engine.set_value("transformers")
    desk.form.engine.edited.emit()
    desk.service.answers["inspect_model"] = LayaError("/m/tiny is a folder, not a model file.")
    desk.chosen = "/m/tiny"
    desk.click(desk.form.path.browse)
    desk.bridge.poll()
    assert desk.asked_for_folder
    assert desk.form.rows["path"].error is None
    desk.page.panel.add_button.click()
    desk.until(lambda: desk.config.model("tiny") is not None)
    assert desk.config.model("tiny").engine == "transformers"


def test_a_draft_without_a_file_says_what_it_needs(desk: Desk) -> None:
    desk.page.add_button.click()
    desk.page.panel.add_button.click()
    assert "needs the path" in desk.form.rows["path"].error
    assert desk.service.called("apply_config") == []


def test_delete_asks_where_routes_use_it_and_takes_them_along(desk: Desk) -> None:
    desk.page.select("my-llm-7b")
    desk.yes = False
    desk.page.delete_button.click()
    assert desk.config.model("my-llm-7b") is not None
    desk.yes = True
    desk.page.delete_button.click()
    desk.until(lambda: desk.config.model("my-llm-7b") is None)
    assert [r.name for r in desk.config.routes] == ["health-check", "big box", "users"]
    assert "chat and fast lane" in desk.questions[0]
    assert desk.form.name.text() == "smollm2-135m"


def test_delete_does_not_ask_where_nothing_is_lost(desk: Desk) -> None:
    desk.page.select("qwen3-32b")
    desk.page.delete_button.click()
    desk.until(lambda: desk.config.model("qwen3-32b") is None)
    assert desk.questions == []


def test_a_click_on_a_card_selects_it(desk: Desk) -> None:
    desk.click(desk.page.cards["embed-mini"])
    assert desk.form.name.text() == "embed-mini"
    assert desk.page.cards["embed-mini"].property("selected")


def test_the_filter_hides_cards(desk: Desk) -> None:
    desk.qtbot.keyClicks(desk.page.filter, "qwen")
    assert [name for name, card in desk.page.cards.items() if card.isVisible()] == ["qwen3-32b"]


def test_snapshots_without_news_touch_no_card(desk: Desk) -> None:
    desk.bridge.poll()
    before = {name: card.values for name, card in desk.page.cards.items()}
    desk.service.publish()
    desk.bridge.poll()
    assert all(desk.page.cards[name].values is values for name, values in before.items())


def test_no_models_says_what_to_do(qtbot) -> None:
    desk = Desk(qtbot, config=sample_config(models=[], routes=[]), models=())
    assert desk.page.empty.isVisible()
    desk.page.empty.action.click()
    assert desk.page.editor.is_draft


def test_a_model_the_node_has_not_reported_yet_has_a_card(qtbot) -> None:
    desk = Desk(qtbot, models=(ModelSnapshot("my-llm-7b"),))
    assert desk.page.cards["embed-mini"].pill.text == "Not loaded"


def test_the_cache_says_what_it_was_worth_and_is_cleared(desk: Desk) -> None:
    card = desk.page.cards["smollm2-135m"]
    desk.publish_model(cache=None)
    assert not card.clear_button.isVisible()
    desk.publish_model(cache=CacheSnapshot(enabled=True, entries=3, bytes=5000, hits=12, misses=28, saved_s=30.0))
    assert card.values.cache == "Cache: 12 of 40 requests, 30 s saved · 3 answers, 5 kB"
    desk.click(card.clear_button)
    assert desk.service.called("clear_cache")[0].args == ("smollm2-135m",)


def test_a_ready_model_is_one_press_from_a_chat(desk: Desk) -> None:
    card = desk.page.cards["smollm2-135m"]
    desk.publish_model(state=ModelState.READY)
    with desk.qtbot.waitSignal(desk.page.chat_wanted) as wanted:
        desk.click(card.chat_button)
    assert wanted.args == ["smollm2-135m"]
    desk.publish_model(state=ModelState.UNLOADED)
    assert not card.chat_button.isVisible()


def test_a_duplicate_is_a_draft_under_a_free_name(desk: Desk) -> None:
    desk.page.select("smollm2-135m")
    desk.click(desk.page.copy_button)
    assert desk.page.editor.is_draft
    assert desk.form.name.value() not in {m.name for m in desk.config.models}
    assert desk.form.path.value() == str(desk.config.model_called("smollm2-135m").path)


def test_a_file_without_a_template_says_so() -> None:
    info = ModelFileInfo(Path("/x.gguf"), 98_000_000, architecture="llama", quantisation="Q4_1")
    assert file_words(info, "135M") == "llama 135M · Q4_1 · 98 MB · no chat template"


@pytest.mark.parametrize("size", [(1000, 560), (800, 500)])
def test_the_form_is_never_wider_than_what_its_panel_shows(desk: Desk, size: tuple[int, int]) -> None:
    desk.page.resize(*size)
    desk.page.select("my-llm-7b")
    desk.form.advanced.setChecked(True)
    area = next(a for a in desk.page.panel.findChildren(QScrollArea) if a.isAncestorOf(desk.form))
    desk.until(lambda: area.verticalScrollBar().isVisible())
    assert area.widget().minimumSizeHint().width() <= area.viewport().width()
