"""Everything that the guard may say of the machine has its words in Chinese."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laya_desktop.config.schema import GuardConfig
from laya_desktop.gui import i18n
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.node.forecast import Forecaster
from laya_desktop.node.guard_signs import Signs
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot

GB = 10**9
HOT = GpuSnapshot(
    index=0, name="A", vram_used_bytes=23 * GB, vram_total_bytes=24 * GB, temperature_c=99, throttle="heat"
)
MACHINE = MachineSnapshot(
    ram_used_bytes=60 * GB,
    ram_total_bytes=64 * GB,
    gpus=(HOT, replace(HOT, index=1)),
    cpu_temperature_c=99.0,
    cpu_throttle="heat",
    memory_some_avg10_percent=60.0,
    memory_full_avg10_percent=40.0,
    swap_in_bytes_per_s=9e7,
    disk_free_bytes=GB // 10,
)
KEPT = ("RAM", "VRAM", "CPU", "GPU", "GB", "MB", "s", "C", "my", "llm")
"""Names and units that are the same in every language."""


@pytest.fixture
def chinese():
    i18n.set_language("zh_CN")
    yield
    i18n.set_language("en")


def said(machine: MachineSnapshot, seconds: int = 40, growth: int = 0) -> dict[str, str]:
    """What is said by resource after some time in which memory grew by so much a second."""
    forecaster, signs, found = Forecaster(), Signs(), ()
    for i in range(seconds * 4):
        now = replace(machine, ram_used_bytes=machine.ram_used_bytes + growth * i // 4)
        waiting = {"my-llm": (min(i // 8, 64), 64)}
        forecasts = forecaster.update(1000 + i / 4, now, waiting, GuardConfig())
        found = signs.read(1000 + i / 4, forecasts, now)
    return {sign.resource: sign.text for sign in found}


def english_words(text: str) -> list[str]:
    words = "".join(c if c.isascii() and c.isalpha() else " " for c in text).split()
    return [word for word in words if word not in KEPT]


@pytest.mark.parametrize("growth", [0, GB // 20, -GB // 20])
def test_every_sign_is_said_in_chinese(chinese, growth):
    texts = said(MACHINE, growth=growth) | {
        f"{k} calm": t for k, t in said(replace(MACHINE, ram_used_bytes=GB)).items()
    }
    kinds = {"ram", "vram:0", "vram:1", "queue:my-llm", "pressure", "swap", "disk", "temperature", "throttle"}
    assert kinds <= texts.keys()
    assert {text: in_words(text) for text in texts.values() if english_words(in_words(text))} == {}


def test_heat_that_is_over(chinese):
    assert not english_words(in_words("Nothing slowed down by heat"))
    assert in_words("GPU 0 and CPU slowed down by heat").startswith("GPU 0")
