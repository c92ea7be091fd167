"""The scheduler as a script: requests go in, recorded effects come out. No loop, no clock, no model."""

from __future__ import annotations

from itertools import count

import pytest

from laya_desktop.config.schema import QueueConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.scheduler import Scheduler
from laya_desktop.node.tickets import AGEING_S, Ticket
from laya_desktop.state.enums import Priority


class RecordingEffects:
    def __init__(self) -> None:
        self.loads: list[str] = []
        self.dispatched: list[str] = []
        self.rejected: dict[str, LayaError] = {}

    def start_load(self, model: str) -> None:
        self.loads.append(model)

    def dispatch(self, ticket: Ticket) -> None:
        self.dispatched.append(ticket.request_id)

    def reject(self, ticket: Ticket, error: LayaError) -> None:
        self.rejected[ticket.request_id] = error


class Bench:
    """A scheduler with one model ``m`` and a clock that the test turns."""

    def __init__(self, slots: int | None = 2, **queue: object) -> None:
        self.effects = RecordingEffects()
        self.scheduler = Scheduler(self.effects)
        self.scheduler.configure({"m": QueueConfig(**queue)})
        self.tickets: dict[str, Ticket] = {}
        self._ids = count(1)
        if slots is not None:
            self.scheduler.on_loading("m")
            self.scheduler.on_ready("m", slots, 0.0)

    def ask(self, now_s: float = 0.0, priority: Priority = Priority.NORMAL, timeout_s: float = 1e6) -> str:
        request_id = f"r{next(self._ids)}"
        ticket = self.tickets[request_id] = Ticket(request_id, "m", priority, now_s, now_s + timeout_s)
        self.scheduler.on_request(ticket, now_s)
        return request_id

    def finish(self, request_id: str, now_s: float = 0.0) -> None:
        self.scheduler.on_finished(self.tickets[request_id], now_s)


def test_three_requests_for_two_slots_leave_one_waiting() -> None:
    bench = Bench(slots=2)
    first, second, third = bench.ask(), bench.ask(), bench.ask()
    assert bench.effects.dispatched == [first, second]
    assert [t.request_id for t, _ in bench.scheduler.places("m", 0.0)] == [third]
    assert bench.scheduler.counts("m") == (1, 2)
    bench.finish(first)
    assert bench.effects.dispatched == [first, second, third]


def test_concurrency_of_one_never_runs_two() -> None:
    bench = Bench(slots=1)
    ids = [bench.ask() for _ in range(5)]
    for done, request_id in enumerate(ids):
        assert bench.scheduler.counts("m")[1] == 1
        assert len(bench.effects.dispatched) == done + 1
        bench.finish(request_id)
    assert bench.effects.dispatched == ids


def test_four_requests_for_an_unloaded_model_load_it_once_and_all_run() -> None:
    bench = Bench(slots=None)
    ids = [bench.ask() for _ in range(4)]
    assert bench.effects.loads == ["m"]
    assert bench.effects.dispatched == []
    bench.scheduler.on_ready("m", 4, 1.0)
    assert bench.effects.dispatched == ids


def test_a_full_queue_refuses_with_429_and_when_to_retry() -> None:
    bench = Bench(slots=1, max_waiting=2)
    for _ in range(3):
        bench.ask()
    with pytest.raises(LayaError) as refused:
        bench.ask()
    assert refused.value.status == 429
    assert refused.value.code == "queue_full"
    assert refused.value.retry_after_s is not None
    assert refused.value.retry_after_s >= 1


def test_a_queue_of_zero_runs_what_fits_and_refuses_the_rest() -> None:
    bench = Bench(slots=1, max_waiting=0)
    bench.ask()
    with pytest.raises(LayaError, match="full"):
        bench.ask()
    assert len(bench.effects.dispatched) == 1


def test_waiting_too_long_is_refused_with_503() -> None:
    bench = Bench(slots=1, max_wait="10s")
    bench.ask(0.0)
    late = bench.ask(1.0)
    bench.scheduler.on_tick(10.9)
    assert bench.effects.rejected == {}
    bench.scheduler.on_tick(11.0)
    assert bench.effects.rejected[late].status == 503
    assert bench.scheduler.counts("m") == (0, 1)


def test_a_route_timeout_ends_waiting_before_max_wait() -> None:
    bench = Bench(slots=1)
    bench.ask()
    late = bench.ask(0.0, timeout_s=3.0)
    bench.scheduler.on_tick(3.0)
    assert late in bench.effects.rejected


def test_a_cancelled_request_that_waits_never_runs() -> None:
    bench = Bench(slots=1)
    first, second, third = bench.ask(), bench.ask(), bench.ask()
    assert bench.scheduler.on_cancelled(bench.tickets[second])
    assert not bench.scheduler.on_cancelled(bench.tickets[second])
    bench.finish(first)
    bench.finish(third)
    assert bench.effects.dispatched == [first, third]


def test_priority_lets_interactive_requests_pass_and_batch_wait() -> None:
    bench = Bench(slots=1, policy="priority")
    running = bench.ask()
    batch = bench.ask(0.0, Priority.BATCH)
    normal = bench.ask(0.1, Priority.NORMAL)
    interactive = bench.ask(0.2, Priority.INTERACTIVE)
    for request_id in (running, interactive, normal):
        bench.finish(request_id, 1.0)
    assert bench.effects.dispatched == [running, interactive, normal, batch]


