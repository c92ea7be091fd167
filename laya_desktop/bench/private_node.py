"""A node of the benchmark's own, in a process of its own, on a free port of this machine. The helper's event loop.

The user's node, its models and its files are not touched: configuration, logs and state live in a temporary folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from laya_desktop.bench import jobs
from laya_desktop.errors import LayaError
from laya_desktop.paths import HOME_VARIABLE

START_LIMIT_S = 30.0
STOP_LIMIT_S = 8.0
_MARK = b"Laya node: "
_PR_SET_PDEATHSIG = 1
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class PrivateNode:
    """A running one."""

    url: str
    pid: int


@contextlib.asynccontextmanager
async def private_node(config: str) -> AsyncIterator[PrivateNode]:
    """Start one on a configuration (YAML) and end it afterwards, whatever happens.

    Raises:
        LayaError: it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="laya-bench-") as name:
        folder = Path(name)
        file = folder / "bench.yaml"
        file.write_text(config, encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *jobs.node_command(file),
            "--port",
            "0",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=jobs.helper_environment() | {HOME_VARIABLE: str(folder / "home")},
            preexec_fn=_die_with_us if sys.platform == "linux" else None,
        )
        assert process.stdout is not None
        drain: asyncio.Task[None] | None = None
        try:
            url = await _url(process.stdout)
            drain = asyncio.get_running_loop().create_task(_drain(process.stdout))
            yield PrivateNode(url, process.pid)
        finally:
            await asyncio.shield(_end(process))
            if drain is not None:
                drain.cancel()


async def _url(stream: asyncio.StreamReader) -> str:
    tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
    with contextlib.suppress(asyncio.TimeoutError):
        async with asyncio.timeout(START_LIMIT_S):
            while line := await stream.readline():
                if line.startswith(_MARK):
                    return line.removeprefix(_MARK).decode().strip()
                tail.append(line)
    last = b"".join(tail).decode("utf-8", "replace").strip()
    raise LayaError("A node for the measurement did not start.", hint=last[-500:] or "It wrote no reason.")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_LIMIT_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _die_with_us() -> None:
    """In the new process: end when the helper is killed."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
