"""Memory limits of cgroups, in the layouts that machines and containers show."""

import pytest

from laya_desktop.node.telemetry_cgroup import RESCAN_S, STAT_S, CgroupLimit, CgroupMemory

GIB = 1024**3
MACHINE = 64 * GIB


class Root:
    def __init__(self, path, cgroup: str) -> None:
        self.path = path
        self.now = 0.0
        self.write("proc/self/cgroup", cgroup)
        self.memory = CgroupMemory(path, lambda: self.now)

    def write(self, name: str, text: object) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def v2(self, folder: str, limit: object, usage: int, inactive: int = 0) -> None:
        base = f"sys/fs/cgroup/{folder}".rstrip("/")
        self.write(f"{base}/memory.max", limit)
        self.write(f"{base}/memory.current", usage)
        self.write(f"{base}/memory.stat", f"anon 1\ninactive_file {inactive}\nactive_file 5")

    def v1(self, folder: str, limit: int, usage: int, inactive: int = 0) -> None:
        base = f"sys/fs/cgroup/memory/{folder}".rstrip("/")
        self.write(f"{base}/memory.limit_in_bytes", limit)
        self.write(f"{base}/memory.usage_in_bytes", usage)
        self.write(f"{base}/memory.stat", f"inactive_file 7\ntotal_inactive_file {inactive}")

    def read(self):
        return self.memory.read(MACHINE)


def test_v2_container_limit_less_what_is_really_in_use(tmp_path):
    root = Root(tmp_path, "0::/")
    root.v2("", 8 * GIB, usage=5 * GIB, inactive=2 * GIB)
    assert root.read() == CgroupLimit(8 * GIB, 5 * GIB)


def test_v2_a_parent_used_up_by_siblings_limits_us_too(tmp_path):
    root = Root(tmp_path, "0::/user.slice/app.scope")
    root.v2("user.slice", 16 * GIB, usage=15 * GIB)
    root.v2("user.slice/app.scope", 8 * GIB, usage=1 * GIB)
    assert root.read() == CgroupLimit(8 * GIB, 1 * GIB)


@pytest.mark.parametrize("limit", ["max", MACHINE, MACHINE * 2])
def test_no_limit_below_the_machine_is_no_limit(tmp_path, limit):
    root = Root(tmp_path, "0::/app.scope")
    root.v2("app.scope", limit, usage=GIB)
    assert root.read() is None


def test_v1_with_its_own_hierarchy(tmp_path):
    root = Root(tmp_path, "9:name=systemd:/\n4:cpu,memory:/jobs/one\n0::/")
    root.v1("", 9223372036854771712, usage=30 * GIB)
    root.v1("jobs/one", 4 * GIB, usage=3 * GIB, inactive=GIB)
    assert root.read() == CgroupLimit(4 * GIB, 2 * GIB)


def test_v1_container_whose_path_is_the_hosts(tmp_path):
    root = Root(tmp_path, "4:memory:/docker/0123abc")
    root.v1("", 2 * GIB, usage=GIB)
    assert root.read() == CgroupLimit(2 * GIB, GIB)


def test_hybrid_layout_finds_the_unified_mount(tmp_path):
    root = Root(tmp_path, "0::/app")
    root.v2("unified/app", 3 * GIB, usage=GIB)
    assert root.read() == CgroupLimit(3 * GIB, 2 * GIB)


def test_a_path_outside_the_namespace_does_not_climb_out(tmp_path):
    root = Root(tmp_path, "0::/../../other")
    root.v2("", 2 * GIB, usage=GIB)
    assert root.read() == CgroupLimit(2 * GIB, GIB)


def test_usage_above_the_limit_leaves_nothing_and_never_less(tmp_path):
    root = Root(tmp_path, "0::/")
    root.v2("", GIB, usage=2 * GIB)
    assert root.read() == CgroupLimit(GIB, 0)


def test_missing_or_broken_files_are_no_limit(tmp_path):
    assert CgroupMemory(tmp_path).read(MACHINE) is None
    root = Root(tmp_path, "0::/\nnonsense\n4:memory:")
    assert root.read() is None
    root.write("sys/fs/cgroup/memory.max", GIB)
    root.now += RESCAN_S
    assert root.read() is None, "without a usage there is nothing to say"


def test_usage_is_always_fresh_and_the_rest_in_due_time(tmp_path):
    root = Root(tmp_path, "0::/")
    root.v2("", 8 * GIB, usage=GIB)
    assert root.read() == CgroupLimit(8 * GIB, 7 * GIB)
    root.v2("", 4 * GIB, usage=2 * GIB, inactive=GIB)
    assert root.read() == CgroupLimit(8 * GIB, 6 * GIB)
    root.now += STAT_S
    assert root.read() == CgroupLimit(8 * GIB, 7 * GIB)
    root.now += RESCAN_S
    assert root.read() == CgroupLimit(4 * GIB, 3 * GIB)
