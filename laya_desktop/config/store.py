"""Configuration files: what was read, what saving would write, and whether the file changed meanwhile.

A ``ConfigDocument`` is a frozen value; saving returns a new one. Its methods read and write files, so they run on a
pool thread, never on the node's loop; ``unsaved``, ``render`` and ``diff`` touch no file. It never rewrites a file that
it could not read, and never overwrites one that somebody else has changed unless it is told to.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from laya_desktop.config import changes
from laya_desktop.config.loader import check_form, decode, load_text, read_bytes
from laya_desktop.config.parts import check_part
from laya_desktop.config.paths import resolve_model_path
from laya_desktop.config.schema import NodeConfig

if TYPE_CHECKING:
    import os

__all__ = ["ConfigDocument", "FileIdentity", "check_form", "check_part", "load_file", "load_text", "resolve_model_path"]


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The file as it was read: when it changed, how long it is, and what was in it."""

    mtime_ns: int
    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, content: bytes, status: os.stat_result) -> Self:
        """Of bytes just read or written."""
        return cls(status.st_mtime_ns, len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """A configuration and the file it came from.

    Attributes:
        path: the absolute path as the user named it, or None where there is no file yet.
        text: the file's text as read, line ends included.
        config: the configuration as read.
        identity: of the file as read; None where there is no file yet.
    """

    path: Path | None = None
    text: str = ""
    config: NodeConfig = field(default_factory=NodeConfig)
    identity: FileIdentity | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            ConfigError: with every problem.
        """
        path = path.expanduser().absolute()
        content, status = read_bytes(path)
        text = decode(content, path)
        return cls(path, text, load_text(text, path), FileIdentity.of(content, status))

    @property
    def folder(self) -> Path | None:
        """Where relative paths start from; None where there is no file yet."""
        return None if self.path is None else self.path.parent

    def unsaved(self, config: NodeConfig) -> tuple[str, ...]:
        """One short line per difference of ``config`` from the file, e.g. ``route chat: priority normal → batch``."""
        return changes.describe(self.config, config)

    def changed_on_disk(self) -> bool:
        """True where the file is gone or holds something else than what was read. Cheap while it is untouched."""
        if self.path is None or self.identity is None:
            return False
        try:
            status = self.path.stat()
            if (status.st_mtime_ns, status.st_size) == (self.identity.mtime_ns, self.identity.size_bytes):
                return False
            return hashlib.sha256(self.path.read_bytes()).hexdigest() != self.identity.sha256
        except OSError:
            return True


def load_file(path: Path | str) -> ConfigDocument:
    """Read a configuration file.

    Raises:
        ConfigError: with every problem and its line and column.
    """
    return ConfigDocument.load(Path(path))
