"""The Linux sensors against a machine made of files, and against the real one where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from laya_desktop.node.telemetry_base import SensorMissing

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)

from laya_desktop.node.telemetry_linux import LinuxSensors

STAT = """cpu  100 20 30 800 50 4 6 10 5 0
cpu0 60 10 20 390 20 2 3 5 0 0
cpu1 40 10 10 410 30 2 3 5 5 0
intr 12345 1 2 3
ctxt 99
"""
MEMINFO = """MemTotal:       16000000 kB
MemFree:         1000000 kB
MemAvailable:    9000000 kB
SwapTotal:       2000000 kB
SwapFree:        1500000 kB
"""


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


@pytest.fixture
def sensors(tmp_path):
    sensors = LinuxSensors(tmp_path)
    yield sensors
    sensors.close()


def test_cpu_times_leave_out_idle_and_count_guests_once(sensors, write):
    write("proc/stat", STAT)
    times = sensors.cpu_times()
    assert times.machine == (170.0, 1020.0)
    assert times.cores == ((100.0, 510.0), (70.0, 510.0))


def test_a_stat_file_without_cpu_is_a_missing_sensor(sensors, write):
    write("proc/stat", "intr 1\n")
    with pytest.raises(SensorMissing):
        sensors.cpu_times()


def test_memory_of_the_machine(sensors, write):
    write("proc/meminfo", MEMINFO)
    memory = sensors.memory()
    assert memory.total_bytes == 16_000_000 * 1024
    assert memory.available_bytes == 9_000_000 * 1024
    assert memory.used_bytes == 7_000_000 * 1024
    assert (memory.swap_total_bytes, memory.swap_used_bytes) == (2_000_000 * 1024, 500_000 * 1024)


def test_memory_in_a_container_is_the_containers(sensors, write):
    write("proc/meminfo", MEMINFO)
    write("proc/self/cgroup", "0::/\n")
    write("sys/fs/cgroup/memory.max", "4194304000")
    write("sys/fs/cgroup/memory.current", "3194304000")
    memory = sensors.memory()
    assert memory.total_bytes == 4_194_304_000
    assert memory.available_bytes == 1_000_000_000


def test_a_machine_with_less_left_than_the_container_allows(sensors, write):
    write("proc/meminfo", MEMINFO.replace("9000000", "100000"))
    write("proc/self/cgroup", "0::/\n")
    write("sys/fs/cgroup/memory.max", "4194304000")
    write("sys/fs/cgroup/memory.current", "0")
    assert sensors.memory().available_bytes == 100_000 * 1024


def test_meminfo_of_an_ancient_kernel_is_a_missing_sensor(sensors, write):
    write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\n")
    with pytest.raises(SensorMissing, match="available"):
        sensors.memory()


def test_files_that_change_are_read_anew(sensors, write):
    write("proc/loadavg", "0.50 0.40 0.30 1/100 999\n")
    assert sensors.load_1min() == 0.5
    write("proc/loadavg", "12.25 0.40 0.30 1/100 999\n")
    assert sensors.load_1min() == 12.25


def test_a_process_with_an_awkward_name(sensors, write):
    fields = " ".join(["S", "1"] + ["0"] * 9 + ["250", "50"] + ["0"] * 20)
    write("proc/42/stat", f"42 (a ) R 9 9) {fields}")
    write("proc/42/statm", "1000 300 50 1 0 200 0")
    times = sensors.process(42)
    assert times is not None
    assert times.cpu_s == 300 / os.sysconf("SC_CLK_TCK")
    assert times.rss_bytes == 300 * os.sysconf("SC_PAGE_SIZE")
    assert sensors.process(43) is None


def test_a_real_process_is_followed_to_its_end(tmp_path):
    sensors = LinuxSensors()
    code = "print('on', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        times = sensors.process(child.pid)
        assert times is not None
        assert times.rss_bytes > 100_000
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert sensors.process(child.pid) is None, "a zombie is dead"
        child.wait()
        assert sensors.process(child.pid) is None
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        sensors.close()


def test_no_file_stays_open(tmp_path):
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    sensors = LinuxSensors()
    sensors.memory()
    sensors.cpu_times()
    sensors.process(os.getpid())
    assert count() > before
    sensors.forget_all_but([])
    sensors.close()
    sensors.close()
    assert count() == before


def test_it_agrees_with_psutil_on_this_machine():
    sensors = LinuxSensors()
    try:
        memory, virtual = sensors.memory(), psutil.virtual_memory()
        assert memory.total_bytes <= virtual.total
        assert abs(memory.available_bytes - min(virtual.available, memory.total_bytes)) < 0.2 * virtual.total
        assert sensors.cores()[1] == psutil.cpu_count()
        own = sensors.process(os.getpid())
        assert own is not None
        assert abs(own.rss_bytes - psutil.Process().memory_info().rss) < 20_000_000
        assert sensors.load_1min() >= 0
    finally:
        sensors.close()


def test_physical_cores_are_counted_over_sockets_and_threads(sensors, write):
    write("proc/stat", STAT)
    for cpu, (package, core) in enumerate([(0, 0), (0, 0), (0, 1), (1, 0), (1, 0)]):
        write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", f"{package}\n")
        write(f"sys/devices/system/cpu/cpu{cpu}/topology/core_id", f"{core}\n")
    assert sensors.cores() == (3, 2)


def test_hidden_topology_is_unknown(sensors, write):
    write("proc/stat", STAT)
    assert sensors.cores() == (None, 2)


@pytest.mark.parametrize("label", ["Package id 0", "Tctl"])
def test_the_cpu_packages_temperature_is_chosen(sensors, write, label):
    write("sys/class/hwmon/hwmon0/name", "nvme\n")
    write("sys/class/hwmon/hwmon0/temp1_input", "99000\n")
    write("sys/class/hwmon/hwmon3/name", "coretemp\n")
    write("sys/class/hwmon/hwmon3/temp1_label", "Core 0\n")
    write("sys/class/hwmon/hwmon3/temp1_input", "50000\n")
    write("sys/class/hwmon/hwmon3/temp2_label", f"{label}\n")
    write("sys/class/hwmon/hwmon3/temp2_input", "61500\n")
    assert sensors.cpu_temperature_c() == 61.5


def test_a_thermal_zone_will_do(sensors, write):
    write("sys/class/thermal/thermal_zone0/type", "acpitz\n")
    write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    write("sys/class/thermal/thermal_zone1/temp", "48000\n")
    assert sensors.cpu_temperature_c() == 48.0


def test_no_sensor_or_a_mad_one_is_said(sensors, write):
    with pytest.raises(SensorMissing, match="no CPU temperature"):
        sensors.cpu_temperature_c()
    write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    write("sys/class/thermal/thermal_zone1/temp", "-274000\n")
    with pytest.raises(SensorMissing, match="cannot be right"):
        sensors.cpu_temperature_c()


def test_memory_pressure(sensors, write):
    write(
        "proc/pressure/memory",
        "some avg10=12.34 avg60=1.00 avg300=0.10 total=9\nfull avg10=5.60 avg60=0 avg300=0 total=3\n",
    )
    pressure = sensors.pressure()
    assert (pressure.some_percent, pressure.full_percent) == (12.34, 5.6)


def test_a_kernel_without_pressure_is_a_missing_sensor(sensors):
    with pytest.raises(SensorMissing, match="PSI"):
        sensors.pressure()


def test_paging_counters(sensors, write):
    write("proc/vmstat", "pswpin 3\nzswpin 99\npswpout 5\npgfault 1000\npgmajfault 7\n")
    page = os.sysconf("SC_PAGE_SIZE")
    paging = sensors.paging()
    assert (paging.swapped_in_bytes, paging.swapped_out_bytes, paging.major_faults) == (3 * page, 5 * page, 7)
    real = LinuxSensors()
    assert real.paging().major_faults > 0
    real.close()
