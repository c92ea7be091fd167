"""The GPUs of all vendors as one list. Telemetry's thread only; no fault of a driver gets out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from laya_desktop.node.telemetry_amd import AmdGpus
from laya_desktop.node.telemetry_base import GpuReading, GpuSource, SensorMissing
from laya_desktop.node.telemetry_intel import IntelGpus
from laya_desktop.node.telemetry_nvidia import NvidiaGpus
from laya_desktop.state.snapshot import GpuSnapshot

PROBE_S = 30.0
"""A vendor without a GPU is asked again after this long: opening a driver may take a tenth of a second."""

_NO_SOURCE = (
    "A Mac's GPU uses the RAM that is shown already; its load is shown to administrators only."
    if sys.platform == "darwin"
    else "This system shows no GPU."
)


class GpuSensors:
    """The GPUs of all vendors, numbered through. A vendor without a GPU is asked again every 30 s."""

    def __init__(self, sources: Iterable[GpuSource], clock: Callable[[], float] = time.monotonic) -> None:
        self._sources = list(sources)
        self._clock = clock
        self._missing: dict[int, tuple[float, str]] = {}

    def read(self, pids: Iterable[int]) -> tuple[GpuReading, str | None]:
        """All GPUs, and why there is none."""
        gpus: list[GpuSnapshot] = []
        processes: dict[int, int] = {}
        reasons: dict[str, str] = {}
        for number, source in enumerate(self._sources):
            reading = self._read_source(number, source, pids)
            offset = len(gpus)
            gpus += (g if not offset else replace(g, index=g.index + offset) for g in reading.gpus)
            reasons.update({_shifted(key, offset): text for key, text in reading.reasons.items()})
            for pid, used in reading.process_vram_bytes.items():
                processes[pid] = processes.get(pid, 0) + used
        why = None if gpus else " ".join(text for _, text in self._missing.values()) or _NO_SOURCE
        return GpuReading(tuple(gpus), processes, reasons), why

    def _read_source(self, number: int, source: GpuSource, pids: Iterable[int]) -> GpuReading:
        now_s = self._clock()
        asked_s, _ = self._missing.get(number, (None, ""))
        if asked_s is not None and now_s - asked_s < PROBE_S:
            return GpuReading()
        try:
            reading = source.read(pids)
        except SensorMissing as missing:
            self._missing[number] = (now_s, missing.reason)
            return GpuReading()
        except Exception as error:
            self._missing[number] = (now_s, f"The GPU's sensors could not be read: {error!r}.")
            return GpuReading()
        self._missing.pop(number, None)
        return reading

    def reopen(self) -> None:
        """Ask all vendors again at the next reading, with drivers opened anew."""
        self._missing.clear()
        self.close()

    def close(self) -> None:
        """Let go of the drivers."""
        for source in self._sources:
            source.close()


def default_gpus(clock: Callable[[], float] = time.monotonic) -> GpuSensors:
    """The GPU drivers of this platform. A Mac has none to ask: its GPU shares the RAM that is shown already."""
    if sys.platform == "darwin":
        return GpuSensors((), clock)
    sources: list[GpuSource] = [NvidiaGpus(clock=clock)]
    if sys.platform == "linux":
        sources += [AmdGpus(clock=clock), IntelGpus(clock=clock)]
    return GpuSensors(sources, clock)


def _shifted(key: str, offset: int) -> str:
    """``gpus[0].power_w`` under the number that the GPU has among all."""
    if not offset or not key.startswith("gpus["):
        return key
    number, _, rest = key.removeprefix("gpus[").partition("]")
    return f"gpus[{int(number) + offset}]{rest}"
