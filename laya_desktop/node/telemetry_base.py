"""What telemetry is made of: values and the protocols of its sensors. Pure; knows no platform."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from laya_desktop.state.snapshot import GpuSnapshot


class SensorMissing(Exception):  # noqa: N818 - a state of the machine, not a fault of the program
    """A sensor that this machine does not have, with the reason as a sentence for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Counters since boot, in any one unit: (busy, busy + idle) of the machine and of each core."""

    machine: tuple[float, float]
    cores: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """RAM and swap in bytes; ``used`` is what cannot be had any more: total minus available."""

    total_bytes: int
    available_bytes: int
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None

    @property
    def used_bytes(self) -> int:
        """Total minus available."""
        return max(self.total_bytes - self.available_bytes, 0)


@dataclass(frozen=True, slots=True)
class Pressure:
    """Shares of the last 10 s, in per cent, in which some or all tasks waited for memory."""

    some_percent: float
    full_percent: float


@dataclass(frozen=True, slots=True)
class Paging:
    """Counters since boot; a counter that the platform lacks is None."""

    swapped_in_bytes: int | None = None
    swapped_out_bytes: int | None = None
    major_faults: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """One process: CPU seconds since its start, and bytes resident in RAM."""

    cpu_s: float
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class GpuReading:
    """GPUs with their sensors, bytes of VRAM by process id, and why values are missing by field name."""

    gpus: tuple[GpuSnapshot, ...] = ()
    process_vram_bytes: dict[int, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


class MachineSensors(Protocol):
    """CPU, RAM and processes of one platform. Every method may raise ``SensorMissing`` or ``OSError``."""

    def cpu_times(self) -> CpuTimes:
        """Counters of the whole machine and of each core."""
        ...

    def cores(self) -> tuple[int | None, int | None]:
        """Physical and logical cores of the machine."""
        ...

    def load_1min(self) -> float:
        """Processes that run or wait, averaged over a minute."""
        ...

    def memory(self) -> Memory:
        """RAM of the machine, or what the cgroup's limits leave of it."""
        ...

    def process(self, pid: int) -> ProcessTimes | None:
        """One process; None once it is gone."""
        ...

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Let go of what is held for other processes."""
        ...

    def cpu_temperature_c(self) -> float:
        """The package's temperature."""
        ...

    def cpu_throttles(self) -> int:
        """How often since boot a core was slowed down by heat."""
        ...

    def pressure(self) -> Pressure:
        """Tasks that wait for memory (Linux's PSI), of the cgroup where it has its own figures."""
        ...

    def paging(self) -> Paging:
        """Swap traffic and faults that needed a disk."""
        ...

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        ...


class GpuSource(Protocol):
    """The GPUs of one vendor."""

    def read(self, pids: Iterable[int]) -> GpuReading:
        """Sensors of all GPUs.

        Raises:
            SensorMissing: there is none (any more); it may be asked again later.
        """
        ...

    def close(self) -> None:
        """Let go of the driver. Idempotent."""
        ...
