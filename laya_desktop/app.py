"""The composition root: the only module that builds objects across layers. Decides nothing else.

Qt is imported inside ``run_window`` alone, so everything else runs where PySide6 is not installed.
"""

from __future__ import annotations

import concurrent.futures
import gc
import logging
import os
import shutil
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from laya_desktop import logs, paths
from laya_desktop.config.paths import resolve_path
from laya_desktop.config.store import ConfigDocument, load_file
from laya_desktop.errors import LayaError
from laya_desktop.keystore import KeyStore
from laya_desktop.node.engines.worker import WorkerHandle
from laya_desktop.node.forecast import Forecaster
from laya_desktop.node.model_tools import MEASURED_FILE, ModelTools
from laya_desktop.node.node import Node
from laya_desktop.node.parts import NodeParts, Overrides
from laya_desktop.node.server.listener import Listener
from laya_desktop.node.telemetry import Telemetry
from laya_desktop.node.upstream import UpstreamPool
from laya_desktop.service.node_service import NodeService
from laya_desktop.state.events import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from laya_desktop.node.telemetry_base import MachineSensors
    from laya_desktop.state.events import Event
    from laya_desktop.state.snapshot import NodeSnapshot

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.00002
"""How soon the node's thread gets the interpreter back from the window's and the sensors'."""


@dataclass(frozen=True, slots=True)
class Session:
    """A running node and its log."""

    service: NodeService
    log: logs.LogHandle
    executor: concurrent.futures.ThreadPoolExecutor

    def close(self) -> None:
        """End the node, then the log."""
        self.service.close()
        self.executor.shutdown(wait=True, cancel_futures=True)
        self.log.close()


def open_session(
    document: ConfigDocument, overrides: Overrides, *, console: bool, sensors: MachineSensors | None = None
) -> Session:
    """Start the node's thread on a configuration. The listener stays closed.

    ``sensors`` stand in for this machine's own, in tests.

    Raises:
        LayaError: the configuration cannot be put in force.
    """
    config = document.config
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    executor = concurrent.futures.ThreadPoolExecutor(max_workers=3, thread_name_prefix="laya-pool")

    def build(emit: Callable[[Event], None], publish: Callable[[NodeSnapshot], None]) -> Node:
        parts = NodeParts(
            make_handle=WorkerHandle,
            make_listener=Listener,
            tools=ModelTools(executor, paths.state_dir() / MEASURED_FILE),
            telemetry=Telemetry(handle.directory, machine=sensors),
            forecaster=Forecaster(),
            executor=executor,
            upstreams=lambda config: UpstreamPool(config, resolve_key=keys.get),
            on_log_level=handle.set_level,
        )
        return Node(document, parts, overrides, emit, publish)

    service = NodeService(build)

    def warn_of_keys(text: str) -> None:
        log.warning("%s", text)
        service.notify(Notice("warning", text, "keys"))

    keys = KeyStore(paths.config_dir(), warn=warn_of_keys)
    handle = logs.setup(
        overrides.log_level or config.log.level,
        resolve_path(config.log.dir, document.folder) if config.log.dir else paths.log_dir(),
        keep=config.log.keep,
        max_total_bytes=config.log.max_total,
        console=console,
        daily=config.log.rotate == "daily",
        announce=lambda severity, text: service.notify(Notice(severity, text, "log")),
    )
    try:
        service.start()
    except BaseException:
        executor.shutdown(wait=False)
        handle.close()
        raise
    settle_memory()
    return Session(service, handle, executor)


def settle_memory() -> None:
    """Take everything that lives as long as the process out of the garbage collector's sight.

    A full collection would otherwise walk all of it, which held up every request for 15 to 60 ms.
    """
    gc.collect()
    gc.freeze()


def user_config() -> Path:
    """The user's own configuration; on the first start a copy of the demo."""
    path = paths.config_dir() / "laya.yaml"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.configs_dir() / "demo.yaml", path)
    return path


def run_serve(config: Path, overrides: Overrides) -> int:
    """``laya-desktop serve``: the node alone, until SIGINT or SIGTERM."""
    return _serve(load_file(config), overrides)


def run_window(config: Path | None, overrides: Overrides, *, load: str | None = None, hidden: bool = False) -> int:
    """The window with the node inside; ``load`` names a model to load at once, ``hidden`` shows the tray icon alone.

    A window that is open for the same configuration folder is raised instead, and opens ``config``.
    """
    document = load_file(config or user_config())
    if not _has_display():
        print(  # noqa: T201
            "laya-desktop: no display here (DISPLAY and WAYLAND_DISPLAY are unset), so the node runs without a window.",
            file=sys.stderr,
        )
        return _serve(document, overrides)
    from laya_desktop.gui.window import claim, run

    instance = claim(config, load)
    if instance is None:
        print("Laya Desktop is open already: its window comes to the front.")  # noqa: T201
        return 0
    session = open_session(document, overrides, console=False)
    try:
        session.service.start_node()
        if load is not None:
            session.service.load_model(load)
        return run(session.service, session.log.ring, instance, hidden=hidden, first_steps=config is None)
    finally:
        session.close()


def run_worker(argv: list[str]) -> int:
    """The worker process of a frozen build."""
    from laya_desktop.node.engines.worker_main import main

    return main(argv)


def _serve(document: ConfigDocument, overrides: Overrides) -> int:
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    session = open_session(document, overrides, console=True)
    try:
        session.service.start_node().result()
        print(f"Laya node: {address(session)}", flush=True)  # noqa: T201
        while not stop.wait(0.5):
            pass
        session.service.stop_node().result(10)
    finally:
        session.close()
    return 0


def address(session: Session) -> str:
    """The address, once the snapshot that follows the start is out."""
    waiting = threading.Event()
    for _ in range(100):
        if (url := session.service.snapshot.node.url) is not None:
            return url
        waiting.wait(0.02)
    raise LayaError("The node did not report its address.", hint="The log has the details.")


def _has_display() -> bool:
    if os.environ.get("QT_QPA_PLATFORM") or not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
