"""The worker's life and every kind of death, seen from the node: always in time, always explained, nothing left over.

Each test runs the loop in a thread that is not the main one, as the node does, on asyncio and on uvloop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import uvloop

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import worker_process
from laya_desktop.node.engines.base import Delta, EngineParams, Finished, Generate, Loaded, Refused, RequestEvent
from laya_desktop.node.engines.worker import WorkerHandle
from tests.helpers.waiting import wait_for

Run = Callable[[Coroutine[Any, Any, None]], None]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
        failures: list[BaseException] = []

        def body() -> None:
            try:
                factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
                with asyncio.Runner(loop_factory=factory) as runner:
                    runner.run(work)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=body, name="node")
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    return run_in_thread


def params(path: str = "fake:tokens=100000,itl_ms=2", slots: int = 2) -> EngineParams:
    return EngineParams("m", path, engine="fake", slots=slots, max_seq_len=1_000_000)


class Inbox:
    """Events of one request, and a way to wait for them."""

    def __init__(self) -> None:
        self.events: list[RequestEvent] = []
        self._news = asyncio.Event()

    def __call__(self, event: RequestEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, kind: type | tuple[type, ...]) -> Any:
        while not isinstance(self.events[-1] if self.events else None, kind):
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 10)
        return self.events[-1]


async def generating(handle: WorkerHandle, request_id: str = "r") -> Inbox:
    inbox = Inbox()
    handle.generate(Generate(request_id, prompt="a b c"), inbox)
    await inbox.until(Delta)
    return inbox


def test_from_start_to_stop(run: Run) -> None:
    async def work() -> None:
        progress: list[float] = []
        handle = WorkerHandle("m", lambda error: pytest.fail(f"unexpected exit: {error}"))
        assert (handle.pid, handle.alive) == (None, False)
        loaded = await handle.start(params("fake:tokens=3,load_ms=150"), progress.append)
        assert isinstance(loaded, Loaded)
        assert handle.loaded is loaded
        assert progress == sorted(progress)
        assert progress[-1] == 1.0
        pid = handle.pid
        assert pid is not None
        assert psutil.Process(pid).nice() == 19
        inbox = Inbox()
        handle.generate(Generate("r", prompt="a b c"), inbox)
        finished = await inbox.until(Finished)
        assert (finished.finish_reason, finished.completion_tokens, finished.prompt_tokens) == ("stop", 3, 3)
        await handle.ping()
        assert (handle.stats.prefill_tokens, handle.stats.decode_tokens) == (3, 3)
        await handle.stop()
        await handle.stop()
        assert (handle.pid, handle.alive, handle.in_flight) == (None, False, 0)
        assert not psutil.pid_exists(pid)
        with pytest.raises(LayaError, match="not loaded"):
            handle.generate(Generate("s", prompt="a"), inbox)

    run(work())


def test_kill_9_fails_its_requests_within_a_second(run: Run) -> None:
    async def work() -> None:
        told: list[LayaError | None] = []
        handle = WorkerHandle("m", told.append)
        await handle.start(params())
        inboxes = [await generating(handle, r) for r in ("a", "b")]
        pid = handle.pid
        assert pid is not None
        began_s = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        for inbox in inboxes:
            refused = await inbox.until(Refused)
            assert (refused.code, refused.status) == ("worker_died", 503)
            assert "memory" in refused.message
        assert time.monotonic() - began_s < 1.0
        assert len(told) == 1
        assert told[0] is not None
        assert "SIGKILL" in told[0].message
        assert not handle.alive
        assert not psutil.pid_exists(pid), "a zombie is left"
        await handle.stop()
        assert len(told) == 1

    run(work())


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGTERM])
def test_other_signals_are_named(run: Run, number: signal.Signals) -> None:
    async def work() -> None:
        told: list[LayaError | None] = []
        handle = WorkerHandle("m", told.append)
        await handle.start(params())
        inbox = await generating(handle)
        os.kill(handle.pid or 0, number)
        await inbox.until(Refused)
        assert told[0] is not None
        assert number.name in told[0].message
        if number is not signal.SIGTERM:  # faulthandler leaves the place in the log
            assert any("Fatal Python error" in line for line in handle.log_tail)

    run(work())


def test_a_crash_while_stepping_is_told_with_its_exit_code(run: Run) -> None:
    async def work() -> None:
        told: list[LayaError | None] = []
        handle = WorkerHandle("m", told.append)
        await handle.start(params("fake:crash_after=4"))
        inbox = Inbox()
        handle.generate(Generate("r", prompt="a"), inbox)
        await inbox.until(Refused)
        assert len([e for e in inbox.events if isinstance(e, Delta)]) == 3, "what was said before the crash is kept"
        assert told[0] is not None
        assert "exit code 3" in told[0].message

    run(work())


@pytest.mark.parametrize(
    ("path", "says", "code"),
    [
        ("fake:fail_load=1", "told to fail", "load_failed"),
        ("fake:crash_load=1", "exit code 3 while it was loading", "worker_died"),
        ("fake:nonsense=1", "nonsense", "bad_model_file"),
    ],
)
def test_a_load_that_fails(run: Run, path: str, says: str, code: str) -> None:
    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"told twice: {error}"))
        with pytest.raises(LayaError, match=says) as caught:
            await handle.start(params(path))
        assert caught.value.code == code
        assert caught.value.hint or code == "bad_model_file"
        assert handle.pid is None
        await handle.stop()

    run(work())


def test_stopping_calls_a_load_off(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"unexpected exit: {error}"))
        loading = asyncio.Event()
        start = asyncio.get_running_loop().create_task(
            handle.start(params("fake:load_ms=60000"), lambda _p: loading.set())
        )
        await asyncio.wait_for(loading.wait(), 10)
        pid = handle.pid
        assert pid is not None
        began_s = time.monotonic()
        await handle.stop()
        with pytest.raises(LayaError) as caught:
            await start
        assert caught.value.code == "load_cancelled"
        assert time.monotonic() - began_s < 2
        assert not psutil.pid_exists(pid)

    run(work())


def test_cancelling_a_start_ends_the_process(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"unexpected exit: {error}"))
        loading = asyncio.Event()
        start = asyncio.get_running_loop().create_task(
            handle.start(params("fake:load_ms=60000"), lambda _p: loading.set())
        )
        await asyncio.wait_for(loading.wait(), 10)
        pid = handle.pid
        assert pid is not None
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert not psutil.pid_exists(pid)
        assert handle.pid is None

    run(work())


def test_a_worker_that_hangs_is_killed_by_stop(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"unexpected exit: {error}"))
        await handle.start(params())
        inbox = await generating(handle)
        pid = handle.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await handle.stop(0.05)
        assert isinstance(inbox.events[-1], Refused)
        assert inbox.events[-1].code == "model_unloaded"
        assert not psutil.pid_exists(pid)

    run(work())


def test_cancel_ends_one_request(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m")
        await handle.start(params())
        inbox = await generating(handle)
        handle.cancel("nobody")
        handle.cancel("r")
        finished = await inbox.until(Finished)
        assert finished.finish_reason == "cancelled"
        assert handle.in_flight == 0
        await handle.stop()

    run(work())


def test_a_sink_that_fails_stops_its_request_only(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        handle = WorkerHandle("m")
        await handle.start(params())

        def bad(event: RequestEvent) -> None:
            if isinstance(event, Delta):
                raise ValueError("the receiver is broken")

        handle.generate(Generate("bad", prompt="a"), bad)
        good = await generating(handle, "good")
        while handle.in_flight > 1:
            good.events.clear()
            await good.until(Delta)
        await handle.stop()

    run(work())
    assert "the receiver is broken" in caplog.text


def _script(body: str) -> Callable[[], list[str]]:
    """A worker made of a few lines: ``sock`` is its end of the socket."""
    head = "import socket, sys, os\nfd = int(sys.argv[sys.argv.index('--fd') + 1])\nsock = socket.socket(fileno=fd)\n"
    return lambda: [sys.executable, "-c", head + body]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sock.sendall(b'\\xff' * 64); sock.recv(1); sock.recv(1000000)", "sent what is no message"),
        ("sock.sendall(b'\\0\\0\\0\\x03abc')\nwhile True: pass", "sent what is no message"),
        ("raise RuntimeError('oh no')", "RuntimeError: oh no"),
        ("print('bad_alloc'); os.abort()", "ran out of memory"),
        ("sock.close()\nimport time; time.sleep(60)", "closed its connection"),
        ("os._exit(0)", "exit code 0"),
    ],
)
def test_a_worker_that_misbehaves(run: Run, monkeypatch: pytest.MonkeyPatch, body: str, says: str) -> None:
    monkeypatch.setattr(worker_process, "worker_command", _script(body))

    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"told twice: {error}"))
        with pytest.raises(LayaError, match=says):
            await handle.start(params())
        assert handle.pid is None

    run(work())


def test_output_never_blocks_the_worker_and_its_end_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "for i in range(20000): print('line', i)\n"
        "sys.stdout.write('x' * 300000 + '\\n'); sys.stderr.write('the last word'); sys.stdout.flush(); os._exit(5)"
    )
    monkeypatch.setattr(worker_process, "worker_command", _script(body))

    async def work() -> None:
        handle = WorkerHandle("m")
        with pytest.raises(LayaError, match="exit code 5"):
            await handle.start(params())
        assert len(handle.log_tail) <= worker_process.LOG_TAIL_LINES
        assert any("the last word" in line for line in handle.log_tail)
        assert all(len(line) <= 2000 for line in handle.log_tail)

    run(work())


def test_a_process_that_cannot_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "worker_command", lambda: ["/no/such/python"])

    async def work() -> None:
        with pytest.raises(LayaError) as caught:
            await WorkerHandle("m").start(params())
        assert caught.value.code == "worker_start_failed"

    run(work())


@linux
def test_nothing_is_left_over(run: Run) -> None:
    async def work() -> None:
        async def once(path: str) -> None:
            handle = WorkerHandle("m")
            try:
                await handle.start(params(path))
                await generating(handle)
                os.kill(handle.pid or 0, signal.SIGKILL)
            except LayaError:
                pass
            await handle.stop()

        await once("fake:itl_ms=1,tokens=99999")  # what is made once stays
        fds, threads = psutil.Process().num_fds(), threading.active_count()
        for path in ("fake:itl_ms=1,tokens=99999", "fake:fail_load=1", "fake:crash_load=1"):
            await once(path)
        assert psutil.Process().num_fds() == fds
        assert threading.active_count() == threads
        assert not psutil.Process().children()

    run(work())


@linux
def test_without_socketpair_a_token_proves_the_worker(run: Run) -> None:
    """The way of Windows, tried here: a loopback port that a stranger connects to first."""

    async def work() -> None:
        codes: list[int] = []
        start = worker_process.start("m", 1, codes.append, use_socketpair=False)
        process, sock = await start
        with sock:
            assert sock.getpeername()[0] == "127.0.0.1"
            variables = psutil.Process(process.pid).environ()
            assert len(variables[worker_process.TOKEN_VARIABLE]) == 64
        assert await process.wait() == 0, "the end of the socket ends the worker"
        assert codes == [0]

    run(work())


PARENT = """
import asyncio, sys
from laya_desktop.node.engines.base import EngineParams, Generate
from laya_desktop.node.engines.worker import WorkerHandle

