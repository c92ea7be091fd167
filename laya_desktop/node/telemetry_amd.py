"""AMD GPUs through sysfs, as the kernel's amdgpu driver shows them. Linux; telemetry's thread only.

VRAM per process comes from the compute driver (/sys/class/kfd, which ROCm uses), else from the fdinfo of the
process's open render nodes (Vulkan).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from laya_desktop.node.telemetry_base import GpuReading, SensorMissing
from laya_desktop.node.telemetry_sysfs import number, text
from laya_desktop.state.snapshot import GpuSnapshot

PROCESSES_S = 2.0
_CARD = re.compile(r"card\d+")


class AmdGpus:
    """All GPUs whose driver shows ``mem_info_vram_total``."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._devices: list[Path] = []
        self._processes: dict[int, int] = {}
        self._processes_read_s: float | None = None

    def close(self) -> None:
        """Forget the cards."""
        self._devices = []

    def read(self, pids: Iterable[int]) -> GpuReading:
        """Sensors of all cards."""
        self._devices = [d for d in self._devices if d.is_dir()] or self._find()
        gpus = []
        reasons: dict[str, str] = {}
        for index, device in enumerate(self._devices):
            gpus.append(_snapshot(index, device, reasons))
        now_s = self._clock()
        if self._processes_read_s is None or now_s - self._processes_read_s >= PROCESSES_S:
            self._processes_read_s = now_s
            self._processes = {pid: used for pid in pids if (used := self._process_vram(pid)) is not None}
        return GpuReading(tuple(gpus), dict(self._processes), reasons)

    def _find(self) -> list[Path]:
        cards = [p for p in (self._root / "sys/class/drm").glob("card*") if _CARD.fullmatch(p.name)]
        cards.sort(key=lambda p: int(p.name.removeprefix("card")))
        found = [c / "device" for c in cards if (c / "device/mem_info_vram_total").exists()]
        if found:
            return found
        raise SensorMissing("No AMD GPU found.")

    def _process_vram(self, pid: int) -> int | None:
        compute = [n for p in (self._root / f"sys/class/kfd/kfd/proc/{pid}").glob("vram_*") if (n := number(p))]
        return sum(compute) if compute else self._render_vram(pid)

    def _render_vram(self, pid: int) -> int | None:
        """One client may hold several files, each of which shows all of the client's memory."""
        clients: dict[str, int] = {}
        folder = self._root / f"proc/{pid}/fdinfo"
        try:
            files = list(folder.iterdir())
        except OSError:
            return None
        for file in files:
            shown = text(file) or ""
            if "drm-driver:\tamdgpu" not in shown:
                continue
            fields = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line)
            amount = fields.get("drm-memory-vram", fields.get("drm-resident-vram", "")).split()
            if amount and amount[0].isdigit():
                unit = {"KiB": 1024, "MiB": 1024**2}.get(amount[-1], 1)
                clients[f"{fields.get('drm-pdev')} {fields.get('drm-client-id')}"] = int(amount[0]) * unit
        return sum(clients.values()) if clients else None


def _snapshot(index: int, device: Path, reasons: dict[str, str]) -> GpuSnapshot:
    hwmon = next(iter(sorted(device.glob("hwmon/hwmon*"))), None)

    def sensor(name: str, *paths: Path | None, scale: float = 1.0) -> float | None:
        for path in paths:
            if path is not None and (value := number(path)) is not None:
                return value * scale
        reasons[f"gpus[{index}].{name}"] = "The amdgpu driver does not show this sensor."
        return None

    total = sensor("vram_total_bytes", device / "mem_info_vram_total")
    used = sensor("vram_used_bytes", device / "mem_info_vram_used")
    return GpuSnapshot(
        index=index,
        name=text(device / "product_name") or f"AMD GPU {text(device / 'device') or index}",
        vram_total_bytes=None if total is None else int(total),
        vram_used_bytes=None if used is None else int(used),
        utilisation_percent=sensor("utilisation_percent", device / "gpu_busy_percent"),
        temperature_c=sensor("temperature_c", hwmon and hwmon / "temp1_input", scale=0.001),
        power_w=sensor("power_w", hwmon and hwmon / "power1_average", hwmon and hwmon / "power1_input", scale=1e-6),
    )
