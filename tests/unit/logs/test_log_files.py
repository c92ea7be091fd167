"""Rotation, limits and faults of the log's files."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laya_desktop.logs.files import DISK_LOW_BYTES, DISK_STOP_BYTES, MIN_FILE_BYTES, LogFiles

DAY = 86_400.0
PLENTY = 10**12


class Rig:
    """A LogFiles with a clock and a disk of its own."""

    def __init__(self, folder: Path, **kwargs) -> None:
        self.now = 1_800_000_000.0
        self.free = PLENTY
        self.said: list[tuple[str, str]] = []
        options = {"keep": 7, "max_total_bytes": 1024**2, "daily": False} | kwargs
        self.files = LogFiles(
            folder,
            **options,
            announce=lambda severity, text: self.said.append((severity, text)),
            now=lambda: self.now,
            free_bytes=lambda _: self.free,
        )

    def later(self, seconds: float) -> None:
        self.now += seconds


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob("laya*.log"))


def _total(folder: Path) -> int:
    return sum(p.stat().st_size for p in _all(folder))


def test_lines_are_appended_and_an_old_file_is_continued(tmp_path):
    first = Rig(tmp_path / "deep" / "logs")
    first.files.write([b"one\n", b"two\n"])
    first.files.close()
    second = Rig(tmp_path / "deep" / "logs")
    second.files.write([b"three\n"])
    second.files.close()
    assert second.files.current.read_bytes() == b"one\ntwo\nthree\n"
    assert second.files.current.stat().st_mode & 0o077 == 0, "logs are for their owner"


def test_hours_of_chatter_stay_under_the_total_and_the_oldest_go_first(tmp_path):
    rig = Rig(tmp_path, keep=3, max_total_bytes=64 * 1024)
    for i in range(4000):
        rig.files.write([b"%06d %s\n" % (i, b"x" * 90)])
        assert _total(tmp_path) <= 64 * 1024
    rig.files.close()
    assert len(_all(tmp_path)) == 4
    lines = b"".join(p.read_bytes() for p in [*sorted(tmp_path.glob("laya-*.log")), rig.files.current]).splitlines()
    numbers = [int(line[:6]) for line in lines]
    assert numbers == list(range(numbers[0], 4000)), "what is left is the newest, without a hole"
    assert len(numbers) > 400
    assert rig.said == []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keep=st.integers(0, 5),
    max_total=st.integers(0, 60_000),
    batches=st.lists(st.lists(st.integers(1, 9000), min_size=1, max_size=6), max_size=30),
)
def test_the_total_holds_for_any_lines_and_settings(tmp_path_factory, keep, max_total, batches):
    folder = tmp_path_factory.mktemp("logs")
    rig = Rig(folder, keep=keep, max_total_bytes=max_total)
    for batch in batches:
        rig.later(1)
        rig.files.write([b"x" * (size - 1) + b"\n" for size in batch])
        assert _total(folder) <= max_total
        assert len(_all(folder)) <= keep + 1
    rig.files.close()
    assert (rig.files.unwritten == 0) == (max_total >= MIN_FILE_BYTES or not batches)


def test_a_new_day_begins_a_new_file_and_keep_counts_them(tmp_path):
    rig = Rig(tmp_path, keep=2, daily=True)
    for day in range(5):
        rig.files.write([b"day %d\n" % day])
        os.utime(rig.files.current, (rig.now, rig.now))
        rig.later(DAY)
    rig.files.close()
    kept = [p.read_bytes() for p in sorted(tmp_path.glob("laya-*.log"))]
    assert kept == [b"day 2\n", b"day 3\n"]
    assert rig.files.current.read_bytes() == b"day 4\n"


def test_yesterdays_file_is_rotated_at_the_next_start(tmp_path):
    rig = Rig(tmp_path, daily=True)
    rig.files.write([b"yesterday\n"])
    rig.files.close()
    os.utime(rig.files.current, (rig.now, rig.now))
    again = Rig(tmp_path, daily=True)
    again.later(DAY)
    again.files.write([b"today\n"])
    again.files.close()
    assert again.files.current.read_bytes() == b"today\n"
    assert len(_all(tmp_path)) == 2


def test_a_smaller_limit_applies_to_what_is_there_already(tmp_path):
    rig = Rig(tmp_path, max_total_bytes=1024**2)
    for _ in range(200):
        rig.files.write([b"y" * 4999 + b"\n"])
    rig.files.close()
    assert _total(tmp_path) > 500_000
    smaller = Rig(tmp_path, max_total_bytes=100_000)
    smaller.files.write([b"z\n"])
    smaller.files.close()
    assert _total(tmp_path) <= 100_000


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.log").write_bytes(b"mine" * 50_000)
    rig = Rig(tmp_path, keep=1, max_total_bytes=8192)
    for _ in range(50):
        rig.files.write([b"x" * 999 + b"\n"])
    rig.files.close()
    assert (tmp_path / "notes.log").stat().st_size == 200_000


def test_a_limit_too_small_for_any_file_is_said_and_nothing_is_written(tmp_path):
    rig = Rig(tmp_path, max_total_bytes=1000)
    rig.files.write([b"x\n"])
    assert [s for s, _ in rig.said] == ["warning"]
    assert _all(tmp_path) == []
    assert rig.files.unwritten == 1


def test_an_unusable_folder_is_announced_once_and_recovered_from(tmp_path):
    blocker = tmp_path / "logs"
    blocker.write_text("a file where the folder should be")
    rig = Rig(blocker)
    for _ in range(300):
        rig.files.write([b"x\n"])
        rig.later(1)
    assert len(rig.said) == 1
    assert "memory only" in rig.said[0][1]
    assert rig.files.unwritten == 300
    blocker.unlink()
    rig.later(31)
    rig.files.write([b"back\n"])
    rig.files.close()
    assert [s for s, _ in rig.said] == ["warning", "info"]
    assert rig.files.current.read_bytes() == b"back\n"


def test_a_disk_that_fills_up_is_announced_once_and_breaks_nothing(tmp_path, monkeypatch):
    rig = Rig(tmp_path)
    rig.files.write([b"before\n"])
    real = os.write
    state = {"full": True}

    def write(fd, data):
        if state["full"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    for _ in range(100):
        rig.files.write([b"lost\n", b"lost too\n"])
        rig.later(1)
    assert len(rig.said) == 1
    assert os.strerror(errno.ENOSPC) in rig.said[0][1]
    assert rig.files.unwritten == 200
    state["full"] = False
    rig.later(31)
    rig.files.write([b"after\n"])
    rig.files.close()
    assert rig.files.current.read_bytes() == b"before\nafter\n"


def test_a_part_written_line_is_completed(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    rig = Rig(tmp_path)
    rig.files.write([b"hello world\n"])
    rig.files.close()
    assert rig.files.current.read_bytes() == b"hello world\n"


def test_a_nearly_full_disk_is_announced_before_it_is_full(tmp_path):
    rig = Rig(tmp_path)
    rig.free = DISK_LOW_BYTES - 1
    for _ in range(100):
        rig.files.write([b"x\n"])
        rig.later(31)
    assert len(rig.said) == 1
    assert "511 MB left" in rig.said[0][1]
    assert rig.files.unwritten == 0
    rig.free = DISK_STOP_BYTES - 1
    rig.later(31)
    rig.files.write([b"not this one\n"])
    assert len(rig.said) == 2
    assert rig.files.unwritten == 1


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be renamed there")
def test_two_processes_may_share_a_folder(tmp_path):
    a, b = Rig(tmp_path, keep=2, max_total_bytes=30_000), Rig(tmp_path, keep=2, max_total_bytes=30_000)
    for i in range(300):
        a.files.write([b"a%05d%s\n" % (i, b"." * 93)])
        b.files.write([b"b%05d%s\n" % (i, b"." * 93)])
        assert _total(tmp_path) <= 30_000
    a.files.close()
    b.files.close()
    assert a.said == b.said == []
    names = {line[:1] for p in _all(tmp_path) for line in p.read_bytes().splitlines()}
    assert names == {b"a", b"b"}
    assert a.files.unwritten == b.files.unwritten == 0


def test_a_deleted_file_is_made_again(tmp_path):
    rig = Rig(tmp_path)
    rig.files.write([b"one\n"])
    rig.files.current.unlink()
    rig.files.write([b"two\n"])
    rig.files.close()
    assert rig.files.current.read_bytes() == b"two\n"
