"""Four looks a second while something happens, one while nothing does."""

import pytest

from laya_desktop.node.pace import BUSY_S, Activity, Pace

CALM = {"count": 7, "ram_share": 0.5}


def looks(pace, seconds, activity, start_s):
    """How often it looks in so many seconds of the same."""
    return sum(pace.due(start_s + i * BUSY_S, activity) for i in range(int(seconds / BUSY_S)))


@pytest.fixture
def calm():
    pace = Pace()
    looks(pace, 10, Activity(**CALM), 0.0)
    return pace


def test_once_a_second_while_nothing_happens(calm):
    assert looks(calm, 20, Activity(**CALM), 10.0) == 20


@pytest.mark.parametrize("busy", [{"under_way": True}, {"alarmed": True}, {"ram_share": 0.51}, {"count": 8}])
def test_four_times_a_second_from_the_first_moment_and_some_seconds_after(calm, busy):
    assert calm.due(10.0, Activity(**CALM | busy))
    assert calm.due(10.25, Activity(**CALM | busy))
    after = Activity(**CALM | {key: value for key, value in busy.items() if key in ("count", "ram_share")})
    assert 10 <= looks(calm, 3, after, 10.5) <= 12
    assert looks(calm, 20, after, 20.0) == 20


def test_something_that_goes_on_is_looked_at_all_the_time(calm):
    assert looks(calm, 20, Activity(under_way=True), 10.0) == 80
    assert all(calm.due(30 + i * BUSY_S, Activity(count=8 + i)) for i in range(80))


def test_memory_that_is_unknown_or_trembles_is_nothing(calm):
    for i, share in enumerate([0.5001, None, 0.9, None, 0.5]):
        assert looks(calm, 4, Activity(count=7, ram_share=share), 10.0 + 4 * i) == 4
