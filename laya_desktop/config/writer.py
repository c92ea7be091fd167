"""Puts bytes into a file so that a reader finds the old content or the new, whole, whatever happens in between.

Blocking; runs on a pool thread. A save goes: lock of the folder, a look at the file, a backup of it, a temporary file
beside it, fsync, ``os.replace``, fsync of the folder. A process killed at any point leaves at most a temporary file,
which the next save removes. It knows nothing of YAML.

Backups stand in the folder ``backups`` beside the file (it can be written whenever the file can, and people find it):
the five last contents, ``NAME.TIME.yaml``, with the file's own permission bits.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from laya_desktop.errors import LayaError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BACKUPS = "backups"
BACKUPS_KEPT = 5
_NEW_FILE_MODE = 0o600  # it may hold keys
_TEMPORARY = ".laya-save"


def replace(path: Path, content: bytes, check: Callable[[bytes | None], None]) -> os.stat_result:
    """Write ``content``; returns the new file's status.

    Args:
        path: of the file; a symbolic link is followed.
        content: what it shall hold.
        check: called with the present content (None: no file) while nobody else saves; raises to stop the save.

    Raises:
        LayaError: it cannot be written (code ``save_failed``); the file is as it was.
    """
    real = Path(os.path.realpath(path))
    try:
        with _locked(real.parent):
            present = _present(real)
            check(present)
            if present is not None and not os.access(real, os.W_OK):
                raise PermissionError(errno.EACCES, "the file is write-protected")
            if present == content:
                return real.stat()
            if present is not None:
                _back_up(real, present)
            return _swap(real, content)
    except OSError as error:
        raise _failed(path, error) from error


def _present(real: Path) -> bytes | None:
    try:
        return real.read_bytes()
    except FileNotFoundError:
        return None


def _swap(real: Path, content: bytes) -> os.stat_result:
    _clear(real.parent, real.name)
    _put(real.with_name(f".{real.name}.{os.getpid()}{_TEMPORARY}"), real, content, _status(real))
    return real.stat()


def _put(temporary: Path, target: Path, content: bytes, like: os.stat_result | None) -> None:
    """Write ``temporary`` and make it ``target`` in one step."""
    try:
        _write_synced(temporary, content, like)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _clear(folder: Path, name: str) -> None:
    """Remove what saves that were killed have left; the folder's lock says that none is running."""
    for left in folder.glob(f".{_literal(name)}.*{_TEMPORARY}"):
        left.unlink(missing_ok=True)


def _write_synced(path: Path, content: bytes, like: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, _NEW_FILE_MODE), "wb") as file:
        file.write(content)
        file.flush()
        if like is not None:
            path.chmod(stat.S_IMODE(like.st_mode))
            if hasattr(os, "geteuid") and os.geteuid() == 0:  # root must not take a user's file away
                os.chown(path, like.st_uid, like.st_gid)
                path.chmod(stat.S_IMODE(like.st_mode))
        os.fsync(file.fileno())


def _back_up(real: Path, present: bytes) -> None:
    folder = real.parent / BACKUPS
    folder.mkdir(exist_ok=True)
    _clear(folder, real.stem)
    kept = _backups(folder, real)
    if not kept or kept[-1].read_bytes() != present:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        backup = folder / f"{real.stem}.{stamp}{real.suffix}"
        _put(folder / f".{backup.name}{_TEMPORARY}", backup, present, _status(real))
    for old in _backups(folder, real)[:-BACKUPS_KEPT]:
        old.unlink(missing_ok=True)


def _backups(folder: Path, real: Path) -> list[Path]:
    """Oldest first."""
    name = re.compile(rf"{re.escape(real.stem)}\.\d{{8}}T\d{{12}}Z{re.escape(real.suffix)}")
    return sorted(p for p in folder.iterdir() if name.fullmatch(p.name))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _literal(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One saver at a time in a folder, among our own processes; a file system without locks goes without."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _failed(path: Path, error: OSError) -> LayaError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint, status = "Free some space or save to another place.", 507
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint, status = "Make the file and its folder writable, or save to another place.", 403
    elif error.errno in (errno.ENOENT, errno.ENOTDIR):
        hint, status = "Create the folder first, or save to another place.", 404
    else:
        hint, status = "Save to another place.", 500
    reason = (error.strerror or str(error)).rstrip(".")
    kept = "The file on disk is unchanged, and so are your changes in memory."
    return LayaError(f"{path} could not be saved: {reason}. {kept}", hint=hint, code="save_failed", status=status)
