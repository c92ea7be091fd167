"""Edits of the configuration's file by others: applied, held back, or refused with their line. The node's loop.

The file's time and size are read four times a second in the thread pool; the file itself only after they have changed
and then stood still for one interval, so that a file caught half-written is mostly never read. Polling costs 0.04 % of
a core, works on network drives and across editors that replace the file, and needs no library and no thread of its own.
It never writes the file, and never puts anything in force while there are unsaved edits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop.errors import ConfigError, LayaError
from laya_desktop.node.config_keeper import GONE, ConfigKeeper, Sight
from laya_desktop.state.events import ConfigChangedOnDisk, Event, Notice, Severity

if TYPE_CHECKING:
    from laya_desktop.config.schema import NodeConfig
    from laya_desktop.config.store import ConfigDocument

log = logging.getLogger(__name__)

LOOK_S = 0.25
Apply = Callable[["NodeConfig", str, "ConfigDocument"], Awaitable[None]]
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Settling:
    """Which sights of the file are worth reading: those that differ from what was read, stand still, and are new."""

    def __init__(self) -> None:
        self._last: Sight = GONE
        self._judged: Sight = GONE
        self._any_judged = False

    def is_due(self, sight: Sight, known: Sight) -> bool:
        """True where the file should be read now; ``known`` is how it looked when it was last read or written."""
        still = sight == self._last
        self._last = sight
        if sight == known:
            self._any_judged = False
            return False
        if not still or (self._any_judged and sight == self._judged):
            return False
        self._judged, self._any_judged = sight, True
        return True

    def judge_again(self) -> None:
        """Take the next sight as a new one."""
        self._any_judged = False


class ConfigWatch:
    """Follows the file of one node.

    Args:
        keeper: the file as it was last read.
        lock: held by whoever changes the configuration.
        config: the configuration in force.
        apply: puts a configuration read from the file in force; raises LayaError.
        emit: where events go.
    """

    def __init__(
        self,
        keeper: ConfigKeeper,
        lock: asyncio.Lock,
        config: Callable[[], NodeConfig],
        apply: Apply,
        emit: Callable[[Event], None],
    ) -> None:
        self._keeper, self._lock = keeper, lock
        self._config, self._apply, self._emit = config, apply, emit
        self._settling = Settling()
        self._held = False

    async def run_forever(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # one bad look must not end the watch
                log.exception("Looking at the configuration file failed")
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once, and act on what others made of the file."""
        document = self._keeper.document
        if document.path is None:
            return
        if self._held and not self._keeper.status.unsaved:
            self._held = False
            self._settling.judge_again()  # the edits that it waited for are gone
        sight = await self._keeper.sight()
        if document is not self._keeper.document:
            return  # saved or read meanwhile
        known = self._keeper.known_sight
        if not self._settling.is_due(sight, known):
            if sight == known:
                self._clear(document.path)
            return
        if sight is GONE:
            self._say_gone(document.path)
            return
        await self._judge(document)

    async def _judge(self, document: ConfigDocument) -> None:
        assert document.path is not None
        try:
            found = await self._keeper.read(None)
        except LayaError as error:
            if document is self._keeper.document:
                self._refuse(document.path, error)
            return
        async with self._lock:
            if document is not self._keeper.document:
                return
            if found.text == document.text:
                self._clear(document.path)
            elif self._keeper.status.unsaved and found.config != self._config():
                self._held = True
                self._keeper.mark_changed(True)
                self._emit(ConfigChangedOnDisk(str(document.path)))
            else:
                await self._put_in_force(found, document.path)

    async def _put_in_force(self, found: ConfigDocument, path: Path) -> None:
        try:
            await self._apply(found.config, "file", found)
        except LayaError as error:
            self._refuse(path, error)
            return
        self._keeper.mark_changed(False)
        self._say("info", f"{path.name}: applied the change made outside.")

    def _refuse(self, path: Path, error: LayaError) -> None:
        self._keeper.mark_changed(True)
        reason = str(error)
        if isinstance(error, ConfigError) and error.problems:
            more = len(error.problems) - 1
            others = f" (and {more} more)" if more else ""
            reason = f"{error.problems[0].render(path.name)}{others}"
        self._say(
            "error", f"{path.name}: the change made outside is refused, and what was before it stays in force. {reason}"
        )

    def _say_gone(self, path: Path) -> None:
        if not self._keeper.status.changed_on_disk:
            self._keeper.mark_changed(True)
            self._say("warning", f"{path} is gone. Its configuration stays in force; save to write the file again.")

    def _clear(self, path: Path) -> None:
        self._held = False
        if self._keeper.status.changed_on_disk:
            self._keeper.mark_changed(False)
            self._say("info", f"{path.name} is again as it was read.")

    def _say(self, severity: Severity, text: str) -> None:
        log.log(_LEVELS[severity], "%s", text)
        self._emit(Notice(severity, text, "config"))
