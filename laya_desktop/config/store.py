"""Configuration files: what was read, what saving would write, and whether the file changed meanwhile.

A ``ConfigDocument`` is a frozen value; saving returns a new one. Its methods read and write files, so they run on a
pool thread, never on the node's loop; ``unsaved``, ``render`` and ``diff`` touch no file. It never rewrites a file that
it could not read, and never overwrites one that somebody else has changed unless it is told to.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from laya_desktop.config import changes, render, writer
from laya_desktop.config.loader import BOM, check_form, decode, load_text, read_bytes
from laya_desktop.config.parts import check_part
from laya_desktop.config.paths import absolute_paths, resolve_model_path
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError

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

    def render(self, config: NodeConfig) -> str:
        """The text that saving would write: the file's own, with only the changes in it.

        The short form (``model:``, ``route:``) is kept while it can hold the configuration; when a model or route is
        added before it, or it is removed, it is rewritten into the long form, comments included.

        Raises:
            LayaError: the file cannot be edited in place (code ``cannot_edit_in_place``).
        """
        if self.text.removeprefix(BOM).strip():
            return render.render(self.text, self.config, config)
        return self.text + render.fresh(config)

    def diff(self, config: NodeConfig) -> str:
        """Unified diff from the file as read to what saving would write; empty where nothing changes."""
        name = "configuration" if self.path is None else self.path.name
        old, new = (t.splitlines(keepends=True) for t in (self.text, self.render(config)))
        return "".join(difflib.unified_diff(old, new, name, f"{name} (unsaved)"))

    def save(self, config: NodeConfig, path: Path | None = None, overwrite: bool = False) -> ConfigDocument:
        """Write the configuration and return the document of the written file.

        With a ``path`` in another folder, relative paths inside are made absolute, so that they still name the same
        files: put the returned document's ``config`` in force.

        Args:
            config: what to write.
            path: another file ("Save as", export), or None for this one.
            overwrite: write even if the file changed since it was read, or the other file exists.

        Raises:
            LayaError: ``changed_on_disk`` or ``file_exists`` (409), ``save_failed``, ``would_not_read_back``,
                ``no_file_name``. Nothing is lost in any case.
        """
        target = self.path if path is None else path.expanduser().absolute()
        if target is None:
            raise LayaError(
                "This configuration has no file yet.", hint="Save as a file.", code="no_file_name", status=400
            )
        own = self.path is not None and self.identity is not None and _same_file(self.path, target)
        kept = config if self._shares_folder(target) else absolute_paths(config, self.folder)
        text = self.render(kept) if own else self._render_for_other(kept)
        render.check_both_readers(text, kept)
        content = text.encode()
        status = writer.replace(target, content, lambda present: self._check_present(target, present, own, overwrite))
        return ConfigDocument(target, text, kept, FileIdentity.of(content, status))

    def _render_for_other(self, config: NodeConfig) -> str:
        try:
            return self.render(config)
        except LayaError:
            return render.fresh(config)

    def _shares_folder(self, target: Path) -> bool:
        return self.folder is None or target.parent == self.folder

    def _check_present(self, target: Path, present: bytes | None, own: bool, overwrite: bool) -> None:
        if overwrite:
            return
        if own and (present is None or hashlib.sha256(present).hexdigest() != (self.identity and self.identity.sha256)):
            raise LayaError(
                f"{target} {'is gone' if present is None else 'has changed'} since it was read.",
                hint="Reload it, overwrite it, or save as another file.",
                code="changed_on_disk",
                status=409,
            )
        if not own and present is not None:
            raise LayaError(
                f"{target} exists already.",
                hint="Overwrite it, or choose another name.",
                code="file_exists",
                status=409,
            )


def _same_file(one: Path, other: Path) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def load_file(path: Path | str) -> ConfigDocument:
    """Read a configuration file.

    Raises:
        ConfigError: with every problem and its line and column.
    """
    return ConfigDocument.load(Path(path))
