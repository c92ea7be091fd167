"""How soon the node's thread runs once a request has arrived. No Qt.

The window draws in bursts of a few milliseconds, and on a machine with few cores the node's thread waits for their end.
The thread needs little time, but at once, so it asks the system for what it gives to those that play sound:

- Linux: priority −10, directly where that is allowed (``RLIMIT_NICE``, or root), else through RealtimeKit, which
  desktops have; and short slices of time (EEVDF, ``sched_setattr(2)``, Linux 6.12 and later).
- Windows: ``THREAD_PRIORITY_ABOVE_NORMAL``. macOS: quality of service "user interactive".

Threads and workers that it starts begin with the usual priority and slices. What is not given is not missed: the node
runs all the same, later by a few milliseconds at most while the window draws.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct
import sys
import threading

log = logging.getLogger(__name__)

NICE = -10
"""Further than this needs a real-time policy, which a busy node must not have."""
SLICE_NS = 100_000
"""The shortest that the kernel takes."""
_LAYOUT = "=IIQiIQQQ"
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_SCHED_OTHER, _RESET_ON_FORK = 0, 1
_RTKIT_LIMIT_S = 5.0
_ABOVE_NORMAL = 1
_QOS_USER_INTERACTIVE = 0x21


def ask_for_promptness() -> None:
    """Ask for the calling thread. RealtimeKit may have to be started, so it is asked in the background."""
    if sys.platform.startswith("linux"):
        thread_id = threading.get_native_id()
        if not set_scheduling(thread_id, NICE):
            set_scheduling(thread_id, None)
            threading.Thread(target=_ask_rtkit, args=(thread_id,), name="laya-rtkit", daemon=True).start()
    elif sys.platform == "win32":
        kernel32 = ctypes.windll.kernel32
        kernel32.SetThreadPriority(kernel32.GetCurrentThread(), _ABOVE_NORMAL)
    elif sys.platform == "darwin":
        ctypes.CDLL(None).pthread_set_qos_class_self_np(_QOS_USER_INTERACTIVE, 0)


def set_scheduling(thread_id: int, nice: int | None) -> bool:
    """Set a thread's priority (None: as it is) and short slices; False where the kernel does not allow it. Linux."""
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return False
    if nice is None:
        nice = os.getpriority(os.PRIO_PROCESS, thread_id)
    # size, policy, flags, nice, priority, runtime (here the slice), deadline, period
    attributes = struct.pack(_LAYOUT, 48, _SCHED_OTHER, _RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(number, thread_id, attributes, 0) == 0:
        return True
    log.debug("The kernel gives priority %d or short slices not: %s", nice, os.strerror(ctypes.get_errno()))
    return False


def _ask_rtkit(thread_id: int) -> None:
    """RealtimeKit raises a thread's priority for those who may not. It sets the usual slices again on the way."""
    try:
        from jeepney import DBusAddress, MessageType, new_method_call
        from jeepney.io.blocking import open_dbus_connection

        service = DBusAddress(
            "/org/freedesktop/RealtimeKit1", "org.freedesktop.RealtimeKit1", "org.freedesktop.RealtimeKit1"
        )
        call = new_method_call(service, "MakeThreadHighPriorityWithPID", "tti", (os.getpid(), thread_id, NICE))
        with open_dbus_connection(bus="SYSTEM") as connection:
            reply = connection.send_and_get_reply(call, timeout=_RTKIT_LIMIT_S)
        if reply.header.message_type is MessageType.error:
            log.debug("RealtimeKit refuses a higher priority: %s", reply.body)
            return
    except Exception as error:  # no bus, no service, no answer: whatever it is, the node does without
        log.debug("No RealtimeKit: %s", error)
        return
    set_scheduling(thread_id, None)


def slice_ns() -> int | None:
    """The slice that the kernel says the calling thread has; None where it says nothing (Linux before 6.12)."""
    number = _SCHED_SETATTR.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        return None
    buffer = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None, use_errno=True).syscall(number + 1, 0, buffer, 48, 0) != 0:  # sched_getattr
        return None
    return int(struct.unpack(_LAYOUT, buffer.raw)[5]) or None
