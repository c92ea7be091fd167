"""Intel GPUs through sysfs, as the kernel's i915 and xe drivers show them. Linux; telemetry's thread only.

Cards with memory of their own have sensors (hwmon); one in the processor has none and uses the RAM that is shown
already. Power is the counter of energy over time. How much of its memory a card has left, no driver shows to users.
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
_VENDOR = "0x8086"
_CARD = re.compile(r"card\d+")
_DRIVERS = ("drm-driver:\ti915", "drm-driver:\txe")
_HELD = ("drm-resident-local0", "drm-resident-vram0", "drm-total-local0", "drm-total-vram0")
"""What a process holds of a card's own memory: i915 says local, xe vram."""
_UNITS = {"KiB": 1024, "MiB": 1024**2}
_THROTTLE = ("gt/gt0/throttle_reason_{}", "device/tile0/gt0/freq0/throttle/reason_{}")
_HEAT, _POWER = ("thermal", "prochot", "ratl", "vr_thermalert"), ("pl1", "pl2", "pl4", "vr_tdc")
_UNSEEN = "Intel's driver does not show this sensor."
_UNTOLD = "Intel's driver does not tell how much memory or time of the GPU is used."


class IntelGpus:
    """All GPUs of the i915 and xe drivers."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._cards: list[Path] = []
        self._energy: dict[Path, tuple[float, int]] = {}
        self._processes: dict[int, int] = {}
        self._processes_read_s: float | None = None

    def close(self) -> None:
        """Forget the cards."""
        self._cards = []
        self._energy = {}

    def read(self, pids: Iterable[int]) -> GpuReading:
        """Sensors of all cards; power from the second reading on."""
        self._cards = [c for c in self._cards if c.is_dir()] or self._find()
        now_s = self._clock()
        reasons: dict[str, str] = {}
        gpus = tuple(self._snapshot(index, card, now_s, reasons) for index, card in enumerate(self._cards))
        if self._processes_read_s is None or now_s - self._processes_read_s >= PROCESSES_S:
            self._processes_read_s = now_s
            self._processes = {pid: held for pid in pids if (held := self._held_by(pid)) is not None}
        return GpuReading(gpus, dict(self._processes), reasons)

    def _find(self) -> list[Path]:
        cards = [p for p in (self._root / "sys/class/drm").glob("card*") if _CARD.fullmatch(p.name)]
        found = [c for c in cards if text(c / "device/vendor") == _VENDOR]
        if not found:
            raise SensorMissing("No Intel GPU found.")
        return sorted(found, key=lambda p: int(p.name.removeprefix("card")))

    def _snapshot(self, index: int, card: Path, now_s: float, reasons: dict[str, str]) -> GpuSnapshot:
        hwmon = next(iter(sorted(card.glob("device/hwmon/hwmon*"))), card / "none")
        heat = next((h for n in (1, 2, 3) if (h := number(hwmon / f"temp{n}_input")) is not None), None)
        power = self._power(card, number(hwmon / "energy1_input"), now_s)
        for name, value in (("temperature_c", heat), ("power_w", power)):
            if value is None:
                reasons[f"gpus[{index}].{name}"] = _UNSEEN
        for name in ("vram_total_bytes", "vram_used_bytes", "utilisation_percent"):
            reasons[f"gpus[{index}].{name}"] = _UNTOLD
        return GpuSnapshot(
            index=index,
            name=f"Intel GPU {text(card / 'device/device') or index}",
            temperature_c=None if heat is None else heat / 1000,
            power_w=power,
            throttle=_throttle(card),
        )

    def _power(self, card: Path, energy_uj: int | None, now_s: float) -> float | None:
        before = self._energy.get(card)
        if energy_uj is None:
            return None
        self._energy[card] = (now_s, energy_uj)
        if before is None or now_s <= before[0] or energy_uj < before[1]:
            return None
        return (energy_uj - before[1]) * 1e-6 / (now_s - before[0])

    def _held_by(self, pid: int) -> int | None:
        """One client may hold several files, each of which shows all of the client's memory."""
        clients: dict[str, int] = {}
        try:
            files = list((self._root / f"proc/{pid}/fdinfo").iterdir())
        except OSError:
            return None
        for file in files:
            lines = (text(file) or "").splitlines()
            if not any(driver in lines for driver in _DRIVERS):
                continue
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            amount = next((fields[key].split() for key in _HELD if key in fields), [])
            if amount and amount[0].isdigit():
                size = int(amount[0]) * _UNITS.get(amount[-1], 1)
                clients[f"{fields.get('drm-pdev')} {fields.get('drm-client-id')}"] = size
        return sum(clients.values()) if clients else None


def _throttle(card: Path) -> str | None:
    """As ``GpuSnapshot.throttle``."""
    seen = False
    for kind, names in (("heat", _HEAT), ("power", _POWER)):
        values = [number(card / path.format(name)) for path in _THROTTLE for name in names]
        seen = seen or any(v is not None for v in values)
        if any(values):
            return kind
    return "" if seen else None
