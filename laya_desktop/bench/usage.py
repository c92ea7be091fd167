"""Memory and CPU of a process and its children while a level runs, and the client's own. The helper's event loop.

Children are looked up once a level: the look-up walks all processes of the machine, which would disturb the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

import psutil

PERIOD_S = 0.25
_LEAST_S = 0.2
"""Below, the kernel's clock of 10 ms is too coarse for a share of the time."""


class UsageWatch:
    """``start``, then ``stop``; the figures are None where there is no such process here."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._processes: list[psutil.Process] = []
        self._task: asyncio.Task[None] | None = None
        self.ram_peak_bytes: int | None = None
        self.cpu_percent: float | None = None
        self.client_cpu_percent = 0.0

    def start(self) -> None:
        """Look the processes up and begin."""
        self._processes = _family(self._pid)
        self._began_s, self._own_s = time.monotonic(), time.process_time()
        self._cpu_s = self._cpu()
        self._look()
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Work the figures out."""
        if self._task is not None:
            self._task.cancel()
        self._look()
        span_s = max(time.monotonic() - self._began_s, 1e-6)
        self.client_cpu_percent = round(100 * (time.process_time() - self._own_s) / span_s, 1)
        if self._processes and span_s >= _LEAST_S:
            self.cpu_percent = round(100 * max(self._cpu() - self._cpu_s, 0.0) / span_s, 1)

    def _look(self) -> None:
        total = 0
        for process in self._processes:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        if total:
            self.ram_peak_bytes = max(total, self.ram_peak_bytes or 0)

    def _cpu(self) -> float:
        total = 0.0
        for process in self._processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            self._look()


def _family(pid: int | None) -> list[psutil.Process]:
    """The process and its descendants, without this helper, which may be one of them."""
    if pid is None:
        return []
    try:
        root = psutil.Process(pid)
        return [p for p in (root, *root.children(recursive=True)) if p.pid != os.getpid()]
    except psutil.Error:
        return []
