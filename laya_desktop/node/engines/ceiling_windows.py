"""Windows: a job object for each worker, which limits what it may commit and ends it with us. Node thread.

Commit counts private memory and not the mapped weights, as ``RLIMIT_DATA`` does on Linux: an allocation beyond it
fails in the worker. The job's only handle is ours, so that Windows ends the worker when this process ends in any way.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_LIMIT_PROCESS_MEMORY, _DIE_ON_EXCEPTION, _KILL_ON_CLOSE = 0x100, 0x400, 0x2000
_EXTENDED_LIMITS = 9
_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class JobCeiling:
    """One worker's job."""

    kind = "job object"
    note = ""

    def __init__(self, pid: int, limit_bytes: int | None, kernel32: Any = None) -> None:
        """Put a worker that has just started into a job.

        Args:
            pid: of the worker.
            limit_bytes: None: it only ends with us.
            kernel32: the system's library; tests give their own.

        Raises:
            OSError: Windows refuses.
        """
        self._kernel32 = kernel32 or _load()
        self.limit_bytes: int | None = None
        self._job: int | None = self._checked("CreateJobObjectW", self._kernel32.CreateJobObjectW(None, None))
        try:
            self.set_limit(limit_bytes)
            self._assign(pid)
        except BaseException:
            self.close()
            raise

    def set_limit(self, limit_bytes: int | None) -> None:
        """In force at once; what is committed already stays."""
        limits = ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_CLOSE | _DIE_ON_EXCEPTION
        if limit_bytes is not None:
            limits.BasicLimitInformation.LimitFlags |= _LIMIT_PROCESS_MEMORY
            limits.ProcessMemoryLimit = limit_bytes
        size = ctypes.sizeof(limits)
        done = self._kernel32.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), size)
        self._checked("SetInformationJobObject", done)
        self.limit_bytes = limit_bytes

    def exceeded(self) -> str | None:
        """Never: Windows sees to it."""
        return None

    def close(self) -> None:
        """Let go of the job, which ends what is still in it. Idempotent."""
        if self._job is not None:
            self._kernel32.CloseHandle(self._job)
            self._job = None

    def _assign(self, pid: int) -> None:
        process = self._checked("OpenProcess", self._kernel32.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid))
        try:
            done = self._kernel32.AssignProcessToJobObject(self._job, process)
            self._checked("AssignProcessToJobObject", done)
        finally:
            self._kernel32.CloseHandle(process)

    def _checked(self, call: str, result: int | None) -> int:
        if not result:
            raise OSError(f"{call} failed with error {self._kernel32.GetLastError()}")
        return result


def _load() -> Any:
    if sys.platform != "win32":
        raise OSError("this is not Windows")
    kernel32 = ctypes.WinDLL("kernel32")
    handle = ctypes.c_void_p
    kernel32.CreateJobObjectW.restype = kernel32.OpenProcess.restype = handle
    kernel32.CreateJobObjectW.argtypes = (handle, ctypes.c_wchar_p)
    kernel32.OpenProcess.argtypes = (ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32)
    kernel32.SetInformationJobObject.argtypes = (handle, ctypes.c_int, handle, ctypes.c_uint32)
    kernel32.AssignProcessToJobObject.argtypes = (handle, handle)
    kernel32.CloseHandle.argtypes = (handle,)
    return kernel32
