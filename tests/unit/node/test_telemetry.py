"""The whole picture: windows, slow sensors, faults and hanging sensors."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from laya_desktop.config.schema import GuardConfig
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.node import telemetry as module
from laya_desktop.node.forecast import Forecaster
from laya_desktop.node.guard import Guard
from laya_desktop.node.guard_signs import Signs
from laya_desktop.node.telemetry import Telemetry, TelemetrySample, WorkerUsage
from laya_desktop.node.telemetry_base import CpuTimes, GpuReading, Memory, Paging, Pressure, ProcessTimes, SensorMissing
from laya_desktop.node.telemetry_gpus import GpuSensors
from laya_desktop.node.telemetry_portable import PortableSensors
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot, NodeSnapshot

GIB = 1024**3


class FakeMachine:
    """A machine that the test drives. ``faults`` maps a method's name to what it raises."""

    def __init__(self) -> None:
        self.now = 50.0
        self.times = CpuTimes((0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)))
        self.counted = Paging(0, 0, 0)
        self.throttles = 7
        self.available = 10 * GIB
        self.processes: dict[int, ProcessTimes] = {}
        self.faults: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.closed = False

    def clock(self) -> float:
        return self.now

    def _call(self, name: str, value):
        self.calls.append(name)
        if name in self.faults:
            raise self.faults[name]
        return value

    def cpu_times(self):
        return self._call("cpu_times", self.times)

    def cores(self):
        return self._call("cores", (1, 2))

    def load_1min(self):
        return self._call("load_1min", 0.75)

    def memory(self):
        return self._call("memory", Memory(16 * GIB, self.available, 2 * GIB, GIB))

    def process(self, pid):
        return self._call("process", self.processes.get(pid))

    def forget_all_but(self, pids):
        self.kept = set(pids)

    def cpu_temperature_c(self):
        return self._call("cpu_temperature_c", 55.0)

    def cpu_throttles(self):
        return self._call("cpu_throttles", self.throttles)

    def pressure(self):
        return self._call("pressure", Pressure(12.5, 3.0))

    def paging(self):
        return self._call("paging", self.counted)

    def close(self):
        self.closed = True


class Silent:
    """Satisfies ``guard.Effects`` and does nothing."""

    def set_standing(self, kind, *, on):
        return None

    def unload(self, model, reason):
        return None

    def reload(self, model):
        return None

    def say(self, event):
        return None


class FakeGpu:
    def read(self, pids):
        return GpuReading((GpuSnapshot(0, "G", 8 * GIB, 2 * GIB),), {7: GIB}, {"gpus[0].power_w": "none"})

    def close(self):
        return None


@pytest.fixture
def machine():
    return FakeMachine()


@pytest.fixture
def telemetry(machine, tmp_path):
    telemetry = Telemetry(
        tmp_path / "not" / "there",
        machine=machine,
        gpus=GpuSensors([FakeGpu()], machine.clock),
        clock=machine.clock,
        disk_free=lambda path: 123 if path == tmp_path else 0,
    )
    yield telemetry
    telemetry.close()
    assert machine.closed


def test_everything_that_is_known(telemetry, machine):
    machine.processes[os.getpid()] = ProcessTimes(1.0, 77)
    picture = telemetry.sample({}).machine
    assert (picture.ram_total_bytes, picture.ram_used_bytes, picture.ram_available_bytes) == (
        16 * GIB,
        6 * GIB,
        10 * GIB,
    )
    assert (picture.swap_total_bytes, picture.swap_used_bytes) == (2 * GIB, GIB)
    assert (picture.cores_physical, picture.cores_logical, picture.load_1min) == (1, 2, 0.75)
    assert (picture.own_rss_bytes, picture.disk_free_bytes, picture.cpu_temperature_c) == (77, 123, 55.0)
    assert picture.gpus[0].vram_used_bytes == 2 * GIB
    assert picture.gpu_reason is None
    assert (picture.memory_some_avg10_percent, picture.memory_full_avg10_percent) == (12.5, 3.0)
    rates = {"swap_in_bytes_per_s", "swap_out_bytes_per_s", "major_faults_per_s", "log_write_bytes_per_s"}
    rates |= {"cpu_throttle"}
    assert set(picture.reasons) == {"cpu_percent", "gpus[0].power_w"} | rates


