"""A machine whose memory the test sets, under a node that is otherwise real."""

from __future__ import annotations

from collections.abc import Iterable

from laya_desktop.node.telemetry_base import CpuTimes, Memory, Paging, Pressure, ProcessTimes, SensorMissing

GIB = 2**30


class ScriptedMachine:
    """Satisfies ``telemetry_base.MachineSensors``. Fields may be set from any thread."""

    def __init__(self, total_bytes: int = 16 * GIB, used_bytes: int = 4 * GIB) -> None:
        self.total_bytes = total_bytes
        self.used_bytes = used_bytes
        self.full_percent = 0.0

    def memory(self) -> Memory:
        return Memory(self.total_bytes, self.total_bytes - self.used_bytes)

    def pressure(self) -> Pressure:
        return Pressure(self.full_percent, self.full_percent)

    def cpu_times(self) -> CpuTimes:
        raise SensorMissing("The test has no CPU.")

    def cores(self) -> tuple[int | None, int | None]:
        return 2, 2

    def load_1min(self) -> float:
        return 0.0

    def process(self, pid: int) -> ProcessTimes | None:
        return ProcessTimes(0.0, pid)

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Nothing is held."""

    def cpu_temperature_c(self) -> float:
        raise SensorMissing("The test is cool.")

    def cpu_throttles(self) -> int:
        return 0

    def paging(self) -> Paging:
        return Paging(0, 0, 0)

    def close(self) -> None:
        """Nothing is held."""
