"""Models from request to last token, on a real loop with a scripted worker handle: no process, no clock waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import (
    Delta,
    EngineParams,
    Finished,
    Generate,
    Loaded,
    Prefilled,
    RequestEvent,
    Started,
    Stats,
)
from laya_desktop.node.pool import ModelPool
from laya_desktop.node.records import RequestRecord
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import ModelState, Phase, Priority
from laya_desktop.state.events import Event, ModelFailed, ModelLoaded, ModelUnloaded


class ScriptedHandle:
    """A worker whose load and answers the test controls."""

    pid = 4242
    stats = Stats(0, 0)
    log_tail = ("last words",)
    ceiling = ("rlimit", 2**30, "no control group")

    def __init__(self, bench: Bench, on_exit: Callable[[LayaError | None], None]) -> None:
        self.bench = bench
        self.on_exit = on_exit
        self.params: EngineParams | None = None
        self.load: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        self.sinks: dict[str, Callable[[RequestEvent], None]] = {}
        self.cancelled: list[str] = []
        self.stopped = False

    async def start(self, params: EngineParams, on_progress: Callable[[float], None]) -> Loaded:
        self.params = params
        on_progress(0.5)
        if self.bench.load_at_once:
            return Loaded("CPU", params.slots, params.max_seq_len)
        return await self.load

    def generate(self, request: Generate, sink: Callable[[RequestEvent], None]) -> None:
        self.sinks[request.request_id] = sink

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.say(Finished(request_id, "cancelled", 1, 0))

    async def stop(self, grace_s: float) -> None:
        self.stopped = True
        if not self.load.done():
            self.load.set_exception(LayaError("called off", code="load_cancelled"))
            self.load.exception()

    def say(self, event: RequestEvent) -> None:
        self.sinks[event.request_id](event)

    def answer(self, request_id: str, text: str = "hi") -> None:
        self.say(Started(request_id, 0, 3))
        self.say(Prefilled(request_id, 0.01, 3))
        self.say(Delta(request_id, text))
        self.say(Finished(request_id, "stop", 3, 1))


class Bench:
    def __init__(self) -> None:
        self.handles: list[ScriptedHandle] = []
        self.events: list[Event] = []
        self.load_at_once = True
        self._ids = count(1)
        self.fail_params: LayaError | None = None
        self.pool = ModelPool(self._handle, self._params, self.events.append, lambda: None)

    def _handle(self, _name: str, on_exit: Callable[[LayaError | None], None]) -> ScriptedHandle:
        self.handles.append(ScriptedHandle(self, on_exit))
        return self.handles[-1]

    def _params(self, model: ModelConfig, device: str | None) -> EngineParams:
        if self.fail_params is not None:
            raise self.fail_params
        return EngineParams(model.name, "fake:", "fake", device or model.device, slots=model.batch_size)

    def model(self, **fields: object) -> ModelConfig:
        return ModelConfig(**{"name": "m", "path": "fake:", "engine": "fake", "batch_size": 1, **fields})

    def ask(self, model: str = "m", timeout_s: float = 60.0) -> tuple[RequestRecord, AsyncIterator[RequestEvent]]:
        record = RequestRecord(f"r{next(self._ids)}", "POST", "/", None, model)
        return record, self.pool.generate(record, model, Generate(record.request_id, prompt="x"), timeout_s)

    def state(self, name: str = "m") -> ModelState:
        return next(m for m in self.pool.snapshot({}, 0.0) if m.name == name).state

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110 (anything may change it)
                await asyncio.sleep(0)


def run(script: Callable[[Bench], object]) -> None:
    async def main() -> None:
        bench = Bench()
        bench.pool.configure([bench.model()])
        await script(bench)
        await bench.pool.close()

    asyncio.run(main())


async def collect(stream: AsyncIterator[RequestEvent]) -> list[RequestEvent]:
    return [event async for event in stream]


def test_four_requests_load_the_model_once_and_all_are_answered() -> None:
    async def script(bench: Bench) -> None:
        bench.load_at_once = False
        bench.pool.configure([bench.model(batch_size=4)])
        asked = [bench.ask() for _ in range(4)]
        await bench.until(lambda: bool(bench.handles))
        assert bench.state() is ModelState.LOADING
        assert [r.queue_place for r, _ in asked] == [1, 2, 3, 4]
        bench.handles[0].load.set_result(Loaded("CPU", 4, 512))
        await bench.until(lambda: len(bench.handles[0].sinks) == 4)
        assert len(bench.handles) == 1
        for record, stream in asked:
            bench.handles[0].answer(record.request_id)
            events = await collect(stream)
            assert [type(e) for e in events] == [Started, Prefilled, Delta, Finished]
            assert (record.prompt_tokens, record.completion_tokens, record.finish_reason) == (3, 1, "stop")
            assert record.ttft_s is not None

    run(script)


def test_a_failed_load_fails_the_waiting_and_the_next_with_its_reason() -> None:
    async def script(bench: Bench) -> None:
        bench.fail_params = LayaError("No such file.", hint="Check the path.", code="model_file", status=503)
        _, stream = bench.ask()
        with pytest.raises(LayaError, match="No such file"):
            await collect(stream)
        assert bench.state() is ModelState.FAILED
        assert isinstance(bench.events[-1], ModelFailed)
        with pytest.raises(LayaError, match="No such file") as refused:
            bench.ask()
        assert refused.value.status == 503
        assert refused.value.retry_after_s is not None

    run(script)


def test_a_dead_worker_fails_its_requests_and_another_model_goes_on() -> None:
    async def script(bench: Bench) -> None:
        bench.pool.configure([bench.model(), bench.model(name="other")])
        victim, victim_stream = bench.ask()
        other, other_stream = bench.ask("other")
        await bench.until(lambda: len(bench.handles) == 2 and all(h.sinks for h in bench.handles))
        dying = next(h for h in bench.handles if victim.request_id in h.sinks)
        living = next(h for h in bench.handles if h is not dying)
        dying.say(Started(victim.request_id, 0, 3))
        dying.on_exit(LayaError("The worker was killed.", code="worker_died"))
        with pytest.raises(LayaError, match="killed") as died:
            await collect(victim_stream)
        assert died.value.status == 503
        assert bench.state() is ModelState.FAILED
        assert bench.pool.snapshot({}, 0.0)[0].log_tail == ("last words",)
        living.answer(other.request_id)
        assert len(await collect(other_stream)) == 4

    run(script)


def test_unload_waits_for_the_running_answer() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        record, stream = bench.ask()
        unloading = spawn(bench.pool.unload("m"), "under test")
        await bench.until(lambda: bench.state() is ModelState.UNLOADING)
        assert not bench.handles[0].stopped
        bench.handles[0].answer(record.request_id)
        assert len(await collect(stream)) == 4
        await unloading
        assert bench.handles[0].stopped
        assert bench.state() is ModelState.UNLOADED
        assert isinstance(bench.events[-1], ModelUnloaded)

    run(script)


def test_unload_calls_off_a_load_under_way() -> None:
    async def script(bench: Bench) -> None:
        bench.load_at_once = False
        loading = spawn(bench.pool.load("m", None), "under test")
        await bench.until(lambda: bool(bench.handles))
        await bench.pool.unload("m")
        await loading
        assert bench.state() is ModelState.UNLOADED
        assert not any(isinstance(e, ModelFailed) for e in bench.events)

    run(script)


def test_reload_on_another_device_finishes_what_runs_and_keeps_the_queue() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", "cpu")
        running, running_stream = bench.ask()
        waiting, waiting_stream = bench.ask()
        reload = spawn(bench.pool.load("m", "gpu"), "under test")
        await bench.until(lambda: bench.state() is ModelState.UNLOADING)
        bench.handles[0].answer(running.request_id)
        await collect(running_stream)
        await reload
        assert bench.handles[0].stopped
        assert bench.handles[1].params is not None
        assert bench.handles[1].params.device == "gpu"
        bench.handles[1].answer(waiting.request_id)
        assert len(await collect(waiting_stream)) == 4

    run(script)


def test_loading_twice_with_nothing_changed_does_nothing() -> None:
    async def script(bench: Bench) -> None:
        await asyncio.gather(bench.pool.load("m", None), bench.pool.load("m", None))
        assert len(bench.handles) == 1
        assert sum(isinstance(e, ModelLoaded) for e in bench.events) == 1

    run(script)


def test_a_changed_setting_waits_for_the_next_load_and_says_so() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        bench.pool.configure([bench.model(max_seq_len=2048)])
        assert bench.pool.snapshot({}, 0.0)[0].changed_keys == ("max_seq_len",)
        await bench.pool.load("m", None)
        assert len(bench.handles) == 2
        assert bench.pool.snapshot({}, 0.0)[0].changed_keys == ()

    run(script)


def test_cancelling_a_queued_request_keeps_it_from_running() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        first, first_stream = bench.ask()
        second, second_stream = bench.ask()
        assert bench.pool.cancel(second.request_id, "gone")
        with pytest.raises(LayaError, match="gone"):
            await collect(second_stream)
        bench.handles[0].answer(first.request_id)
        await collect(first_stream)
        assert list(bench.handles[0].sinks) == [first.request_id]
        assert not bench.pool.cancel(second.request_id, "gone")

    run(script)


def test_cancelling_a_running_request_reaches_the_worker_and_frees_the_slot() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        first, first_stream = bench.ask()
        second, second_stream = bench.ask()
        bench.handles[0].say(Started(first.request_id, 0, 3))
        bench.pool.cancel(first.request_id, "client left")
        assert bench.handles[0].cancelled == [first.request_id]
        bench.handles[0].answer(second.request_id)
        assert len(await collect(second_stream)) == 4
        with pytest.raises(LayaError, match="client left"):
            await collect(first_stream)

    run(script)


def test_the_route_timeout_ends_a_running_answer_with_504() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        record, stream = bench.ask(timeout_s=0.01)
        with pytest.raises(LayaError) as late:
            await collect(stream)
        assert late.value.status == 504
        assert bench.handles[0].cancelled == [record.request_id]

    run(script)


def test_idle_unload_counts_from_the_end_of_the_last_answer() -> None:
    async def script(bench: Bench) -> None:
        bench.pool.configure([bench.model(idle_unload="10s")])
        await bench.pool.load("m", None)
        record, stream = bench.ask()
        bench.handles[0].say(Started(record.request_id, 0, 3))
        loop_s = asyncio.get_running_loop().time
        bench.pool.tick(loop_s() + 30)
        await asyncio.sleep(0)
        assert bench.state() is ModelState.READY
        bench.handles[0].say(Finished(record.request_id, "stop", 3, 1))
        await collect(stream)
        ended_s = loop_s()
        bench.pool.tick(ended_s + 5)
        await asyncio.sleep(0)
        assert bench.state() is ModelState.READY
        bench.pool.tick(ended_s + 10.5)
        await bench.until(lambda: bench.state() is ModelState.UNLOADED)

    run(script)


def test_a_removed_model_is_unloaded_once_it_is_idle() -> None:
    async def script(bench: Bench) -> None:
        await bench.pool.load("m", None)
        record, stream = bench.ask()
        bench.pool.configure([])
        assert bench.pool.snapshot({}, 0.0) == ()
        with pytest.raises(LayaError, match="No model"):
            bench.ask()
        bench.handles[0].answer(record.request_id)
        assert len(await collect(stream)) == 4
        await bench.until(lambda: bench.handles[0].stopped)
        assert record.phase is not Phase.FAILED

    run(script)


def test_a_death_in_use_is_followed_by_a_restart_and_what_waits_is_answered() -> None:
    async def script(bench: Bench) -> None:
        _victim, victim_stream = bench.ask()
        await bench.until(lambda: bool(bench.handles) and bool(bench.handles[0].sinks))
        waiting, stream = bench.ask()
        bench.handles[0].on_exit(LayaError("The worker was killed.", code="worker_died"))
        with pytest.raises(LayaError, match="killed"):
            await collect(victim_stream)
        shown = bench.pool.snapshot({}, 0.0)[0]
        assert (shown.state, shown.error_code, shown.restarts) == (ModelState.FAILED, "worker_died", 1)
        assert shown.load_note == "starts again in 1 s"
        assert waiting.waiting_for == "the model to be started again"
        await bench.until(lambda: len(bench.handles) > 1 and bool(bench.handles[1].sinks))
        bench.handles[1].answer(waiting.request_id)
        assert len(await collect(stream)) == 4
        assert bench.state() is ModelState.READY

    run(script)


def test_a_batch_request_is_refused_while_the_guard_says_so() -> None:
    async def script(bench: Bench) -> None:
        bench.pool.refuse_batch = lambda: LayaError("RAM is full.", code="overloaded", status=503)
        record = RequestRecord("b1", "POST", "/", None, "m", priority=Priority.BATCH)
        with pytest.raises(LayaError, match="RAM is full"):
            bench.pool.generate(record, "m", Generate("b1", prompt="x"), 10.0)
        other, stream = bench.ask()
        await bench.until(lambda: bool(bench.handles) and bool(bench.handles[0].sinks))
        bench.handles[0].answer(other.request_id)
        assert len(await collect(stream)) == 4

    run(script)
