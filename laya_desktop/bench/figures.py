"""From samples of single requests to the figures of a level. Pure functions; any thread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from laya_desktop.bench.results import Fault, Point, Quantiles


@dataclass(slots=True)
class Sample:
    """One request as the client saw it; times in seconds of a monotonic clock. Filled while the answer comes."""

    due_s: float
    """When it was to be sent; latency counts from here, so that a stall is not hidden."""
    status: int | None = None
    end_s: float = 0.0
    pieces_s: list[float] = field(default_factory=list)
    """When each piece of the answer with text in it came."""
    routing_us: float | None = None
    queue_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    code: str | None = None
    """What went wrong; None: nothing."""
    text: str = ""

    @property
    def ok(self) -> bool:
        """Answered as asked."""
        return self.status == 200 and self.code is None


def quantiles(values: Iterable[float | None]) -> Quantiles | None:
    """By nearest rank; None where there is no value."""
    known = sorted(v for v in values if v is not None)
    if not known:
        return None

    def rank(share: float) -> float:
        return round(known[max(0, math.ceil(share * len(known)) - 1)], 3)

    return Quantiles(rank(0.5), rank(0.95), rank(0.99), round(known[-1], 3))


def point(concurrency: int, samples: Sequence[Sample], duration_s: float) -> Point:
    """The figures of one level."""
    good = [s for s in samples if s.ok]
    span_s = max(duration_s, 1e-9)
    tokens = sum(s.completion_tokens or 0 for s in good)
    prompts = [s.prompt_tokens for s in good if s.prompt_tokens is not None]
    gaps = [(b - a) * 1e3 for s in good for a, b in zip(s.pieces_s, s.pieces_s[1:], strict=False)]
    return Point(
        concurrency=concurrency,
        requests=len(good),
        duration_s=round(duration_s, 4),
        requests_per_s=round(len(good) / span_s, 3),
        latency_ms=quantiles((s.end_s - s.due_s) * 1e3 for s in good),
        ttft_ms=quantiles((s.pieces_s[0] - s.due_s) * 1e3 for s in good if s.pieces_s),
        itl_ms=quantiles(gaps),
        routing_us=quantiles(s.routing_us for s in good),
        queue_ms=quantiles(s.queue_ms for s in good),
        prompt_tokens=round(sum(prompts) / len(prompts), 1) if prompts else None,
        completion_tokens=tokens,
        tokens_per_s=round(tokens / span_s, 2) if tokens else None,
        faults=faults(samples),
    )


def faults(samples: Iterable[Sample]) -> tuple[Fault, ...]:
    """What went wrong, the most frequent first."""
    found: dict[tuple[int | None, str], tuple[int, str]] = {}
    for sample in samples:
        if not sample.ok:
            key = (sample.status, sample.code or f"status_{sample.status}")
            count, text = found.get(key, (0, sample.text))
            found[key] = (count + 1, text)
    made = [Fault(status, code, count, text) for (status, code), (count, text) in found.items()]
    return tuple(sorted(made, key=lambda f: -f.count))