async def main():
    handle = WorkerHandle("m")
    await handle.start(EngineParams("m", sys.argv[1], engine="fake", max_seq_len=1000000))
    handle.generate(Generate("r", prompt="a"), lambda event: None)
    await handle.ping()
    print(handle.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("path", ["fake", "fake:tokens=999999,itl_ms=5"])
def test_no_orphan_when_the_node_is_killed(path: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, path], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        assert worker.ppid() == parent.pid
        parent.kill()
    wait_for(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, 5)


def test_no_orphan_when_the_parent_died_before_the_worker_asked() -> None:
    ours, theirs = worker_process.socket.socketpair()
    with ours, theirs:
        command = [*worker_process.worker_command(), "--parent", "1", "--fd", str(theirs.fileno())]
        child = subprocess.run(command, pass_fds=(theirs.fileno(),), timeout=20, check=False)
    assert child.returncode == 0


@pytest.mark.parametrize(("beat_s", "words"), [(0.05, "did not answer"), (3600.0, "stopped its process")])
def test_a_stopped_worker_is_killed_by_its_state_or_its_missed_heartbeats(run: Run, beat_s: float, words: str) -> None:
    async def work() -> None:
        told: list[LayaError | None] = []
        handle = WorkerHandle("m", told.append, beat_s=beat_s)
        await handle.start(params())
        inbox = await generating(handle)
        pid = handle.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        refused = await inbox.until(Refused)
        assert (refused.code, refused.status) == ("worker_hung", 503)
        assert words in refused.message
        assert told[0] is not None
        assert not psutil.pid_exists(pid)

    run(work())


def test_a_busy_or_loading_worker_answers_its_heartbeats(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m", lambda error: pytest.fail(f"unexpected exit: {error}"), beat_s=0.02)
        await handle.start(params("fake:tokens=5,itl_ms=400,load_ms=1500"))
        inbox = await generating(handle)
        finished = await inbox.until(Finished)
        assert finished.completion_tokens == 5
        await handle.stop()

    run(work())


@linux
def test_memory_beyond_the_limit_is_refused_and_the_death_is_told_as_out_of_memory(run: Run) -> None:
    async def work() -> None:
        told: list[LayaError | None] = []
        handle = WorkerHandle("m", told.append)
        limited = msgspec.structs.replace(
            params("fake:tokens=100000,itl_ms=5,slot_mib=250", slots=3), memory_limit_bytes=500 * 2**20
        )
        await handle.start(limited)
        assert handle.ceiling is not None
        kind, limit_bytes, note = handle.ceiling
        assert (kind, bool(note)) in (("rlimit", True), ("cgroup", False))
        assert limit_bytes >= 500 * 2**20
        first, second = [await generating(handle, r) for r in ("a", "b")]
        third = Inbox()
        handle.generate(Generate("c", prompt="x"), third)
        for inbox in (first, second, third):
            refused = await inbox.until(Refused)
            assert (refused.code, refused.status) == ("out_of_memory", 503)
        assert told[0] is not None
        assert "ran out of memory" in told[0].message
        assert "max_seq_len" in (told[0].hint or "")

    run(work())


def kernel_file(pid: int | None, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


@linux
def test_the_kernel_takes_a_worker_before_the_node(run: Run) -> None:
    async def work() -> None:
        handle = WorkerHandle("m")
        await handle.start(params())
        assert kernel_file(handle.pid, "oom_score_adj") == "500\n"
        await handle.stop()

    run(work())
