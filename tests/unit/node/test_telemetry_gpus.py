"""NVIDIA through a fake NVML, AMD and Intel through a made-up sysfs, and all as one list."""
# ruff: noqa: N802 - NVML names its calls this way

from types import SimpleNamespace

import pytest

from laya_desktop.node.model_tools import free_bytes
from laya_desktop.node.room import gpu_index
from laya_desktop.node.telemetry_amd import PROCESSES_S, AmdGpus
from laya_desktop.node.telemetry_base import GpuReading, SensorMissing
from laya_desktop.node.telemetry_gpus import PROBE_S, GpuSensors
from laya_desktop.node.telemetry_intel import IntelGpus
from laya_desktop.node.telemetry_nvidia import SLOW_S, NvidiaGpus
from laya_desktop.state.snapshot import GpuSnapshot, MachineSnapshot

GIB = 1024**3


class NvmlError(Exception):
    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


class FakeNvml:
    """The part of pynvml that is used. ``faults`` maps a call's name to what it raises."""

    NVML_TEMPERATURE_GPU = 0
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
    NVML_ERROR_NO_PERMISSION = 4

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.calls: list[str] = []
        self.faults: dict[str, Exception] = {}
        self.throttle = 0x1  # idle
        self.compute = [SimpleNamespace(pid=10, usedGpuMemory=3 * GIB), SimpleNamespace(pid=11, usedGpuMemory=None)]
        self.graphics = [SimpleNamespace(pid=10, usedGpuMemory=3 * GIB), SimpleNamespace(pid=12, usedGpuMemory=GIB)]

    def _call(self, name: str, value: object) -> object:
        self.calls.append(name)
        if name in self.faults:
            raise self.faults[name]
        return value

    def nvmlInit(self):
        self._call("init", None)

    def nvmlShutdown(self):
        self._call("shutdown", None)

    def nvmlDeviceGetCount(self):
        return self._call("count", self.count)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self._call("handle", index)

    def nvmlDeviceGetName(self, handle):
        return self._call("name", b"NVIDIA RTX 3090" if handle == 0 else "NVIDIA RTX 4090")

    def nvmlDeviceGetMemoryInfo(self, handle):
        return self._call("memory", SimpleNamespace(total=24 * GIB, free=16 * GIB, used=7 * GIB))

    def nvmlDeviceGetUtilizationRates(self, handle):
        return self._call("utilisation", SimpleNamespace(gpu=42, memory=10))

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return self._call("temperature", 61)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self._call("power", 212_500)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self._call("throttle", self.throttle)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return self._call("compute", self.compute)

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return self._call("graphics", self.graphics)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_nvidia_all_sensors(clock):
    nvml = FakeNvml()
    reading = NvidiaGpus(lambda: nvml, clock).read([10, 11, 12, 13])
    assert reading.gpus == (GpuSnapshot(0, "NVIDIA RTX 3090", 24 * GIB, 8 * GIB, 42.0, 61.0, 212.5, ""),)
    assert reading.process_vram_bytes == {10: 3 * GIB, 12: GIB}, "listed twice is held once; not told is unknown"
    assert reading.reasons == {}


@pytest.mark.parametrize(
    ("bits", "throttle"), [(0x0, ""), (0x1, ""), (0x4, "power"), (0x20, "heat"), (0x44, "heat"), (0x80, "power")]
)
def test_nvidia_throttling_by_heat_counts_before_power_and_idling_is_none(clock, bits, throttle):
    nvml = FakeNvml()
    nvml.throttle = bits
    assert NvidiaGpus(lambda: nvml, clock).read([]).gpus[0].throttle == throttle


def test_nvidia_processes_of_others_are_not_reported_and_gpus_add_up(clock):
    nvml = FakeNvml(count=2)
    assert NvidiaGpus(lambda: nvml, clock).read([10]).process_vram_bytes == {10: 6 * GIB}


