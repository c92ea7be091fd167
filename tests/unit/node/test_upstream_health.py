"""When an upstream counts as down."""

from __future__ import annotations

import pytest

from laya_desktop.node.upstream_health import MAX_PAUSE_S, Circuit


def test_nothing_is_known_at_first():
    circuit = Circuit(5.0, probed=True)
    assert (circuit.healthy, circuit.error, circuit.is_open) == (None, None, False)
    assert circuit.refused_for_s(0.0) is None


def test_three_failures_in_a_row_open_it_and_a_success_closes_it():
    circuit = Circuit(5.0, probed=True)
    circuit.failure("a", 0.0)
    circuit.failure("b", 5.0)
    assert (circuit.healthy, circuit.is_open, circuit.refused_for_s(5.0)) == (False, False, None)
    circuit.success()
    circuit.failure("c", 10.0)
    circuit.failure("d", 15.0)
    assert not circuit.is_open
    circuit.failure("e", 20.0)
    assert circuit.is_open
    assert circuit.error == "e"
    assert circuit.refused_for_s(22.0) == pytest.approx(8.0)
    assert circuit.refused_for_s(31.0) == 1.0
    circuit.success()
    assert (circuit.healthy, circuit.error, circuit.refused_for_s(31.0)) == (True, None, None)


def test_pauses_double_up_to_a_minute():
    circuit = Circuit(5.0, probed=True)
    pauses = []
    for i in range(8):
        circuit.failure("x", float(i))
        pauses.append(circuit.pause_s)
    assert pauses == [5, 5, 10, 20, 40, 60, 60, 60]
    for _ in range(2000):
        circuit.failure("x", 0.0)
    assert circuit.pause_s == MAX_PAUSE_S
    assert Circuit(300.0, probed=True).pause_s == 300.0


def test_without_checks_one_request_at_a_time_is_let_through_as_a_trial():
    circuit = Circuit(5.0, probed=False)
    for _ in range(3):
        circuit.failure("x", 100.0)
    assert circuit.refused_for_s(101.0) == pytest.approx(9.0)
    assert circuit.refused_for_s(110.0) is None
    assert circuit.refused_for_s(110.0) == pytest.approx(10.0)
    circuit.failure("x", 111.0)
    assert circuit.refused_for_s(112.0) == pytest.approx(19.0)
    circuit.success()
    assert circuit.refused_for_s(112.0) is None
