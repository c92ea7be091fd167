"""Take the user guide's pictures from the real window, with the real demo model.

    QT_QPA_PLATFORM=offscreen .venv/bin/python docs/screenshots.py [--language zh_CN] [--folder docs/pictures]

Requests are sent to the node while the pictures are taken, so that the plots and tables show something. Nothing of the
user's own folders is read or shown.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
_HOME = Path(tempfile.mkdtemp(prefix="laya-guide-")) / "laya"
os.environ["LAYA_HOME"] = str(_HOME)

from PySide6.QtCore import QEventLoop, QTimer

from laya_desktop import app, paths
from laya_desktop.config.store import load_file
from laya_desktop.demo import MODEL
from laya_desktop.gui import theme, window
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import set_language
from laya_desktop.gui.views.settings_page import SettingsPage
from laya_desktop.node.parts import Overrides

PORT = 5292
SIZE = (1280, 800)
FOLDERS_Y = 600
PICTURES = (
    "overview-light", "models-light", "routes-light", "requests-light", "benchmark-light", "settings-dark",
)  # fmt: skip
"""Those that the guide shows; ``--all`` takes every page in both schemes."""
QUESTIONS = ("What is a router?", "Name three birds.", "Why is the sky blue?", "Tell me a story about a clock.")


def spin(seconds: float) -> None:
    """Let Qt work for so long."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def ask(netloc: str, stop: threading.Event) -> None:
    """Chats, one after another, until told to stop."""
    number = 0
    while not stop.is_set():
        body = {"messages": [{"role": "user", "content": QUESTIONS[number % len(QUESTIONS)]}], "max_tokens": 90}
        connection = http.client.HTTPConnection(netloc, timeout=60)
        connection.request("POST", "/v1/model/chat/completions", json.dumps({**body, "stream": True}))
        answer = connection.getresponse()
        while not stop.is_set() and answer.readline():
            pass
        connection.close()
        number += 1
        stop.wait(0.3)


def main() -> int:
    """Open the window, fill it with work, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", default="en")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "pictures")
    parser.add_argument("--seconds", type=float, default=30, help="work before the first picture")
    parser.add_argument("--all", action="store_true", help="every page in both schemes")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    qt = window.make_application()
    theme.apply_theme(qt, theme.Scheme.LIGHT)
    set_language(args.language)
    config = _HOME / "laya.yaml"
    config.parent.mkdir(parents=True)
    config.write_bytes((paths.configs_dir() / "demo.yaml").read_bytes())
    session = app.open_session(load_file(config), Overrides(port=PORT), console=False)
    session.service.start_node()
    bridge = NodeBridge(session.service)
    shell = window.Shell(bridge, session.log.ring)
    bridge.start()
    shell.window.resize(*SIZE)
    shell.window.show()
    spin(1)
    session.service.load_model(MODEL).result(120)
    stop = threading.Event()
    clients = [threading.Thread(target=ask, args=(f"127.0.0.1:{PORT}", stop)) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        spin(args.seconds)
        settings = shell.window.pages["Settings"]
        assert isinstance(settings, SettingsPage)
        for scheme in (theme.Scheme.LIGHT, theme.Scheme.DARK):
            settings.schemes.button(list(theme.Scheme).index(scheme)).click()
            for page in shell.window.pages:
                name = f"{page.lower()}-{scheme.value}"
                if name not in PICTURES and not args.all:
                    continue
                shell.window.show_page(page)
                spin(1.5)
                picture = shell.window.grab()
                if page == "Settings":
                    picture = picture.copy(0, 0, SIZE[0], FOLDERS_Y)  # below are the folders of whoever runs this
                picture.save(str(args.folder / f"{name}.png"), "PNG")
    finally:
        stop.set()
        for client in clients:
            client.join()
        bridge.stop()
        shell.habits.close()
        shell.window.hide()
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
