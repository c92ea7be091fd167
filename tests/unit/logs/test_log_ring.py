"""The bounded memory of log lines."""

import threading

from laya_desktop.logs import LogRing


def _fill(ring: LogRing, count: int) -> None:
    for i in range(count):
        ring.append(float(i), "info", "laya_desktop.x", f"line {i + 1}")


def test_since_pages_through_lines_in_order():
    ring = LogRing(capacity=100)
    assert ring.last_seq == 0
    assert ring.since(0) == ()
    _fill(ring, 25)
    first = ring.since(0, limit=10)
    assert [line.seq for line in first] == list(range(1, 11))
    assert [line.seq for line in ring.since(first[-1].seq, limit=10)] == list(range(11, 21))
    assert [line.message for line in ring.since(23)] == ["line 24", "line 25"]
    assert ring.since(25) == ()
    assert ring.since(9999) == ()


def test_a_full_ring_keeps_the_newest_and_a_late_reader_sees_a_gap():
    ring = LogRing(capacity=10)
    _fill(ring, 37)
    lines = ring.since(3)
    assert [line.seq for line in lines] == list(range(28, 38))
    assert [line.message for line in lines] == [f"line {i}" for i in range(28, 38)]
    assert ring.since(ring.last_seq - 3)[0].seq == 35


def test_readers_see_consistent_lines_while_a_writer_appends():
    ring = LogRing(capacity=64)
    done = threading.Event()
    faults: list[str] = []

    def read() -> None:
        seq = 0
        while not (done.is_set() and seq == ring.last_seq):
            for line in ring.since(seq, limit=50):
                if line.seq <= seq or line.message != f"line {line.seq}":
                    faults.append(f"{line} after {seq}")
                seq = line.seq

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    _fill(ring, 5000)
    done.set()
    for reader in readers:
        reader.join(10)
    assert not any(reader.is_alive() for reader in readers)
    assert faults == []
