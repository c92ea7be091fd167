"""What the next edit starts from, while earlier ones are on their way to the node."""

from __future__ import annotations

from dataclasses import replace

from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from tests.helpers.fake_service import FakeService
from tests.helpers.sample_data import sample_config, sample_snapshot


def edited(config, size: int):
    model = config.models[0].model_copy(update={"batch_size": size})
    return config.with_model(model, model.name)


def in_hand(qapp) -> tuple[FakeService, NodeBridge]:
    service = FakeService(sample_snapshot(), manual=True)
    return service, NodeBridge(service)


def show(service: FakeService, config, revision: int) -> None:
    service.publish(config=config, config_status=replace(service.snapshot.config_status, revision=revision))


def test_a_snapshot_that_lags_behind_an_accepted_edit_does_not_lose_it(qapp) -> None:
    service, bridge = in_hand(qapp)
    config = edited(sample_config(), 9)
    bridge.apply_config(config)
    service.settle("apply_config")
    service.publish()  # made before the edit was in force
    bridge.poll()
    assert bridge.config == config
    show(service, config, 8)
    bridge.poll()
    elsewhere = edited(sample_config(), 2)
    show(service, elsewhere, 9)
    bridge.poll()
    assert bridge.config == elsewhere


def test_a_refused_edit_falls_back_to_the_accepted_one_before_it(qapp) -> None:
    service, bridge = in_hand(qapp)
    first, second = edited(sample_config(), 9), edited(sample_config(), 10)
    refusals: list[LayaError] = []
    bridge.apply_config(first)
    bridge.apply_config(second, failed=refusals.append)
    assert bridge.config == second
    service.settle("apply_config")
    service.fail("apply_config", LayaError("No."))
    bridge.poll()
    assert bridge.config == first
    assert [e.message for e in refusals] == ["No."]


def test_a_refused_edit_alone_leaves_what_is_in_force(qapp) -> None:
    service, bridge = in_hand(qapp)
    bridge.apply_config(edited(sample_config(), 9), failed=lambda _error: None)
    service.fail("apply_config", LayaError("No."))
    bridge.poll()
    assert bridge.config == sample_config()
