"""macOS: what a worker holds, from the kernel's own account of it (``proc_pid_rusage``). Node thread.

macOS lets no ordinary program limit another's memory: its ``RLIMIT_DATA`` does not count mapped memory, and jetsam
limits are for the system. So the node looks at the worker's footprint and ends it itself (``ceiling.WatchedCeiling``).
The footprint counts private and compressed memory, and not the pages of the mapped weights.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_FLAVOUR = 0


class RusageInfo(ctypes.Structure):
    """``struct rusage_info_v0``."""

    _fields_ = (
        ("ri_uuid", ctypes.c_uint8 * 16),
        ("ri_user_time", ctypes.c_uint64),
        ("ri_system_time", ctypes.c_uint64),
        ("ri_pkg_idle_wkups", ctypes.c_uint64),
        ("ri_interrupt_wkups", ctypes.c_uint64),
        ("ri_pageins", ctypes.c_uint64),
        ("ri_wired_size", ctypes.c_uint64),
        ("ri_resident_size", ctypes.c_uint64),
        ("ri_phys_footprint", ctypes.c_uint64),
        ("ri_proc_start_abstime", ctypes.c_uint64),
        ("ri_proc_exit_abstime", ctypes.c_uint64),
    )


class Footprints:
    """Reads the footprint of processes."""

    def __init__(self, libproc: Any = None) -> None:
        """``libproc``: the system's library; tests give their own. Raises OSError elsewhere than on macOS."""
        self._libproc = libproc or _load()

    def read(self, pid: int) -> int | None:
        """Bytes; None once the process is gone."""
        info = RusageInfo()
        if self._libproc.proc_pid_rusage(pid, _FLAVOUR, ctypes.byref(info)) != 0:
            return None
        return int(info.ri_phys_footprint)


def _load() -> Any:
    if sys.platform != "darwin":
        raise OSError("this is not macOS")
    libproc = ctypes.CDLL("/usr/lib/libproc.dylib")
    libproc.proc_pid_rusage.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    return libproc
