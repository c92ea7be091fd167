"""A whole node (listener, worker processes, telemetry) on fake models, with clients that need no library."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

from laya_desktop import app
from laya_desktop.config.store import load_file
from laya_desktop.node.parts import Overrides
from laya_desktop.state.snapshot import ModelSnapshot, NodeSnapshot
from tests.helpers.waiting import wait_for


class Answer:
    """One request on a thread of its own."""

    def __init__(self, netloc: str, body: dict[str, Any], path: str, headers: dict[str, str]) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.text = ""
        self.chunks = 0
        self.began = threading.Event()
        self._connection = http.client.HTTPConnection(netloc, timeout=60)
        self._stream = bool(body.get("stream"))
        self._thread = threading.Thread(target=self._run, args=(body, path, headers))
        self._thread.start()

    def _run(self, body: dict[str, Any], path: str, headers: dict[str, str]) -> None:
        try:
            self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"} | headers)
            response = self._connection.getresponse()
            self.status, self.headers = response.status, {k.lower(): v for k, v in response.getheaders()}
            self.began.set()
            for line in response if self._stream and response.status == 200 else ():
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:]).get("choices") or [{"delta": {}}]
                    self.text += choices[0]["delta"].get("content") or ""
                    self.chunks += 1
            if not self._stream or response.status != 200:
                self.text = response.read().decode()
        except (OSError, http.client.HTTPException, AttributeError):
            pass  # the test hung up
        finally:
            self.began.set()
            self._connection.close()

    def hang_up(self) -> None:
        """Leave in the middle."""
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(10)

    def done(self, timeout_s: float = 30.0) -> Answer:
        """Wait for the end."""
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "no answer in time"
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class NodeSession:
    """A node with its listener open."""

    def __init__(self, folder: Path, config: str) -> None:
        self.path = folder / "laya.yaml"
        self.path.write_text(dedent(config))
        self.session = app.open_session(load_file(self.path), Overrides(), console=False)
        self.service = self.session.service
        self.service.start_node().result(10)
        self.netloc = app.address(self.session).removeprefix("http://")

    def ask(self, model: str, *, path: str = "/v1/chat/completions", headers: dict[str, str] | None = None,
            **fields: Any) -> Answer:  # fmt: skip
        """Send a chat and return at once."""
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "temperature": 0, **fields}
        return Answer(self.netloc, body, path, headers or {})

    @property
    def snapshot(self) -> NodeSnapshot:
        return self.service.snapshot

    def model(self, name: str) -> ModelSnapshot:
        found = self.snapshot.model(name)
        assert found is not None
        return found

    def until(self, condition: Callable[[NodeSnapshot], bool], timeout_s: float = 20.0) -> NodeSnapshot:
        """Wait for a snapshot that satisfies the condition and return it."""
        found: list[NodeSnapshot] = []

        def look() -> bool:
            snapshot = self.service.snapshot
            if condition(snapshot):
                found.append(snapshot)
            return bool(found)

        wait_for(look, timeout_s)
        return found[0]

    def close(self) -> None:
        self.session.close()
