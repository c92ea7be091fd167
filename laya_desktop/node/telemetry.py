"""The machine's sensors in one picture, four times a second. Blocking; runs in its own thread, never on the loop.

``read`` is for the node's loop: it samples in a thread of its own and waits a second at most. ``sample`` does the
work. No fault of a sensor gets out: its value is None and ``reasons`` says why. What is slow or seldom changes is read
less often than the rest. It writes no file and decides nothing.

The RSS of a worker counts the pages of its model file that are in RAM, since decoding is only fast while they are
there. PSS would split them between two replicas of one model (here each shows them in full), but the kernel walks the
whole page table for it: measured 0.5 ms per 100 MB mapped, which makes 40 ms for 8 GB, against 1 µs; and USS would
show two replicas that fill the RAM as small ones. Headroom never comes from RSS, but from ``MemAvailable``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from laya_desktop.node.telemetry_base import (
    CpuTimes,
    MachineSensors,
    Memory,
    Paging,
    Pressure,
    ProcessTimes,
    SensorMissing,
)
from laya_desktop.node.telemetry_gpus import GpuSensors, default_gpus
from laya_desktop.node.telemetry_logs import LogGrowth
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot

CPU_WINDOW_S = 1.0
"""CPU shares are averages over about this long: at 250 ms a tick of 10 ms would be 4 % of a core."""
CPU_EVERY_S = 0.5
PAGING_WINDOW_S = 3.0
TEMPERATURE_S = 2.0
DISK_S = 5.0
LOG_EVERY_S, LOG_WINDOW_S = 1.0, 5.0
THROTTLE_WINDOW_S = 10.0
READ_LIMIT_S = 1.0
STALE_S = 3.0
"""An older picture is not shown as the present."""

_MEMORY_FIELDS = ("ram_total_bytes", "ram_used_bytes", "ram_available_bytes", "swap_used_bytes", "swap_total_bytes")
_PRESSURE_FIELDS = ("memory_some_avg10_percent", "memory_full_avg10_percent")
_PAGING_FIELDS = ("swap_in_bytes_per_s", "swap_out_bytes_per_s", "major_faults_per_s")

T = TypeVar("T")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    """What one worker process takes; None: unknown."""

    cpu_percent: float | None = None
    """Of one core: 200.0 means two cores busy."""
    rss_bytes: int | None = None
    vram_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TelemetrySample:
    """One picture of the machine and of the workers, by model name."""

    monotonic_s: float
    machine: MachineSnapshot
    workers: Mapping[str, WorkerUsage] = field(default_factory=dict)


class Telemetry:
    """Samples the machine; one instance per node."""

    def __init__(
        self,
        log_dir: Path | None,
        *,
        machine: MachineSensors | None = None,
        gpus: GpuSensors | None = None,
        clock: Clock = time.monotonic,
        disk_free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
    ) -> None:
        self._log_dir = log_dir
        self._machine = machine or default_machine()
        self._gpus = gpus or default_gpus(clock)
        self._clock = clock
        self._disk_free = disk_free
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._kept: dict[str, tuple[float, object, str | None]] = {}
        self._cpu: deque[tuple[float, CpuTimes]] = deque(maxlen=64)
        self._paging: deque[tuple[float, Paging]] = deque(maxlen=64)
        self._log_growth = LogGrowth()
        self._log_written: deque[tuple[float, int]] = deque(maxlen=64)
        self._throttles: deque[tuple[float, int]] = deque(maxlen=64)
        self._worker_cpu: dict[int, deque[tuple[float, float]]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="laya-telemetry")
        self._pending: Future[TelemetrySample] | None = None
        self._last: TelemetrySample | None = None
        self._anew = False

    async def read(self, worker_pids: Mapping[str, int]) -> TelemetrySample:
        """A new sample, or the last one where a sensor keeps the thread longer than a second.

        Never raises. After three seconds without an answer everything is unknown, with that as the reason.
        """
        try:
            pending = self._pending
            if pending is None or pending.done():
                pending = self._pending = self._pool.submit(self.sample, dict(worker_pids))
            await asyncio.wait({asyncio.wrap_future(pending)}, timeout=READ_LIMIT_S)
            return pending.result() if pending.done() else self._stale()
        except Exception as error:  # the boundary: the node goes on without sensors
            return TelemetrySample(self._clock(), MachineSnapshot(reasons={"machine": f"Not read: {error!r}."}))

    def forget(self) -> None:
        """The machine slept: what was kept is void, and the next sample opens the drivers anew. Any thread."""
        self._anew = True

    def close(self) -> None:
        """Stop the thread and let go of the sensors. Does not wait for a sensor that hangs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._lock.acquire(timeout=READ_LIMIT_S):
            try:
                self._machine.close()
                self._gpus.close()
            finally:
                self._lock.release()

    def sample(self, worker_pids: Mapping[str, int]) -> TelemetrySample:
        """Read everything now. Blocks for as long as the sensors do; one caller at a time."""
        with self._lock:
            if self._anew:
                self._begin_anew()
            self._reasons = {}
            gpus, gpu_reason = self._gpus.read(worker_pids.values())
            self._reasons.update(gpus.reasons)
            machine = self._sample_machine(gpus.gpus, gpu_reason)
            workers = {
                name: self._sample_worker(pid, gpus.process_vram_bytes.get(pid)) for name, pid in worker_pids.items()
            }
            self._forget_all_but(set(worker_pids.values()))
            self._last = TelemetrySample(self._clock(), machine, workers)
            return self._last

    def _begin_anew(self) -> None:
        self._anew = False
        self._kept.clear()
        self._cpu.clear()
        self._paging.clear()
        self._log_written.clear()
        self._throttles.clear()
        self._worker_cpu.clear()
        self._gpus.reopen()

    def _sample_machine(self, gpus: tuple[GpuSnapshot, ...], gpu_reason: str | None) -> MachineSnapshot:
        self._sample_cpu()
        busy, per_core = self._cpu_shares()
        cores = self._get("cores_logical", self._machine.cores, every_s=3600.0) or (None, None)
        memory: Memory | None = self._get("ram", self._machine.memory)
        self._spread("ram", _MEMORY_FIELDS)
        pressure: Pressure | None = self._get("memory_pressure", self._machine.pressure, every_s=CPU_EVERY_S)
        self._spread("memory_pressure", _PRESSURE_FIELDS)
        swapped_in, swapped_out, faults = self._paging_rates()
        self._spread("paging", _PAGING_FIELDS)
        own: ProcessTimes | None = self._get("own_rss_bytes", lambda: self._machine.process(os.getpid()))
        return MachineSnapshot(
            cpu_percent=busy,
            cpu_per_core_percent=per_core,
            cores_physical=cores[0],
            cores_logical=cores[1],
            load_1min=self._get("load_1min", self._machine.load_1min, every_s=TEMPERATURE_S),
            ram_total_bytes=memory.total_bytes if memory else None,
            ram_used_bytes=memory.used_bytes if memory else None,
            ram_available_bytes=memory.available_bytes if memory else None,
            swap_used_bytes=memory.swap_used_bytes if memory else None,
            swap_total_bytes=memory.swap_total_bytes if memory else None,
            own_rss_bytes=own.rss_bytes if own else None,
            disk_free_bytes=self._get("disk_free_bytes", self._read_disk, every_s=DISK_S),
            log_write_bytes_per_s=self._log_write_rate(),
            cpu_throttle=self._cpu_throttle(),
            cpu_temperature_c=self._get("cpu_temperature_c", self._machine.cpu_temperature_c, every_s=TEMPERATURE_S),
            memory_some_avg10_percent=pressure.some_percent if pressure else None,
            memory_full_avg10_percent=pressure.full_percent if pressure else None,
            swap_in_bytes_per_s=swapped_in,
            swap_out_bytes_per_s=swapped_out,
            major_faults_per_s=faults,
            gpus=gpus,
            gpu_reason=gpu_reason,
            reasons=self._reasons,
        )

    def _sample_cpu(self) -> None:
        now_s = self._clock()
        if self._cpu and now_s - self._cpu[-1][0] < CPU_EVERY_S:
            return
        times: CpuTimes | None = self._get("cpu_percent", self._machine.cpu_times)
        if times is None:
            self._cpu.clear()
            return
        self._cpu.append((now_s, times))
        _drop_old(self._cpu, now_s)

    def _cpu_shares(self) -> tuple[float | None, tuple[float, ...]]:
        if len(self._cpu) < 2:
            self._reasons.setdefault("cpu_percent", "Measured between two samples; the second is still to come.")
            return None, ()
        first, last = self._cpu[0][1], self._cpu[-1][1]
        pairs = zip(first.cores, last.cores, strict=False)
        cores = tuple(_share(a, b) or 0.0 for a, b in pairs) if len(first.cores) == len(last.cores) else ()
        return _share(first.machine, last.machine), cores

    def _paging_rates(self) -> tuple[float | None, float | None, float | None]:
        """Bytes swapped in and out and major faults, a second, over about ``PAGING_WINDOW_S``."""
        now_s = self._clock()
        if not self._paging or now_s - self._paging[-1][0] >= CPU_EVERY_S:
            counters: Paging | None = self._get("paging", self._machine.paging)
            if counters is None:
                self._paging.clear()
                return None, None, None
            self._paging.append((now_s, counters))
            _drop_old(self._paging, now_s, PAGING_WINDOW_S)
        (since_s, first), (last_s, last) = self._paging[0], self._paging[-1]
        if last_s <= since_s:
            self._reasons.setdefault("paging", "Measured between two samples; the second is still to come.")
            return None, None, None
        seconds = last_s - since_s
        return (
            _per_s(first.swapped_in_bytes, last.swapped_in_bytes, seconds),
            _per_s(first.swapped_out_bytes, last.swapped_out_bytes, seconds),
            _per_s(first.major_faults, last.major_faults, seconds),
        )

    def _log_write_rate(self) -> float | None:
        """Bytes a second that the log's files grew by, over about ``LOG_WINDOW_S``."""
        history = self._follow("log_write_bytes_per_s", self._read_log, self._log_written, LOG_EVERY_S, LOG_WINDOW_S)
        if history is None:
            return None
        (since_s, before), (last_s, after) = history[0], history[-1]
        return (after - before) / (last_s - since_s)

    def _cpu_throttle(self) -> str | None:
        """``heat`` where the count rose within ``THROTTLE_WINDOW_S``."""
        read = self._machine.cpu_throttles
        history = self._follow("cpu_throttle", read, self._throttles, TEMPERATURE_S, THROTTLE_WINDOW_S)
        if history is None:
            return None
        return "heat" if history[-1][1] > history[0][1] else ""

    def _follow(
        self, name: str, read: Callable[[], int], history: deque[tuple[float, int]], every_s: float, window_s: float
    ) -> deque[tuple[float, int]] | None:
        """A counter's readings of about the last ``window_s`` seconds, two at least; None with its reason."""
        now_s = self._clock()
        count: int | None = self._get(name, read, every_s=every_s)
        if count is None:
            history.clear()
            return None
        if not history or now_s - history[-1][0] >= every_s:
            history.append((now_s, count))
            _drop_old(history, now_s, window_s)
        if len(history) < 2:
            self._reasons.setdefault(name, "Measured between two samples; the second is still to come.")
            return None
        return history

    def _read_log(self) -> int:
        if self._log_dir is None:
            raise SensorMissing("No log folder is set.")
        return self._log_growth.written_bytes(self._log_dir)

    def _sample_worker(self, pid: int, vram_bytes: int | None) -> WorkerUsage:
        times: ProcessTimes | None = self._get(f"process {pid}", lambda: self._machine.process(pid))
        if times is None:
            self._worker_cpu.pop(pid, None)
            return WorkerUsage()
        now_s = self._clock()
        history = self._worker_cpu.setdefault(pid, deque(maxlen=64))
        history.append((now_s, times.cpu_s))
        _drop_old(history, now_s)
        since_s, before_s = history[0]
        percent = None if now_s <= since_s else max(times.cpu_s - before_s, 0.0) / (now_s - since_s) * 100
        return WorkerUsage(percent, times.rss_bytes, vram_bytes)

    def _forget_all_but(self, pids: set[int]) -> None:
        for pid in self._worker_cpu.keys() - pids:
            del self._worker_cpu[pid]
        self._machine.forget_all_but(pids | {os.getpid()})

    def _read_disk(self) -> int:
        if self._log_dir is None:
            raise SensorMissing("No log folder is set.")
        folder = self._log_dir.absolute()
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return self._disk_free(folder)

    def _get(self, name: str, read: Callable[[], T | None], *, every_s: float = 0.0) -> T | None:
        """A sensor's value, or None with its reason; at most every ``every_s`` seconds anew."""
        now_s = self._clock()
        if every_s and name in self._kept:
            read_s, value, reason = self._kept[name]
            if now_s - read_s < every_s:
                if reason is not None:
                    self._reasons[name] = reason
                return value  # type: ignore[return-value]
        result, reason = None, None
        try:
            result = read()
        except SensorMissing as missing:
            reason = missing.reason
        except Exception as error:  # the boundary: a sensor may fail in any way, the picture is still made
            reason = f"Could not be read: {error}."
        if reason is not None:
            self._reasons[name] = reason
        if every_s:
            self._kept[name] = (now_s, result, reason)
        return result

    def _spread(self, name: str, fields: tuple[str, ...]) -> None:
        """Give the reason of a sensor with several figures to each of them."""
        if (reason := self._reasons.pop(name, None)) is not None:
            self._reasons.update(dict.fromkeys(fields, reason))

    def _stale(self) -> TelemetrySample:
        now_s = self._clock()
        if self._last is not None and now_s - self._last.monotonic_s <= STALE_S:
            return self._last
        return TelemetrySample(now_s, MachineSnapshot(reasons={"machine": "The sensors do not answer."}))


def default_machine() -> MachineSensors:
    """The sensors of this platform."""
    if sys.platform == "linux":
        from laya_desktop.node.telemetry_linux import LinuxSensors

        return LinuxSensors()
    from laya_desktop.node.telemetry_portable import PortableSensors

    return PortableSensors()


def _drop_old(history: deque[tuple[float, T]], now_s: float, window_s: float = CPU_WINDOW_S) -> None:
    """Keep one entry that is at least a window old, and all newer ones."""
    while len(history) > 2 and now_s - history[1][0] >= window_s:
        history.popleft()


def _per_s(before: int | None, after: int | None, seconds: float) -> float | None:
    """A counter's rate; one that ran backwards counts as nothing."""
    return None if before is None or after is None else max(after - before, 0) / seconds


def _share(before: tuple[float, float], after: tuple[float, float]) -> float | None:
    """Percent busy between two readings; counters that ran backwards count as nothing."""
    total = after[1] - before[1]
    return min(max((after[0] - before[0]) / total * 100, 0.0), 100.0) if total > 0 else None
