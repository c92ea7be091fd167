"""Python code under a deadline, for what a file or a caller may make endless. Pure; any thread.

A trace function on the code itself rather than a thread: a thread that runs away cannot be stopped and would keep the
interpreter busy, a traced loop ends where it is, on every system. It cannot interrupt one long call inside C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

_T = TypeVar("_T")


class DeadlineError(Exception):
    """The time is over."""


def within(limit_s: float, work: Callable[[], _T]) -> _T:
    """The result of ``work``: every line it executes looks at the clock. Raises DeadlineError."""
    deadline_s = time.monotonic() + limit_s

    def look(_frame: FrameType, _event: str, _arg: object) -> Any:
        if time.monotonic() > deadline_s:
            raise DeadlineError
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        return work()
    finally:
        sys.settrace(before)
