"""Folding of repeated lines."""

from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.logs.repeats import BURST, KEYS, WINDOW_S, Repeats

LINE = ("warn", "laya_desktop.x", "the disk is on fire")


def test_repeats_beyond_the_burst_become_one_line():
    repeats = Repeats()
    passed = [repeats.admit(LINE, i * 0.01) for i in range(BURST + 120)]
    assert passed == [True] * BURST + [False] * 120
    assert repeats.due(WINDOW_S - 0.1) == []
    assert repeats.due(WINDOW_S) == [("warn", "laya_desktop.x", "the disk is on fire … repeated 120 more times")]
    assert not repeats.pending
    assert repeats.admit(LINE, WINDOW_S + 1), "a new window begins"


def test_a_few_equal_lines_are_left_alone():
    repeats = Repeats()
    assert all(repeats.admit(LINE, 0.0) for _ in range(BURST))
    assert repeats.due(WINDOW_S) == []


def test_a_traceback_is_summed_up_by_its_first_line():
    repeats = Repeats()
    for _ in range(BURST + 1):
        repeats.admit(("error", "x", "it failed\nTraceback …"), 0.0)
    assert repeats.due(0.0, everything=True) == [("error", "x", "it failed … repeated once more")]


def test_a_clock_set_back_ends_the_window():
    repeats = Repeats()
    for _ in range(BURST + 2):
        repeats.admit(LINE, 1000.0)
    assert len(repeats.due(10.0)) == 1


def test_an_empty_message_is_summed_up_too():
    repeats = Repeats()
    for _ in range(BURST + 2):
        repeats.admit(("info", "x", ""), 0.0)
    assert repeats.due(WINDOW_S) == [("info", "x", " … repeated 2 more times")]


@given(st.lists(st.integers(0, 400), max_size=600))
def test_every_line_is_either_written_or_counted_and_memory_is_bounded(numbers):
    repeats = Repeats()
    written = counted = 0
    for i, number in enumerate(numbers):
        for _, _, text in repeats.due(i * 0.01):
            counted += 1 if "once more" in text else int(text.split()[-3])
        written += repeats.admit(("info", "x", f"line {number}"), i * 0.01)
        assert len(repeats._windows) <= KEYS + 1
    for _, _, text in repeats.due(9e9, everything=True):
        counted += 1 if "once more" in text else int(text.split()[-3])
    assert written + counted == len(numbers)
