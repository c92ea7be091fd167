"""An answer that is handed on inside the read that brought it: callbacks in place of a task. The node's loop.

The way of nearly every request to an upstream, because it costs a third of the way through ``Upstream.request``. Only
a kept connection is used; whatever takes waiting (connecting, a key, a trial of an upstream that is down) is left to
that other way. It judges nothing: health and time limits are the upstream's matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from laya_desktop.node.upstream_wire import incoming

if TYPE_CHECKING:
    from laya_desktop.errors import LayaError
    from laya_desktop.node.upstream_http import Connection, WireError


class RelayOwner(Protocol):
    """The upstream, as far as a relay goes."""

    def relay_answered(self, relay: Relay) -> None:
        """The head of the answer is there."""
        ...

    def relay_broken(self, relay: Relay, error: WireError) -> LayaError:
        """The answer cannot be had; returns what to tell the caller."""
        ...

    def relay_over(self, relay: Relay, connection: Connection) -> None:
        """The relay needs its connection no more."""
        ...


class Relay:
    """One request that was sent on a kept connection.

    Attributes:
        on_change: called whenever head, parts, end or error have come. Set it at once.
        deadline_s: loop time by which the whole answer must be there.
        heard: something has come since the upstream last looked.
        heard_s: loop time of that look.
        answered: the head is there.
        error: why there will be no more; None while all is well.
        unanswered: the kept connection turned out to be closed before a byte came back: the request may be sent again.
        held: the reader cannot keep up.
    """

    __slots__ = (
        "_connection",
        "_owner",
        "answered",
        "deadline_s",
        "error",
        "heard",
        "heard_s",
        "held",
        "on_change",
        "status",
        "unanswered",
    )

    def __init__(self, owner: RelayOwner, connection: Connection, deadline_s: float, now_s: float) -> None:
        self._owner = owner
        self._connection: Connection | None = connection
        self.on_change: Callable[[], None] = _nothing
        self.deadline_s, self.heard_s = deadline_s, now_s
        self.status = 0
        self.answered = self.unanswered = self.held = self.heard = False
        self.error: LayaError | None = None
        connection.watcher = self._arrived

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Of the answer, without the hop-by-hop ones."""
        return incoming(self._connection.headers) if self._connection is not None else []

    @property
    def complete(self) -> bool:
        """The whole answer has come; ``take`` may still have a part of it."""
        return self._connection is None or self._connection.complete

    def take(self) -> bytes:
        """What has come of the body since the last call."""
        return b"" if self._connection is None else self._connection.take(resume=not self.held)

    def hold(self) -> None:
        """Stop reading from the upstream."""
        self.held = True
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Go on reading."""
        self.held = False
        if self._connection is not None:
            self._connection.resume()

    def fail(self, error: LayaError) -> None:
        """End it from outside, for being too slow."""
        if self._connection is not None and self.error is None:
            self.error = error
            self.on_change()

    def close(self) -> None:
        """Stop here: an unfinished answer's connection is closed, so that the upstream stops. Idempotent."""
        connection, self._connection = self._connection, None
        self.on_change = _nothing  # it refers to who holds this relay, and only the garbage collector would end that
        if connection is not None:
            connection.watcher = None
            self._owner.relay_over(self, connection)

    def _arrived(self) -> None:
        connection = self._connection
        if connection is None:
            return
        self.heard = True
        if connection.head_done and not self.answered:
            self.answered, self.status = True, connection.status
            self._owner.relay_answered(self)
        if connection.error is not None and self.error is None:
            self.unanswered = not connection.error.received
            self.error = self._owner.relay_broken(self, connection.error)
        self.on_change()


def _nothing() -> None:
    pass
