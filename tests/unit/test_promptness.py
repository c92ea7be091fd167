"""The node's thread asks to run soon; nothing else gets more than before, and nothing breaks where it is refused."""

import os
import subprocess
import sys
import threading

import jeepney
import pytest

from laya_desktop.service import promptness

READ = "import os; from laya_desktop.service.promptness import slice_ns; print(slice_ns(), os.getpriority(0, 0))"


def in_thread(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    return result[0]


def scheduling():
    return promptness.slice_ns(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.fixture
def usual():
    if promptness.slice_ns() is None:
        pytest.skip("this kernel gives no slices")
    return scheduling()


@pytest.fixture
def refused(monkeypatch):
    """The kernel of somebody who may not raise priorities."""
    allowed = promptness.set_scheduling
    monkeypatch.setattr(promptness, "set_scheduling", lambda thread, nice: nice is None and allowed(thread, nice))


class Bus:
    """A system bus with RealtimeKit on it, or with nothing."""

    def __init__(self, error=None, reply_type=jeepney.MessageType.method_return):
        self.error, self.reply_type, self.calls, self.asked = error, reply_type, [], threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.set()

    def open(self, bus):
        assert bus == "SYSTEM"
        if self.error is not None:
            self.asked.set()
            raise self.error
        return self

    def send_and_get_reply(self, call, timeout):
        self.calls.append((call.header.fields[jeepney.HeaderFields.member], call.body))
        reply = jeepney.new_method_call(jeepney.DBusAddress("/"), "x", "s", ("not for you",))
        reply.header.message_type = self.reply_type
        return reply


@pytest.fixture
def bus(monkeypatch, request):
    bus = Bus(**getattr(request, "param", {}))
    monkeypatch.setattr("jeepney.io.blocking.open_dbus_connection", bus.open)
    return bus


def ask():
    promptness.ask_for_promptness()
    return scheduling()


def test_only_the_thread_that_asks_gets_it(usual, bus):
    may = in_thread(lambda: promptness.set_scheduling(threading.get_native_id(), promptness.NICE))
    assert in_thread(ask) == (promptness.SLICE_NS, promptness.NICE if may else usual[1])
    assert scheduling() == usual
    assert usual[0] > promptness.SLICE_NS


def test_its_threads_and_workers_start_as_usual(usual, bus):
    def start():
        promptness.ask_for_promptness()
        worker = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
        return in_thread(scheduling), tuple(map(int, worker.stdout.split()))

    assert in_thread(start) == (usual, usual)


def test_who_may_not_raise_a_priority_asks_realtimekit(usual, refused, bus):
    def start():
        return ask(), threading.get_native_id()

    (slice_ns, nice), thread_id = in_thread(start)
    assert (slice_ns, nice) == (promptness.SLICE_NS, usual[1])
    assert bus.asked.wait(10)
    assert bus.calls == [("MakeThreadHighPriorityWithPID", (os.getpid(), thread_id, promptness.NICE))]


@pytest.mark.parametrize(
    "bus", [{"error": FileNotFoundError("no bus")}, {"reply_type": jeepney.MessageType.error}], indirect=True
)
def test_without_realtimekit_the_node_does_without(usual, refused, bus):
    assert in_thread(ask) == (promptness.SLICE_NS, usual[1])
    assert bus.asked.wait(10)


def test_an_unknown_processor_is_asked_nothing(monkeypatch):
    monkeypatch.setattr(promptness.platform, "machine", lambda: "sparc64")
    assert promptness.set_scheduling(threading.get_native_id(), None) is False
    assert promptness.slice_ns() is None