def test_after_a_sleep_everything_is_read_anew(telemetry, machine):
    telemetry.sample({})
    machine.calls.clear()
    telemetry.sample({})
    assert "cores" not in machine.calls
    telemetry.forget()
    picture = telemetry.sample({}).machine
    assert "cores" in machine.calls
    assert picture.cpu_percent is None
    assert picture.gpus[0].vram_used_bytes == 2 * GIB


def test_swap_and_faults_are_rates_over_about_three_seconds(telemetry, machine):
    telemetry.sample({})
    for step in range(1, 21):
        machine.now += 0.5
        machine.counted = Paging(step * 1000, 0 if step < 10 else 500, None)
        picture = telemetry.sample({}).machine
    assert picture.swap_in_bytes_per_s == pytest.approx(2000.0)
    assert picture.swap_out_bytes_per_s == 0.0
    assert picture.major_faults_per_s is None
    machine.counted = Paging(0, 0, 0)  # a container was restored
    machine.now += 0.5
    assert telemetry.sample({}).machine.swap_in_bytes_per_s == 0.0


def test_cpu_is_an_average_over_about_a_second(telemetry, machine):
    assert telemetry.sample({}).machine.cpu_percent is None
    busy = total = 0.0
    for step in range(20):
        machine.now += 0.25
        busy += 25.0 if step >= 12 else 0.0
        total += 50.0
        machine.times = CpuTimes((busy, total), ((busy, total / 2), (0.0, total / 2)))
        picture = telemetry.sample({}).machine
    assert picture.cpu_percent == pytest.approx(50.0)
    assert picture.cpu_per_core_percent == pytest.approx((100.0, 0.0))
    assert "cpu_percent" not in picture.reasons
    assert machine.calls.count("cpu_times") == 11, "twice a second is enough"


def test_counters_that_stand_still_or_run_backwards_give_no_nonsense(telemetry, machine):
    machine.times = CpuTimes((10.0, 100.0), ((10.0, 100.0),))
    telemetry.sample({})
    machine.now += 1
    picture = telemetry.sample({}).machine
    assert picture.cpu_percent is None
    machine.now += 1
    machine.times = CpuTimes((5.0, 200.0), ((5.0, 200.0),))
    assert telemetry.sample({}).machine.cpu_percent == 0.0
    machine.now += 1
    machine.times = CpuTimes((50.0, 300.0), ((5.0, 250.0), (45.0, 50.0)))  # a core was plugged in
    picture = telemetry.sample({}).machine
    assert 0 <= picture.cpu_percent <= 100
    assert picture.cpu_per_core_percent == ()


def test_heat_that_slowed_the_cpu_down_is_told_for_about_ten_seconds(telemetry, machine):
    assert telemetry.sample({}).machine.cpu_throttle is None
    told = []
    for step in range(40):
        machine.now += 1
        machine.throttles = 7 if step < 10 else 9
        told.append(telemetry.sample({}).machine.cpu_throttle)
    assert set(told[2:10]) == {""}
    assert told[12] == "heat"
    assert set(told[25:]) == {""}


def test_the_logs_write_rate_counts_growth_and_no_rotation(machine, tmp_path):
    telemetry = Telemetry(tmp_path, machine=machine, gpus=GpuSensors([FakeGpu()], machine.clock), clock=machine.clock)
    current = tmp_path / "laya.log"
    current.write_bytes(b"x" * 5000)
    (tmp_path / "laya.yaml").write_bytes(b"x" * 99)
    rates = []
    for step in range(20):
        rates.append(telemetry.sample({}).machine.log_write_bytes_per_s)
        machine.now += 1
        with current.open("ab") as file:
            file.write(b"x" * 1000)
        if step == 10:
            current.rename(tmp_path / "laya-20260101-000000-000.log")
            current.write_bytes(b"")
    telemetry.close()
    assert rates[0] is None
    assert rates[1:] == [pytest.approx(1000.0)] * 19


