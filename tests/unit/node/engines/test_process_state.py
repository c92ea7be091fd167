"""Who counts as stopped: by the state in the system's books, and only when it lasts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laya_desktop.node.engines.process_state import LOOKS, State, StopWatch, read_state
from tests.helpers.waiting import wait_for


def watch(*states: State | None) -> list[bool]:
    readings: Iterator[State | None] = iter(states)
    one = StopWatch(1, lambda _pid: next(readings))
    return [one.look() for _ in states]


def test_it_must_last() -> None:
    assert watch(*["stopped"] * LOOKS) == [False] * (LOOKS - 1) + [True]
    almost: list[State | None] = ["stopped"] * (LOOKS - 1)
    assert not any(watch(*almost, "running", *almost, None, *almost))


def test_a_debugger_is_told_apart() -> None:
    one = StopWatch(1, lambda _pid: "traced")
    assert not any(one.look() for _ in range(3 * LOOKS))
    assert one.traced


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("7 (python) S 1", "running"),
        ("7 (D) T (x) R 1", "running"),
        ("7 (a) T 1", "stopped"),
        ("7 (a) t 1", "traced"),
        ("", None),
    ],
)
def test_the_letter_after_the_name_counts(tmp_path: Path, line: str, state: str | None) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(line)
    assert read_state(7, tmp_path) == state
    assert read_state(8, tmp_path) is None


@pytest.mark.skipif(os.name != "posix", reason="SIGSTOP")
def test_a_real_process_is_seen_stopped_and_going_on() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert read_state(child.pid) == "running"
        child.send_signal(signal.SIGSTOP)
        wait_for(lambda: read_state(child.pid) == "stopped")
        child.send_signal(signal.SIGCONT)
        wait_for(lambda: read_state(child.pid) == "running")
        child.kill()
    assert read_state(child.pid) is None
