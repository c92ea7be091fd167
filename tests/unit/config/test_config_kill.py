"""Saves that are killed at any moment: the file is always whole, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laya_desktop.config.store import load_file

SAVER = """
import sys
from laya_desktop.config.store import load_file
document = load_file(sys.argv[1])
model = document.config.models[0]
print("ready", flush=True)
n = model.batch_size
while True:
    n = n % 256 + 1
    document = document.save(document.config.with_model(model.model_copy(update={"batch_size": n}), model.name))
"""
TEXT = "# kept\nmodels:\n  - name: m    # kept too\n    path: m.gguf\n    batch_size: 1\n" + "# filler\n" * 2000


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_thirty_killed_savers_leave_a_whole_file_each_time(tmp_path: Path) -> None:
    path = tmp_path / "laya.yaml"
    path.write_text(TEXT)
    chance = random.Random(7)
    sizes: set[int] = set()

    for _ in range(30):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE)
        assert saver.stdout is not None
        assert saver.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):  # it saves until it is killed, at a moment left to chance
            saver.wait(chance.uniform(0, 0.05))
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()

        document = load_file(path)
        size = document.config.models[0].batch_size
        sizes.add(size)
        assert document.text == TEXT.replace("batch_size: 1", f"batch_size: {size}")

    assert len(sizes) > 1
    document = load_file(path)
    document.save(document.config.without_model("m"))
    assert [p.name for p in tmp_path.rglob("*") if p.name.endswith(".laya-save")] == []
    backups = list((tmp_path / "backups").iterdir())
    assert len(backups) == 5
    assert all(load_file(p).config.models[0].name == "m" for p in backups)
