# SPDX-License-Identifier: Apache-2.0
"""In which order the kinds of frames of a direction follow each other: each at even distances, and native IPv6 in the
background where RFC 8219 5.3 has it: frame k is foreground if k mod n < m."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle
from math import gcd, lcm

from dutperf.setup.conditions import Foreground
from dutperf.setup.size_mix import spread

LONGEST = 4096
"""Frames after which an order repeats: each trial in a journal has it."""


class KindOrder:
    """``shares`` of the kinds, in any unit; ``native``: which of them are background."""

    def __init__(self, shares: Sequence[Fraction], native: Sequence[bool], foreground: Foreground) -> None:
        self.weights = _whole(shares)
        self._foreground = foreground
        self._groups = [
            _whole([share if one is of else Fraction(0) for share, one in zip(shares, native, strict=True)])
            for of in (False, True)
            if of in native
        ]

    @property
    def length(self) -> int:
        """Frames after which it repeats."""
        if len(self._groups) == 1:
            return sum(self.weights)
        numbers = (self._foreground.m, self._foreground.n - self._foreground.m)
        turns = (sum(group) // gcd(sum(group), number) for group, number in zip(self._groups, numbers, strict=True))
        return self._foreground.n * lcm(*turns)

    def kinds(self) -> tuple[int, ...]:
        """The kinds of successive frames."""
        if len(self._groups) == 1:
            return spread(self.weights)
        foreground, native = (cycle(spread(group)) for group in self._groups)
        n, m = self._foreground.n, self._foreground.m
        return tuple(next(foreground if k % n < m else native) for k in range(self.length))


def _whole(shares: Sequence[Fraction]) -> tuple[int, ...]:
    """The same relations in the smallest whole numbers."""
    by = lcm(*(share.denominator for share in shares))
    whole = [int(share * by) for share in shares]
    return tuple(number // gcd(*whole) for number in whole)
