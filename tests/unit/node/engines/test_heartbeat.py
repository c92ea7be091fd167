"""What counts as hung, and what only looks like it."""

from __future__ import annotations

from laya_desktop.node.engines.base import Pulse
from laya_desktop.node.engines.heartbeat import MISSES, MISSES_LOADING, STEP_LIMIT_S, STUCK_S, Heart


def beats(heart: Heart, count: int, *, loading: bool = False) -> list[str | None]:
    return [heart.beat(loading=loading) for _ in range(count)]


def test_silence_is_hung_after_the_limit_and_an_answer_starts_it_anew() -> None:
    heart = Heart()
    assert beats(heart, MISSES) == [None] * MISSES
    assert "did not answer" in (heart.beat(loading=False) or "")
    heart.on_pulse(Pulse(1.0))
    assert beats(heart, MISSES) == [None] * MISSES


def test_a_load_may_be_silent_for_longer() -> None:
    heart = Heart()
    assert beats(heart, MISSES_LOADING, loading=True) == [None] * MISSES_LOADING
    assert heart.beat(loading=True) is not None


def follow(heart: Heart, seconds: float, cpu_share: float, *, step_s: float = 0.0) -> list[str | None]:
    """Beats and pulses of one long step that uses that share of a core."""
    verdicts = []
    for second in range(int(seconds)):
        verdicts.append(heart.beat(loading=False))
        heart.on_pulse(Pulse(100.0 + second * cpu_share, step_s + second))
    return verdicts


def test_a_step_that_computes_is_slow_and_one_that_does_not_is_stuck() -> None:
    assert set(follow(Heart(), STEP_LIMIT_S - 1, 1.0)) == {None}
    verdicts = follow(Heart(), STUCK_S + 5, 0.0)
    assert set(verdicts[: int(STUCK_S)]) == {None}
    assert "computed nothing" in (verdicts[-1] or "")


def test_even_a_step_that_computes_ends_some_time() -> None:
    assert "one step took more" in (follow(Heart(), STEP_LIMIT_S + 3, 1.0)[-1] or "")


def test_a_machine_that_slept_in_the_middle_of_a_step_blames_nobody() -> None:
    heart = Heart()
    for second, step_s in enumerate([0.0, 1.0, 2.0, 8 * 3600.0, 8 * 3600.0 + 1]):
        assert heart.beat(loading=False) is None
        heart.on_pulse(Pulse(100.0 + 0.05 * second, step_s))
    assert heart.beat(loading=False) is None
    assert "computed nothing" in (follow(heart, STUCK_S + 5, 0.0, step_s=8 * 3600.0 + 2)[-1] or "")


def test_short_steps_and_idling_are_never_stuck() -> None:
    heart = Heart()
    for second in range(300):
        assert heart.beat(loading=False) is None
        heart.on_pulse(Pulse(1.0, 0.2 if second % 2 else None))


def test_silence_under_a_debugger_is_forgiven() -> None:
    heart = Heart()
    beats(heart, MISSES)
    heart.excuse()
    assert beats(heart, MISSES) == [None] * MISSES
