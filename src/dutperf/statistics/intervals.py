# SPDX-License-Identifier: Apache-2.0
"""Summarises the values of repetitions: median with its interval, 1st and 99th percentile,
dispersion (RFC 8219 section 12, RFC 2330 11.3).

A repetition in which nothing passed has no value (None). It counts as lower than any value and
stays in the sample: leaving it out would flatter the DUT. Where a figure has none because it is beyond
what was tried, it counts as higher (``missing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf, isinf

Interval = tuple[float | None, float | None]
"""Lower and upper end; None where an end is or involves a missing value."""


def median(values: Sequence[float | None], missing: float = -inf) -> float | None:
    """The middle value; for an even number of values the mean of the middle two (RFC 2330 11.3). None where it is or
    involves a missing value. Raises ValueError: no values."""
    ordered = _ordered(values, missing)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return None if isinf(middle) else middle


def percentile(values: Sequence[float | None], percent: int, missing: float = -inf) -> float | None:
    """The smallest value that at least ``percent`` % of the values do not exceed (RFC 2330 11.3);
    always one of the values.

    With fewer than 100 values, the 1st percentile is the smallest and the 99th the largest. Raises ValueError: no
    values, or ``percent`` is not within 1 to 100."""
    ordered = _ordered(values, missing)
    if not 1 <= percent <= 100:
        raise ValueError(f"{percent} is not a percentile: give 1 to 100")
    value = ordered[-(-percent * len(ordered) // 100) - 1]
    return None if isinf(value) else value


def dispersion_percent(values: Sequence[float | None], missing: float = -inf) -> float | None:
    """(p99 − p1) / median × 100 (Lencse, Infocommunications Journal XIII(2), 2021). None where one
    of them is missing or the median is 0."""
    low, middle, high = percentile(values, 1, missing), median(values, missing), percentile(values, 99, missing)
    if low is None or high is None or not middle:
        return None
    return (high - low) / middle * 100


def median_interval(values: Sequence[float | None], confidence: float, missing: float = -inf) -> Interval | None:
    """An interval that covers the median of the values' distribution in a share ``confidence`` (0.8
    to 0.999) of all samples.

    It uses order statistics alone, for any distribution: P(X(k) <= median <= X(n+1-k)) is binomial.
    Between two neighbouring k it is interpolated after Hettmansperger and Sheather ("Confidence
    intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986).
    This keeps the confidence within a few tenths of a percent for continuous distributions; values
    on a grid are covered more often. None with too few values: 95 % need six. The values have to be
    independent.
    """
    ordered = _ordered(values, missing)
    order = _order_of_interval(len(ordered), confidence)
    if order is None:
        return None
    k, weight = order
    low, high = _between(ordered[k - 1], ordered[k], weight), _between(ordered[-k], ordered[-k - 1], weight)
    return None if isinf(low) else low, None if isinf(high) else high


def smallest_sample(confidence: float) -> int:
    """Number of values that :func:`median_interval` needs."""
    count = 1
    while _order_of_interval(count, confidence) is None:
        count += 1
    return count


@lru_cache(maxsize=1024)
def _order_of_interval(count: int, confidence: float) -> tuple[int, float] | None:
    """The largest k (from 1) with P(X(k) <= median <= X(count+1-k)) >= ``confidence``, and the
    interpolation weight of X(k+1); None: there is no k."""
    k, term, below = 0, 1, 0
    covered, covered_by_next = 1.0, 1 - 2 * (1 / 2**count)
    while covered_by_next >= confidence:
        k += 1
        below += term
        term = term * (count - k + 1) // k
        covered, covered_by_next = covered_by_next, 1 - 2 * ((below + term) / 2**count)
    if k == 0:
        return None
    excess = (covered - confidence) / (covered - covered_by_next)
    return k, (count - k) * excess / (k + (count - 2 * k) * excess)


def _between(outer: float, inner: float, weight: float) -> float:
    """The point a share ``weight`` from ``outer`` to ``inner``; ``outer`` where one of them is not a
    number."""
    return outer if isinf(outer) or isinf(inner) else outer + weight * (inner - outer)


def _ordered(values: Sequence[float | None], missing: float) -> list[float]:
    if not values:
        raise ValueError("no values")
    return sorted(missing if value is None else value for value in values)
