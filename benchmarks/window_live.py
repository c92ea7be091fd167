"""The window while a lot happens: main-thread pauses, and what the plots cost.

Opens the real window (offscreen unless QT_QPA_PLATFORM says otherwise) with the node inside, loads the demo model on
the CPU and streams chats, while a 5 ms timer in the main thread records how late it fires. The time until the window
answers counts from the start of the process, imports included. The share of a core that the main thread takes is
measured twice in the same run, on Overview (drawing) and on Requests (not drawing): the difference is the plots. Then:
unloading, 10,000 log lines a second on the Logs page, 200 routes and 50 models on their pages, and, with a load
generator (see ``http_rate``), 5,000 requests a second.

    python benchmarks/window_live.py [--seconds 15] [--ratebench PATH] [--shots FOLDER] [--json]
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("LAYA_HOME", tempfile.mkdtemp(prefix="laya-bench-"))

import psutil
from PySide6.QtCore import QEventLoop, QTimer

from laya_desktop import app, paths
from laya_desktop.config.schema import RouteConfig
from laya_desktop.config.store import load_file
from laya_desktop.demo import MODEL
from laya_desktop.gui import theme, window
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.views.main_window import MainWindow
from laya_desktop.node.parts import Overrides

STEP_MS = 5
SCENE_S = 5
STARTS = 5
LOG_LINES_PER_S = 10_000
log = logging.getLogger("laya_desktop.benchmark")


class Pauses:
    """How late a 5 ms timer fires in the main thread, and how much processor time the thread takes."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []
        self._last_s = time.perf_counter()
        self._timer = QTimer()
        self._timer.timeout.connect(self._tick)

    def run(self, seconds: float) -> dict[str, float]:
        """Spin Qt's loop for so long and sum up."""
        loop = QEventLoop()
        QTimer.singleShot(int(seconds * 1000), loop.quit)
        self.late_ms.clear()
        self._last_s = time.perf_counter()
        cpu_s = time.thread_time()
        self._timer.start(STEP_MS)
        loop.exec()
        self._timer.stop()
        late = sorted(self.late_ms)
        return {
            "max_pause_ms": round(late[-1], 1),
            "p99_pause_ms": round(late[int(len(late) * 0.99)], 1),
            "pauses_above_50_ms": sum(1 for ms in late if ms > 50),
            "main_thread_percent": round((time.thread_time() - cpu_s) / seconds * 100, 2),
        }

    def _tick(self) -> None:
        now_s = time.perf_counter()
        self.late_ms.append((now_s - self._last_s) * 1000 - STEP_MS)
        self._last_s = now_s


