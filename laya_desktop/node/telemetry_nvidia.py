"""NVIDIA GPUs through NVML (the import name of nvidia-ml-py is pynvml). Telemetry's thread only.

Memory is read every time; utilisation, temperature, power and the processes' share at most once a second, because
the driver takes up to milliseconds for them. A sensor that a GPU lacks is None with a reason. When no GPU answers any
more (a fault of the card, a driver update) the library is closed, and a later ``read`` begins anew.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from laya_desktop.node.telemetry_base import GpuReading, SensorMissing
from laya_desktop.state.snapshot import GpuSnapshot

SLOW_S = 1.0

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so"
_INIT_REASONS = {
    "NVML_ERROR_LIBRARY_NOT_FOUND": f"No NVIDIA driver found ({_LIBRARY} is missing).",
    "NVML_ERROR_DRIVER_NOT_LOADED": "The NVIDIA driver is installed but not loaded, or there is no NVIDIA GPU.",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "The NVIDIA driver was updated while in use. Restart the machine.",
    "NVML_ERROR_NO_PERMISSION": "The NVIDIA driver refuses access. Check the rights on /dev/nvidia*.",
}
_BY_HEAT, _BY_POWER = 0x20 | 0x40, 0x4 | 0x80
"""Bits of NVML's throttle reasons: software and hardware thermal slowdown; power cap and power brake."""
_PROCESS_CALLS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")


@dataclass(slots=True)
class _Device:
    handle: Any
    index: int
    name: str
    slow_read_s: float | None = None
    utilisation_percent: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: str | None = None
    process_vram_bytes: dict[int, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


class NvidiaGpus:
    """All GPUs that NVML knows."""

    def __init__(
        self,
        load: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._clock = clock
        self._nvml: Any = None
        self._devices: list[_Device] = []

    def close(self) -> None:
        """Close the library."""
        nvml, self._nvml = self._nvml, None
        self._devices = []
        if nvml is not None:
            with suppress(Exception):  # it is of no use any more, whatever it says
                nvml.nvmlShutdown()

    def read(self, pids: Iterable[int]) -> GpuReading:
        """Sensors of all GPUs, and VRAM of those of the processes that the driver lists."""
        if self._nvml is None:
            self._open()
        wanted = set(pids)
        gpus: list[GpuSnapshot] = []
        processes: dict[int, int] = {}
        reasons: dict[str, str] = {}
        alive = 0
        for device in self._devices:
            snapshot, fault = self._read_device(device)
            gpus.append(snapshot)
            reasons.update(device.reasons)
            if fault:
                reasons[f"gpus[{device.index}].vram_used_bytes"] = fault
            else:
                alive += 1
            for pid, used in device.process_vram_bytes.items():
                if pid in wanted:
                    processes[pid] = processes.get(pid, 0) + used
        if not alive and not any(g.utilisation_percent is not None for g in gpus):
            self.close()
            raise SensorMissing(f"The NVIDIA driver stopped answering ({' '.join(dict.fromkeys(reasons.values()))}).")
        return GpuReading(tuple(gpus), processes, reasons)

    def _open(self) -> None:
        try:
            nvml = self._load()
        except ImportError:
            raise SensorMissing("The Python package nvidia-ml-py is not installed.") from None
        try:
            nvml.nvmlInit()
        except Exception as error:
            raise SensorMissing(_init_reason(nvml, error)) from None
        self._nvml = nvml
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                self._devices.append(_Device(handle, index, _name(nvml, handle, index)))
        except Exception as error:
            self.close()
            raise SensorMissing(f"The NVIDIA driver does not list its GPUs: {error}.") from None
        if not self._devices:
            self.close()
            raise SensorMissing("The NVIDIA driver is loaded but reports no GPU.")

    def _read_device(self, device: _Device) -> tuple[GpuSnapshot, str | None]:
        total = used = fault = None
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(device.handle)
            total, used = int(memory.total), int(memory.total) - int(memory.free)  # the driver's own share included
        except Exception as error:
            fault = _why(error)
        now_s = self._clock()
        if device.slow_read_s is None or now_s - device.slow_read_s >= SLOW_S:
            device.slow_read_s = now_s
            self._read_slow(device)
        snapshot = GpuSnapshot(
            index=device.index,
            name=device.name,
            vram_total_bytes=total,
            vram_used_bytes=used,
            utilisation_percent=device.utilisation_percent,
            temperature_c=device.temperature_c,
            power_w=device.power_w,
            throttle=device.throttle,
        )
        return snapshot, fault

    def _read_slow(self, device: _Device) -> None:
        nvml, handle = self._nvml, device.handle
        device.reasons = {}

        def sensor(name: str, read: Callable[[], Any], scale: float = 1.0) -> float | None:
            try:
                return float(read()) * scale
            except Exception as error:
                device.reasons[f"gpus[{device.index}].{name}"] = _why(error)
                return None

        device.utilisation_percent = sensor(
            "utilisation_percent", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu
        )
        device.temperature_c = sensor(
            "temperature_c", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        )
        device.power_w = sensor("power_w", lambda: nvml.nvmlDeviceGetPowerUsage(handle), 0.001)
        bits = sensor("throttle", lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        device.throttle = None if bits is None else _throttle(int(bits))
        device.process_vram_bytes = self._processes(device)

    def _processes(self, device: _Device) -> dict[int, int]:
        """A process that computes and draws is listed twice, each time with all it holds."""
        found: dict[int, int] = {}
        for call in _PROCESS_CALLS:
            try:
                listed = getattr(self._nvml, call)(device.handle)
            except Exception as error:
                device.reasons[f"gpus[{device.index}].processes"] = _why(error)
                continue
            for process in listed:
                if process.usedGpuMemory is not None:  # Windows' own memory manager keeps it to itself
                    found[process.pid] = max(found.get(process.pid, 0), int(process.usedGpuMemory))
        return found


def _throttle(bits: int) -> str:
    """Slower clocks while idle are no throttling."""
    return "heat" if bits & _BY_HEAT else "power" if bits & _BY_POWER else ""


def _name(nvml: Any, handle: Any, index: int) -> str:
    try:
        name = nvml.nvmlDeviceGetName(handle)
    except Exception:
        return f"NVIDIA GPU {index}"
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _init_reason(nvml: Any, error: Exception) -> str:
    value = getattr(error, "value", None)
    for constant, reason in _INIT_REASONS.items():
        if value is not None and value == getattr(nvml, constant, None):
            return reason
    return f"The NVIDIA driver could not be opened: {error}."


def _why(error: Exception) -> str:
    return f"The NVIDIA driver says: {error}."
