"""Which sights of a file are worth reading: a script of looks, without files and clocks."""

from __future__ import annotations

from laya_desktop.node.config_keeper import GONE, Sight
from laya_desktop.node.config_watch import Settling

READ: Sight = (1, 10)


def due(settling: Settling, *sights: Sight, known: Sight = READ) -> list[bool]:
    return [settling.is_due(sight, known) for sight in sights]


def test_an_untouched_file_is_never_read() -> None:
    assert due(Settling(), READ, READ, READ) == [False] * 3


def test_a_change_is_read_once_after_it_has_stood_still() -> None:
    assert due(Settling(), READ, (2, 12), (2, 12), (2, 12), (2, 12)) == [False, False, True, False, False]


def test_a_file_that_keeps_changing_is_left_alone_until_it_settles() -> None:
    assert due(Settling(), READ, (2, 5), (3, 6), (4, 7), (4, 7)) == [False, False, False, False, True]


def test_a_file_gone_for_one_look_only_was_being_replaced() -> None:
    assert due(Settling(), READ, GONE, (2, 10), (2, 10)) == [False, False, False, True]


def test_a_file_that_stays_away_is_told_once() -> None:
    assert due(Settling(), READ, GONE, GONE, GONE) == [False, False, True, False]


def test_back_as_it_was_read_and_changed_again_counts_as_new() -> None:
    assert due(Settling(), (2, 9), (2, 9), READ, (2, 9), (2, 9)) == [False, True, False, False, True]


def test_judge_again_takes_the_same_sight_once_more() -> None:
    settling = Settling()
    assert due(settling, (2, 9), (2, 9), (2, 9)) == [False, True, False]
    settling.judge_again()
    assert due(settling, (2, 9), (2, 9)) == [True, False]
