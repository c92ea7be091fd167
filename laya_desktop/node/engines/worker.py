"""The node's handle on one worker: load, generate, cancel, stop, and what happens when it dies. The node's thread.

Owns the worker's socket and the requests that are in it. It decides nothing about queues or restarts: every request it
was given ends with ``Finished`` or ``Refused``, also when the process is killed, and ``on_exit`` tells the node.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Literal

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import frames, oom, worker_process
from laya_desktop.node.engines.base import (
    Cancel,
    Command,
    EngineParams,
    Finished,
    Generate,
    Heartbeat,
    Loaded,
    LoadFailed,
    Loading,
    Ping,
    Pong,
    Pulse,
    Refused,
    RequestEvent,
    Shutdown,
    Stats,
    WorkerEvent,
)
from laya_desktop.node.engines.ceiling import Ceiling
from laya_desktop.node.engines.heartbeat import BEAT_S, Heart
from laya_desktop.node.engines.postmortem import explain_death
from laya_desktop.node.engines.process_state import LOOK_S, StopWatch

log = logging.getLogger(__name__)

Sink = Callable[[RequestEvent], None]
_LAST_WORDS_S = 1.0
"""How long after one of the two ends (process, socket) the other may follow by itself."""
_TERMINATE_S = 2.0


class _Link(asyncio.Protocol):
    """Bytes of the worker's socket to messages."""

    def __init__(self, on_event: Callable[[WorkerEvent], None], on_end: Callable[[str | None], None]) -> None:
        self._reader = frames.event_reader()
        self._on_event = on_event
        self._on_end = on_end
        self._broken: str | None = None
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._broken is not None:
            return
        try:
            events = self._reader.feed(data)
        except frames.FrameError as error:
            self._broken = f"sent what is no message ({error})"
            assert self._transport is not None
            self._transport.close()
            return
        for event in events:
            self._on_event(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end(self._broken)


class WorkerHandle:
    """One worker process with one model. Used once: a new load is a new handle."""

    def __init__(
        self, name: str, on_exit: Callable[[LayaError | None], None] | None = None, *, beat_s: float = BEAT_S
    ) -> None:
        self.name = name
        self._beat_s = beat_s
        self.on_exit: Callable[[LayaError | None], None] = on_exit or (lambda _error: None)
        """Called once when the process dies without being asked to, before its requests are refused."""
        self.stats = Stats(0, 0)
        self.loaded: Loaded | None = None
        self._state: Literal["new", "loading", "ready", "stopping", "ended"] = "new"
        self._process: worker_process.WorkerProcess | None = None
        self._transport: asyncio.Transport | None = None
        self._sinks: dict[str, Sink] = {}
        self._on_progress: Callable[[float], None] = lambda _progress: None
        self._load: asyncio.Future[Loaded] | None = None
        self._pings: dict[float, asyncio.Future[None]] = {}
        self._ended: asyncio.Future[None] | None = None
        self._socket_open = False
        self._broken: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._heart = Heart()
        self._next_beat: asyncio.TimerHandle | None = None
        self._stop_watch: StopWatch | None = None
        self._ceiling: Ceiling | None = None
        self._next_look: asyncio.TimerHandle | None = None
        self._oom_kills = oom.kills()

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None before the start and after the end."""
        return self._process.pid if self._process is not None and self._state != "ended" else None

    @property
    def log_tail(self) -> tuple[str, ...]:
        """The last lines the worker printed, kept after its end."""
        return tuple(self._process.log_tail) if self._process is not None else ()

    @property
    def ceiling(self) -> tuple[str, int, str] | None:
        """What keeps it below its share of RAM: kind, bytes, and why it is no stronger one."""
        return self._ceiling.in_force if self._ceiling is not None else None

    @property
    def alive(self) -> bool:
        """True from a finished load to the first sign of an end."""
        return self._state == "ready"

    @property
    def in_flight(self) -> int:
        """Requests given and not over."""
        return len(self._sinks)

    async def start(
        self, params: EngineParams, on_progress: Callable[[float], None] = lambda _progress: None
    ) -> Loaded:
        """Start the process and load the model. Cancelling it ends the process.

        Args:
            params: how to load.
            on_progress: called on the loop with 0.0 to 1.0.

        Raises:
            LayaError: the load failed or the worker died, with the reason and the way out; the process is gone.
        """
        if self._state != "new":
            raise RuntimeError("A worker handle is used once.")
        self._state = "loading"
        self._on_progress = on_progress
        loop = asyncio.get_running_loop()
        self._load = loop.create_future()
        self._ended = loop.create_future()
        try:
            await self._open(params)
            self.loaded = await self._load
        except BaseException:
            await self._end_now()
            raise
        return self.loaded

    def generate(self, request: Generate, sink: Sink) -> None:
        """Give a request a slot. ``sink`` is called on the loop with each event; the last is Finished or Refused.

        Raises:
            LayaError: the worker is not ready (503).
        """
        if self._state != "ready":
            raise LayaError(f"Model '{self.name}' is not loaded.", code="model_not_ready", status=503, retry_after_s=1)
        if request.request_id in self._sinks:
            raise RuntimeError(f"Request {request.request_id} is already running.")
        self._sinks[request.request_id] = sink
        self._send(request)

    def cancel(self, request_id: str) -> None:
        """Stop a request; its ``Finished`` comes within one decode step. An unknown id does nothing."""
        if request_id in self._sinks and self._state == "ready":
            self._send(Cancel(request_id))

    async def ping(self) -> float:
        """Seconds until the worker answers, which it does between two decode steps.

        Raises:
            LayaError: it died first.
        """
        if self._state != "ready":
            raise LayaError(f"Model '{self.name}' is not loaded.", code="model_not_ready", status=503)
        sent_s = time.monotonic()
        answer = self._pings.setdefault(sent_s, asyncio.get_running_loop().create_future())
        self._send(Ping(sent_s))
        await answer
        return time.monotonic() - sent_s

    async def stop(self, grace_s: float = 5.0) -> None:
        """End the worker: ask, then terminate, then kill. Running requests are refused. Idempotent.

        Args:
            grace_s: seconds it has to end by itself.
        """
        if self._state in ("new", "ended") or self._ended is None:
            self._state = "ended"
            return
        self._state = "stopping"
        self._refuse_all(LayaError(f"Model '{self.name}' was unloaded.", code="model_unloaded", status=503))
        self._send(Shutdown())
        for act, patience_s in ((self._terminate, grace_s), (self._kill, _TERMINATE_S)):
            await asyncio.wait([self._ended], timeout=patience_s)
            if self._ended.done():
                return
            act()
        await self._ended

    async def _open(self, params: EngineParams) -> None:
        process, sock = await worker_process.start(self.name, params.threads, self._note_exit)
        self._process = process
        self._ceiling = Ceiling(process.pid, params.memory_limit_bytes, params.device)
        loop = asyncio.get_running_loop()
        connect = loop.create_connection if sock.family == socket.AF_INET else loop.create_unix_connection
        self._socket_open = True
        try:
            transport, _ = await connect(lambda: _Link(self._on_event, self._note_socket_end), sock=sock)
        except BaseException:
            self._socket_open = False
            sock.close()
            raise
        self._transport = transport
        self._send(params)
        self._beat()
        self._stop_watch = StopWatch(process.pid)
        self._look()

    def _beat(self) -> None:
        """Ask for a sign of life every second; a worker that gives none is killed, which refuses its requests."""
        if self._state not in ("loading", "ready"):
            return
        if self._stop_watch is not None and self._stop_watch.traced:
            self._heart.excuse()
        hung = self._heart.beat(loading=self._state == "loading")
        if hung is not None:
            self._give_up(hung)
            return
        self._send(Heartbeat())
        self._next_beat = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def _look(self) -> None:
        """A worker that somebody has stopped is killed at once instead of after its missed beats."""
        if self._state not in ("loading", "ready") or self._stop_watch is None:
            return
        if self._ceiling is not None and (reason := self._ceiling.exceeded()) is not None:
            self._give_up(reason)
            return
        if self._stop_watch.look():
            self._give_up("was hung: something had stopped its process (SIGSTOP)")
            return
        self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _give_up(self, reason: str) -> None:
        log.error("The worker of model '%s' %s; it is killed.", self.name, reason)
        self._broken = self._broken or reason
        self._kill()

    def _send(self, command: Command) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frames.encode([command]))

    def _on_event(self, event: WorkerEvent) -> None:
        if isinstance(event, RequestEvent):
            self._deliver(event)
        elif isinstance(event, Stats):
            self.stats = event
        elif isinstance(event, Pulse):
            self._heart.on_pulse(event)
        elif isinstance(event, Pong):
            if (answer := self._pings.pop(event.sent_s, None)) is not None and not answer.done():
                answer.set_result(None)
        elif isinstance(event, Loading):
            self._on_progress(event.progress)
        elif self._state == "loading" and self._load is not None and not self._load.done():
            if isinstance(event, Loaded):
                self._state = "ready"
                if self._ceiling is not None:
                    self._ceiling.loaded(on_gpu=bool(event.offloaded_layers))
                self._load.set_result(event)
            elif isinstance(event, LoadFailed):
                self._load.set_exception(LayaError(event.message, hint=event.hint, code=event.code, status=503))

    def _deliver(self, event: RequestEvent) -> None:
        over = isinstance(event, Finished | Refused)
        sink = self._sinks.pop(event.request_id, None) if over else self._sinks.get(event.request_id)
        if sink is not None:
            try:
                sink(event)
            except Exception:
                log.exception("The receiver of request %s failed on %s", event.request_id, type(event).__name__)
                self.cancel(event.request_id)

    def _refuse_all(self, error: LayaError) -> None:
        for request_id in list(self._sinks):
            self._deliver(Refused(request_id, error.message, error.hint, error.code, error.status))
        for answer in self._pings.values():
            if not answer.done():
                answer.set_exception(error)
        self._pings.clear()

    def _terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _kill_mute(self) -> None:
        self._broken = self._broken or "closed its connection and went on running"
        self._kill()

    async def _end_now(self) -> None:
        """Kill whatever there is and wait for it, after a start that did not succeed."""
        if self._state == "ended":
            return
        self._state = "stopping"
        self._kill()
        if self._process is None:
            self._state = "ended"
        else:
            if not self._socket_open:
                self._note_socket_end(None)
            assert self._ended is not None
            await asyncio.shield(self._ended)

    def _note_socket_end(self, broken: str | None) -> None:
        """The worker's end of the socket is closed: the process is gone, or has a second to follow."""
        self._socket_open = False
        self._broken = self._broken or broken
        if self._process is not None and self._process.returncode is None:
            if broken is not None:
                self._kill()
            self._arm(self._kill_mute)
        else:
            self._finish()

    def _note_exit(self, _returncode: int) -> None:
        """The process is gone: what it sent last is still in the socket."""
        if self._socket_open:
            self._arm(self._close_socket)
        elif self._transport is not None or self._state == "stopping":
            self._finish()

    def _close_socket(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _arm(self, act: Callable[[], None]) -> None:
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(_LAST_WORDS_S, act)

    def _finish(self) -> None:
        """Both ends are gone: say so once."""
        if self._ended is None or self._ended.done():
            return
        for timer in (self._deadline, self._next_beat, self._next_look):
            if timer is not None:
                timer.cancel()
        if self._ceiling is not None:
            self._ceiling.close()
        expected, loading = self._state == "stopping", self._state == "loading"
        self._state = "ended"
        error = self._end_error(expected, loading)
        if self._load is not None and not self._load.done():
            self._load.set_exception(error)
        if not expected and not loading:
            log.error("%s", error)
            self.on_exit(error)
        self._refuse_all(error)
        self._ended.set_result(None)

    def _end_error(self, expected: bool, loading: bool) -> LayaError:
        if expected:
            return LayaError(f"The load of model '{self.name}' was called off.", code="load_cancelled", status=503)
        assert self._process is not None
        code = self._process.returncode
        kills = oom.kills()
        oom_kill = kills is not None and self._oom_kills is not None and kills > self._oom_kills
        return explain_death(self.name, code, self.log_tail, loading=loading, reason=self._broken, oom_kill=oom_kill)
