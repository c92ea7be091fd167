"""Cases from public bug reports about comparable tools, on a whole node with fake models (the reports' numbers below).

Each kind of fault is to be impossible here: 1 load race, 2 no cut-off, 3 idle clock, 4 client gone, 8 a setting of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from laya_desktop.state.enums import ModelState, Phase
from laya_desktop.state.events import ModelLoaded, ModelUnloaded
from laya_desktop.state.snapshot import NodeSnapshot, RequestSnapshot
from tests.helpers.node_session import NodeSession

StartNode = Callable[[str], NodeSession]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartNode]:
    """Starts nodes that end with the test."""
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    nodes: list[NodeSession] = []

    def begin(models: str) -> NodeSession:
        config = f"version: 1\nserver: {{port: 0}}\nguard: {{reserve_ram: 64MiB, mem_fraction: 1.0}}\nmodels:\n{models}"
        nodes.append(NodeSession(tmp_path, config))
        return nodes[-1]

    yield begin
    for node in nodes:
        node.close()


def fake(name: str, settings: str, rest: str = "") -> str:
    """A model of the fake engine as a line of YAML."""
    more = f", {rest}" if rest else ""
    return f'  - {{name: {name}, engine: fake, path: "fake:{settings}"{more}}}\n'


def request_of(snapshot: NodeSnapshot, target: str, phase: Phase) -> RequestSnapshot | None:
    return next((r for r in snapshot.requests if r.target == target and r.phase is phase), None)


def test_case_1_four_chats_at_once_load_the_model_once_and_all_are_answered(start: StartNode) -> None:
    node = start(fake("m", "tokens=3,load_ms=600", "batch_size: 4"))
    answers = [node.ask("m") for _ in range(4)]
    loading = node.until(lambda s: s.model("m").waiting == 4 and (s.model("m").progress or 0) > 0)
    waiting = [r for r in loading.requests if r.phase is Phase.QUEUED]
    assert sorted(r.queue_place for r in waiting) == [1, 2, 3, 4]
    assert all(r.waiting_for.startswith("the model to load") for r in waiting)
    assert [a.done().status for a in answers] == [200] * 4
    assert sum(isinstance(e, ModelLoaded) for e in node.service.drain_events()) == 1
    assert len(node.model("m").pids) == 1


def test_case_2_a_streaming_answer_ends_whole_before_its_model_gives_way(start: StartNode) -> None:
    most = psutil.virtual_memory().available * 6 // 10 // 2**20
    size = f"memory_mib={most}"
    node = start(fake("a", f"tokens=40,itl_ms=40,{size}") + fake("b", f"tokens=2,{size}"))
    streaming = node.ask("a", stream=True, max_tokens=40)
    assert streaming.began.wait(20)
    second = node.ask("b")
    snapshot = node.until(lambda s: (s.model("b").load_note or "").startswith("memory: 'a' finishes 1 answer"))
    queued = node.until(lambda s: getattr(request_of(s, "b", Phase.QUEUED), "queue_place", None) == 1)
    assert request_of(queued, "b", Phase.QUEUED).waiting_for == "memory: 'a' finishes 1 answer"
    assert snapshot.model("a").state is ModelState.UNLOADING
    assert second.status is None
    assert second.done().status == 200
    assert streaming.done().chunks >= 40
    whole = streaming.text
    assert len(whole.split()) == 40
    states = node.until(lambda s: s.model("b").state is ModelState.READY)
    assert states.model("a").state is ModelState.UNLOADED
    events = [e for e in node.service.drain_events() if isinstance(e, ModelLoaded | ModelUnloaded)]
    assert [(type(e).__name__, e.model) for e in events] == [
        ("ModelLoaded", "a"), ("ModelUnloaded", "a"), ("ModelLoaded", "b"),
    ]  # fmt: skip


def test_case_2_what_waits_for_the_model_that_gave_way_is_answered_later(start: StartNode) -> None:
    most = psutil.virtual_memory().available * 6 // 10 // 2**20
    size = f"memory_mib={most}"
    node = start(fake("a", f"tokens=20,itl_ms=40,{size}", "batch_size: 1") + fake("b", f"tokens=2,{size}"))
    first = node.ask("a", stream=True)
    assert first.began.wait(20)
    second = node.ask("a")
    node.until(lambda s: s.model("a").waiting == 1)
    other = node.ask("b")
    assert [a.done().status for a in (first, other, second)] == [200] * 3


def test_a_pinned_model_never_gives_way_and_the_load_goes_ahead(start: StartNode) -> None:
    most = psutil.virtual_memory().available * 6 // 10 // 2**20
    size = f"memory_mib={most}"
    models = fake("a", f"tokens=2,{size}", "pin: true, idle_unload: 100ms") + fake("b", f"tokens=2,{size}")
    node = start(models)
    assert node.ask("a").done().status == 200
    assert node.ask("b").done().status == 200
    node.until(lambda s: s.model("b").state is ModelState.READY)
    assert node.model("a").state is ModelState.READY
    assert node.model("a").pinned


def test_case_3_idle_time_counts_from_the_end_of_the_answer(start: StartNode) -> None:
    node = start(fake("m", "tokens=60,itl_ms=25", "idle_unload: 700ms"))  # the answer takes more than twice as long
    streaming = node.ask("m", stream=True)
    assert streaming.began.wait(20)
    assert streaming.done().chunks >= 60
    assert node.model("m").state is ModelState.READY
    finished = node.until(lambda s: request_of(s, "m", Phase.DONE) is not None and s.model("m").running == 0)
    unloaded = node.until(lambda s: s.model("m").state is ModelState.UNLOADED)
    assert unloaded.monotonic_s - finished.monotonic_s > 0.35
    reasons = [e.reason for e in node.service.drain_events() if isinstance(e, ModelUnloaded)]
    assert reasons == ["idle for 0.7 s"]


def test_case_4_clients_that_leave_free_the_slot_and_never_run(start: StartNode) -> None:
    node = start(fake("m", "tokens=1000,itl_ms=10", "batch_size: 1, max_seq_len: 2048"))
    streaming = node.ask("m", stream=True)
    assert streaming.began.wait(20)
    queued = node.ask("m", stream=True)
    node.until(lambda s: (s.model("m").running, s.model("m").waiting) == (1, 1))
    queued.hang_up()
    node.until(lambda s: (s.model("m").running, s.model("m").waiting) == (1, 0))
    streaming.hang_up()
    after = node.until(lambda s: s.model("m").running == 0 and len([r for r in s.requests if r.duration_s]) == 2)
    assert {r.phase for r in after.requests} == {Phase.CANCELLED}
    never, left = sorted(after.requests, key=lambda r: r.completion_tokens or 0)
    assert never.completion_tokens is None
    assert never.queue_s is None
    assert 0 < left.completion_tokens < 900
    assert all(slot.phase is None for slot in after.model("m").slots)


def test_case_8_concurrency_of_one_never_runs_two_and_preload_false_never_preloads(start: StartNode) -> None:
    node = start(fake("one", "tokens=8,itl_ms=20", "batch_size: 1") + fake("idle", "tokens=1", "preload: false"))
    seen: list[int] = []
    answers = [node.ask("one") for _ in range(4)]

    def all_done(snapshot: NodeSnapshot) -> bool:
        seen.append(snapshot.model("one").running)
        return len([r for r in snapshot.requests if r.phase is Phase.DONE]) == 4

    after = node.until(all_done)
    assert [a.done().status for a in answers] == [200] * 4
    assert max(seen) == 1
    waits = sorted(r.queue_s for r in after.requests)
    assert all(later - earlier > 0.1 for earlier, later in pairwise(waits[1:]))
    assert after.model("idle").state is ModelState.UNLOADED
    assert after.model("idle").pids == ()
