"""kill -9 of the whole program: its workers go with it, and those of another program are left alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.helpers.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(os.name != "posix", reason="kill -9")]
CONFIG = """\
version: 1
server: {port: 0}
models:
  - {name: a, engine: fake, path: "fake:tokens=3", preload: true, replicas: 2}
  - {name: b, engine: fake, path: "fake:tokens=3", preload: true}
"""
WORKERS = 3


class Program:
    """A window with its own folders."""

    def __init__(self, stack: ExitStack) -> None:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laya")))
        config = home / "laya.yaml"
        config.write_text(CONFIG, encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        environment = os.environ | {"LAYA_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
        command = [sys.executable, "-m", "laya_desktop", str(config), "--port", str(self.port)]
        self.process = stack.enter_context(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
        stack.callback(self.process.kill)

    def workers(self) -> list[psutil.Process]:
        """Those that serve, as the program tells."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/admin/snapshot", timeout=2) as answer:
                models = json.load(answer)["models"]
        except OSError:
            return []
        return [psutil.Process(pid) for m in models if m["state"] == "ready" for pid in m["pids"]]


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    """Two of them, with their models loaded."""
    with ExitStack() as stack:
        found = [Program(stack) for _ in range(2)]
        for program in found:
            wait_for(lambda p=program: len(p.workers()) == WORKERS, 60)
        yield found


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_workers_go_with_their_window_and_no_others(programs: list[Program]) -> None:
    killed, other = programs
    its, others = killed.workers(), other.workers()
    killed.process.kill()
    wait_for(lambda: all(gone(p) for p in its), 10)
    assert other.process.poll() is None
    assert not any(gone(p) for p in others)
    assert other.workers() == others