def test_nvidia_memory_each_time_the_rest_once_a_second(clock):
    nvml = FakeNvml()
    source = NvidiaGpus(lambda: nvml, clock)
    for _ in range(4):
        source.read([])
    assert nvml.calls.count("memory") == 4
    assert nvml.calls.count("power") == nvml.calls.count("compute") == nvml.calls.count("init") == 1
    clock.now += SLOW_S
    source.read([])
    assert nvml.calls.count("power") == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (NvmlError(12, "NVML Shared Library Not Found"), "No NVIDIA driver found (libnvidia-ml.so is missing)."),
        (NvmlError(9, "Driver Not Loaded"), "not loaded"),
        (NvmlError(18, "mismatch"), "Restart the machine"),
        (NvmlError(4, "Insufficient Permissions"), "/dev/nvidia"),
        (NvmlError(999, "Unknown Error"), "Unknown Error"),
        (OSError("bad library"), "bad library"),
    ],
)
def test_nvidia_no_driver_in_plain_words(clock, fault, words, monkeypatch):
    nvml = FakeNvml()
    nvml.faults["init"] = fault
    with pytest.raises(SensorMissing) as caught:
        NvidiaGpus(lambda: nvml, clock).read([])
    assert words in caught.value.reason


def test_nvidia_without_the_package(clock):
    def load():
        raise ImportError("No module named 'pynvml'")

    with pytest.raises(SensorMissing, match="nvidia-ml-py is not installed"):
        NvidiaGpus(load, clock).read([])


def test_nvidia_driver_without_gpu(clock):
    nvml = FakeNvml(count=0)
    with pytest.raises(SensorMissing, match="reports no GPU"):
        NvidiaGpus(lambda: nvml, clock).read([])
    assert nvml.calls[-1] == "shutdown"


@pytest.mark.parametrize("call", ["power", "temperature", "utilisation", "memory", "name", "compute", "graphics"])
def test_nvidia_a_missing_sensor_is_none_with_a_reason_and_the_rest_stays(clock, call):
    nvml = FakeNvml()
    nvml.faults[call] = NvmlError(3, "Not Supported")
    reading = NvidiaGpus(lambda: nvml, clock).read([10])
    (gpu,) = reading.gpus
    values = {
        "power": gpu.power_w,
        "temperature": gpu.temperature_c,
        "utilisation": gpu.utilisation_percent,
        "memory": gpu.vram_used_bytes,
    }
    assert {k for k, v in values.items() if v is None} == {call} & values.keys()
    assert gpu.name == ("NVIDIA GPU 0" if call == "name" else "NVIDIA RTX 3090")
    if call != "name":
        (reason,) = reading.reasons.values()
        assert "Not Supported" in reason


def test_nvidia_a_lost_gpu_leads_to_a_new_start(clock):
    nvml = FakeNvml()
    source = NvidiaGpus(lambda: nvml, clock)
    source.read([])
    lost = NvmlError(15, "GPU is lost")
    nvml.faults = dict.fromkeys(["memory", "utilisation", "power", "temperature", "compute", "graphics"], lost)
    clock.now += SLOW_S
    with pytest.raises(SensorMissing, match="GPU is lost"):
        source.read([])
    assert nvml.calls[-1] == "shutdown"
    nvml.faults = {}
    assert len(source.read([]).gpus) == 1
    assert nvml.calls.count("init") == 2


def test_nvidia_one_lost_gpu_of_two_leaves_the_other(clock):
    nvml = FakeNvml(count=2)
    source = NvidiaGpus(lambda: nvml, clock)
    source.read([])
    real = nvml.nvmlDeviceGetMemoryInfo
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: real(handle) if handle == 0 else 1 / 0
    reading = source.read([])
    assert [g.vram_used_bytes for g in reading.gpus] == [8 * GIB, None]
    assert list(reading.reasons) == ["gpus[1].vram_used_bytes"]


def _card(root, number: int, **files: object) -> None:
    device = root / f"sys/class/drm/card{number}/device"
    device.mkdir(parents=True)
    for name, value in files.items():
        path = device / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


def test_amd_all_sensors(tmp_path, clock):
    _card(
        tmp_path,
        1,
        vendor="0x1002",
        product_name="Radeon RX 7900 XTX",
        mem_info_vram_total=24 * GIB,
        mem_info_vram_used=5 * GIB,
        gpu_busy_percent=87,
        hwmon__hwmon2__temp1_input=54000,
        hwmon__hwmon2__power1_average=181_000_000,
    )
    (tmp_path / "sys/class/drm/card1-DP-1").mkdir()
    reading = AmdGpus(tmp_path, clock).read([])
    assert reading.gpus == (GpuSnapshot(0, "Radeon RX 7900 XTX", 24 * GIB, 5 * GIB, 87.0, 54.0, 181.0),)
    assert reading.reasons == {}


