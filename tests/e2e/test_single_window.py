"""Two real programs on one configuration folder: the second raises the first, which opens its file, and quits well."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

from laya_desktop import paths

pytestmark = pytest.mark.e2e
START = (sys.executable, "-m", "laya_desktop")


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="laya") as folder:  # a socket's path is short
        yield Path(folder)


@pytest.fixture
def environment(home):
    shared = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    return shared | {"LAYA_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}


def test_a_second_program_hands_over_and_the_first_opens_the_file(tmp_path, home, environment, qtbot):
    first_file, second_file = tmp_path / "first.yaml", tmp_path / "second.yaml"
    demo = (paths.configs_dir() / "demo.yaml").read_text(encoding="utf-8")
    first_file.write_text(demo, encoding="utf-8")
    second_file.write_text(demo.replace("smollm2-135m", "from-the-second"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def models():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=2) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    first = subprocess.Popen([*START, str(first_file), "--port", str(port)], env=environment)
    try:
        qtbot.waitUntil(lambda: any((home / "state").glob("*.sock")) and "smollm2" in models(), timeout=30_000)
        second = subprocess.run(
            [*START, str(second_file)], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert second.returncode == 0, second.stderr
        assert "open already" in second.stdout
        qtbot.waitUntil(lambda: "from-the-second" in models(), timeout=30_000)
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0
