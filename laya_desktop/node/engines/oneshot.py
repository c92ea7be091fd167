"""One question to a throwaway worker: a probe of the machine, a dry run of a load. The node's thread.

A process of its own, because a GPU driver or an assertion in llama.cpp can end the process that asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import frames, worker_process
from laya_desktop.node.engines.base import DryRun, LoadFailed, Probe, WorkerEvent
from laya_desktop.node.engines.postmortem import explain_death

_RECV_BYTES = 64 * 1024


async def ask(name: str, command: Probe | DryRun, timeout_s: float) -> WorkerEvent:
    """Start a worker, ask, wait for the answer, end it.

    Args:
        name: for messages and the log.
        command: the question.
        timeout_s: after which the worker is killed.

    Raises:
        LayaError: it refused, died, or took too long.
    """
    process, sock = await worker_process.start(name, 1, lambda _code: None)
    try:
        with sock:
            answer = await asyncio.wait_for(_exchange(sock, command), timeout_s)
    except TimeoutError:
        raise LayaError(
            f"The check of '{name}' took longer than {timeout_s:g} s.", code="probe_timeout", status=503
        ) from None
    finally:
        process.kill()
        returncode = await asyncio.shield(process.wait())
    if answer is None:
        raise explain_death(name, returncode, tuple(process.log_tail), loading=True)
    if isinstance(answer, LoadFailed):
        raise LayaError(answer.message, hint=answer.hint, code=answer.code, status=503)
    return answer


async def _exchange(sock: Any, command: Probe | DryRun) -> WorkerEvent | None:
    loop = asyncio.get_running_loop()
    reader = frames.event_reader()
    await loop.sock_sendall(sock, frames.encode([command]))
    while data := await loop.sock_recv(sock, _RECV_BYTES):
        if events := reader.feed(data):
            return events[0]
    return None