def test_hours_at_four_hertz_leave_nothing_behind(machine, tmp_path):
    """With workers that come and go, sensors that fail at times, forecasts, alerts and the plots' memory.

    What is bounded is full after half an hour; LAYA_TEST_HOURS=24 makes it a day.
    """
    quarters = 4 * int(os.environ.get("LAYA_TEST_HOURS", "2"))
    telemetry = Telemetry(tmp_path, machine=machine, gpus=GpuSensors([FakeGpu()], machine.clock), clock=machine.clock)
    forecaster, signs, guard, history = Forecaster(), Signs(), Guard(Silent()), History()
    config, blocks = GuardConfig(), []
    for step in range(quarters * 3600):
        machine.now += 0.25
        hour, minute = divmod(step // 240, 60)
        pid = 1000 + step // 240
        machine.processes = {pid: ProcessTimes(step / 10, GIB)}
        machine.faults = {"pressure": SensorMissing("Gone.")} if minute % 7 == 3 else {}
        machine.available = (10 - 9 * (minute % 4) // 3) * GIB
        sample = telemetry.sample({f"m{hour}": pid})
        forecasts = forecaster.update(machine.now, sample.machine, {f"m{hour}": (minute, 64)}, config)
        seen = signs.read(machine.now, forecasts, sample.machine)
        guard.update(machine.now, machine.now, seen, (), "shed")
        if step % 16 == 0:  # four seconds: the history is numpy's and costs the most time here
            history.feed(NodeSnapshot(monotonic_s=machine.now, machine=sample.machine))
        if step and step % 3600 == 0:  # a quarter of an hour
            gc.collect()
            blocks.append(sys.getallocatedblocks())
    telemetry.close()
    assert len(guard.snapshot().alerts) > 10
    assert max(blocks[3:]) - blocks[2] < 2000, blocks


def test_workers_by_name(telemetry, machine):
    machine.processes = {7: ProcessTimes(10.0, 500), 8: ProcessTimes(0.0, 600)}
    first = telemetry.sample({"a": 7, "b": 8, "gone": 9}).workers
    assert first == {"a": WorkerUsage(None, 500, GIB), "b": WorkerUsage(None, 600, None), "gone": WorkerUsage()}
    machine.now += 2
    machine.processes[7] = ProcessTimes(13.0, 700)
    second = telemetry.sample({"a": 7, "b": 8}).workers
    assert second["a"] == WorkerUsage(150.0, 700, GIB)
    assert second["b"].cpu_percent == 0.0
    assert machine.kept == {7, 8, os.getpid()}
    telemetry.sample({})
    assert telemetry._worker_cpu == {}


def test_slow_sensors_are_read_less_often_and_keep_their_reasons(telemetry, machine):
    machine.faults["cpu_temperature_c"] = SensorMissing("No sensor.")
    for _ in range(8):
        picture = telemetry.sample({}).machine
        assert picture.reasons["cpu_temperature_c"] == "No sensor."
        machine.now += 0.25
    assert machine.calls.count("cpu_temperature_c") == 1
    assert machine.calls.count("memory") == 8
    machine.faults = {}
    machine.now += 2
    picture = telemetry.sample({}).machine
    assert picture.cpu_temperature_c == 55.0
    assert "cpu_temperature_c" not in picture.reasons


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("cpu_times", "cpu_percent"),
        ("cores", "cores_logical"),
        ("load_1min", "load_1min"),
        ("memory", "ram_used_bytes"),
        ("process", "own_rss_bytes"),
        ("cpu_temperature_c", "cpu_temperature_c"),
        ("pressure", "memory_full_avg10_percent"),
        ("paging", "swap_in_bytes_per_s"),
        ("cpu_throttles", "cpu_throttle"),
    ],
)
@pytest.mark.parametrize("fault", [OSError(5, "I/O error"), ValueError("not a number"), RuntimeError("odd")])
def test_no_fault_of_a_sensor_gets_out(telemetry, machine, method, field, fault):
    machine.faults[method] = fault
    picture = telemetry.sample({"a": 7}).machine
    assert getattr(picture, field, None) is None
    assert str(fault) in picture.reasons[field]
    other = "load_1min" if method != "load_1min" else "ram_used_bytes"
    assert getattr(picture, other) is not None