def test_ageing_lets_nothing_starve() -> None:
    bench = Bench(slots=1, policy="priority", max_wait="1h")
    running = bench.ask(0.0)
    batch = bench.ask(0.0, Priority.BATCH)
    now_s = 3 * AGEING_S
    bench.ask(now_s, Priority.INTERACTIVE)
    bench.finish(running, now_s)
    assert bench.effects.dispatched[-1] == batch


def test_fifo_ignores_priority() -> None:
    bench = Bench(slots=1, policy="fifo")
    running = bench.ask()
    batch = bench.ask(0.0, Priority.BATCH)
    bench.ask(0.0, Priority.INTERACTIVE)
    bench.finish(running)
    assert bench.effects.dispatched[-1] == batch


def test_a_dead_worker_fails_all_its_requests() -> None:
    bench = Bench(slots=1)
    running, waiting = bench.ask(), bench.ask()
    death = LayaError("The worker was killed.", code="worker_died", status=503)
    bench.scheduler.on_gone("m", death)
    assert bench.effects.rejected == {running: death, waiting: death}
    assert bench.scheduler.counts("m") == (0, 0)


def test_unloading_lets_running_answers_finish_and_refuses_the_waiting() -> None:
    bench = Bench(slots=1)
    running, waiting = bench.ask(), bench.ask()
    bench.scheduler.on_unloading("m")
    assert list(bench.effects.rejected) == [waiting]
    assert bench.scheduler.counts("m") == (0, 1)
    with pytest.raises(LayaError, match="unloaded") as refused:
        bench.ask()
    assert refused.value.status == 503
    bench.finish(running)
    bench.scheduler.on_gone("m", None)
    assert running not in bench.effects.rejected


def test_a_reload_keeps_the_queue() -> None:
    bench = Bench(slots=1)
    running, waiting = bench.ask(), bench.ask()
    bench.scheduler.on_unloading("m", keep_waiting=True)
    bench.finish(running)
    assert bench.effects.dispatched == [running]
    bench.scheduler.on_ready("m", 2, 5.0)
    assert bench.effects.dispatched == [running, waiting]
    assert bench.effects.rejected == {}


def test_models_never_share_a_queue() -> None:
    bench = Bench(slots=1, max_waiting=1)
    bench.scheduler.configure({"m": QueueConfig(max_waiting=1), "other": QueueConfig()})
    bench.ask()
    bench.ask()
    bench.scheduler.on_ready("other", 1, 0.0)
    bench.scheduler.on_request(Ticket("x", "other", Priority.NORMAL, 0.0, 1e6), 0.0)
    assert "x" in bench.effects.dispatched


def test_a_removed_model_finishes_what_runs_and_takes_nothing_new() -> None:
    bench = Bench(slots=1)
    running, waiting = bench.ask(), bench.ask()
    bench.scheduler.configure({})
    assert bench.effects.rejected[waiting].status == 404
    assert bench.scheduler.counts("m") == (0, 1)
    with pytest.raises(LayaError, match="No model"):
        bench.ask()
    bench.finish(running)
    bench.scheduler.on_gone("m", None)
    assert bench.scheduler.counts("m") == (0, 0)


def test_an_unknown_model_is_404() -> None:
    bench = Bench()
    with pytest.raises(LayaError) as refused:
        bench.scheduler.on_request(Ticket("x", "nobody", Priority.NORMAL, 0.0, 1.0), 0.0)
    assert refused.value.status == 404


@pytest.mark.parametrize("policy", ["fifo", "priority"])
def test_held_batch_requests_wait_whatever_is_free_and_run_once_they_are_let_go(policy: str) -> None:
    bench = Bench(slots=2, policy=policy)
    bench.scheduler.hold_batch = True
    batch, normal = bench.ask(priority=Priority.BATCH), bench.ask()
    assert bench.effects.dispatched == [normal]
    bench.scheduler.on_tick(1.0)
    assert bench.effects.dispatched == [normal]
    assert bench.scheduler.is_held(bench.tickets[batch])
    bench.scheduler.hold_batch = False
    bench.scheduler.on_tick(2.0)
    assert bench.effects.dispatched == [normal, batch]


def test_a_held_batch_request_loads_no_model_until_it_is_let_go() -> None:
    bench = Bench(slots=None)
    bench.scheduler.hold_batch = True
    bench.ask(priority=Priority.BATCH)
    bench.scheduler.on_tick(1.0)
    assert bench.effects.loads == []
    bench.scheduler.hold_batch = False
    bench.scheduler.on_tick(2.0)
    bench.scheduler.on_tick(3.0)
    assert bench.effects.loads == ["m"]


def test_a_death_with_a_restart_fails_what_ran_and_keeps_what_waits() -> None:
    bench = Bench(slots=1)
    running, waiting = bench.ask(), bench.ask()
    death = LayaError("The worker was killed.", code="worker_died", status=503)
    bench.scheduler.on_lost("m", death)
    assert bench.effects.rejected == {running: death}
    later = bench.ask(1.0)
    assert bench.effects.loads == []
    bench.scheduler.on_loading("m")
    bench.scheduler.on_ready("m", 2, 2.0)
    assert bench.effects.dispatched == [running, waiting, later]


def test_waiting_for_a_restart_ends_with_max_wait() -> None:
    bench = Bench(slots=1, max_wait=5.0)
    bench.ask()
    waiting = bench.ask()
    bench.scheduler.on_lost("m", LayaError("killed", status=503))
    bench.scheduler.on_tick(5.5)
    assert bench.effects.rejected[waiting].code == "queue_timeout"
