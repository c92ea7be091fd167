"""Dry runs of loads, remembered by the file's identity and the parameters that matter. Any event loop.

A dry run takes a process and a tenth of a second or more; the answer for the same file and parameters is the same.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Executor
from pathlib import Path

import msgspec

from laya_desktop.node.engines.base import DryRun, DryRunDone, EngineParams
from laya_desktop.node.engines.oneshot import ask

TIMEOUT_S = 60.0
KEPT = 64

Ask = Callable[[EngineParams], Awaitable[DryRunDone]]


async def ask_worker(params: EngineParams) -> DryRunDone:
    """Ask a throwaway worker. Raises LayaError."""
    answer = await ask(params.name, DryRun(params), TIMEOUT_S)
    assert isinstance(answer, DryRunDone)
    return answer


def file_identity(path: str) -> Hashable:
    """The file and its state, or None where there is none. Blocking."""
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return None
    return str(Path(path).absolute()), stat.st_size, stat.st_mtime_ns


def load_key(params: EngineParams, identity: Hashable) -> Hashable:
    """What decides how much memory a load takes."""
    return identity or params.path, msgspec.structs.replace(params, name="", path="", threads=1, warmup=True)


class DryRuns:
    """Satisfies ``Ask``, with a memory."""

    def __init__(self, executor: Executor | None, ask: Ask = ask_worker) -> None:
        self._executor = executor
        self._ask = ask
        self._known: OrderedDict[Hashable, DryRunDone] = OrderedDict()

    async def __call__(self, params: EngineParams) -> DryRunDone:
        """The figures of this load. Raises LayaError.

        What is free on a GPU changes, so such an answer is not kept, nor what ``auto`` chose by it.
        """
        loop = asyncio.get_running_loop()
        paths = [params.path, *(adapter.path for adapter in params.lora)]
        identity = await loop.run_in_executor(self._executor, lambda: tuple(map(file_identity, paths)))
        if None in identity:
            return await self._ask(params)
        key = load_key(params, identity)
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        answer = await self._ask(params)
        if answer.gpu_bytes is None and params.device != "auto":
            self._known[key] = answer
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return answer
