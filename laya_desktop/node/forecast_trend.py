"""How fast a noisy figure grows. Pure; a fixed amount of memory per figure.

Samples are gathered into one point a second (their median), and the growth is the Theil–Sen slope (the median of the
slopes between all pairs of points) over two windows: 20 s, which is steady, and 6 s, which notices a change at once.
A slope counts only where the rise over its window is beyond the noise: at least the caller's ``min_rise``, and at least
four (short window: six) times the scatter. Those are about five and four standard errors of the rise. The scatter is
1.4826 × median absolute deviation (σ for Gaussian noise) of the points from the line, or of the steps from point to
point, by √2, whichever is larger: few points may lie on a line by chance. So one step, such as a model that has just
been loaded, is no trend, and neither is memory that goes up and down.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median

BUCKET_S = 1.0
LONG_POINTS = 21
SHORT_POINTS = 7
MIN_POINTS = 5
GAP_S = 5.0
"""After a longer silence (the machine slept) the past says nothing about the present."""

_LONG_FACTOR = 4.0
_SHORT_FACTOR = 6.0
_SIGMA_PER_MAD = 1.4826
_BUCKET_SAMPLES = 64
_GOES_ON = 0.25
_ALIKE = 0.1

Point = tuple[float, float]
"""Seconds and value."""


class Trend:
    """Follows one figure."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=LONG_POINTS)
        self._bucket: list[Point] = []
        self._recent: deque[Point] = deque(maxlen=_BUCKET_SAMPLES)
        self._fitted = _Fits()

    def continues_at(self, now_s: float) -> bool:
        """False where time has jumped back or ahead, so that a new history has to be begun."""
        return not self._recent or 0 <= now_s - self._recent[-1][0] <= GAP_S

    def add(self, now_s: float, value: float) -> None:
        """Take a sample that continues the history."""
        self._recent.append((now_s, value))
        while now_s - self._recent[0][0] > BUCKET_S:
            self._recent.popleft()
        if self._bucket and now_s - self._bucket[0][0] >= BUCKET_S:
            self._points.append((self._bucket[0][0], median(v for _, v in self._bucket)))
            self._bucket.clear()
            self._fitted = _Fits(self._points)
        if len(self._bucket) < _BUCKET_SAMPLES:
            self._bucket.append((now_s, value))

    @property
    def value(self) -> float:
        """The median of the last second, so that one odd sample changes nothing."""
        return median(v for _, v in self._recent)

    def growth_per_s(self, min_rise: float) -> float | None:
        """The rate of a real rise or fall, 0.0 where there is none, None while there are too few points."""
        return self._fitted.growth(min_rise)


class _Fits:
    """The slopes of both windows, worked out once a second."""

    def __init__(self, points: Sequence[Point] = ()) -> None:
        held = list(points)
        self._fits: tuple[_Fit, _Fit] | None = None
        if len(held) >= MIN_POINTS:
            noise = _scatter([b - a for (_, a), (_, b) in pairwise(held)]) / math.sqrt(2)
            self._fits = (_Fit(held, noise, _LONG_FACTOR), _Fit(held[-SHORT_POINTS:], noise, _SHORT_FACTOR))

    def growth(self, min_rise: float) -> float | None:
        """The long window's slope while the short one agrees with it, the short one's where it differs."""
        if self._fits is None:
            return None
        long, short = self._fits
        same_way = long.slope * short.slope > 0
        if short.counts(min_rise):
            alike = abs(short.slope - long.slope) <= max(_ALIKE * abs(long.slope), short.slope_error)
            return long.slope if alike and long.counts(min_rise) else short.slope
        goes_on = same_way and abs(short.slope) >= _GOES_ON * abs(long.slope)
        return long.slope if goes_on and long.counts(min_rise) else 0.0


class _Fit:
    """One Theil–Sen line."""

    def __init__(self, points: list[Point], noise: float, factor: float) -> None:
        self.slope = median((y2 - y1) / (t2 - t1) for (t1, y1), (t2, y2) in combinations(points, 2))
        start_s, span_s = points[0][0], points[-1][0] - points[0][0]
        scatter = max(noise, _scatter([y - self.slope * (t - start_s) for t, y in points]))
        self._rise = abs(self.slope) * span_s
        self._noise = factor * scatter
        self.slope_error = 2 * scatter / span_s
        """About 1.5 standard errors, for the short window."""

    def counts(self, min_rise: float) -> bool:
        """Whether the line is more than noise."""
        return self._rise >= max(min_rise, self._noise) and self._rise > 0


def _scatter(values: list[float]) -> float:
    middle = median(values)
    return _SIGMA_PER_MAD * median(abs(v - middle) for v in values)