def chat(netloc: str, stop: threading.Event) -> None:
    """Stream one chat after another until told to stop."""
    body = json.dumps(
        {"messages": [{"role": "user", "content": "Tell me a long story."}], "max_tokens": 400, "stream": True}
    )
    while not stop.is_set():
        connection = http.client.HTTPConnection(netloc, timeout=120)
        connection.request("POST", "/v1/model/chat/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        while not stop.is_set() and response.readline():
            pass
        connection.close()


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--ratebench", metavar="PATH", help="compiled open-loop load generator")
    parser.add_argument("--start-only", action="store_true", help="say when the window answers, and end")
    parser.add_argument("--shots", type=Path, help="save pictures of every page here")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    process = psutil.Process()
    qt = window.make_application()
    theme.apply_theme(qt, theme.Scheme.LIGHT)
    session = app.open_session(load_file(paths.configs_dir() / "demo.yaml"), Overrides(port=0), console=False)
    session.service.start_node()
    bridge = NodeBridge(session.service)
    shell = window.Shell(bridge, session.log.ring)
    main_window = shell.window
    bridge.start()
    main_window.resize(1280, 800)
    main_window.show()
    pauses, stop = Pauses(), threading.Event()
    _turn()
    if args.start_only:
        print("interactive", flush=True)
        bridge.stop()
        main_window.hide()
        session.close()
        return 0
    result: dict[str, object] = {"interactive_after_s": sorted(_start() for _ in range(STARTS))}
    pauses.run(6)
    result["idle_process_percent"] = _idle(args.seconds)
    result["loading"] = _load(session, pauses)
    client = threading.Thread(target=chat, args=(app.address(session).removeprefix("http://"), stop))
    client.start()
    try:
        pauses.run(2)
        main_window.show_page("Overview")
        result["overview"] = pauses.run(args.seconds)
        main_window.show_page("Requests")
        pauses.run(1)
        result["requests"] = pauses.run(args.seconds)
        stop.set()
        client.join()
        result["unloading"] = _until(session.service.unload_model(MODEL), pauses)
        result["log_lines"] = _log_lines(main_window, pauses)
        if args.ratebench:
            main_window.show_page("Overview")
            result["5000_requests_per_s"] = _requests(args.ratebench, app.address(session), pauses)
        result["many"] = _many(session, main_window, pauses)
        result["rss_mb"] = round(process.memory_info().rss / 1e6)
        if args.shots:
            _shots(main_window, pauses, qt, args.shots)
    finally:
        stop.set()
        client.join()
        bridge.stop()
        main_window.hide()
        session.close()
    print(json.dumps(result, indent=None if args.json else 2))
    return 0


def _start() -> float:
    """Seconds from the start of a process until its window answers, imports included."""
    began_s = time.perf_counter()
    with subprocess.Popen([sys.executable, __file__, "--start-only"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        taken_s = time.perf_counter() - began_s
        child.communicate()
    return round(taken_s, 2)


def _turn() -> None:
    """Everything that waits in Qt's loop: the window is painted, what is asked of it next is answered."""
    loop = QEventLoop()
    QTimer.singleShot(0, loop.quit)
    loop.exec()


def _idle(seconds: float) -> float:
    """Share of a core that the process takes on Overview while nobody asks for anything; no timer of ours."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    cpu_s = time.process_time()
    loop.exec()
    return round((time.process_time() - cpu_s) / seconds * 100, 2)


def _load(session: app.Session, pauses: Pauses) -> dict[str, float]:
    return _until(session.service.load_model(MODEL, "cpu"), pauses)


def _until(done: Future[None], pauses: Pauses) -> dict[str, float]:
    measured = pauses.run(1)
    while not done.done():
        pauses.run(0.2)
    done.result()
    return measured


def _log_lines(main_window: MainWindow, pauses: Pauses) -> dict[str, float]:
    """10,000 lines a second, each of them different, while the Logs page follows."""
    main_window.show_page("Logs")
    enough = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        started_s = time.monotonic()
        while not enough.wait(0.01):
            due = int((time.monotonic() - started_s) * LOG_LINES_PER_S)
            for number in range(written, due):
                log.info("line %d of many", number)
            written = due

    thread = threading.Thread(target=write)
    thread.start()
    measured = pauses.run(SCENE_S)
    enough.set()
    thread.join()
    return measured | {"lines_per_s": round(written / SCENE_S)}


def _requests(ratebench: str, address: str, pauses: Pauses) -> dict[str, float]:
    """5,000 requests a second, on Overview."""
    command = [ratebench, address.rpartition(":")[2], "/health", "5000", "16", str(SCENE_S)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
        measured = pauses.run(SCENE_S)
        load.wait()
    return measured


def _many(session: app.Session, main_window: MainWindow, pauses: Pauses) -> dict[str, dict[str, float]]:
    """200 routes and 50 models, on every page."""
    config = session.service.snapshot.config
    models = [config.models[0].model_copy(update={"name": f"model-{i}", "aliases": ()}) for i in range(49)]
    routes = [
        RouteConfig.model_validate({"name": f"route-{i}", "match": {"prefix": f"/p/{i}"}, "target": f"model-{i % 49}"})
        for i in range(200)
    ]
    changed = {"models": (*config.models, *models), "routes": (*config.routes, *routes)}
    result = {"applying": _until(session.service.apply_config(config.model_copy(update=changed)), pauses)}
    for page in ("Routes", "Models", "Requests", "Playground", "Overview"):
        QTimer.singleShot(0, partial(main_window.show_page, page))
        result[page] = pauses.run(2)
    return result


def _shots(main_window: object, pauses: Pauses, qt: object, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in (theme.Scheme.LIGHT, theme.Scheme.DARK):
        theme.apply_theme(qt, scheme)
        for page in main_window.pages:
            main_window.show_page(page)
            pauses.run(1.2)
            main_window.grab().save(str(folder / f"{page.lower()}-{scheme.value}.png"))


if __name__ == "__main__":
    sys.exit(main())
