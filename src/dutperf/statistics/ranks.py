# SPDX-License-Identifier: Apache-2.0
"""Compares two samples by their ranks (Wilcoxon, Mann and Whitney), whatever the distribution they
are drawn from, also with equal values.

A search ends on a grid, so repetitions often have equal values. The chances are therefore those of
the midranks at hand, given which values are equal: exact up to :data:`EXACT` values, counted as
Streitberg and Röhmel do (Statistical Software Newsletter 12, 1986). The exact method of the usual
libraries knows no equal values. Beyond, they are those of the normal distribution, corrected for
equal values and for continuity.

A missing value (None: nothing passed) is lower than any, as in :mod:`dutperf.statistics.intervals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import comb, inf, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

EXACT = 100
"""Values of both samples together up to which every arrangement is counted."""

Values = Sequence[float | None]


class Tails(NamedTuple):
    """Chances, where both samples are drawn from the same, of ranks of the second one that are as
    low as those seen, or lower; as high, or higher."""

    low: float
    high: float

    @property
    def two_sided(self) -> float:
        """Of ranks as far out as those seen, to either side."""
        return min(1.0, 2 * min(self))


def tails(first: Values, second: Values) -> Tails:
    """How the second sample lies to the first.

    Raises:
        ValueError: a sample without values.
    """
    if not first or not second:
        raise ValueError("no values")
    ranks = _doubled_midranks([*_numbers(first), *_numbers(second)])
    seen = sum(ranks[len(first) :])
    return _exact(tuple(sorted(ranks)), len(second), seen) if len(ranks) <= EXACT else _normal(ranks, len(second), seen)


def smallest_p(first: int, second: int) -> float:
    """The smallest one-sided chance that samples of these sizes can show."""
    return 1 / comb(first + second, second)


def shift_interval(first: Values, second: Values, alpha: float) -> tuple[float, float] | None:
    """An interval that covers the shift from the first to the second sample's distribution, where
    they differ by a shift, but for a share ``alpha``.

    All differences in order, without as many at either end as the test leaves room for (Hodges and
    Lehmann 1963; Moses). With equal values it covers more often. None where there are too few
    values for one, or one is missing.
    """
    if None in first or None in second:
        return None
    differences = np.sort(np.subtract.outer(np.array(second, dtype=float), np.array(first, dtype=float)).ravel())
    outside = _outside(len(first), len(second), alpha)
    return None if outside == 0 else (float(differences[outside - 1]), float(differences[-outside]))


def holm(chances: Sequence[float]) -> list[float]:
    """Each chance so adjusted that to take all that are at most alpha errs in any of them with a
    chance of alpha at most (Holm 1979)."""
    adjusted, least = [0.0] * len(chances), 0.0
    for done, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - done) * chances[index]))
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


def _exact(ranks: tuple[int, ...], size: int, seen: int) -> Tails:
    chances = _distribution(ranks, size)
    return Tails(low=float(min(1.0, chances[: seen + 1].sum())), high=float(min(1.0, chances[seen:].sum())))


@lru_cache(maxsize=256)
def _distribution(ranks: tuple[int, ...], size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The chance of each sum that ``size`` of the ranks may have."""
    ways = np.zeros((size + 1, sum(ranks[-size:]) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    chances: np.ndarray[tuple[int], np.dtype[np.float64]] = ways[size] / ways[size].sum()
    return chances


def _normal(ranks: Sequence[int], size: int, seen: int) -> Tails:
    count = len(ranks)
    equal = sum(one**3 - one for one in Counter(ranks).values())
    variance = size * (count - size) / 12 * (count + 1 - equal / (count * (count - 1)))
    if variance == 0:
        return Tails(1.0, 1.0)
    away, deviation = seen / 2 - size * (count + 1) / 2, sqrt(variance)
    normal = NormalDist()
    return Tails(low=normal.cdf((away + 0.5) / deviation), high=normal.cdf((0.5 - away) / deviation))


@lru_cache(maxsize=256)
def _outside(first: int, second: int, alpha: float) -> int:
    """How many of the ordered differences an interval leaves out at either end, and one: it begins
    with that one; 0: there is none."""
    ranks, least = [2 * rank for rank in range(1, first + second + 1)], second * (second + 1)
    if first + second > EXACT:
        spread = sqrt(first * second * (first + second + 1) / 12)
        return max(0, int(first * second / 2 + 0.5 + NormalDist().inv_cdf(alpha / 2) * spread))
    below = np.cumsum(_distribution(tuple(ranks), second)[least::2])
    return int(np.searchsorted(below, alpha / 2, side="right"))
