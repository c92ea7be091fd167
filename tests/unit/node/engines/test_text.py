"""Text comes out whole, in order, and without stop strings, however it is cut into tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.engines.text import TextStream

letters = st.text(alphabet="abé🙂模", max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(letters, st.lists(st.integers(1, 4), max_size=60))
def test_without_stops_everything_comes_out_in_whole_characters(text: str, sizes: list[int]) -> None:
    stream = TextStream()
    out = [stream.push(p) for p in cut(text.encode(), sizes)]
    assert "".join(out) + stream.flush() == text
    assert "\ufffd" not in "".join(out)


@given(letters, st.lists(st.text(alphabet="abé🙂", min_size=1, max_size=4), max_size=3), st.lists(st.integers(1, 4)))
def test_text_ends_before_the_first_stop(text: str, stops: list[str], sizes: list[int]) -> None:
    stream = TextStream(stops)
    out = ""
    for piece in cut(text.encode(), sizes):
        out += stream.push(piece)
        assert text.startswith(out)
        assert not any(s in out for s in stops)
    out += stream.flush()
    if stream.stopped:
        assert any(text.startswith(out + s) for s in stops)
    else:
        assert out == text
    assert not any(s in out for s in stops)


def test_a_beginning_of_a_stop_waits() -> None:
    stream = TextStream(["###"])
    assert stream.push(b"one #") == "one "
    assert stream.push(b"#") == ""
    assert stream.push(b"! ") == "##! "
    assert stream.push(b"two ###three") == "two "
    assert stream.stopped
    assert stream.push(b"four") == ""
    assert stream.flush() == ""


def test_bytes_that_are_no_text_are_replaced_and_a_cut_end_is_dropped() -> None:
    stream = TextStream()
    assert stream.push(b"a\xffb") == "a\ufffdb"
    assert stream.push("é".encode()[:1]) == ""
    assert stream.flush() == ""
