# SPDX-License-Identifier: Apache-2.0
"""Rates of the two directions to each other, as an access line has them: ``10:1``. Everywhere else the rate of a
trial is that of the faster direction; the other has its share of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dutperf.model import Direction

MOST = 1_000
"""To one."""


@dataclass(frozen=True)
class DirectionRates:
    """Frames/s of forward and reverse in the smallest whole numbers."""

    forward: int
    reverse: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError: the text is not two whole numbers."""
        found = re.fullmatch(r"\s*([1-9][0-9]{0,3})\s*:\s*([1-9][0-9]{0,3})\s*", text)
        if found is None or max(map(int, found.groups())) > MOST:
            raise ValueError(
                f"'{text}' should be the frames/s of forward to those of reverse, as in 10:1: whole numbers, 1 to"
                f" {MOST:,}"
            )
        ratio = Fraction(int(found[1]), int(found[2]))
        return cls(ratio.numerator, ratio.denominator)

    def __str__(self) -> str:
        return f"{self.forward}:{self.reverse}"

    @property
    def least_fps(self) -> int:
        """Of the faster direction: the other has a frame in a second then."""
        return -(-max(self.forward, self.reverse) // min(self.forward, self.reverse))

    def fps(self, direction: Direction, faster_fps: int) -> int:
        """Frames/s of a direction, rounded, at least 1."""
        return max(1, round(faster_fps * self.share(direction)))

    def share(self, direction: Direction) -> Fraction:
        own = self.forward if direction is Direction.FORWARD else self.reverse
        return Fraction(own, max(self.forward, self.reverse))
