"""CPU, RAM, processes and temperature of a Linux machine, straight from /proc and /sys. Telemetry's thread only.

Files of /proc stay open and are read again with ``pread``: 1 to 4 µs each, where psutil takes 10 to 100. An open
file of a process also stays bound to that process, so a reused process id cannot be taken for the old one. Raises
``OSError`` or ``ValueError`` freely; the caller turns them into reasons.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from laya_desktop.node.telemetry_base import CpuTimes, Memory, Paging, Pressure, ProcessTimes, SensorMissing
from laya_desktop.node.telemetry_cgroup import CgroupMemory

_READ_BYTES = 65_536
_CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_PACKAGE_LABELS = ("Package id", "Tdie", "Tctl")
_CPU_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal")


class LinuxSensors:
    """Reads a machine's /proc and /sys below ``root`` (tests give a folder of their own)."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._proc = root / "proc"
        self._files: dict[Path, int] = {}
        self._processes: dict[int, tuple[int, int]] = {}
        self._cgroup = CgroupMemory(root)
        self._ticks_per_s = float(os.sysconf("SC_CLK_TCK"))
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._temperature: Path | None = None
        self._throttles: list[Path] | None = None

    def close(self) -> None:
        """Close every file."""
        self.forget_all_but(())
        while self._files:
            os.close(self._files.popitem()[1])

    def cpu_times(self) -> CpuTimes:
        """Counters in ticks; guest time is part of user time already."""
        machine: tuple[float, float] | None = None
        cores = []
        for line in self._read(self._proc / "stat").split(b"\n"):
            if not line.startswith(b"cpu"):
                break
            name, *fields = line.split()
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
            busy = float(user + nice + system + irq + softirq + steal)
            times = (busy, busy + idle + iowait)
            if name == b"cpu":
                machine = times
            else:
                cores.append(times)
        if machine is None:
            raise SensorMissing("/proc/stat has no line for the CPU.")
        return CpuTimes(machine, tuple(cores))

    def cores(self) -> tuple[int | None, int | None]:
        """From the topology in sysfs; physical is None where that is hidden."""
        physical: set[tuple[bytes, bytes]] = set()
        for topology in (self._root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
            with suppress(OSError):
                package = (topology / "physical_package_id").read_bytes()
                physical.add((package, (topology / "core_id").read_bytes()))
        return len(physical) or None, len(self.cpu_times().cores) or None

    def load_1min(self) -> float:
        """The first figure of /proc/loadavg."""
        return float(self._read(self._proc / "loadavg").split(b" ", 1)[0])

    def memory(self) -> Memory:
        """``MemTotal`` and ``MemAvailable``, lowered to what the tightest cgroup around this process leaves."""
        info = self._read(self._proc / "meminfo")
        total = _kib(info, b"MemTotal:")
        available = _kib(info, b"MemAvailable:")
        if total is None or available is None:
            raise SensorMissing("/proc/meminfo does not say how much memory is available.")
        swap_total, swap_free = _kib(info, b"SwapTotal:"), _kib(info, b"SwapFree:")
        limit = self._cgroup.read(total)
        if limit is not None:
            total, available = min(total, limit.total_bytes), min(available, limit.available_bytes)
        swap_used = None if swap_total is None or swap_free is None else swap_total - swap_free
        return Memory(total, min(available, total), swap_total, swap_used)

    def pressure(self) -> Pressure:
        """``avg10`` of both lines of /proc/pressure/memory."""
        try:
            text = self._read(self._proc / "pressure/memory")
        except (FileNotFoundError, OSError) as error:
            raise SensorMissing("This kernel does not measure memory pressure (PSI).") from error
        return Pressure(_avg10(text, b"some"), _avg10(text, b"full"))

    def paging(self) -> Paging:
        """From /proc/vmstat, whose swap counters are in pages."""
        text = b"\n" + self._read(self._proc / "vmstat")
        swapped_in, swapped_out = _counter(text, b"pswpin"), _counter(text, b"pswpout")
        return Paging(
            None if swapped_in is None else swapped_in * self._page_bytes,
            None if swapped_out is None else swapped_out * self._page_bytes,
            _counter(text, b"pgmajfault"),
        )

    def process(self, pid: int) -> ProcessTimes | None:
        """CPU time from ``stat``, resident pages from ``statm``."""
        try:
            if pid not in self._processes:
                self._processes[pid] = self._open_process(pid)
            stat, statm = self._processes[pid]
            fields = os.pread(stat, _READ_BYTES, 0).rpartition(b")")[2].split()  # the name may hold spaces and ")"
            pages = int(os.pread(statm, 256, 0).split()[1])
        except (FileNotFoundError, ProcessLookupError):
            self._forget(pid)
            return None
        cpu_s = (int(fields[11]) + int(fields[12])) / self._ticks_per_s
        if fields[0] == b"Z":  # dead, and its parent has not looked yet
            return None
        return ProcessTimes(cpu_s, pages * self._page_bytes)

    def _open_process(self, pid: int) -> tuple[int, int]:
        folder = self._proc / str(pid)
        stat = _open(folder / "stat")
        try:
            return stat, _open(folder / "statm")
        except OSError:
            os.close(stat)
            raise

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Close the files of all other processes."""
        for pid in self._processes.keys() - set(pids):
            self._forget(pid)

    def _forget(self, pid: int) -> None:
        for fd in self._processes.pop(pid, ()):
            os.close(fd)

    def cpu_temperature_c(self) -> float:
        """Of the CPU package, from hwmon or a thermal zone."""
        if self._temperature is None:
            self._temperature = self._find_temperature()
        try:
            value_c = int(self._temperature.read_bytes()) / 1000
        except OSError:
            self._temperature = None
            raise
        if not -50 < value_c < 150:
            raise SensorMissing(f"The CPU's temperature sensor reports {value_c:g} °C, which cannot be right.")
        return value_c

    def cpu_throttles(self) -> int:
        """Of all cores together; drivers of Intel's CPUs count it."""
        if self._throttles is None:
            found = (self._root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
            self._throttles = sorted(found)
        if not self._throttles:
            raise SensorMissing("This CPU's driver does not count how often heat slowed it down.")
        return sum(int(self._read(path)) for path in self._throttles)

    def _find_temperature(self) -> Path:
        for chip in sorted((self._root / "sys/class/hwmon").glob("hwmon*")):
            if _text(chip / "name") in _CPU_CHIPS:
                inputs = sorted(chip.glob("temp*_input"))
                labelled = [p for p in inputs if (_text(_label(p)) or "").startswith(_PACKAGE_LABELS)]
                if labelled or inputs:
                    return (labelled or inputs)[0]
        for zone in sorted((self._root / "sys/class/thermal").glob("thermal_zone*")):
            if _text(zone / "type") in _CPU_ZONES:
                return zone / "temp"
        raise SensorMissing("This machine shows no CPU temperature (usual in virtual machines and containers).")

    def _read(self, path: Path) -> bytes:
        fd = self._files.get(path)
        if fd is None:
            fd = self._files[path] = _open(path)
        return os.pread(fd, _READ_BYTES, 0)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _kib(info: bytes, key: bytes) -> int | None:
    """Bytes of one line of /proc/meminfo."""
    start = info.find(key)
    if start < 0:
        return None
    return int(info[start + len(key) : info.index(b"\n", start)].split()[0]) * 1024


def _avg10(text: bytes, line: bytes) -> float:
    """Per cent in ``some avg10=0.12 avg60=…``."""
    rest = text[text.index(line + b" avg10=") + len(line) + 7 :]
    return float(rest.split(None, 1)[0])


def _counter(text: bytes, name: bytes) -> int | None:
    start = text.find(b"\n" + name + b" ")
    return None if start < 0 else int(text[start + len(name) + 2 :].split(None, 1)[0])


def _label(temperature: Path) -> Path:
    return temperature.with_name(temperature.name.replace("_input", "_label"))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
