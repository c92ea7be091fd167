"""What keeps one worker below its share of RAM: the system's strongest means that we may use. Node thread.

Linux: a control group of its own where one is delegated to us, else the ``RLIMIT_DATA`` that the worker sets itself
(``worker_os``). Windows: a job object. macOS: our own watching. A worker on a GPU has no ceiling in RAM: its share is
of the GPU's memory, which no system limits. Nothing here raises: a ceiling that cannot be had must not keep a model
from being loaded.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Protocol

from laya_desktop.node.engines.ceiling_cgroup import NoSubtree, Subtree

log = logging.getLogger(__name__)

ReadBytes = Callable[[int], int | None]
"""Bytes that a process holds; None: it is gone."""


class SystemCeiling(Protocol):
    """One worker's ceiling, by one means."""

    @property
    def kind(self) -> str:
        """``cgroup``, ``rlimit``, ``job object`` or ``watched``."""
        ...

    @property
    def note(self) -> str:
        """Why it is no stronger one; empty where it is the strongest."""
        ...

    @property
    def limit_bytes(self) -> int | None:
        """What is in force; None: no limit."""
        ...

    def set_limit(self, limit_bytes: int | None) -> None:
        """Another limit; None: none. May raise OSError."""
        ...

    def exceeded(self) -> str | None:
        """In words, where it is ours to end the worker; asked four times a second."""
        ...

    def close(self) -> None:
        """The worker is gone. Idempotent."""
        ...


class WatchedCeiling:
    """The node looks at what the worker holds and ends it: the weakest, since memory may fill between two looks."""

    kind = "watched"

    def __init__(self, pid: int, limit_bytes: int | None, read: ReadBytes, note: str) -> None:
        self.note = note
        self.limit_bytes = limit_bytes
        self._pid = pid
        self._read = read

    def set_limit(self, limit_bytes: int | None) -> None:
        """From the next look on."""
        self.limit_bytes = limit_bytes

    def exceeded(self) -> str | None:
        """Once it holds more than the limit."""
        held = None if self.limit_bytes is None else self._read(self._pid)
        if held is None or self.limit_bytes is None or held <= self.limit_bytes:
            return None
        return f"ran out of memory: it held {held / 1e9:.1f} GB and may hold {self.limit_bytes / 1e9:.1f} GB"

    def close(self) -> None:
        """Nothing is held."""


class RlimitCeiling:
    """The limit that the worker sets itself once it knows that no GPU takes part; here it is only read."""

    kind = "rlimit"

    def __init__(self, pid: int, note: str) -> None:
        self.note = note
        self._pid = pid

    @property
    def limit_bytes(self) -> int | None:
        """As the kernel has it, which is a little more than was wanted (``worker_os``)."""
        return _rlimit_data(self._pid)

    def set_limit(self, limit_bytes: int | None) -> None:
        """The worker's matter."""

    def exceeded(self) -> str | None:
        """Never: the kernel refuses."""
        return None

    def close(self) -> None:
        """Nothing is held."""


Impose = Callable[[int, int | None], SystemCeiling]
_subtree = Subtree()
_told: set[str] = set()


class Ceiling:
    """One worker's ceiling, from its start to its end. No method raises."""

    def __init__(self, pid: int, limit_bytes: int | None, device: str, impose: Impose | None = None) -> None:
        """Take what there is.

        Args:
            pid: of a worker that has just started.
            limit_bytes: what it may hold of RAM; None: no limit.
            device: as the configuration names it. Only ``cpu`` is certain before the load.
            impose: the system's means; tests give their own.
        """
        self._wanted = limit_bytes
        self._system: SystemCeiling | None = None
        try:
            self._system = (impose or _by_system)(pid, limit_bytes if device == "cpu" else None)
        except Exception as error:  # the boundary: the model is loaded all the same
            _tell(f"A worker has no ceiling of the system's: {error}")

    @property
    def in_force(self) -> tuple[str, int, str] | None:
        """Kind, bytes, and why it is no stronger one; None: there is none."""
        limit_bytes = self._system.limit_bytes if self._system is not None else None
        return (
            None if self._system is None or limit_bytes is None else (self._system.kind, limit_bytes, self._system.note)
        )

    def loaded(self, *, on_gpu: bool) -> None:
        """Now it is known whether a GPU takes part."""
        if self._system is not None:
            try:
                self._system.set_limit(None if on_gpu else self._wanted)
            except OSError as error:
                _tell(f"A worker's ceiling could not be set: {error}")

    def exceeded(self) -> str | None:
        """Why the node must end the worker, where that is its part."""
        return self._system.exceeded() if self._system is not None else None

    def close(self) -> None:
        """The worker is gone. Idempotent."""
        if self._system is not None:
            self._system.close()
            self._system = None


def _by_system(pid: int, limit_bytes: int | None) -> SystemCeiling:
    if sys.platform == "win32":
        from laya_desktop.node.engines.ceiling_windows import JobCeiling

        return JobCeiling(pid, limit_bytes)
    if sys.platform == "darwin":
        from laya_desktop.node.engines.ceiling_macos import Footprints

        return WatchedCeiling(pid, limit_bytes, Footprints().read, "macOS lets no program limit another's memory")
    try:
        return _subtree.impose(pid, limit_bytes)
    except NoSubtree as missing:
        _tell(f"Workers get no control group of their own: {missing}; RLIMIT_DATA is their ceiling")
        return RlimitCeiling(pid, f"no control group of its own: {missing}")


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        log.info("%s", text)


def _rlimit_data(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    import resource

    try:
        soft, _ = resource.prlimit(pid, resource.RLIMIT_DATA)
    except OSError:
        return None
    return None if soft == resource.RLIM_INFINITY else soft
