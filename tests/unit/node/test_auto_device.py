"""What ``device: auto`` chooses, on made-up GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.engines.auto_device import LEAST_SHARE, SAFE_SHARE, Decision, Measure, Needs, decide

GIB = 2**30


class Gpu:
    """A GPU with so much free, and a model of equal layers."""

    def __init__(self, free: int | None, layer: int = GIB, scratch: int = GIB, layers: int = 10, jump: int = 0) -> None:
        self.free, self.layer, self.scratch, self.layers = free, layer, scratch, layers
        self.jump = jump
        """More scratch with a part on the CPU, which no proportion tells."""
        self.asked: list[int] = []

    def needs(self, layers: int) -> Needs:
        scratch = self.scratch + (self.jump if layers < self.layers else 0)
        return Needs(layers, self.layers, layers * self.layer + scratch, scratch, self.free)

    def decide(self, wanted: int | None = None, measure: Measure | None = None) -> Decision:
        def ask(layers: int) -> Needs:
            self.asked.append(layers)
            return self.needs(layers)

        return decide(self.needs(self.layers if wanted is None else wanted), ask, measure)


def test_all_of_it_goes_to_the_gpu_where_it_fits() -> None:
    gpu = Gpu(24 * GIB)
    assert gpu.decide() == Decision(10, "auto chose the GPU: the model needs 11.0 GiB of 24.0 GiB that are free.")
    assert gpu.asked == [], "one dry run is enough"
    assert Gpu(11 * GIB).decide().layers < 10, "the driver needs some, too"


def test_a_part_goes_there_where_all_would_be_too_much() -> None:
    found = Gpu(8 * GIB).decide()
    assert found.layers == 6
    assert "8.0 GiB free and the model needs 11.0 GiB" in found.note
    assert "6 of 10 layers on the GPU" in found.note


@pytest.mark.parametrize(
    ("part", "cpu", "layers", "said"),
    [
        (20.04, 9.0, 6, "6 of 10 layers there make 20.0 tokens/s and the CPU alone 9.0, so auto put 6"),
        (5.0, 9.0, 0, "6 of 10 layers there make 5.0 tokens/s and the CPU alone 9.0, so auto chose the CPU."),
        (9.0, 9.0, 0, "so auto chose the CPU."),
        (None, 9.0, 0, "not both could be measured, so auto chose the CPU."),
        (5.0, None, 6, "not both could be measured, so auto put 6 of 10"),
        (None, None, 0, "not both could be measured, so auto chose the CPU."),
    ],
)
def test_a_part_must_be_measured_faster(part: float | None, cpu: float | None, layers: int, said: str) -> None:
    asked: list[int] = []

    def measure(count: int) -> float | None:
        asked.append(count)
        return part if count else cpu

    found = Gpu(8 * GIB).decide(measure=measure)
    assert found.layers == layers
    assert said in found.note
    assert asked == [6, 0]


@pytest.mark.parametrize("free", [24 * GIB, GIB, None])
def test_nothing_is_measured_where_memory_decides(free: int | None) -> None:
    def measure(_layers: int) -> float | None:
        raise AssertionError("a trial loads the model")

    Gpu(free).decide(measure=measure)


def test_the_layers_asked_for_are_the_most() -> None:
    assert Gpu(24 * GIB).decide(wanted=4).layers == 4
    assert Gpu(4 * GIB).decide(wanted=4).layers == 2
    assert "chose the CPU" in Gpu(24 * GIB).decide(wanted=0).note


@pytest.mark.parametrize("free", [0, GIB, int(2.2 * GIB)])
def test_a_layer_or_two_are_not_worth_it(free: int) -> None:
    found = Gpu(free).decide()
    assert found.layers == 0
    assert "auto chose the CPU" in found.note


def test_what_proportion_does_not_tell_is_asked() -> None:
    gpu = Gpu(8 * GIB, jump=2 * GIB)
    assert gpu.decide().layers == 4
    assert gpu.asked == [6, 4]


def test_a_gpu_that_does_not_tell_what_is_free_is_taken() -> None:
    assert Gpu(None).decide() == Decision(10, "auto chose the GPU.")


@given(
    free=st.integers(0, 64 * GIB),
    layer=st.integers(1, 2 * GIB),
    scratch=st.integers(0, 4 * GIB),
    layers=st.integers(1, 100),
    jump=st.integers(0, 2 * GIB),
)
def test_what_is_chosen_fits_and_is_worth_it(free: int, layer: int, scratch: int, layers: int, jump: int) -> None:
    gpu = Gpu(free, layer, scratch, layers, jump)
    found = gpu.decide()
    assert found == Gpu(free, layer, scratch, layers, jump).decide()
    assert found.note
    if found.layers:
        assert (gpu.needs(found.layers).gpu_bytes or 0) <= SAFE_SHARE * free
        assert found.layers == layers or found.layers >= LEAST_SHARE * layers
