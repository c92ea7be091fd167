"""The whole path of a line: logging, queue, writer thread, ring, console and file."""

import io
import logging
import sys
import threading

import pytest

from laya_desktop import logs
from laya_desktop.errors import LayaError
from laya_desktop.logs import pipeline
from laya_desktop.logs.repeats import BURST
from laya_desktop.logs.text import MAX_MESSAGE

OWN = logging.getLogger("laya_desktop.some.module")
OTHER = logging.getLogger("third.party")


@pytest.fixture
def said():
    return []


@pytest.fixture
def handle(tmp_path, said):
    before = (logging.getLogger().level, list(logging.getLogger().handlers), logging.getLogger("laya_desktop").level)
    handle = logs.setup("info", tmp_path, 3, 10**6, announce=lambda *a: said.append(a))
    yield handle
    handle.close()
    root = logging.getLogger()
    assert (root.level, root.handlers, logging.getLogger("laya_desktop").level) == before
    assert "laya-log" not in [t.name for t in threading.enumerate()]


def _texts(handle) -> list[str]:
    assert handle.flush()
    return [line.message for line in handle.ring.since(0)]


def test_a_line_reaches_ring_and_file_with_level_and_name(handle):
    OWN.warning("model %s is %d %% loaded", "m", 40)
    assert handle.flush()
    (line,) = handle.ring.since(0)
    assert (line.seq, line.level, line.logger) == (1, "warn", "laya_desktop.some.module")
    assert line.message == "model m is 40 % loaded"
    text = handle.file.read_text(encoding="utf-8")
    assert text.endswith("WARN  laya_desktop.some.module: model m is 40 % loaded\n")
    assert text[:4].isdigit()
    assert handle.file.parent == handle.directory


def test_levels_apply_to_us_and_others_stay_quiet(handle):
    OWN.debug("hidden")
    OWN.info("seen")
    OTHER.info("chatter")
    OTHER.warning("other warning")
    handle.set_level("debug")
    OWN.debug("seen now")
    OTHER.debug("chatter still")
    handle.set_level("error")
    OWN.warning("hidden again")
    OTHER.warning("hidden too")
    OTHER.error("other error")
    assert _texts(handle) == ["seen", "other warning", "seen now", "other error"]


def test_an_unknown_level_is_refused_and_changes_nothing(handle):
    with pytest.raises(LayaError, match=r"'warning'.*'warn'"):
        handle.set_level("warning")
    handlers = list(logging.getLogger().handlers)
    with pytest.raises(LayaError):
        logs.setup("loud", None)
    assert logging.getLogger().handlers == handlers
    OWN.info("still info")
    assert _texts(handle) == ["still info"]


def test_a_traceback_is_kept_and_cannot_forge_a_line(handle):
    try:
        raise ValueError("bad\n2026-01-01 00:00:00 INFO forged: line \x1b[31mred")
    except ValueError:
        OWN.exception("it failed")
    assert handle.flush()
    (line,) = handle.ring.since(0)
    assert line.message.startswith("it failed\nTraceback")
    assert "\x1b" not in line.message
    assert "\\x1b[31mred" in line.message
    first, *rest = handle.file.read_text(encoding="utf-8").splitlines()
    assert first.endswith("it failed")
    assert rest
    assert all(r.startswith("    ") for r in rest)


def test_a_wrong_format_string_is_logged_not_raised(handle, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [handle._intake])  # pytest's own handler raises
    OWN.info("%d models", "two")
    (text,) = _texts(handle)
    assert "could not be formatted" in text
    assert __file__ in text


def test_a_huge_message_is_cut_in_the_middle(handle):
    OWN.info("<%s>", "x" * 1_000_000)
    (text,) = _texts(handle)
    assert len(text) < MAX_MESSAGE + 100
    assert text[0] == "<"
    assert text[-1] == ">"
    assert "characters left out" in text


def test_repeats_are_folded_in_ring_and_file(handle, tmp_path):
    for _ in range(BURST + 120):
        OWN.info("again")
    OWN.info("different")
    handle.close()
    texts = [line.message for line in handle.ring.since(0)]
    assert texts.count("again") == BURST
    assert "different" in texts
    assert "again … repeated 120 more times" in texts
    assert (tmp_path / "laya.log").read_text(encoding="utf-8").count("again") == BURST + 1


def test_a_slow_writer_never_holds_up_a_caller_and_losses_are_said(handle, monkeypatch):
    monkeypatch.setattr(pipeline, "QUEUE_LINES", 50)
    gate, reached = threading.Event(), threading.Event()
    write = handle._files.write

    def slow(lines):
        reached.set()
        gate.wait(30)
        write(lines)

    monkeypatch.setattr(handle._files, "write", slow)
    OWN.info("first")
    assert reached.wait(10)
    for i in range(200):
        OWN.info("line %d", i)
    assert handle.dropped == 150
    gate.set()
    assert "150 log lines came too fast and were dropped." in _texts(handle)


def test_an_unwritable_folder_leaves_the_log_in_memory(tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    said = []
    handle = logs.setup("info", blocker / "logs", announce=lambda *a: said.append(a))
    try:
        OWN.info("one")
        OWN.info("two")
        texts = _texts(handle)
    finally:
        handle.close()
    assert len(said) == 1
    assert said[0][0] == "warning"
    assert [t for t in texts if t in ("one", "two")] == ["one", "two"]
    assert any("memory only" in t for t in texts)


def test_a_fault_of_the_writer_does_not_end_the_log(handle, monkeypatch):
    def broken(_lines):
        raise RuntimeError("no idea")

    with monkeypatch.context() as patch:
        patch.setattr(handle._files, "write", broken)
        OWN.info("lost in file only")
        assert handle.flush()
    OWN.info("after")
    texts = _texts(handle)
    assert any("no idea" in t for t in texts)
    assert texts[-1] == "after"


def test_the_console_gets_lines_and_may_go_away(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    handle = logs.setup("info", None, console=True)
    try:
        OWN.info("visible")
        assert handle.flush()
        assert "visible" in stream.getvalue()
        stream.close()
        OWN.info("unseen")
        OWN.info("kept")
        assert _texts(handle) == ["visible", "unseen", "kept"]
    finally:
        handle.close()
    assert handle.file is None
    assert handle.directory is None


def test_without_a_console_there_is_no_fault(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)  # pythonw, frozen windows
    handle = logs.setup("info", None, max_total_bytes=0, console=True)
    OWN.info("x")
    assert _texts(handle) == ["x"]
    handle.close()


def test_close_twice_and_log_afterwards(handle):
    OWN.info("in")
    handle.close()
    handle.close()
    OWN.error("out")
    assert [line.message for line in handle.ring.since(0)] == ["in"]


def test_a_new_setup_may_continue_the_ring(tmp_path, handle):
    OWN.info("old")
    handle.close()
    again = logs.setup("info", tmp_path / "other", ring=handle.ring)
    OWN.info("new")
    assert _texts(again) == ["old", "new"]
    again.close()


def test_many_threads_lose_nothing(handle):
    def work(n: int) -> None:
        for i in range(300):
            OWN.info("thread %d line %d", n, i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert handle.flush(10)
    texts = [line.message for line in handle.ring.since(0, limit=5000)]
    assert handle.dropped == 0
    assert sorted(texts) == sorted(f"thread {n} line {i}" for n in range(4) for i in range(300))
