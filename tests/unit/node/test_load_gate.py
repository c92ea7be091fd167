"""Which loads go ahead, in every mode, with and without a person who insists."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any

import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import EngineParams
from laya_desktop.node.load_gate import LoadGate
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import MemoryEstimate

PARAMS = EngineParams("m", "/models/m.gguf", slots=4, max_seq_len=4096)
NO_MEMORY = LayaError("The context cannot be made.", code="too_large")


class Desk:
    """A gate whose surroundings the test sets."""

    def __init__(self) -> None:
        self.sheds = True
        self.refusal: LayaError | None = None
        self.verdict: Verdict | LayaError = Verdict.FITS
        self.ceiling: int | None = 1000
        self.file: Hashable = ("m", 1)
        self.runtime: Any = SimpleNamespace(name="m", config=ModelConfig(name="m", path="m.gguf"), load_note=None)
        self.gate = LoadGate(lambda: self.sheds, lambda: self.refusal, self._estimate, self._ceiling, self._identify)

    async def _estimate(self, _model: ModelConfig, _device: str) -> MemoryEstimate:
        if isinstance(self.verdict, LayaError):
            raise self.verdict
        return MemoryEstimate(self.verdict, "Needs 9 GiB; 4 GiB are free.")

    async def _ceiling(self, _model: ModelConfig, override: bool) -> int | None:
        return None if override else self.ceiling

    async def _identify(self, _path: str) -> Hashable:
        return self.file

    def load(self, *, override: bool = False, params: EngineParams = PARAMS) -> EngineParams:
        return asyncio.run(self.gate.admit(self.runtime, params, override))

    def refused(self, **how: Any) -> str:
        with pytest.raises(LayaError) as caught:
            self.load(**how)
        assert caught.value.status == 503
        assert caught.value.retry_after_s or caught.value is self.refusal
        return caught.value.code


def test_what_fits_goes_ahead_with_its_ceiling() -> None:
    desk = Desk()
    assert desk.load().memory_limit_bytes == 1000
    assert desk.runtime.load_note is None


@pytest.mark.parametrize("verdict", [Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN, LayaError("No such file.")])
def test_only_will_not_fit_refuses(verdict: Verdict | LayaError) -> None:
    desk = Desk()
    desk.verdict = verdict
    desk.load()


def test_will_not_fit_is_refused_where_the_guard_sheds_and_not_when_a_person_insists() -> None:
    desk = Desk()
    desk.verdict = Verdict.WILL_NOT_FIT
    assert desk.refused() == "will_not_fit"
    assert desk.load(override=True).memory_limit_bytes is None
    assert desk.refused() == "will_not_fit"
    desk.sheds = False
    desk.load()


def test_the_guards_refusal_is_passed_on() -> None:
    desk = Desk()
    desk.refusal = LayaError("RAM is full.", code="overloaded", status=503)
    assert desk.refused() == "overloaded"
    desk.load(override=True)
    desk.sheds = False
    desk.load()


def test_a_load_that_ran_out_of_memory_is_refused_until_something_differs() -> None:
    desk = Desk()
    desk.sheds = False
    desk.load()
    desk.gate.failed("m", NO_MEMORY)
    assert desk.refused() == "out_of_memory"
    desk.load(params=EngineParams("m", "/models/m.gguf", slots=2, max_seq_len=4096))
    desk.ceiling = 2000
    desk.load()
    desk.ceiling = 1000
    desk.file = ("m", 2)
    desk.load()
    desk.file = ("m", 1)
    assert desk.refused() == "out_of_memory"


def test_a_later_death_or_another_reason_says_nothing_about_the_load() -> None:
    desk = Desk()
    desk.load()
    desk.gate.loaded("m")
    desk.gate.failed("m", NO_MEMORY)
    desk.load()
    desk.gate.failed("m", LayaError("No such file.", code="model_file"))
    desk.load()


def test_a_load_that_works_after_all_is_forgotten() -> None:
    desk = Desk()
    desk.ceiling = None
    desk.load()
    desk.gate.failed("m", NO_MEMORY)
    desk.load(override=True)
    desk.gate.loaded("m")
    desk.load()
