"""What the plots remember: half an hour of every series, in numpy rings. Qt main thread; knows no widget.

``feed`` takes a snapshot; ``view`` gives at most 300 points of a series. Thinning keeps each bucket's minimum and
maximum, and buckets are counted from the first sample ever, so that a peak neither vanishes nor flickers as the curve
moves. Unknown is NaN here and a gap on screen.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from laya_desktop.state.snapshot import NodeSnapshot

Floats = npt.NDArray[np.float64]

WINDOW_S = 1800.0
RATE_HZ = 4
MAX_POINTS = 300
_MIN_STEP_S = 0.8 / RATE_HZ
GAP_S = 3.0
"""Where nothing was sampled for longer, no line is drawn across."""
_NAN = float("nan")


class History:
    """Ring buffers on one time axis (the node's monotonic clock)."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._size = int(window_s * RATE_HZ)
        self._time: Floats = np.full(self._size, _NAN)
        self._series: dict[str, Floats] = {}
        self._count = 0
        self._epoch = 0
        self._last_s: float | None = None
        self._unix_offset_s = 0.0

    @property
    def now_s(self) -> float | None:
        """Monotonic time of the newest sample, or None before the first."""
        return self._last_s

    @property
    def count(self) -> int:
        """Samples since the last ``clear``."""
        return self._count

    @property
    def epoch(self) -> int:
        """How often everything was forgotten."""
        return self._epoch

    @property
    def keys(self) -> tuple[str, ...]:
        """Every series so far."""
        return tuple(self._series)

    def feed(self, snapshot: NodeSnapshot) -> bool:
        """Add a snapshot; False when it came too soon after the last one to be a sample of its own."""
        self._unix_offset_s = snapshot.unix_s - snapshot.monotonic_s
        return self.append(snapshot.monotonic_s, sample(snapshot))

    def append(self, time_s: float, values: dict[str, float | None]) -> bool:
        """Add one sample of every series given; the others get a gap."""
        last_s = self._last_s
        if last_s is not None and (time_s < last_s or time_s - last_s > WINDOW_S):
            self.clear()  # another node, or the clock of one that was started again
            last_s = None
        if last_s is not None and time_s - last_s < _MIN_STEP_S:
            return False
        self._write(time_s, values)
        self._last_s = time_s
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._time.fill(_NAN)
        self._series.clear()
        self._count, self._last_s = 0, None
        self._epoch += 1

    def _write(self, time_s: float, values: dict[str, float | None]) -> None:
        place = self._count % self._size
        self._time[place] = time_s
        for key in values.keys() - self._series.keys():
            self._series[key] = np.full(self._size, _NAN)
        for key, ring in self._series.items():
            value = values.get(key)
            ring[place] = _NAN if value is None else value
        self._count += 1

    def view(self, key: str, window_s: float, points: int = MAX_POINTS) -> tuple[Floats, Floats]:
        """The last ``window_s`` seconds of a series: seconds relative to now (≤ 0), and values; both may be empty."""
        ring = self._series.get(key)
        if ring is None or self._last_s is None:
            return np.empty(0), np.empty(0)
        held = min(self._count, self._size)
        wanted = min(held, int(window_s * RATE_HZ * 1.25) + 2)
        step = samples_a_bucket(window_s, points)
        first = self._count - wanted
        first = first if step == 1 else min(-(-first // step) * step, self._count - 1)
        index = np.arange(first, self._count) % self._size
        x, y = self._time[index] - self._last_s, ring[index]
        if step > 1:
            newest = x[-1], y[-1]
            x, y = _thin(x, y, step)
            x, y = np.append(x, newest[0]), np.append(y, newest[1])
        inside = x >= -window_s - 1.0
        x, y = _with_gaps(x[inside], y[inside], GAP_S + step / RATE_HZ)
        return x[-points:], y[-points:]

    def since(self, key: str, count: int) -> list[tuple[float, float]]:
        """The samples after the first ``count``: seconds on the clock of ``now_s``, and values; NaN is unknown."""
        places = [i % self._size for i in range(max(count, self._count - self._size), self._count)]
        ring = self._series.get(key)
        return [(float(self._time[i]), _NAN if ring is None else float(ring[i])) for i in places]

    def value_at(self, key: str, age_s: float) -> float | None:
        """The value of a series ``age_s`` seconds before now (≥ 0), or None where unknown."""
        ring = self._series.get(key)
        if ring is None or self._last_s is None:
            return None
        held = min(self._count, self._size)
        index = np.arange(self._count - held, self._count) % self._size
        nearest = int(np.argmin(np.abs(self._time[index] - (self._last_s - age_s))))
        value = float(ring[index[nearest]])
        return None if np.isnan(value) else value

    def export_csv(self, path: Path, window_s: float) -> Path:
        """Write every series of the last ``window_s`` seconds, one line a sample, without thinning.

        Raises:
            OSError: the file cannot be written.
        """
        held = min(self._count, self._size)
        index = np.arange(self._count - held, self._count) % self._size
        last_s = self._last_s or 0.0
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["time_utc", "age_s", *self._series])
            for i in index:
                age_s = last_s - float(self._time[i])
                if age_s <= window_s:
                    moment = datetime.fromtimestamp(float(self._time[i]) + self._unix_offset_s, UTC)
                    cells = ["" if np.isnan(ring[i]) else f"{ring[i]:.6g}" for ring in self._series.values()]
                    out.writerow([moment.isoformat(timespec="milliseconds"), f"{age_s:.2f}", *cells])
        return path


def samples_a_bucket(window_s: float, points: int = MAX_POINTS) -> int:
    """How many samples ``view`` makes into one point (two, where it is more than one)."""
    return 1 if window_s * RATE_HZ <= points else int(np.ceil(window_s * RATE_HZ / (points // 2 - 1)))


def _thin(x: Floats, y: Floats, step: int) -> tuple[Floats, Floats]:
    """Minimum and maximum of each bucket of ``step`` samples, in the order in which they occurred."""
    starts = np.arange(0, len(y), step)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    ends = np.minimum(starts + step, len(y)) - 1
    falling = y[starts] > y[ends]
    pairs = np.stack((np.where(falling, high, low), np.where(falling, low, high)), axis=1)
    times = np.stack((x[starts], x[(starts + ends) // 2]), axis=1)
    return times.ravel(), pairs.ravel()


def _with_gaps(x: Floats, y: Floats, longest_s: float) -> tuple[Floats, Floats]:
    """Where nothing was sampled for longer than that, a NaN, so that no line is drawn across."""
    places = np.flatnonzero(np.diff(x) > longest_s) + 1
    if not len(places):
        return x, y
    return np.insert(x, places, x[places]), np.insert(y, places, _NAN)


def sample(snapshot: NodeSnapshot) -> dict[str, float | None]:
    """The numbers of a snapshot by series key; memory in GB, CPU in percent of the machine."""
    machine = snapshot.machine
    values: dict[str, float | None] = {
        "routing.p50": snapshot.routing.p50_us,
        "routing.p99": snapshot.routing.p99_us,
        "tokens.decode": snapshot.decode_tokens_per_s,
        "tokens.prefill": snapshot.prefill_tokens_per_s,
        "queue.waiting": snapshot.waiting,
        "queue.running": snapshot.running,
        "cpu": machine.cpu_percent,
        "ram": _gb(machine.ram_used_bytes),
    }
    cores = machine.cores_logical or 1
    for model in snapshot.models:
        values[f"cpu:{model.name}"] = None if model.cpu_percent is None else model.cpu_percent / cores
        values[f"ram:{model.name}"] = _gb(model.rss_bytes)
        values[f"decode:{model.name}"] = model.decode_tokens_per_s if model.pid is not None else None
        values[f"vram_of:{model.name}"] = _gb(model.vram_bytes)
    for gpu in machine.gpus:
        values[f"vram:{gpu.index}"] = _gb(gpu.vram_used_bytes)
        values[f"gpu:{gpu.index}"] = gpu.utilisation_percent
        values[f"gpu_c:{gpu.index}"] = gpu.temperature_c
        values[f"gpu_w:{gpu.index}"] = gpu.power_w
    return values | _unplotted(snapshot)


def _unplotted(snapshot: NodeSnapshot) -> dict[str, float | None]:
    """Series that only the export shows."""
    machine = snapshot.machine
    cores = {f"cpu_core:{i}": percent for i, percent in enumerate(machine.cpu_per_core_percent)}
    return cores | {
        "routing.per_s": snapshot.routing.rate_per_s,
        "load_1min": machine.load_1min,
        "ram.available": _gb(machine.ram_available_bytes),
        "swap": _gb(machine.swap_used_bytes),
        "swap.in_bytes_per_s": machine.swap_in_bytes_per_s,
        "swap.out_bytes_per_s": machine.swap_out_bytes_per_s,
        "major_faults_per_s": machine.major_faults_per_s,
        "pressure.some_percent": machine.memory_some_avg10_percent,
        "pressure.full_percent": machine.memory_full_avg10_percent,
        "cpu_c": machine.cpu_temperature_c,
        "disk.free": _gb(machine.disk_free_bytes),
        "log.written_bytes_per_s": machine.log_write_bytes_per_s,
        "node.ram": _gb(machine.own_rss_bytes),
    }


def _gb(value_bytes: int | None) -> float | None:
    return None if value_bytes is None else value_bytes / 1e9
