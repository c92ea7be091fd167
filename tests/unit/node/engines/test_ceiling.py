"""The ceilings of all three systems, over made-up systems; the rlimit over a real worker is in ``test_worker``."""
# ruff: noqa: N802 - Windows names its calls this way

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from laya_desktop.node.engines import ceiling as module
from laya_desktop.node.engines.ceiling import Ceiling, RlimitCeiling, SystemCeiling, WatchedCeiling
from laya_desktop.node.engines.ceiling_cgroup import NoSubtree, Subtree
from laya_desktop.node.engines.ceiling_macos import Footprints, RusageInfo
from laya_desktop.node.engines.ceiling_windows import ExtendedLimits, JobCeiling
from laya_desktop.node.engines.postmortem import explain_death

MIB = 2**20


# -- Linux: control groups, as a folder


class Tree:
    """A cgroup file system of plain files; the kernel's part is played by the test."""

    def __init__(self, root: Path, path: str = "/user/laya.service", controllers: str = "cpu memory pids") -> None:
        self.root = root
        self.own = root / "sys/fs/cgroup" / path.strip("/")
        self.own.mkdir(parents=True, exist_ok=True)
        self.attributes = {"user.delegate": b"1"}
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text(f"0::{path}\n")
        (root / "sys/fs/cgroup/cgroup.controllers").write_text(controllers)
        for name, text in (("controllers", controllers), ("procs", "11\n12\n13\n"), ("subtree_control", "")):
            (self.own / f"cgroup.{name}").write_text(text)

    def attribute(self, folder: Path, name: str) -> bytes:
        if folder != self.own or name not in self.attributes:
            raise OSError(61, "No data available")
        return self.attributes[name]

    def subtree(self) -> Subtree:
        return Subtree(self.root, self.attribute, lambda: {11, 12})

    def groups(self) -> list[str]:
        return sorted(p.name for p in self.own.iterdir() if p.is_dir())


def test_a_worker_gets_a_group_in_the_delegated_part(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    subtree = tree.subtree()
    one = subtree.impose(77, 300 * MIB)
    assert (tree.own / "cgroup.subtree_control").read_text() == "+memory"
    assert (tree.own / "laya-node/cgroup.procs").read_text() == "12", "the last of ours; a stranger is not moved"
    group = tree.own / f"laya-worker-{os.getpid()}-1"
    assert {f.name: f.read_text() for f in group.iterdir()} == {
        "memory.max": str(300 * MIB),
        "memory.oom.group": "1",
        "cgroup.procs": "77",
    }
    assert (one.kind, one.limit_bytes, one.exceeded()) == ("cgroup", 300 * MIB, None)
    one.set_limit(None)
    assert (group / "memory.max").read_text() == "max"
    assert one.limit_bytes is None
    subtree.impose(78, None)
    assert len(tree.groups()) == 3


def test_a_group_goes_with_its_worker_or_with_the_next_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    subtree = tree.subtree()
    one = subtree.impose(77, MIB)
    one.close()  # a file system of plain files refuses, as the kernel does while the process is on its way out
    name = f"laya-worker-{os.getpid()}-1"
    assert name in tree.groups()
    for file in (tree.own / name).iterdir():
        file.unlink()
    subtree.impose(78, MIB)
    assert tree.groups() == ["laya-node", f"laya-worker-{os.getpid()}-2"]


def test_the_root_of_a_container_is_its_own(tmp_path: Path) -> None:
    tree = Tree(tmp_path, path="/")
    tree.attributes = {}
    with pytest.raises(NoSubtree, match="not delegated"):
        tree.subtree().impose(77, MIB)  # the machine's own root, which has no limit
    (tree.own / "memory.max").write_text("max")
    assert tree.subtree().impose(77, MIB).limit_bytes == MIB


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.attributes.clear(), "not delegated"),
        (lambda t: (t.own / "cgroup.controllers").write_text("cpu pids"), "memory controller"),
        (lambda t: (t.root / "sys/fs/cgroup/cgroup.controllers").unlink(), "version 2"),
        (lambda t: (t.root / "proc/self/cgroup").write_text("4:memory:/x\n"), "version 2"),
        (lambda t: (t.own / "cgroup.procs").unlink(), "cannot be divided"),
    ],
)
def test_why_there_is_no_group_is_found_out_once(tmp_path: Path, change: Any, words: str) -> None:
    tree = Tree(tmp_path)
    change(tree)
    subtree = tree.subtree()
    with pytest.raises(NoSubtree, match=words):
        subtree.impose(77, MIB)
    (tmp_path / "proc/self/cgroup").unlink()
    with pytest.raises(NoSubtree, match=words):
        subtree.impose(78, MIB)


