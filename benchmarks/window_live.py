"""The window on Overview while the demo model generates: main-thread pauses, and what the plots cost.

Opens the real window (offscreen unless QT_QPA_PLATFORM says otherwise) with the node inside, loads the demo model on
the CPU and streams chats, while a 5 ms timer in the main thread records how late it fires. The share of a core that
the main thread takes is measured twice in the same run, on Overview (drawing) and on Requests (not drawing): the
difference is the plots.

    python benchmarks/window_live.py [--seconds 15] [--shots FOLDER] [--json]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("LAYA_HOME", tempfile.mkdtemp(prefix="laya-bench-"))

from PySide6.QtCore import QEventLoop, QTimer

from laya_desktop import app, paths
from laya_desktop.config.store import load_file
from laya_desktop.demo import MODEL
from laya_desktop.gui import theme, window
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.node.parts import Overrides

STEP_MS = 5


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
    parser.add_argument("--shots", type=Path, help="save pictures of every page here")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    started_s = time.perf_counter()
    qt = window.make_application()
    theme.apply_theme(qt, theme.Scheme.LIGHT)
    session = app.open_session(load_file(paths.configs_dir() / "demo.yaml"), Overrides(port=0), console=False)
    session.service.start_node()
    bridge = NodeBridge(session.service)
    main_window = window.build(bridge, session.log.ring)
    bridge.start()
    main_window.resize(1280, 800)
    main_window.show()
    pauses, stop = Pauses(), threading.Event()
    pauses.run(0.2)
    result: dict[str, object] = {"interactive_after_s": round(time.perf_counter() - started_s, 2)}
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


def _load(session: app.Session, pauses: Pauses) -> dict[str, float]:
    loading = session.service.load_model(MODEL, "cpu")
    measured = pauses.run(1)
    while not loading.done():
        pauses.run(0.2)
    loading.result()
    return measured


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
