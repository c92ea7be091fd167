"""Waiting for conditions in tests that watch other threads or processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Return once the condition holds; fail the test when it does not in time."""
    pause = threading.Event()
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"still not true after {timeout_s:g} s"
        pause.wait(0.01)
