"""The first steps: three, skippable, once; the suggestion fits the machine; the demo is one click away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from laya_desktop.config.schema import NodeConfig
from laya_desktop.gui import window as windows
from laya_desktop.gui.qtmodels.first_model import first_model, places
from laya_desktop.logs import LogRing
from laya_desktop.state.snapshot import ConfigStatus, FoundModel, ModelFileInfo
from tests.helpers.sample_data import sample_snapshot

GB = 1_000_000_000


def found(name, gigabytes, source="LM Studio", **changes):
    path = f"/models/{name}.gguf"
    info = ModelFileInfo(path, gigabytes * GB, has_chat_template=True)
    return FoundModel(path, name, source, gigabytes * GB, **{"info": info, **changes})


MODELS = (
    found("small", 1), found("right", 8), found("huge", 200), found("folder", 4, engine="transformers"),
    found("broken", 9, problem="The file ends too early."), found("other", 2, "Ollama"),
)  # fmt: skip


@pytest.fixture
def both(qtbot, bridge, dialogs, service):
    service.answers["find_models"] = MODELS
    window, habits = windows.assemble(bridge, LogRing(), dialogs)
    qtbot.addWidget(
        window, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    qtbot.addWidget(habits.mini)
    window.show()
    yield window, habits
    habits.close()


def test_the_largest_that_fits_with_ease_is_suggested():
    snapshot = sample_snapshot()
    assert first_model(MODELS, snapshot).name == "right"
    machine = replace(snapshot.machine, gpus=(), ram_available_bytes=3 * GB)
    assert first_model(MODELS, replace(snapshot, machine=machine)).name == "small"
    unknown = replace(snapshot, machine=replace(machine, ram_available_bytes=None))
    assert first_model(MODELS, unknown) is None
    no_chat = ModelFileInfo("/e", 2 * GB, has_chat_template=False)
    assert first_model((found("embedder", 2, info=no_chat),), snapshot) is None
    assert places(MODELS) == [("LM Studio", 4), ("Ollama", 1)]


def test_three_steps_then_never_again(qtbot, both, bridge):
    _window, habits = both
    habits.welcome_once()
    welcome = habits.welcome
    bridge.poll()
    assert welcome.isVisible()
    assert "4 model" in welcome.places.text()
    assert "LM Studio" in welcome.places.text()
    for _ in range(3):
        qtbot.mouseClick(welcome.forward, Qt.MouseButton.LeftButton)
    assert welcome.isHidden()
    habits.welcome_once()
    assert welcome.isHidden()


def test_escape_skips_for_good(qtbot, both):
    _window, habits = both
    habits.welcome_once()
    qtbot.keyClick(habits.welcome.forward, Qt.Key.Key_Escape)
    assert habits.welcome.isHidden()
    assert habits.preferences.welcomed


def test_the_suggested_model_is_added_and_loaded_by_one_press(qtbot, both, bridge, service):
    window, habits = both
    habits.welcome_once()
    bridge.poll()
    habits.welcome.next()
    assert "right" in habits.welcome.offer.text()
    assert not service.called("apply_config")  # nothing before the button is pressed
    qtbot.mouseClick(habits.welcome.take, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert service.called("apply_config")[0].args[0].models[-1].path.name == "right.gguf"
    assert service.called("load_model")[0].args[0] == "right"
    assert window.page == "Models"
    assert habits.welcome.step == 2
    assert habits.welcome.address.full_text == "http://127.0.0.1:5292/v1"
    qtbot.mouseClick(habits.welcome.playground, Qt.MouseButton.LeftButton)
    assert window.page == "Playground"


def test_the_demo_is_one_press_away_and_added_where_it_is_missing(qtbot, both, bridge, service):
    _window, habits = both
    service.publish(config=NodeConfig())
    bridge.poll()
    habits.welcome_once()
    habits.welcome.next()
    qtbot.mouseClick(habits.welcome.demo, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert [m.name for m in service.called("apply_config")[0].args[0].models] == ["smollm2-135m"]
    assert service.called("load_model")[0].args[0] == "smollm2-135m"


def test_nothing_found_says_what_to_do(both, bridge, service):
    _window, habits = both
    service.answers["find_models"] = ()
    habits.welcome.open()
    bridge.poll()
    assert "The next step has one" in habits.welcome.places.text()
    habits.welcome.next()
    assert not habits.welcome.take.isVisible()
    assert habits.welcome.demo.isVisible()


def test_another_folder_is_searched_at_once(qtbot, both, bridge, service, dialogs, tmp_path):
    _window, habits = both
    habits.welcome.open()
    bridge.poll()
    dialogs.path = tmp_path
    qtbot.mouseClick(habits.welcome.folder, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert tmp_path in service.called("apply_config")[0].args[0].model_folders
    assert len(service.called("find_models")) == 2
