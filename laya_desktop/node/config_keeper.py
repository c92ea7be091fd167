"""The configuration's file beside the configuration in force: what differs, saving, and edits from outside.

Node thread; files are touched in the thread pool. It never decides what is in force: the node does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from laya_desktop.config.masking import hide_secrets
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import ConfigDocument
from laya_desktop.state.snapshot import ConfigStatus

OffLoop = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a blocking call in the thread pool."""
Sight = tuple[int, int] | None
"""Time of the last change in nanoseconds, and bytes; ``GONE`` where there is no file."""
GONE: Final = None


class ConfigKeeper:
    """One configuration file, or none yet."""

    def __init__(self, document: ConfigDocument, off_loop: OffLoop) -> None:
        self._document = document
        self._off_loop = off_loop
        self.status = ConfigStatus(path=_text(document.path))

    @property
    def document(self) -> ConfigDocument:
        """The file as it was last read or written."""
        return self._document

    @property
    def folder(self) -> Path | None:
        """Where relative model paths start."""
        return self._document.folder

    def applied(self, config: NodeConfig, document: ConfigDocument | None = None) -> None:
        """A configuration came into force, read from ``document`` where one is given."""
        if document is not None:
            self._document = document
        self._compare(config, self.status.revision + 1, on_disk=self.status.changed_on_disk and document is None)

    async def save(self, config: NodeConfig, path: Path | None, *, overwrite: bool) -> Path:
        """Write, and continue with the file written. Raises LayaError."""
        document = self._document
        self._document = await self._off_loop(lambda: document.save(config, path, overwrite=overwrite))
        self._compare(config, self.status.revision, on_disk=False)
        assert self._document.path is not None
        return self._document.path

    async def export(self, config: NodeConfig, path: Path) -> None:
        """Write a copy and stay with the present file. Raises LayaError."""
        document = self._document
        own = document.path
        if own is not None and await self._off_loop(lambda: path.expanduser().resolve() == own.resolve()):
            await self.save(config, None, overwrite=False)
            return
        await self._off_loop(lambda: document.save(config, path, overwrite=True))

    async def read(self, path: Path | None) -> ConfigDocument:
        """The file at ``path``, or the present one as it is on disk now. Raises ConfigError."""
        wanted = path or self._document.path
        if wanted is None:
            return self._document
        document: ConfigDocument = await self._off_loop(lambda: ConfigDocument.load(wanted))
        return document

    async def sight(self) -> Sight:
        """How the file looks on disk now."""
        path = self._document.path
        seen: Sight = GONE if path is None else await self._off_loop(lambda: _sight_of(path))
        return seen

    @property
    def known_sight(self) -> Sight:
        """How it looked when it was last read or written."""
        identity = self._document.identity
        return GONE if identity is None else (identity.mtime_ns, identity.size_bytes)

    def mark_changed(self, changed: bool) -> None:
        """Note whether the file on disk is another than the one read."""
        if changed != self.status.changed_on_disk:
            self.status = replace(self.status, changed_on_disk=changed)

    async def diff(self, config: NodeConfig) -> str:
        """Unified diff from the file as read to what saving would write, without secrets. Raises LayaError."""
        document = self._document
        text: str = await self._off_loop(lambda: hide_secrets(document.diff(config), document.config, config))
        return text

    def _compare(self, config: NodeConfig, revision: int, *, on_disk: bool) -> None:
        path, unsaved = _text(self._document.path), self._document.unsaved(config)
        self.status = ConfigStatus(path, revision, unsaved, on_disk)


def _sight_of(path: Path) -> Sight:
    try:
        status = path.stat()
    except OSError:
        return GONE
    return status.st_mtime_ns, status.st_size


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
