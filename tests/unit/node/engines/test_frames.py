"""Frames survive any cut of the stream; what is no frame is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.engines import frames
from laya_desktop.node.engines.base import Cancel, EngineParams, Finished, Generate, Ping, Sampling, Shutdown, Stats

COMMANDS = [
    EngineParams("m", "/x.gguf", slots=3),
    Generate("r", messages=[{"role": "user", "content": "hé 🙂"}], stop=("a", "b")),
    Generate("q", prompt=[1, 2, 3], sampling=Sampling(logit_bias={5: -1.5}, seed=7)),
    Ping(1.5),
    Cancel("r"),
    Shutdown(),
]


@given(st.lists(st.integers(1, 40), max_size=200))
def test_any_cut_gives_the_same_messages(sizes: list[int]) -> None:
    data = frames.encode(COMMANDS)
    reader = frames.command_reader()
    out = []
    at = 0
    for size in [*sizes, len(data)]:
        out += reader.feed(data[at : at + size])
        at += size
    assert out == COMMANDS


def test_events_keep_their_types() -> None:
    events = [Stats(1, 2, (3, 4)), Finished("r", "stop", 1, 2, decode_s=0.5)]
    assert frames.event_reader().feed(frames.encode(events)) == events


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x03abc",
        b"\x00\x00\x00\x00",
        frames.encode([Shutdown()]),  # a command is no event
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.event_reader().feed(data)


def test_too_long_a_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 100)
    with pytest.raises(frames.FrameError, match="Generate"):
        frames.encode([Generate("r", prompt="x" * 200)])
