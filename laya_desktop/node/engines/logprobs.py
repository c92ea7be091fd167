"""Log probabilities that wait for their tokens' text. Pure; runs in the worker.

Text may be held back, or be cut off by a stop string; the probabilities of a token go out with the text it begins.
"""

from __future__ import annotations

from collections import deque

from laya_desktop.node.engines.base import TokenLogprob


class HeldLogprobs:
    """Those of one answer, in order."""

    def __init__(self) -> None:
        self._held: deque[tuple[TokenLogprob, int]] = deque()
        self._seen = 0

    def add(self, logprob: TokenLogprob, seen: int) -> None:
        """A token was drawn; ``seen``: letters of the answer that are known with it."""
        self._held.append((logprob, self._seen))
        self._seen = seen

    def take(self, given: int | None) -> tuple[TokenLogprob, ...]:
        """Those of tokens that begin within the first ``given`` letters; None: all."""
        out = []
        while self._held and (given is None or self._held[0][1] < given):
            out.append(self._held.popleft()[0])
        return tuple(out)
