"""A whole node as the application starts it, on a free port, with its folders under the test's own."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from laya_desktop import app
from laya_desktop.config.store import load_file
from laya_desktop.node.parts import Overrides
from laya_desktop.node.telemetry_base import MachineSensors
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import NodeSnapshot
from tests.helpers.waiting import wait_for


class Running:
    """A session with its listener open."""

    def __init__(self, config: Path, sensors: MachineSensors | None = None) -> None:
        self.file = config
        self.session = app.open_session(load_file(config), Overrides(), console=False, sensors=sensors)
        self.service = self.session.service
        self.events: list[Event] = []
        self.service.start_node().result(10)
        self.url = app.address(self.session)

    @property
    def netloc(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def snapshot(self) -> NodeSnapshot:
        return self.service.snapshot

    def until(self, condition: Callable[[NodeSnapshot], bool], timeout_s: float = 15.0) -> NodeSnapshot:
        """Wait until a snapshot satisfies the condition."""
        wait_for(lambda: condition(self.service.snapshot), timeout_s)
        return self.service.snapshot

    def told(self, kind: type[Event], words: str = "") -> list[Event]:
        """Events of that kind so far whose text has the words."""
        self.events += self.service.drain_events()
        return [e for e in self.events if isinstance(e, kind) and words in str(e)]

    def wait_told(self, kind: type[Event], words: str = "") -> Event:
        """The first such event, once there is one."""
        wait_for(lambda: bool(self.told(kind, words)))
        return self.told(kind, words)[0]

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request on a connection of its own: status, body, headers in lower case."""
        connection = http.client.HTTPConnection(self.netloc, timeout=30)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"} | (headers or {}))
            response = connection.getresponse()
            return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}
        finally:
            connection.close()


@contextmanager
def running(file: Path, text: str | None = None, sensors: MachineSensors | None = None) -> Iterator[Running]:
    """A session on the file, written first where a text is given. ``LAYA_HOME`` is the caller's matter."""
    if text is not None:
        file.write_text(dedent(text).lstrip())
    node = Running(file, sensors)
    try:
        yield node
    finally:
        node.session.close()
