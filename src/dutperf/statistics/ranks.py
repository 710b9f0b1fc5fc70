# SPDX-License-Identifier: Apache-2.0
"""Compares two samples by their ranks (Wilcoxon, Mann and Whitney), for any distribution, also with
equal values.

A search ends on a grid, so repetitions often have equal values. The probabilities are therefore
those of the midranks, given which values are equal. Up to :data:`EXACT` values they are exact,
counted after Streitberg and Röhmel (Statistical Software Newsletter 12, 1986); the exact method of
the usual libraries does not support equal values. With more values they are those of the normal
distribution, corrected for equal values and for continuity.

A missing value (None: nothing passed) is lower than any, as in :mod:`dutperf.statistics.intervals`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import comb, inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

EXACT = 100
"""Largest number of values, both samples together, for which every arrangement is counted."""

Values = Sequence[float | None]


class Tails(NamedTuple):
    """Probabilities, if both samples have the same distribution, of ranks of the second one at most
    as low as observed, and at least as high."""

    low: float
    high: float

    @property
    def two_sided(self) -> float:
        """Probability of ranks at least as far out as observed, on either side."""
        return min(1.0, 2 * min(self))


def tails(first: Values, second: Values) -> Tails:
    """Compare the second sample with the first. Raises ValueError: a sample without values."""
    if not first or not second:
        raise ValueError("no values")
    ranks = _doubled_midranks([*_numbers(first), *_numbers(second)])
    rank_sum = sum(ranks[len(first) :])
    if len(ranks) <= EXACT:
        return _exact(tuple(sorted(ranks)), len(second), rank_sum)
    return _normal(ranks, len(second), rank_sum)


def smallest_p(first: int, second: int) -> float:
    """The smallest one-sided probability that samples of these sizes can have."""
    return 1 / comb(first + second, second)


def shift_interval(first: Values, second: Values, alpha: float) -> tuple[float, float] | None:
    """An interval that covers the shift from the first to the second sample's distribution, where
    they differ by a shift, in a share 1 - ``alpha`` of all cases.

    It consists of all differences in order, without those at either end that the test rejects
    (Hodges and Lehmann 1963; Moses). With equal values it covers more often. None with too few
    values, or where one is missing.
    """
    if None in first or None in second:
        return None
    differences = sorted(one - other for one in _numbers(second) for other in _numbers(first))
    outside = _outside(len(first), len(second), alpha)
    return None if outside == 0 else (differences[outside - 1], differences[-outside])


def holm(probabilities: Sequence[float]) -> list[float]:
    """The adjusted probabilities: if all that are at most alpha are taken as significant, the
    probability of any error is at most alpha (Holm 1979)."""
    adjusted, least = [0.0] * len(probabilities), 0.0
    for done, index in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        least = max(least, min(1.0, (len(probabilities) - done) * probabilities[index]))
        adjusted[index] = least
    return adjusted


def _numbers(values: Values) -> list[float]:
    return [-inf if value is None else float(value) for value in values]


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the mean rank of equal values, from 1: whole numbers."""
    first, doubled = 1, {}
    for value, count in sorted(Counter(values).items()):
        doubled[value] = 2 * first + count - 1
        first += count
    return [doubled[value] for value in values]


def _exact(ranks: tuple[int, ...], size: int, rank_sum: int) -> Tails:
    shares = _distribution(ranks, size)
    return Tails(low=float(min(1.0, shares[: rank_sum + 1].sum())), high=float(min(1.0, shares[rank_sum:].sum())))


@lru_cache(maxsize=256)
def _distribution(ranks: tuple[int, ...], size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The probability of each sum that ``size`` of the ranks may have."""
    import numpy as np  # imported late: most commands compare nothing, and start fast

    ways = np.zeros((size + 1, sum(ranks[-size:]) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = ways[size] / ways[size].sum()
    return shares


def _normal(ranks: Sequence[int], size: int, rank_sum: int) -> Tails:
    count = len(ranks)
    equal = sum(one**3 - one for one in Counter(ranks).values())
    variance = size * (count - size) / 12 * (count + 1 - equal / (count * (count - 1)))
    if variance == 0:
        return Tails(1.0, 1.0)
    distance, deviation = rank_sum / 2 - size * (count + 1) / 2, sqrt(variance)
    normal = NormalDist()
    return Tails(low=normal.cdf((distance + 0.5) / deviation), high=normal.cdf((0.5 - distance) / deviation))


@lru_cache(maxsize=256)
def _outside(first: int, second: int, alpha: float) -> int:
    """Number (from 1) of the ordered difference that an interval begins with at either end; 0: there
    is no interval."""
    ranks, least = [2 * rank for rank in range(1, first + second + 1)], second * (second + 1)
    if first + second > EXACT:
        spread = sqrt(first * second * (first + second + 1) / 12)
        return max(0, int(first * second / 2 + 0.5 + NormalDist().inv_cdf(alpha / 2) * spread))
    return bisect_right(list(accumulate(_distribution(tuple(ranks), second)[least::2])), alpha / 2)
