"""CPU, RAM and processes through psutil, for macOS and Windows. Telemetry's thread only.

Linux has its own, faster reader. Raises psutil's and the system's errors freely; the caller turns them into reasons.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import psutil

from laya_desktop.node.telemetry_base import CpuTimes, Memory, Paging, Pressure, ProcessTimes, SensorMissing


class PortableSensors:
    """Reads the machine through psutil."""

    def __init__(self) -> None:
        self._processes: dict[int, psutil.Process] = {}

    def close(self) -> None:
        """Let go of the processes."""
        self._processes.clear()

    def cpu_times(self) -> CpuTimes:
        """Counters in seconds."""
        cores = tuple(_busy(times) for times in psutil.cpu_times(percpu=True))
        return CpuTimes((sum(busy for busy, _ in cores), sum(total for _, total in cores)), cores)

    def cores(self) -> tuple[int | None, int | None]:
        """As psutil counts them."""
        return psutil.cpu_count(logical=False), psutil.cpu_count(logical=True)

    def load_1min(self) -> float:
        """Of the system; Windows has none."""
        if sys.platform == "win32":
            raise SensorMissing("Windows has no load average.")
        return os.getloadavg()[0]

    def memory(self) -> Memory:
        """RAM and swap of the machine."""
        ram, swap = psutil.virtual_memory(), psutil.swap_memory()
        return Memory(ram.total, min(ram.available, ram.total), swap.total, swap.used)

    def process(self, pid: int) -> ProcessTimes | None:
        """CPU time and resident memory."""
        try:
            process = self._processes.get(pid)
            if process is None:
                process = self._processes[pid] = psutil.Process(pid)
            with process.oneshot():
                times = process.cpu_times()
                return ProcessTimes(times.user + times.system, process.memory_info().rss)
        except psutil.NoSuchProcess:  # zombies included
            self._processes.pop(pid, None)
            return None

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Let go of all other processes."""
        for pid in self._processes.keys() - set(pids):
            del self._processes[pid]

    def cpu_temperature_c(self) -> float:
        """Neither macOS nor Windows shows it to an ordinary program."""
        raise SensorMissing("This system shows the CPU's temperature to administrators only.")

    def cpu_throttles(self) -> int:
        """Counted on Linux only."""
        raise SensorMissing("Only Linux counts how often heat slowed the CPU down.")

    def pressure(self) -> Pressure:
        """A figure of Linux's."""
        raise SensorMissing("Only Linux measures memory pressure.")

    def paging(self) -> Paging:
        """Swap traffic as psutil counts it; Windows counts none."""
        swap = psutil.swap_memory()
        if sys.platform == "win32":
            raise SensorMissing("Windows does not count swap traffic.")
        return Paging(swap.sin, swap.sout)


def _busy(times: Any) -> tuple[float, float]:
    fields: dict[str, float] = times._asdict()
    idle = fields.get("idle", 0.0) + fields.get("iowait", 0.0)
    total = sum(fields.values()) - fields.get("guest", 0.0) - fields.get("guest_nice", 0.0)
    # Windows counts interrupt and DPC time as part of system time
    total -= fields.get("interrupt", 0.0) + fields.get("dpc", 0.0)
    return total - idle, total
