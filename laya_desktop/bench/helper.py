"""The process that makes the load: reads one job from standard input, writes messages to standard output.

It ends when standard input closes, so that it never outlives who started it, and on SIGTERM and SIGINT; what is under
way is cancelled at once: connections are closed, and the node stops working for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from typing import BinaryIO

import msgspec
import psutil

from laya_desktop.bench import jobs
from laya_desktop.bench.jobs import Failed, Finished, Message, RunJob, Tuned
from laya_desktop.errors import LayaError


def main() -> int:
    """Exit codes: 0 finished, 1 failed (the last message says why), 3 cancelled."""
    source, out = sys.stdin.buffer, sys.stdout.buffer
    try:
        job = jobs.read_job(source.readline())
    except msgspec.DecodeError as fault:
        _say(out, Failed(f"The job cannot be read: {fault}."))
        return 1
    runner = _uvloop_runner()
    try:
        with runner:
            return runner.run(_main(job, source, out))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 3


def _uvloop_runner() -> asyncio.Runner:
    if sys.platform == "win32":
        import winloop as fast_loop
    else:
        import uvloop as fast_loop
    return asyncio.Runner(loop_factory=fast_loop.new_event_loop)


async def _main(job: jobs.Job, source: BinaryIO, out: BinaryIO) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(_work(job, out))

    def cancel() -> None:
        task.cancel()

    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, cancel)

    def wait_for_end() -> None:
        while source.read(1):
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(cancel)

    threading.Thread(target=wait_for_end, name="bench-stdin", daemon=True).start()
    try:
        code = await task
    except asyncio.CancelledError:
        code = 3
    out.flush()
    os._exit(code)  # the reader's thread may sit in read() for ever


async def _work(job: jobs.Job, out: BinaryIO) -> int:
    def say(message: Message) -> None:
        _say(out, message)

    try:
        if isinstance(job, RunJob):
            from laya_desktop.bench.run import run

            say(Finished(await run(job, say)))
        else:
            from laya_desktop.bench.tune import tune

            say(Tuned(await tune(job, psutil.cpu_count(logical=False) or os.cpu_count() or 1, say)))
    except LayaError as fault:
        say(Failed(str(fault)))
        return 1
    return 0


def _say(out: BinaryIO, message: Message) -> None:
    with contextlib.suppress(BrokenPipeError):
        out.write(jobs.line(message))
        out.flush()