async def _read_twice(telemetry: Telemetry) -> list[TelemetrySample]:
    return [await telemetry.read({"a": 7}) for _ in range(2)]


def test_read_samples_in_a_thread_of_its_own(telemetry, machine):
    threads = []
    sample = telemetry.sample

    def spy(pids):
        threads.append(threading.current_thread().name)
        return sample(pids)

    telemetry.sample = spy
    samples = asyncio.run(_read_twice(telemetry))
    assert all(s.machine.ram_total_bytes == 16 * GIB for s in samples)
    assert len(threads) == 2
    assert all(name.startswith("laya-telemetry") for name in threads)


def test_a_hanging_sensor_holds_up_nobody_and_old_values_are_not_shown_as_new(telemetry, machine, monkeypatch):
    monkeypatch.setattr(module, "READ_LIMIT_S", 0.02)
    gate = threading.Event()
    memory = machine.memory

    async def scenario():
        fresh = await telemetry.read({})
        machine.memory = lambda: gate.wait(30) and memory()
        last = await telemetry.read({})
        machine.now += 10
        empty = await telemetry.read({})
        assert machine.calls.count("memory") == 1, "no second reader is sent after the first"
        gate.set()
        while (again := await telemetry.read({})).machine.ram_total_bytes is None:
            pass
        return fresh, last, empty, again

    try:
        fresh, last, empty, again = asyncio.run(scenario())
    finally:
        gate.set()
    assert last is fresh
    assert empty.machine == MachineSnapshot(reasons={"machine": "The sensors do not answer."})
    assert again.machine.ram_total_bytes == 16 * GIB


def test_read_after_close_is_unknown_not_a_fault(telemetry):
    telemetry.close()
    sample = asyncio.run(telemetry.read({}))
    assert "machine" in sample.machine.reasons


def test_this_machine_for_real(tmp_path):
    telemetry = Telemetry(tmp_path)
    code = "import sys\nprint('on', flush=True)\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        deadline = time.monotonic() + 20
        while True:
            sample = telemetry.sample({"busy": child.pid})
            worker = sample.workers["busy"]
            if sample.machine.cpu_percent is not None and worker.cpu_percent:
                break
            assert time.monotonic() < deadline
    finally:
        child.kill()
        child.communicate()
        telemetry.close()
    assert worker.rss_bytes > 1_000_000
    assert 0 < sample.machine.cpu_percent <= 100
    assert sample.machine.ram_used_bytes + sample.machine.ram_available_bytes == sample.machine.ram_total_bytes
    assert sample.machine.own_rss_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.3)
    assert sample.machine.disk_free_bytes > 0
    assert sample.machine.gpus or sample.machine.gpu_reason


def test_the_portable_sensors_agree_with_the_systems_own(tmp_path):
    sensors = PortableSensors()
    try:
        own = sensors.process(os.getpid())
        assert own is not None
        assert own.rss_bytes > 1_000_000
        times = sensors.cpu_times()
        assert len(times.cores) == sensors.cores()[1]
        assert 0 < times.machine[0] <= times.machine[1]
        memory = sensors.memory()
        assert 0 < memory.available_bytes <= memory.total_bytes
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        assert sensors.process(child.pid) is None
        with pytest.raises(SensorMissing):
            sensors.cpu_temperature_c()
    finally:
        sensors.close()
