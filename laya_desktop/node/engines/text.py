"""From token pieces to text that may be shown: whole characters only, and never a part of a stop string. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """Text of one generation. Bytes go in token by token; text comes out once it is certain.

    A character split over tokens waits for its last byte. The longest end of the text that could begin a stop string
    waits until it is known not to.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(s for s in stops if s)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self.stopped = False
        """True once a stop string was found; nothing comes out any more."""
        self.seen = 0
        """Letters that came in, those of a stop string included."""
        self.given = 0
        """Letters that came out."""

    def push(self, piece: bytes) -> str:
        """Add a token's bytes. Returns the text that is certain now; it may be empty."""
        if self.stopped:
            return ""
        new = self._decoder.decode(piece)
        self.seen += len(new)
        self._held += new
        if not self._stops:
            return self._take(len(self._held))
        found = [at for s in self._stops if (at := self._held.find(s)) >= 0]
        if found:
            self.stopped = True
            out = self._take(min(found))
            self._held = ""
            return out
        return self._take(len(self._held) - self._uncertain())

    def flush(self) -> str:
        """The text still held back, when the generation ends without a stop string. Cut-off bytes are dropped."""
        return "" if self.stopped else self._take(len(self._held))

    def _take(self, count: int) -> str:
        out, self._held = self._held[:count], self._held[count:]
        self.given += len(out)
        return out

    def _uncertain(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = min(len(self._held), max(len(s) for s in self._stops) - 1)
        for size in range(longest, 0, -1):
            if any(s.startswith(self._held[-size:]) for s in self._stops):
                return size
        return 0
