"""How soon the node's thread runs once a request has arrived. No Qt.

The window draws in bursts of a few milliseconds, and on a machine with few cores the node's thread waits for their end.
Linux 6.12 and later let a thread ask for short slices of processor time (EEVDF, ``sched_setattr(2)``): it gets no more
time than before, but runs sooner after it wakes. Elsewhere nothing is asked.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct
import sys

log = logging.getLogger(__name__)

SLICE_NS = 100_000
"""The shortest that the kernel takes."""
_LAYOUT = "=IIQiIQQQ"
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_SCHED_OTHER, _RESET_ON_FORK = 0, 1


def ask_for_short_slices() -> bool:
    """Ask for them for the calling thread; False where the system does not know them."""
    number = _SCHED_SETATTR.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)  # the call sets it too, so it is given as it is
    # size, policy, flags (threads and workers start with the usual slice), nice, priority, runtime, deadline, period
    attributes = struct.pack(_LAYOUT, 48, _SCHED_OTHER, _RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(number, 0, attributes, 0) != 0:
        log.debug("The kernel gives no short slices: %s", os.strerror(ctypes.get_errno()))
        return False
    return True


def slice_ns() -> int | None:
    """The slice that the kernel says the calling thread has; None where it says nothing (Linux before 6.12)."""
    number = _SCHED_SETATTR.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        return None
    buffer = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None, use_errno=True).syscall(number + 1, 0, buffer, 48, 0) != 0:  # sched_getattr
        return None
    return int(struct.unpack(_LAYOUT, buffer.raw)[5]) or None
