"""Linux: a control group (version 2) for each worker, in the part of the tree that is delegated to us. Node thread.

Delegated means that the service manager says so (``Delegate=`` in our systemd unit), or that we are at the root of a
container's own tree. A group whose processes sit in it cannot have limited children, so this process and its children
move into a leaf first, which changes no limit; where others sit there too, the kernel refuses and they stay as they
are. Nothing is ever done outside our own group. Where any of it is refused, the reason is told once and another
ceiling serves.

``memory.max`` counts all that the worker holds, mapped weights included, whose pages the kernel drops before it kills;
it kills within the group alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath

import psutil

_MOUNT = "sys/fs/cgroup"
_CONTROLLER, _LIMIT = "memory", "memory.max"
_LEAF = "laya-node"
_DELEGATED = ("user.delegate", "trusted.delegate")

GetAttribute = Callable[[Path, str], bytes]


class NoSubtree(Exception):  # noqa: N818 - a state of the machine, not a fault of the program
    """There is no subtree of our own, with the reason as words that follow a colon."""


class CgroupCeiling:
    """One worker's group."""

    kind = "cgroup"
    note = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def limit_bytes(self) -> int | None:
        """What the kernel has taken down (rounded to pages)."""
        try:
            return int((self._folder / _LIMIT).read_bytes())
        except (OSError, ValueError):  # "max", or gone
            return None

    def set_limit(self, limit_bytes: int | None) -> None:
        """In force at once; what is above it is reclaimed, or the worker is killed."""
        _write(self._folder / _LIMIT, "max" if limit_bytes is None else str(limit_bytes))

    def exceeded(self) -> str | None:
        """Never: the kernel sees to it."""
        return None

    def close(self) -> None:
        """Remove the group once its process is gone; one that is still on its way out is left to the next removal."""
        _remove(self._folder)


class Subtree:
    """Our own group and the workers' groups in it. Opened at the first worker."""

    def __init__(
        self,
        root: Path = Path("/"),
        get_attribute: GetAttribute | None = None,
        ours: Callable[[], set[int]] | None = None,
    ) -> None:
        self._root = root
        self._ours = ours or _ours
        self._get_attribute = get_attribute or _get_attribute
        self._folder: Path | None = None
        self._reason: str | None = None
        self._numbers = count(1)

    def impose(self, pid: int, limit_bytes: int | None) -> CgroupCeiling:
        """Put a worker that has just started into a group with that limit.

        Raises:
            NoSubtree: why it cannot be.
        """
        folder = self._open()
        for old in folder.glob(f"laya-worker-{os.getpid()}-*"):
            _remove(old)
        group = folder / f"laya-worker-{os.getpid()}-{next(self._numbers)}"
        try:
            group.mkdir()
            ceiling = CgroupCeiling(group)
            ceiling.set_limit(limit_bytes)
            with suppress(OSError):
                _write(group / "memory.oom.group", "1")
            _write(group / "cgroup.procs", str(pid))
        except OSError as error:
            _remove(group)
            raise NoSubtree(f"{group.name} could not be made ({error.strerror or error})") from error
        return ceiling

    def _open(self) -> Path:
        if self._reason is not None:
            raise NoSubtree(self._reason)
        if self._folder is None:
            try:
                self._folder = self._prepare()
            except NoSubtree as missing:
                self._reason = str(missing)
                raise
            except OSError as error:
                self._reason = f"this process's control group cannot be divided ({error.strerror or error})"
                raise NoSubtree(self._reason) from error
        return self._folder

    def _prepare(self) -> Path:
        folder = self._own_group()
        if _CONTROLLER not in _read(folder / "cgroup.controllers").split():
            raise NoSubtree(f"the {_CONTROLLER} controller is not available to this process's control group")
        leaf = folder / _LEAF
        leaf.mkdir(exist_ok=True)
        ours = self._ours()
        for pid in _read(folder / "cgroup.procs").split():
            if int(pid) in ours:
                with suppress(ProcessLookupError):
                    _write(leaf / "cgroup.procs", pid)
        _write(folder / "cgroup.subtree_control", f"+{_CONTROLLER}")
        return folder

    def _own_group(self) -> Path:
        lines = _read(self._root / "proc/self/cgroup").splitlines()
        path = next((line[3:] for line in lines if line.startswith("0::")), None)
        if path is None or not (self._root / _MOUNT / "cgroup.controllers").exists():
            raise NoSubtree("this system has no control groups of version 2")
        parts = [p for p in PurePosixPath(path).parts if p != "/"]
        if parts[-1:] == [_LEAF]:  # another node of this process has moved here
            parts.pop()
        folder = (self._root / _MOUNT).joinpath(*parts)
        container = not parts and (folder / _LIMIT).exists()  # the machine's own root has no limit
        if not container and not self._is_delegated(folder):
            raise NoSubtree("this process's control group is not delegated to it")
        return folder

    def _is_delegated(self, folder: Path) -> bool:
        for name in _DELEGATED:
            with suppress(OSError):
                if self._get_attribute(folder, name) == b"1":
                    return True
        return False


def _ours() -> set[int]:
    """This process and its children's children."""
    return {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}


def _get_attribute(folder: Path, name: str) -> bytes:
    if not hasattr(os, "getxattr"):
        raise OSError("no extended attributes")
    return bytes(os.getxattr(folder, name))


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")
