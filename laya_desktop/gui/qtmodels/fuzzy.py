"""Finding commands by a few letters. Pure.

A query matches where its letters appear in order. Beginnings of words and letters side by side score higher, and a
short text wins over a long one.
"""

from __future__ import annotations

_START, _ADJACENT, _PLAIN = 10, 6, 1


def score(query: str, text: str) -> int | None:
    """How well ``text`` fits; None: a letter is missing. Case and spaces of the query do not matter."""
    wanted, lower = query.lower().replace(" ", ""), text.lower()
    if not wanted:
        return 0
    best: list[int | None] = [0] + [None] * len(wanted)  # best[k]: the first k letters are placed
    ends_here: list[int | None] = [None] * (len(wanted) + 1)
    for i, letter in enumerate(lower):
        start = i == 0 or not lower[i - 1].isalnum()
        now: list[int | None] = [None] * (len(wanted) + 1)
        for k in range(len(wanted), 0, -1):
            if wanted[k - 1] != letter:
                continue
            before, beside = best[k - 1], ends_here[k - 1]
            worth = [v for v in (
                None if before is None else before + (_START if start else _PLAIN),
                None if beside is None else beside + _ADJACENT + (_START if start else 0),
            ) if v is not None]  # fmt: skip
            now[k] = max(worth, default=None)
        ends_here = now
        best = [max((v for v in pair if v is not None), default=None) for pair in zip(best, now, strict=True)]
    found = best[len(wanted)]
    return None if found is None else found * 100 - len(text)


def ranked(query: str, texts: list[str]) -> list[int]:
    """Indices of the texts that match, best first; all of them in order for an empty query."""
    if not query.strip():
        return list(range(len(texts)))
    scored = [(value, i) for i, text in enumerate(texts) if (value := score(query, text)) is not None]
    return [i for value, i in sorted(scored, key=lambda pair: (-pair[0], pair[1]))]
