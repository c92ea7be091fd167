"""What the operating system must know about a worker: lowest priority, die with the parent, first to be killed.

Runs in the worker, at its very start, before any thread. Every measure is best effort except dying with the parent,
which on every system also follows from the end of the socket (see ``worker_main``).
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_NICE = 19
"""Measured: beside a full CPU inference load, routing p99 fell from 8.1 to 2 ms and the token rate did not change."""
_UNTOUCHED_BYTES = 128 * 2**20
"""Reserved by an interpreter with llama.cpp and never touched; measured 55 MB resident of 109 MB counted."""
_OOM_SCORE_ADJ = 500
"""When memory runs out the kernel takes a worker, not the window or the user's other programs."""


def set_up(parent_pid: int) -> None:
    """Prepare this process; exits at once where the parent is already gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    faulthandler.enable()  # a crash in native code leaves the Python line in the log tail
    _die_with(parent_pid)
    if sys.platform != "win32":  # Windows: the parent starts us in the idle class
        with contextlib.suppress(OSError):
            os.nice(_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(f"{_OOM_SCORE_ADJ}\n", encoding="ascii")


def limit_memory(limit_bytes: int | None) -> None:
    """Have the kernel refuse this process more than that, so that it fails alone; before a model is loaded.

    ``RLIMIT_DATA``, not ``RLIMIT_AS``: it counts private writable memory (KV cache, buffers, repacked weights) and not
    the mapped weight file, whose pages the kernel may drop at any time. It counts address space, so what is reserved
    and never touched (thread stacks, allocator arenas) is allowed for. Measured with SmolLM2: an allocation beyond it
    fails at once and llama.cpp reports it.
    """
    if limit_bytes is None or sys.platform == "win32":
        return
    import resource

    wanted = limit_bytes + _UNTOUCHED_BYTES
    with contextlib.suppress(OSError, ValueError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def return_memory() -> None:
    """Give freed memory back to the system (glibc keeps it): reading a large vocabulary leaves some ten MiB behind."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _die_with(parent_pid: int) -> None:
    """Linux: SIGKILL when the parent's starting thread ends.

    The kernel follows the THREAD that forked, not the process: the parent starts workers on the node's thread, which
    lives as long as the node. A parent that died before this call is seen by its pid.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(0)