def test_amd_missing_sensors_are_none_with_reasons(tmp_path, clock):
    _card(tmp_path, 0, device="0x744c", mem_info_vram_total=GIB)
    reading = AmdGpus(tmp_path, clock).read([])
    assert reading.gpus == (GpuSnapshot(0, "AMD GPU 0x744c", GIB),)
    assert set(reading.reasons) == {
        f"gpus[0].{n}" for n in ("vram_used_bytes", "utilisation_percent", "temperature_c", "power_w")
    }


@pytest.mark.parametrize(("kind", "words"), [(AmdGpus, "No AMD GPU found."), (IntelGpus, "No Intel GPU found.")])
def test_another_vendors_card(tmp_path, clock, kind, words):
    _card(tmp_path, 0, vendor="0x1234")
    with pytest.raises(SensorMissing, match=words):
        kind(tmp_path, clock).read([])


def test_amd_a_card_that_is_pulled_out(tmp_path, clock):
    _card(tmp_path, 0, mem_info_vram_total=GIB)
    source = AmdGpus(tmp_path, clock)
    assert len(source.read([]).gpus) == 1
    (tmp_path / "sys/class/drm/card0").rename(tmp_path / "gone")
    with pytest.raises(SensorMissing):
        source.read([])


def test_amd_memory_of_processes_by_compute_driver_or_render_node(tmp_path, clock):
    _card(tmp_path, 0, mem_info_vram_total=GIB)
    kfd = tmp_path / "sys/class/kfd/kfd/proc/7"
    kfd.mkdir(parents=True)
    (kfd / "vram_100").write_text(f"{3 * GIB}\n")
    (kfd / "vram_200").write_text(f"{GIB}\n")
    fdinfo = tmp_path / "proc/8/fdinfo"
    fdinfo.mkdir(parents=True)
    for fd, client, kib in ((3, 1, 2048), (4, 1, 2048), (5, 2, 1024)):
        (fdinfo / str(fd)).write_text(
            f"pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\n"
            f"drm-memory-vram:\t{kib} KiB\n"
        )
    (fdinfo / "6").write_text("pos:\t0\nflags:\t02\n")
    source = AmdGpus(tmp_path, clock)
    assert source.read([7, 8, 9]).process_vram_bytes == {7: 4 * GIB, 8: 3 * 1024**2}
    (kfd / "vram_200").write_text("0\n")
    assert source.read([7]).process_vram_bytes[7] == 4 * GIB
    clock.now += PROCESSES_S
    assert source.read([7]).process_vram_bytes == {7: 3 * GIB}


@pytest.mark.parametrize("reasons_at", ["gt/gt0/throttle_reason_", "device/tile0/gt0/freq0/throttle/reason_"])
def test_intel_sensors_of_both_drivers(tmp_path, clock, reasons_at):
    _card(tmp_path, 0, vendor="0x1002")
    _card(tmp_path, 1, vendor="0x8086", device="0x56a0")
    card = tmp_path / "sys/class/drm/card1"
    hwmon = card / "device/hwmon/hwmon3"
    hwmon.mkdir(parents=True)
    (hwmon / "temp2_input").write_text("61000\n")
    (hwmon / "energy1_input").write_text("5000000\n")
    thermal, power = (card / f"{reasons_at}{name}" for name in ("thermal", "pl1"))
    thermal.parent.mkdir(parents=True, exist_ok=True)
    thermal.write_text("0\n")
    power.write_text("0\n")
    source = IntelGpus(tmp_path, clock)
    first = source.read([])
    assert first.gpus == (GpuSnapshot(0, "Intel GPU 0x56a0", temperature_c=61.0, throttle=""),)
    assert "gpus[0].power_w" in first.reasons, "a counter says nothing before its second reading"

    clock.now += 2.0
    (hwmon / "energy1_input").write_text("305000000\n")
    power.write_text("1\n")
    second = source.read([])
    assert (second.gpus[0].power_w, second.gpus[0].throttle) == (pytest.approx(150.0), "power")
    assert set(second.reasons) == {
        f"gpus[0].{n}" for n in ("vram_total_bytes", "vram_used_bytes", "utilisation_percent")
    }
    thermal.write_text("1\n")
    (hwmon / "energy1_input").write_text("0\n")
    clock.now += 2.0
    third = source.read([])
    assert (third.gpus[0].power_w, third.gpus[0].throttle) == (None, "heat"), "a counter that began anew"