def test_nothing_outside_our_own_group_is_touched(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    above = {p: p.read_text() for p in tree.own.parent.parent.rglob("*") if p.is_file() and tree.own not in p.parents}
    tree.subtree().impose(77, MIB)
    assert above == {p: p.read_text() for p in above}


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
def test_the_rlimit_is_read_from_the_process() -> None:
    import resource

    one = RlimitCeiling(os.getpid(), "why")
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    assert one.limit_bytes == (None if soft == resource.RLIM_INFINITY else soft)
    assert RlimitCeiling(2**22 + 1, "").limit_bytes is None


# -- Windows


class Kernel32:
    """The calls that a job needs; ``fails`` names those that do not work."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.calls: list[Any] = []
        self.open = {100}
        self.flags = self.limit = 0

    def _done(self, name: str, *what: Any, result: int = 1) -> int:
        self.calls.append((name, *what))
        return 0 if name == self.fails else result

    def CreateJobObjectW(self, _attributes: None, _name: None) -> int:
        return self._done("CreateJobObjectW", result=100)

    def SetInformationJobObject(self, job: int, kind: int, limits: Any, size: int) -> int:
        found: ExtendedLimits = limits._obj
        assert size == ctypes.sizeof(found)
        self.flags, self.limit = found.BasicLimitInformation.LimitFlags, found.ProcessMemoryLimit
        return self._done("SetInformationJobObject", job, kind)

    def OpenProcess(self, access: int, _inherit: bool, pid: int) -> int:
        self.open.add(200)
        return self._done("OpenProcess", access, pid, result=200)

    def AssignProcessToJobObject(self, job: int, process: int) -> int:
        return self._done("AssignProcessToJobObject", job, process)

    def CloseHandle(self, handle: int) -> int:
        self.open.discard(handle)
        return 1

    def GetLastError(self) -> int:
        return 5


def test_a_job_limits_what_is_committed_and_ends_with_us() -> None:
    kernel32 = Kernel32()
    job = JobCeiling(77, 300 * MIB, kernel32)
    assert kernel32.flags == 0x100 | 0x400 | 0x2000
    assert (kernel32.limit, job.limit_bytes, job.exceeded()) == (300 * MIB, 300 * MIB, None)
    assert kernel32.calls[1] == ("SetInformationJobObject", 100, 9)
    assert kernel32.calls[-1] == ("AssignProcessToJobObject", 100, 200)
    assert kernel32.open == {100}, "the job alone stays open"
    job.set_limit(None)
    assert (kernel32.flags, kernel32.limit) == (0x400 | 0x2000, 0)
    job.close()
    job.close()
    assert kernel32.open == set()


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="sizes of 64 bits")
def test_windows_and_macos_structures_have_their_sizes() -> None:
    assert ctypes.sizeof(ExtendedLimits) == 144
    assert ctypes.sizeof(RusageInfo) == 96
    assert RusageInfo.ri_phys_footprint.offset == 72


@pytest.mark.parametrize(
    "call", ["CreateJobObjectW", "SetInformationJobObject", "OpenProcess", "AssignProcessToJobObject"]
)
def test_a_call_that_fails_leaves_no_handle_and_names_itself(call: str) -> None:
    kernel32 = Kernel32(fails=call)
    with pytest.raises(OSError, match=f"{call} failed with error 5"):
        JobCeiling(77, MIB, kernel32)
    assert kernel32.open <= ({100} if call == "CreateJobObjectW" else {200} if call == "OpenProcess" else set())


# -- macOS


class Libproc:
    def __init__(self, footprints: dict[int, int]) -> None:
        self.footprints = footprints

    def proc_pid_rusage(self, pid: int, flavour: int, info: Any) -> int:
        assert flavour == 0
        if pid not in self.footprints:
            return -1
        info._obj.ri_resident_size = 10**12
        info._obj.ri_phys_footprint = self.footprints[pid]
        return 0


def test_on_macos_the_footprint_is_watched() -> None:
    libproc = Libproc({77: 200 * MIB})
    watched = WatchedCeiling(77, 300 * MIB, Footprints(libproc).read, "why")
    assert watched.exceeded() is None
    libproc.footprints[77] = 301 * MIB
    assert (watched.exceeded() or "").startswith("ran out of memory: it held 0.3 GB")
    watched.set_limit(None)
    assert watched.exceeded() is None
    watched.set_limit(MIB)
    del libproc.footprints[77]
    assert watched.exceeded() is None


def test_a_worker_that_we_ended_for_it_is_told_as_out_of_memory() -> None:
    reason = "ran out of memory: it held 2.1 GB and may hold 2.0 GB"
    error = explain_death("m", -9, (), loading=False, reason=reason)
    assert error.code == "out_of_memory"
    assert "ran out of memory: it held 2.1 GB" in error.message
    assert "max_seq_len" in (error.hint or "")


# -- one worker's ceiling, whatever the means


def watched(limits: list[int | None]) -> Any:
    def impose(pid: int, limit_bytes: int | None) -> SystemCeiling:
        limits.append(limit_bytes)
        return WatchedCeiling(pid, limit_bytes, lambda _pid: 2 * MIB, "")

    return impose


@pytest.mark.parametrize(
    ("device", "on_gpu", "before", "after"),
    [("cpu", False, MIB, MIB), ("auto", False, None, MIB), ("auto", True, None, None), ("gpu:1", True, None, None)],
)
def test_a_gpus_worker_has_no_ceiling_in_ram(device: str, on_gpu: bool, before: int | None, after: int | None) -> None:
    limits: list[int | None] = []
    one = Ceiling(77, MIB, device, watched(limits))
    assert limits == [before]
    one.loaded(on_gpu=on_gpu)
    assert one.in_force == (None if after is None else ("watched", after, ""))
    assert bool(one.exceeded()) is (after is not None)
    one.close()
    assert one.in_force is None


def test_a_ceiling_that_cannot_be_had_keeps_no_model_from_being_loaded(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_pid: int, _limit_bytes: int | None) -> SystemCeiling:
        raise PermissionError("not for you")

    module._told.clear()
    with caplog.at_level("INFO"):
        for _ in range(3):
            one = Ceiling(77, MIB, "cpu", refuse)
            one.loaded(on_gpu=False)
            assert (one.in_force, one.exceeded()) == (None, None)
    assert caplog.text.count("not for you") == 1
