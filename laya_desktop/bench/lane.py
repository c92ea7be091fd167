"""One connection of the load: writes a request, reads the answer, writes the next. The helper's event loop.

Callbacks and a C parser instead of tasks and a client library: on one core this client must be quicker than the node,
or it would measure itself.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol, cast

import httptools
import msgspec

from laya_desktop.bench.figures import Sample

_END_OF_EVENT = b"\n\n"
_KEPT_BYTES = 65536
"""Of a body that is not a stream: an error's text, or a short answer."""


class Source(Protocol):
    """Where a lane gets its work and leaves what came of it."""

    def take(self, lane: Lane) -> tuple[bytes, Sample] | None:
        """The next request; None: none now (the source calls ``go`` later) or never again."""
        ...

    def finished(self, sample: Sample) -> None:
        """A request is over."""
        ...

    def lost(self, lane: Lane) -> None:
        """The connection is gone."""
        ...


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Error(msgspec.Struct):
    message: str = ""
    code: str | None = None
    type: str | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | None = None


_read = msgspec.json.Decoder(_Event).decode


class Lane(asyncio.Protocol):
    """A keep-alive connection with one request at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._sample: Sample | None = None
        self._stream = False
        self._keep_alive = True
        self._buffer = bytearray()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        self.go()

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as fault:
            self._end("bad_answer", f"The answer is not HTTP: {fault}.")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side, or ``close``, ended it."""
        self._transport = None
        self._end("connection_closed", f"The connection was closed in the middle of an answer{_why(exc)}.")
        self._source.lost(self)

    # used by the source

    @property
    def idle(self) -> bool:
        """Open, and no request is on its way."""
        return self._transport is not None and self._sample is None

    def go(self) -> None:
        """Send the next request, if there is one."""
        if self._transport is None or self._sample is not None:
            return
        taken = self._source.take(self)
        if taken is not None:
            request, self._sample = taken
            self._transport.write(request)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, code: str, text: str) -> None:
        """Count the request on its way as failed, and hang up."""
        self._end(code, text)
        self.close()

    # httptools

    def on_message_begin(self) -> None:
        """A new answer."""
        self._buffer.clear()
        self._stream = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        sample = self._sample
        key = name.lower()
        if sample is None:
            return
        if key == b"x-laya-routing-us":
            sample.routing_us = _number(value)
        elif key == b"x-laya-queue-ms":
            sample.queue_ms = _number(value)
        elif key == b"content-type":
            self._stream = value.startswith(b"text/event-stream")

    def on_headers_complete(self) -> None:
        """The head."""
        self._keep_alive = self._parser.should_keep_alive()
        if self._sample is not None:
            self._sample.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """Part of the body."""
        if self._sample is None:
            return
        if not self._stream:
            if len(self._buffer) < _KEPT_BYTES:
                self._buffer += data
            return
        now_s = time.monotonic()
        self._buffer += data
        while (end := self._buffer.find(_END_OF_EVENT)) >= 0:
            event = bytes(self._buffer[:end])
            del self._buffer[: end + len(_END_OF_EVENT)]
            if event.startswith(b"data: {"):
                self._on_event(self._sample, event[6:], now_s)

    def on_message_complete(self) -> None:
        """The whole answer is here."""
        sample = self._sample
        if sample is None:
            return
        code, text = sample.code, sample.text
        if sample.status != 200:
            code, text = _explain(bytes(self._buffer), sample.status)
        elif self._stream and sample.completion_tokens is None and code is None:
            code, text = "cut_short", "The stream ended without its token counts."
        self._end(code, text)
        if self._keep_alive:
            self.go()
        else:
            self.close()

    def _on_event(self, sample: Sample, data: bytes, now_s: float) -> None:
        try:
            event = _read(data)
        except msgspec.DecodeError as fault:
            sample.code, sample.text = "bad_answer", f"An event of the stream cannot be read: {fault}."
            return
        if any(c.delta.content or c.delta.reasoning_content for c in event.choices):
            sample.pieces_s.append(now_s)
        if event.usage is not None:
            sample.prompt_tokens, sample.completion_tokens = event.usage.prompt_tokens, event.usage.completion_tokens
        if event.error is not None:
            sample.code, sample.text = event.error.code or event.error.type or "error", event.error.message

    def _end(self, code: str | None, text: str) -> None:
        sample, self._sample = self._sample, None
        if sample is not None:
            sample.end_s = time.monotonic()
            sample.code, sample.text = code, text
            self._source.finished(sample)


def _explain(body: bytes, status: int | None) -> tuple[str, str]:
    try:
        error = _read(body).error
    except msgspec.DecodeError:
        error = None
    if error is None:
        return f"status_{status}", body[:200].decode("utf-8", "replace")
    return error.code or error.type or f"status_{status}", error.message


def _number(value: bytes) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _why(exc: Exception | None) -> str:
    return f" ({exc})" if exc is not None else ""