def test_intel_in_the_processor_has_no_sensors_and_says_so(tmp_path, clock):
    _card(tmp_path, 0, vendor="0x8086")
    reading = IntelGpus(tmp_path, clock).read([])
    assert reading.gpus == (GpuSnapshot(0, "Intel GPU 0"),)
    assert {"gpus[0].temperature_c", "gpus[0].power_w", "gpus[0].vram_used_bytes"} < set(reading.reasons)


def test_an_intel_gpu_without_figures_leaves_auto_to_the_ram():
    machine = MachineSnapshot(ram_available_bytes=9 * GIB, gpus=(GpuSnapshot(0, "Intel GPU 0"),))
    assert gpu_index("auto", machine) is None
    assert gpu_index("gpu", machine) == 0
    assert free_bytes(machine, "auto", reserve_bytes=GIB) == 8 * GIB


@pytest.mark.parametrize(("driver", "region"), [("i915", "local0"), ("xe", "vram0")])
def test_intel_memory_of_processes(tmp_path, clock, driver, region):
    _card(tmp_path, 0, vendor="0x8086")
    fdinfo = tmp_path / "proc/8/fdinfo"
    fdinfo.mkdir(parents=True)
    for fd, client, kib in ((3, 1, 2048), (4, 1, 2048), (5, 2, 1024)):
        (fdinfo / str(fd)).write_text(
            f"pos:\t0\ndrm-driver:\t{driver}\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\n"
            f"drm-total-system0:\t999 MiB\ndrm-resident-{region}:\t{kib} KiB\n"
        )
    (fdinfo / "6").write_text("pos:\t0\ndrm-driver:\tamdgpu\ndrm-memory-vram:\t7 KiB\n")
    source = IntelGpus(tmp_path, clock)
    assert source.read([8, 9]).process_vram_bytes == {8: 3 * 1024**2}


class Source:
    """A vendor with an answer of the test's choice."""

    def __init__(self, answer) -> None:
        self.answer = answer
        self.asked = 0

    def read(self, pids):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self):
        self.closed = True


def test_two_vendors_are_numbered_through(clock):
    first = Source(GpuReading((GpuSnapshot(0, "N"),), {5: 100}, {"gpus[0].power_w": "no"}))
    second = Source(GpuReading((GpuSnapshot(0, "A"), GpuSnapshot(1, "B")), {5: 11}, {"gpus[1].power_w": "none"}))
    reading, why = GpuSensors([first, second], clock).read([5])
    assert [(g.index, g.name) for g in reading.gpus] == [(0, "N"), (1, "A"), (2, "B")]
    assert reading.process_vram_bytes == {5: 111}
    assert reading.reasons == {"gpus[0].power_w": "no", "gpus[2].power_w": "none"}
    assert why is None


def test_a_vendor_without_gpu_is_asked_again_every_30_s(clock):
    source = Source(SensorMissing("No driver."))
    sensors = GpuSensors([source], clock)
    for _ in range(100):
        reading, why = sensors.read([])
        assert (reading.gpus, why) == ((), "No driver.")
    assert source.asked == 1
    clock.now += PROBE_S
    source.answer = GpuReading((GpuSnapshot(0, "N"),))
    reading, why = sensors.read([])
    assert len(reading.gpus) == 1
    assert why is None
    sensors.read([])
    assert source.asked == 3, "one that answers is read each time"


def test_no_fault_of_a_driver_gets_out(clock):
    sensors = GpuSensors([Source(RuntimeError("boom")), Source(SensorMissing("No AMD GPU found."))], clock)
    reading, why = sensors.read([])
    assert reading.gpus == ()
    assert "boom" in why
    assert why.endswith("No AMD GPU found.")
    assert GpuSensors([], clock).read([])[1] == "This system shows no GPU."
