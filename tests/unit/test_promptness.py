import subprocess
import sys
import threading

import pytest

from laya_desktop.service import promptness

READ = "from laya_desktop.service.promptness import slice_ns; print(slice_ns())"


def in_thread(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    return result[0]


@pytest.fixture
def usual():
    usual = promptness.slice_ns()
    if usual is None:
        pytest.skip("this kernel gives no slices")
    return usual


def test_only_the_thread_that_asks_gets_short_slices(usual):
    def ask():
        return promptness.ask_for_short_slices(), promptness.slice_ns()

    assert in_thread(ask) == (True, promptness.SLICE_NS)
    assert promptness.slice_ns() == usual > promptness.SLICE_NS


def test_its_threads_and_workers_start_with_the_usual_slice(usual):
    def ask():
        promptness.ask_for_short_slices()
        worker = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
        return in_thread(promptness.slice_ns), int(worker.stdout)

    assert in_thread(ask) == (usual, usual)


def test_other_systems_are_asked_nothing(monkeypatch):
    monkeypatch.setattr(promptness.platform, "machine", lambda: "sparc64")
    assert promptness.ask_for_short_slices() is False
    assert promptness.slice_ns() is None
