"""Framing of the worker's socket: a 4-byte big-endian length, then one msgpack message. Pure; used at both ends.

A frame that is too long or cannot be decoded raises ``FrameError``; the connection is then worthless and is closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from laya_desktop.node.engines.base import Command, Message, WorkerEvent

MAX_FRAME_BYTES = 64 * 1024**2
"""Twice the default of ``server.max_body``: a prompt arrives as JSON and travels as msgpack, which is no longer."""

_HEAD = 4
_encoder = msgspec.msgpack.Encoder()
T = TypeVar("T")


class FrameError(Exception):
    """The peer sent something that is no frame."""


def encode(messages: Iterable[Message]) -> bytes:
    """All messages as frames in one piece, for one write.

    Raises:
        FrameError: a message is longer than ``MAX_FRAME_BYTES``.
    """
    out = bytearray()
    for message in messages:
        body = _encoder.encode(message)
        if len(body) > MAX_FRAME_BYTES:
            raise FrameError(f"A {type(message).__name__} of {len(body)} bytes is longer than {MAX_FRAME_BYTES}.")
        out += len(body).to_bytes(_HEAD, "big")
        out += body
    return bytes(out)


class FrameReader(Generic[T]):
    """Turns the bytes of a stream into messages."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._decoder = decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[T]:
        """Messages that are complete now.

        Raises:
            FrameError: an impossible length, or a body that is no known message.
        """
        self._buffer += data
        out: list[T] = []
        at = 0
        while len(self._buffer) - at >= _HEAD:
            size = int.from_bytes(self._buffer[at : at + _HEAD], "big")
            if size > MAX_FRAME_BYTES:
                raise FrameError(f"A frame announces {size} bytes; the limit is {MAX_FRAME_BYTES}.")
            end = at + _HEAD + size
            if len(self._buffer) < end:
                break
            try:
                out.append(self._decoder.decode(self._buffer[at + _HEAD : end]))
            except msgspec.MsgspecError as error:
                raise FrameError(f"A frame of {size} bytes is no known message: {error}.") from error
            at = end
        del self._buffer[:at]
        return out


def command_reader() -> FrameReader[Command]:
    """Reader of the worker's end."""
    return FrameReader(msgspec.msgpack.Decoder(Command))


def event_reader() -> FrameReader[WorkerEvent]:
    """Reader of the parent's end."""
    return FrameReader(msgspec.msgpack.Decoder(WorkerEvent))
