"""Models found on the machine: what the list shows, and what Add does to the configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui.qtmodels.found_models import FoundColumn, FoundTableModel, fields_for, rows_of
from laya_desktop.gui.qtmodels.model_cards import card_values
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE
from laya_desktop.gui.views.models_page import ModelsPage
from laya_desktop.state.snapshot import Capability, FoundModel, ModelFileInfo


def found(name: str, path: str, **fields: object) -> FoundModel:
    info = ModelFileInfo(path, 4_700_000_000, "llama", name, 8_000_000_000, "Q4_K_M", 2048)
    return FoundModel(path, name, "Ollama", 4_700_000_000, **({"info": info} | fields))  # type: ignore[arg-type]


LLAMA = found("llama3:8b", "/ollama/blobs/sha256-1")
TINY = FoundModel("/hub/tiny", "Org/Tiny", "Hugging Face", 500_000_000, None, "transformers")
BROKEN = found("cut", "/lm/cut.gguf", info=None, problem="/lm/cut.gguf is cut off.")


@pytest.fixture
def page(qtbot, bridge, service):
    service.answers["find_models"] = (LLAMA, TINY, BROKEN)
    page = ModelsPage(bridge, choose=lambda _parent, folder: "/more/models" if folder else "")
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    yield page
    page.close()


def find(page, bridge) -> None:
    page.find_button.click()
    bridge.poll()


def shown(page) -> list[list[str]]:
    model = page.finder.model
    return [[model.index(r, c).data() for c in range(model.columnCount())] for r in range(model.rowCount())]


def test_the_table_is_a_sound_model(qtmodeltester, qapp) -> None:
    model = FoundTableModel()
    model.update_rows(rows_of((LLAMA, TINY, BROKEN), NodeConfig()))
    qtmodeltester.check(model)


def test_find_models_lists_them_in_place_of_the_cards(page, bridge, service) -> None:
    find(page, bridge)
    assert shown(page) == [
        ["llama3:8b", "Ollama", "4.7 GB", "Q4_K_M", ""],
        ["Org/Tiny", "Hugging Face", "500 MB", "–", ""],
        ["cut", "Ollama", "4.7 GB", "–", "cannot be loaded"],
    ]
    assert page.finder.isVisible()
    assert page.finder.count.text() == "3 models"
    page.finder.close_button.click()
    assert not page.finder.isVisible()
    assert page.list.isVisible()


def test_add_configures_the_model_at_once(page, bridge, service) -> None:
    find(page, bridge)
    assert not page.finder.add_button.isEnabled()
    page.finder.table.selectRow(0)
    assert page.finder.explanation.text().replace("\u200b", "") == LLAMA.path
    page.finder.add_button.click()
    bridge.poll()
    (call,) = service.called("apply_config")
    model = call.args[0].models[-1]
    assert (model.name, model.path, model.engine, model.max_seq_len) == (
        "llama3-8b",
        Path(LLAMA.path),
        "llama_cpp",
        2048,
    )
    page.set_snapshot(bridge.snapshot)
    assert page.editor.name == "llama3-8b"
    assert shown(page)[0][FoundColumn.STATE] == "added"
    assert not page.finder.add_button.isEnabled()
    page.finder.table.selectRow(1)
    page.finder.table.doubleClicked.emit(page.finder.model.index(1, 0))
    assert service.called("apply_config")[1].args[0].models[-1].engine == "transformers"


def test_a_broken_file_cannot_be_added_and_says_why(page, bridge, service) -> None:
    find(page, bridge)
    page.finder.table.selectRow(2)
    assert not page.finder.add_button.isEnabled()
    assert "is cut off" in page.finder.explanation.text()
    page.finder.table.doubleClicked.emit(page.finder.model.index(2, 0))
    assert service.called("apply_config") == []
    assert page.finder.model.index(2, FoundColumn.STATE).data(TONE_ROLE) == "warn"
    assert "cut off" in page.finder.model.index(2, 0).data(Qt.ItemDataRole.ToolTipRole)


def test_keys_add_and_close(page, bridge, service, qtbot) -> None:
    find(page, bridge)
    page.finder.table.selectRow(0)
    qtbot.keyClick(page.finder.table, Qt.Key.Key_Return)
    assert len(service.called("apply_config")) == 1
    qtbot.keyClick(page.finder.table, Qt.Key.Key_Escape)
    assert not page.finder.isVisible()


def test_the_filter_acts_on_the_list(page, bridge) -> None:
    find(page, bridge)
    page.filter.setText("hugging tiny")
    assert [r[0] for r in shown(page)] == ["Org/Tiny"]
    page.filter.setText("nothing like it")
    assert shown(page) == []
    assert page.finder.empty.isVisible()


def test_while_it_searches_and_when_nothing_is_there(page, bridge, service) -> None:
    service.manual = True
    page.find_button.click()
    page.find_button.click()
    bridge.poll()
    assert not page.finder.again_button.isEnabled()
    assert page.finder.empty.isVisible()
    first, second = service.called("find_models")
    second.future.set_result((LLAMA,))
    first.future.set_result((TINY,))  # too late
    bridge.poll()
    assert [r[0] for r in shown(page)] == ["llama3:8b"]
    page.finder.again_button.click()
    service.called("find_models")[2].future.set_exception(LayaError("The node is closed."))
    bridge.poll()
    assert shown(page) == []
    assert page.finder.again_button.isEnabled()


def test_another_folder_is_searched_from_now_on(page, bridge, service) -> None:
    find(page, bridge)
    page.finder.folder_button.click()
    bridge.poll()
    assert service.called("apply_config")[0].args[0].model_folders == (Path("/more/models"),)
    assert len(service.called("find_models")) == 2


def test_a_gpu_for_pytorch_is_the_machines_not_llamas(service) -> None:
    snapshot = service.snapshot
    model = ModelConfig(name="t", path="/hub/tiny", engine="transformers")
    without = replace(snapshot, capability=Capability(probed=True, reason="This llama.cpp build has no GPU backend."))
    assert card_values(model, without, NodeConfig()).gpu_reason == ""
    assert card_values(model.model_copy(update={"engine": "llama_cpp"}), without, NodeConfig()).gpu_reason
    bare = replace(without, machine=replace(snapshot.machine, gpus=(), gpu_reason=None))
    assert "No GPU" in card_values(model, bare, NodeConfig()).gpu_reason


def test_what_is_configured_is_known_by_its_path() -> None:
    models = (ModelConfig(name="a", path="/ollama/blobs/sha256-1"), ModelConfig(name="b", path="hub/tiny"))
    assert [r.added_as for r in rows_of((LLAMA, TINY, BROKEN), NodeConfig(models=models))] == ["a", "b", None]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("llama3:8b", "llama3-8b"), ("hf.co/me/Mine-GGUF:q4", "mine-gguf-q4"), ("Org/Tiny", "tiny"), ("…", "model")],
)
def test_names_that_callers_can_write(name: str, wanted: str) -> None:
    fields = fields_for(found(name, "/x/y.gguf"), NodeConfig())
    assert (fields.name, fields.path) == (wanted, "/x/y.gguf")
    taken = NodeConfig(models=(ModelConfig(name=wanted, path="/z.gguf"),))
    assert fields_for(found(name, "/x/y.gguf"), taken).name == f"{wanted}-2"
