"""One chat at a time with a node over HTTP. Qt main thread; Qt's own network access, no thread of ours, no views."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkProxy, QNetworkReply, QNetworkRequest

from laya_desktop.gui.qtmodels import playground
from laya_desktop.gui.qtmodels.playground import Destination, Draft, StreamReader, Timings

_OK = 200


class ChatClient(QObject):
    """Sends a draft and reports the answer as it comes."""

    received = Signal(str)
    """New text of the answer."""
    timed = Signal(object)
    """Timings, whenever more of them is known."""
    ended = Signal(str)
    """The answer is over: its finish reason, or ``stopped``."""
    failed = Signal(str)
    """There is no (whole) answer: what went wrong, and the way out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._network = QNetworkAccessManager(self)
        self._network.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))  # the node is ours: no way round
        self._reply: QNetworkReply | None = None
        self._stopped = False
        self._begin()

    def _begin(self) -> None:
        self._reader = StreamReader()
        self._error = bytearray()
        self._sent_s = time.monotonic()
        self._finish: str | None = None
        self._stopped = False
        self._fault: str | None = None
        self.timings = Timings()

    @property
    def busy(self) -> bool:
        """An answer is on its way."""
        return self._reply is not None

    def send(self, url: str, destination: Destination, draft: Draft, key: str = "") -> None:
        """Ask the node at ``url``. An answer on its way is stopped first."""
        self.stop()
        self._begin()
        request = QNetworkRequest(QUrl(url.rstrip("/") + destination.path))
        for name, value in (("Content-Type", "application/json"), *destination.headers):
            request.setRawHeader(name.encode(), value.encode())
        if key:
            request.setRawHeader(b"Authorization", f"Bearer {key}".encode())
        reply = self._network.post(request, json.dumps(playground.body(destination, draft)).encode())
        self._reply = reply
        reply.metaDataChanged.connect(self._on_head)
        reply.readyRead.connect(self._on_data)
        reply.finished.connect(self._on_finished)

    def stop(self) -> None:
        """Hang up: the node cancels the answer within one decode step."""
        if self._reply is not None:
            self._stopped = True
            self._reply.abort()

    def _header(self, name: str) -> str | None:
        assert self._reply is not None
        value = bytes(self._reply.rawHeader(name).data()).decode("latin-1")
        return value or None

    def _status(self) -> int | None:
        assert self._reply is not None
        status = self._reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
        return None if status is None else int(status)

    def _on_head(self) -> None:
        if self._reply is None:
            return
        self._time(
            routing_us=playground.number(self._header("X-Laya-Routing-Us")),
            queue_ms=playground.number(self._header("X-Laya-Queue-Ms")),
            route=self._header("X-Laya-Route"),
            target=self._header("X-Laya-Target"),
            cache=self._header("X-Laya-Cache"),
        )

    def _time(self, **known: Any) -> None:
        new = {name: value for name, value in known.items() if value is not None}
        if new:
            self.timings = replace(self.timings, **new)
            self.timed.emit(self.timings)

    def _on_data(self) -> None:
        if self._reply is None:
            return
        data = bytes(self._reply.readAll().data())
        if self._status() != _OK:
            self._error += data
            return
        text = ""
        for chunk in self._reader.feed(data):
            text += playground.delta_text(chunk)
            self._note(chunk)
        if text:
            if self.timings.ttft_ms is None:
                self._time(ttft_ms=(time.monotonic() - self._sent_s) * 1000)
            self.received.emit(text)

    def _note(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error"):
            self._fault = playground.error_text(json.dumps(chunk).encode(), None)
        self._finish = playground.finish_reason(chunk) or self._finish
        timings, usage = chunk.get("timings") or {}, chunk.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        self._time(
            queue_ms=timings.get("queue_ms"),
            ttft_ms=timings.get("ttft_ms"),
            decode_tokens_per_s=timings.get("decode_tokens_per_s"),
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens"),
        )

    def _on_finished(self) -> None:
        reply = self._reply
        if reply is None:
            return
        if not self._stopped:
            self._on_data()
        status, problem = self._status(), reply.errorString()
        self._time(total_s=time.monotonic() - self._sent_s)
        self._reply = None
        reply.deleteLater()
        if self._stopped:
            self.ended.emit("stopped")
        elif status is None:
            self.failed.emit(f"The node cannot be reached: {problem}. Press Start in the header, then send again.")
        elif status != _OK:
            self.failed.emit(f"{status}: {playground.error_text(bytes(self._error), status)}")
        elif self._fault is not None:
            self.failed.emit(self._fault)
        elif not self._reader.done:
            self.failed.emit("The answer broke off before its end. The Logs page says why; send again.")
        else:
            self.ended.emit(self._finish or "stop")
