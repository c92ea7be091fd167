"""The worker process: holds one engine, reads commands from its socket, steps, sends events.

The main thread owns the engine. One reader thread blocks on the socket, puts commands on a queue, answers ``Heartbeat``
at any time, and ``Ping`` and ``Shutdown`` while a load keeps the main thread busy, and ends the process as soon as the
parent's end is closed, whatever native code is running. Nothing is ever sent over stdout: llama.cpp prints there.
"""

from __future__ import annotations

import argparse
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterable

from laya_desktop.node.engines import frames, worker_os
from laya_desktop.node.engines.advice import GET_TORCH, NO_TORCH
from laya_desktop.node.engines.base import (
    Cancel,
    Command,
    DryRun,
    Engine,
    EngineLoadError,
    EngineParams,
    Generate,
    Heartbeat,
    Loaded,
    LoadFailed,
    Loading,
    Message,
    NoFreeSlotError,
    Ping,
    Pong,
    Probe,
    Pulse,
    Refused,
    Shutdown,
    WorkerEvent,
)

TOKEN_VARIABLE = "LAYA_WORKER_TOKEN"  # noqa: S105  the name of a variable
_TORCH_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}
"""Nothing is fetched or reported from a worker, and no progress bar is printed."""
_STATS_INTERVAL_S = 0.25
_LOADING_INTERVAL_S = 0.05
_RECV_BYTES = 256 * 1024


class Link:
    """The worker's end of the socket. ``send`` may be called from both threads."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._send_lock = threading.Lock()
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self.step_began_s: float | None = None
        """When the engine began what it is doing (monotonic); None while it waits."""
        self.serving = False
        """True once the main thread reads commands between steps; before that the reader answers."""
        threading.Thread(target=self._read, name="worker-reader", daemon=True).start()

    def send(self, messages: Iterable[Message]) -> None:
        """Write all of them in one piece. A parent that is gone ends the process."""
        data = frames.encode(messages)
        if data:
            try:
                with self._send_lock:
                    self._sock.sendall(data)
            except OSError:
                os._exit(0)

    def next_command(self) -> Command:
        """Block until a command comes."""
        return self._commands.get()

    def pending(self) -> list[Command]:
        """Commands that are there now."""
        out: list[Command] = []
        while not self._commands.empty():
            out.append(self._commands.get_nowait())
        return out

    def _read(self) -> None:
        reader = frames.command_reader()
        while True:
            try:
                data = self._sock.recv(_RECV_BYTES)
                commands = reader.feed(data)
            except (OSError, frames.FrameError) as error:
                print(f"worker: the connection to the node is broken: {error}", file=sys.stderr, flush=True)  # noqa: T201
                os._exit(1)
            if not data:
                os._exit(0)
            for command in commands:
                self._dispatch(command)

    def _dispatch(self, command: Command) -> None:
        if isinstance(command, Shutdown) and not self.serving:
            os._exit(0)  # nothing of a half-loaded model needs closing
        if isinstance(command, Heartbeat):
            began_s = self.step_began_s
            self.send([Pulse(time.process_time(), None if began_s is None else time.monotonic() - began_s)])
        elif isinstance(command, Ping) and not self.serving:
            self.send([Pong(command.sent_s)])
        else:
            self._commands.put(command)


def create_engine(kind: str) -> Engine:
    """A new engine of that kind; llama.cpp and PyTorch are imported only here, in the worker.

    Raises:
        EngineLoadError: PyTorch is not installed.
    """
    if kind == "fake":
        from laya_desktop.node.engines.fake import FakeEngine

        return FakeEngine()
    if kind == "transformers":
        return _create_transformers()
    from laya_desktop.node.engines.llama import LlamaEngine

    return LlamaEngine()


def _create_transformers() -> Engine:
    os.environ |= _TORCH_ENVIRONMENT  # read when the libraries are imported
    try:
        from laya_desktop.node.engines.transformers_engine import TransformersEngine
    except ImportError as error:
        message = f"{NO_TORCH} ({error})."
        raise EngineLoadError(message, GET_TORCH, "package_missing") from error
    return TransformersEngine()


def run(link: Link) -> None:
    """Serve the first command: a probe, a dry run, or a model until ``Shutdown``."""
    first = link.next_command()
    if isinstance(first, Probe | DryRun):
        link.send([_answer_once(first)])
    elif isinstance(first, EngineParams):
        try:
            engine = create_engine(first.engine)
            loaded = _load(engine, first, link)
        except EngineLoadError as error:
            link.send([LoadFailed(error.message, error.hint, error.code)])
            return
        link.serving = True
        link.send([loaded])
        serve(engine, link)
        engine.close()


def _answer_once(command: Probe | DryRun) -> WorkerEvent:
    from laya_desktop.node.engines import llama_dry_run

    try:
        return llama_dry_run.probe() if isinstance(command, Probe) else llama_dry_run.dry_run(command.params)
    except EngineLoadError as error:
        return LoadFailed(error.message, error.hint, error.code)


def _load(engine: Engine, params: EngineParams, link: Link) -> Loaded:
    sent_s = 0.0

    def progress(value: float) -> None:
        nonlocal sent_s
        now_s = time.monotonic()
        if value >= 1.0 or now_s - sent_s >= _LOADING_INTERVAL_S:
            sent_s = now_s
            link.send([Loading(value)])

    return engine.load(params, progress)


def serve(engine: Engine, link: Link) -> None:
    """The decode loop: commands, one step, events; blocks on the socket while every slot is free."""
    stats_due_s = 0.0
    was_busy = False
    while True:
        commands = link.pending() if engine.busy else [link.next_command(), *link.pending()]
        link.step_began_s = time.monotonic()
        events: list[Message] = []
        for command in commands:
            if isinstance(command, Shutdown):
                return
            events += _apply(engine, command)
        if engine.busy:
            events += engine.step()
        now_s = time.monotonic()
        if (engine.busy and now_s >= stats_due_s) or (was_busy and not engine.busy):
            stats_due_s = now_s + _STATS_INTERVAL_S
            events.append(engine.stats())
        was_busy = engine.busy
        link.step_began_s = None
        link.send(events)


def _apply(engine: Engine, command: Command) -> list[Message]:
    if isinstance(command, Ping):
        return [Pong(command.sent_s)]
    if isinstance(command, Cancel):
        return list(engine.cancel(command.request_id))
    if isinstance(command, Generate):
        try:
            return list(engine.submit(command))
        except NoFreeSlotError:
            text = "Too few slots are free."
            return [Refused(command.request_id, text, "Send it again.", code="no_free_slot", status=503)]
    return []


def _connect(args: argparse.Namespace) -> socket.socket:
    if args.fd is not None:
        os.set_inheritable(args.fd, False)
        return socket.socket(fileno=args.fd)
    sock = socket.create_connection(("127.0.0.1", args.port), timeout=10)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(os.environ.pop(TOKEN_VARIABLE).encode())
    return sock


def main(argv: list[str] | None = None) -> int:
    """Entry point of the worker; ``argv`` without the program's name."""
    parser = argparse.ArgumentParser(prog="laya-worker")
    parser.add_argument("--parent", type=int, required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--fd", type=int)
    where.add_argument("--port", type=int)
    args = parser.parse_args(argv)
    worker_os.set_up(args.parent)
    run(Link(_connect(args)))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
