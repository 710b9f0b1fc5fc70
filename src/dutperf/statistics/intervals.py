# SPDX-License-Identifier: Apache-2.0
"""Summarises the values of repetitions: median with its interval, 1st and 99th percentile,
dispersion (RFC 8219 section 12, RFC 2330 11.3).

A repetition in which nothing passed has no value (None). It is lower than any value, and it stays
in the sample: leaving it out would flatter the DUT.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

Interval = tuple[float | None, float | None]
"""Lower and upper end; an end that is or involves a missing value is None."""


def median(values: Sequence[float | None]) -> float | None:
    """The middle value, of an even number the mean of the two in the middle (RFC 2330 11.3). None
    where that is or involves a missing value.

    Raises:
        ValueError: no values.
    """
    ordered = _ordered(values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return None if middle == -inf else middle


def percentile(values: Sequence[float | None], percent: int) -> float | None:
    """The smallest value that at least ``percent`` % of the values do not exceed (RFC 2330 11.3);
    always one of the values.

    With less than 100 values, the 1st percentile is the smallest and the 99th the greatest.

    Raises:
        ValueError: no values, or ``percent`` is not within 1 to 100.
    """
    ordered = _ordered(values)
    if not 1 <= percent <= 100:
        raise ValueError(f"no percentile: {percent}")
    value = ordered[-(-percent * len(ordered) // 100) - 1]
    return None if value == -inf else value


def dispersion_percent(values: Sequence[float | None]) -> float | None:
    """(p99 − p1) / median × 100 (Lencse, Infocommunications Journal XIII(2), 2021). None where one
    of them is missing or the median is 0."""
    low, middle, high = percentile(values, 1), median(values), percentile(values, 99)
    if low is None or high is None or not middle:
        return None
    return (high - low) / middle * 100


def median_interval(values: Sequence[float | None], confidence: float) -> Interval | None:
    """An interval that covers the median of what the values are drawn from, in a share
    ``confidence`` (0.8 to 0.999) of all samples.

    It rests on order statistics alone, whatever the distribution: P(X(k) <= median <= X(n+1-k)) is
    binomial. Between the two neighbouring k it is interpolated as Hettmansperger and Sheather have
    it ("Confidence intervals based on interpolated order statistics", Statistics & Probability
    Letters 4, 1986), which keeps the confidence within a few tenths of a percent for continuous
    distributions; values on a grid are covered more often. None where there are too few values: 95
    % need six. The values have to be independent.
    """
    ordered = _ordered(values)
    place = _place_of_interval(len(ordered), confidence)
    if place is None:
        return None
    k, weight = place
    low, high = _between(ordered[k - 1], ordered[k], weight), _between(ordered[-k], ordered[-k - 1], weight)
    return None if low == -inf else low, None if high == -inf else high


def smallest_sample(confidence: float) -> int:
    """How many values :func:`median_interval` needs."""
    count = 1
    while _place_of_interval(count, confidence) is None:
        count += 1
    return count


@lru_cache(maxsize=1024)
def _place_of_interval(count: int, confidence: float) -> tuple[int, float] | None:
    """The greatest k (from 1) with P(X(k) <= median <= X(count+1-k)) >= ``confidence``, and the
    weight of X(k+1) beside it; None: there is no k."""
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
    """The point a share ``weight`` of the way in; the outer one where there is no number to go from
    or to."""
    return outer if -inf in (outer, inner) else outer + weight * (inner - outer)


def _ordered(values: Sequence[float | None]) -> list[float]:
    if not values:
        raise ValueError("no values")
    return sorted(-inf if value is None else value for value in values)
