"""One window for each configuration folder: a second start hands its wish to the first and ends. Qt main thread.

``claim`` asks a running window to take over (a local socket, readable by this user only) and listens itself where none
answers. A socket left by a crash refuses connections and is replaced; a window that hangs does not answer within
``ANSWER_MS`` and loses the name to the new one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from laya_desktop import paths

log = logging.getLogger(__name__)

ANSWER_MS = 3000
_CONNECT_MS = 500
_LOCK_MS = 10_000
_LONGEST_PATH = 100  # of a Unix socket: 104 to 108 with its end
_LONGEST_WISH = 64 * 1024
_OK = b"ok\n"


class Instance(QObject):
    """The window that others hand their wish to."""

    wished = Signal(str, str)
    """A second start: the absolute path of its CONFIG or empty, and the name of a model to load or empty."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        QLocalServer.removeServer(name)
        if not self._server.listen(name):
            log.warning("a second start will open a second window: %s", self._server.errorString())

    @property
    def listening(self) -> bool:
        """True while a second start would find this one."""
        return self._server.isListening()

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(lambda s=socket: self._read(s))
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if socket.bytesAvailable() > _LONGEST_WISH:
            socket.abort()
            return
        if not socket.canReadLine():
            return
        try:
            wish = json.loads(bytes(socket.readLine().data()))
            config, model = str(wish["config"]), str(wish["load"])
        except (ValueError, KeyError, TypeError):
            socket.abort()
            return
        socket.write(_OK)
        socket.flush()
        self.wished.emit(config, model)


def claim(config: Path | None = None, load: str | None = None) -> Instance | None:
    """Become the window of this configuration folder; None: another one is, and has taken the wish."""
    paths.state_dir().mkdir(parents=True, exist_ok=True)
    name = socket_name()
    lock = QLockFile(str(paths.state_dir() / "start.lock"))  # two starts at once: one after the other
    lock.tryLock(_LOCK_MS)
    try:
        return None if hand_over(name, config, load) else Instance(name)
    finally:
        lock.unlock()


def hand_over(name: str, config: Path | None, load: str | None = None) -> bool:
    """Tell the window that listens under ``name``; False: there is none, or it hangs."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_CONNECT_MS):
        return False
    wish = {"config": str(config.absolute()) if config else "", "load": load or ""}
    socket.write(json.dumps(wish).encode() + b"\n")
    socket.waitForBytesWritten(_CONNECT_MS)
    answered = socket.waitForReadyRead(ANSWER_MS) and bytes(socket.readAll().data()) == _OK
    socket.abort()
    if not answered:
        log.warning("a window is open but does not answer; opening another one")
    return answered


def socket_name() -> str:
    """Where the window of this user and this configuration folder listens."""
    key = hashlib.sha256(str(paths.config_dir().absolute()).encode()).hexdigest()[:16]
    if sys.platform == "win32":
        return f"laya-desktop-{key}"
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or paths.state_dir())
    place = str(folder / f"laya-{key}.sock")
    return place if folder.is_dir() and len(place) < _LONGEST_PATH else f"laya-desktop-{os.getuid()}-{key}"
