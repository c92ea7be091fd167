"""One window for each configuration folder: handing over, crashes, and a first window that hangs."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from laya_desktop import paths
from laya_desktop.gui import single

SECOND = (
    "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication; app = QCoreApplication([]);"
    "from laya_desktop.gui import single;"
    "got = single.claim(Path(sys.argv[1]) if sys.argv[1] else None, 'm'); sys.exit(0 if got is None else 7)"
)


@pytest.fixture
def first(qapp):
    instance = single.claim()
    assert instance is not None
    assert instance.listening
    yield instance
    instance.close()


def second_start(config=""):
    return subprocess.Popen([sys.executable, "-c", SECOND, config])


def test_a_second_start_hands_its_configuration_over(qtbot, first, tmp_path):
    with qtbot.waitSignal(first.wished, timeout=20_000) as wish:
        process = second_start(str(tmp_path / "b.yaml"))
    assert wish.args == [str(tmp_path / "b.yaml"), "m"]
    assert process.wait(20) == 0


def test_a_second_start_without_a_configuration_only_raises(qtbot, first):
    with qtbot.waitSignal(first.wished, timeout=20_000) as wish:
        process = second_start()
    assert wish.args == ["", "m"]
    assert process.wait(20) == 0


def test_a_socket_left_by_a_crash_is_replaced(qapp):
    paths.state_dir().mkdir(parents=True)
    name = single.socket_name()
    place = Path(name) if "/" in name else Path("/tmp") / name
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(place))
    dead.close()
    assert place.exists()
    instance = single.claim()
    assert instance is not None
    assert instance.listening
    instance.close()


def test_a_window_that_hangs_loses_the_name(qapp, monkeypatch):
    """The first one's loop does not run here, so it accepts the connection and never answers."""
    monkeypatch.setattr(single, "ANSWER_MS", 50)
    hanging = single.claim()
    again = single.claim()
    assert again is not None
    assert again.listening
    again.close()
    hanging.close()


def test_nonsense_on_the_socket_is_no_wish(qtbot, first):
    from PySide6.QtNetwork import QLocalSocket

    seen = []
    first.wished.connect(lambda *wish: seen.append(wish))
    client = QLocalSocket()
    client.connectToServer(single.socket_name())
    assert client.waitForConnected(1000)
    client.write(b"[1]\n")
    client.flush()
    qtbot.waitUntil(lambda: client.state() is QLocalSocket.LocalSocketState.UnconnectedState)
    assert seen == []


def test_another_configuration_folder_is_another_window(first, monkeypatch, tmp_path):
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "other"))
    instance = single.claim()
    assert instance is not None
    instance.close()
