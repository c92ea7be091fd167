"""The kernel's counter of kills for want of memory."""

from __future__ import annotations

from pathlib import Path

from laya_desktop.node.engines import oom


def test_the_counter_and_its_absence(tmp_path: Path) -> None:
    file = tmp_path / "vmstat"
    assert oom.kills(file) is None
    file.write_text("pgfault 7\noom_kill 3\n")
    assert oom.kills(file) == 3
    file.write_text("pgfault 7\n")
    assert oom.kills(file) is None
