"""The worker as an operating-system process: started, its output drained, its end awaited. The node's thread.

``subprocess.Popen`` is called on the loop's own thread on purpose: Linux ties the worker's life to the thread that
forked it (``worker_os``), and a pool thread may end earlier. The call takes about two milliseconds. One watcher thread
a worker reads its output (so that it never blocks on a full pipe), then waits for its exit, so that no zombie stays.
No shell, nothing inherited but the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import laya_desktop
from laya_desktop.errors import LayaError
from laya_desktop.node.engines.worker_main import TOKEN_VARIABLE
from laya_desktop.node.tasks import spawn

LOG_TAIL_LINES = 50
WORKER_FLAG = "--laya-worker"
_MODULE = "laya_desktop.node.engines.worker_main"
_LINE_LIMIT = 2000
_SPIN_COUNT = "1000"
"""How long OpenMP threads spin at a barrier before they sleep. Measured on two cores with SmolLM2, one and eight slots:
idle machine 82 and 190 tokens/s, the same as with GCC's default of some 300,000; beside one busy program 33 to 53
tokens/s instead of 2, because the default burns the time slices that the thread it waits for needs. Below some
hundred the idle machine loses half. A value in the environment wins."""
_CONNECT_TIMEOUT_S = 30.0
_IDLE_PRIORITY_CLASS, _CREATE_NO_WINDOW = 0x40, 0x08000000  # Windows only; typeshed hides the names elsewhere
_CREATION_FLAGS = _IDLE_PRIORITY_CLASS | _CREATE_NO_WINDOW if sys.platform == "win32" else 0
_HAS_SOCKETPAIR = sys.platform != "win32"


def worker_command() -> list[str]:
    """How to start a worker: this interpreter, or this executable with a flag where it is a frozen build.

    ``-P`` keeps the current directory off the worker's import path: a file there must not replace a module.
    """
    if getattr(sys, "frozen", False):
        return [sys.executable, WORKER_FLAG]
    return [sys.executable, "-P", "-m", _MODULE]


def worker_environment(threads: int) -> dict[str, str]:
    """Our environment, with what keeps native libraries in bounds."""
    env = dict(os.environ)
    env |= {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
        "GGML_NO_BACKTRACE": "1",  # ggml would start a debugger on itself, and the death would come late
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8:replace",
    }
    env.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)
    root = str(Path(laya_desktop.__file__).resolve().parents[1])
    if not getattr(sys, "frozen", False) and root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH"))))
    return env


class WorkerProcess:
    """A running worker. Made by ``start``; every method on the loop's thread."""

    def __init__(self, popen: subprocess.Popen[bytes], name: str, on_exit: Callable[[int], None]) -> None:
        self.pid = popen.pid
        self.returncode: int | None = None
        self.log_tail: deque[str] = deque(maxlen=LOG_TAIL_LINES)
        self._popen = popen
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._log = logging.getLogger(f"laya_desktop.worker.{name}")
        self._exited = asyncio.Event()
        self._watcher = threading.Thread(target=self._watch, name=f"worker-watch-{self.pid}", daemon=True)
        self._watcher.start()

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it still runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, even where it is stopped."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.kill()

    async def wait(self) -> int:
        """Wait for its end; the exit code as ``subprocess`` gives it."""
        await self._exited.wait()
        assert self.returncode is not None
        return self.returncode

    def _watch(self) -> None:
        """Watcher thread: output until its end, then the exit code, then tell the loop."""
        assert self._popen.stdout is not None
        with self._popen.stdout as stream:
            while line := stream.readline(_LINE_LIMIT):
                text = line.decode("utf-8", "replace").rstrip()
                if text:
                    self.log_tail.append(text)
                    self._log.debug("%s", text)
        returncode = self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._note_exit, returncode)

    def _note_exit(self, returncode: int) -> None:
        self._watcher.join()  # telling us was its last act
        self.returncode = returncode
        self._exited.set()
        self._on_exit(returncode)


async def start(
    name: str, threads: int, on_exit: Callable[[int], None], *, use_socketpair: bool = _HAS_SOCKETPAIR
) -> tuple[WorkerProcess, socket.socket]:
    """Start a worker; its process and our end of its socket, non-blocking.

    ``on_exit`` is called on the loop with the exit code. Where there is no ``socketpair`` to inherit (Windows) the
    worker connects to a loopback port of ours and proves itself with a one-time token from its environment.

    Raises:
        LayaError: the process could not be started, or did not connect.
    """
    if use_socketpair:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = _spawn(name, ["--fd", str(theirs.fileno())], worker_environment(threads), on_exit, theirs)
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return process, ours
    token = secrets.token_hex(32)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        env = worker_environment(threads) | {TOKEN_VARIABLE: token}
        process = _spawn(name, ["--port", str(listener.getsockname()[1])], env, on_exit, None)
        try:
            return process, await _accept_or_exit(listener, token, process)
        except BaseException:
            process.kill()
            raise


def _spawn(
    name: str, where: list[str], env: dict[str, str], on_exit: Callable[[int], None], inherit: socket.socket | None
) -> WorkerProcess:
    command = [*worker_command(), "--parent", str(os.getpid()), *where]
    try:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            pass_fds=() if inherit is None else (inherit.fileno(),),
            creationflags=_CREATION_FLAGS,
        )
    except OSError as error:
        raise LayaError(
            f"The worker of model '{name}' could not be started: {error}.",
            hint="Check that memory and the number of processes are not at their limits.",
            code="worker_start_failed",
            status=503,
        ) from error
    return WorkerProcess(popen, name, on_exit)


async def _accept_or_exit(listener: socket.socket, token: str, process: WorkerProcess) -> socket.socket:
    accepting: asyncio.Task[socket.socket] = spawn(_accept(listener, token), f"accept worker {process.pid}")
    exiting = spawn(process.wait(), f"exit of worker {process.pid}")
    try:
        await asyncio.wait((accepting, exiting), timeout=_CONNECT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if accepting.done():
            return accepting.result()
    finally:
        accepting.cancel()
        exiting.cancel()
    raise LayaError(
        "The worker ended before it connected, or did not connect in time.",
        hint="Look at its log lines, then load the model again.",
        code="worker_died",
        status=503,
    )


async def _accept(listener: socket.socket, token: str) -> socket.socket:
    """The first connection that brings the token; the others are closed."""
    loop = asyncio.get_running_loop()
    while True:
        sock, _ = await loop.sock_accept(listener)
        sock.setblocking(False)
        given = b""
        while len(given) < len(token) and (data := await loop.sock_recv(sock, len(token) - len(given))):
            given += data
        if hmac.compare_digest(given, token.encode()):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        sock.close()
