# SPDX-License-Identifier: Apache-2.0
"""Where a repetition's binary search begins, so that what it finds rests on its own trials alone,
and yet takes few of them.

An interval over repetitions presumes that they are independent. A search that begins where the last
one ended, with steps of the resolution, ends nearby on a DUT that scatters more widely than that;
and searches that all begin at the same load end on the same grid, at the same distance from the
truth.

So a search begins at a random place of a wide step around the last value, and its first step is
that wide. The loads that it can reach by such steps are a grid whose place is random, whatever was
found before: the last value only says at which of them to begin. Where the step is wider than the
DUT scatters, that does not matter: of two of them so far apart the lower one passes and the higher
one fails, whichever is offered first. Both are offered, always. How wide, and what it does:
docs/decisions/0005-repetitions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, sqrt
from random import Random
from statistics import variance

from dutperf.search.binary import Bounds, Near

FIRST_STEP = 16
"""The second repetition knows no scatter: its first step is so many resolutions. Each later one may
halve that, until it is one."""
SCATTERS = 5
"""The first step is about so many standard deviations of the values so far, or wider."""
FEW = 4
"""Of fewer differences than that, a standard deviation is too often too small by far: it takes
more, by the square of the proportion."""
WIDEST = 0.5
"""A first step of a greater share of the last value would save nothing: where that is to be
expected, too, the last value is not looked at."""


@dataclass(frozen=True)
class Known:
    """What earlier repetitions found: where the value is expected, and all their values (None:
    nothing passed)."""

    near: int
    values: Sequence[int | None]


def begin(bounds: Bounds, known: Known, seed: str) -> Near:
    """Where the next repetition's search begins; at the same place for the same ``seed``."""
    near, chance = known.near, Random(seed).random()
    wide = _wide(known.values, bounds.resolution.at(near))
    if wide > WIDEST * near:
        return Near(bounds.clamp(round(bounds.first / 2**chance)))
    finest = bounds.resolution.at(round(near - wide))  # a power of two of it: then bisecting takes no trial more
    step = finest << max(0, round(log2(wide / finest)))
    if near >= bounds.highest:  # where it passes again, that is all there is to find
        return Near(bounds.highest, max(1, round(step * (1 + chance) / 2)))
    return Near(bounds.clamp(near + round(step * (chance - 0.5))), step)


def _wide(values: Sequence[int | None], resolution: int) -> float:
    """How wide the first step has to be, for what is known of the scatter."""
    unknown = max(1.0, FIRST_STEP * 0.5 ** (len(values) - 1)) * resolution
    scatters = SCATTERS * max(1.0, FEW / max(1, len(values) - 1)) ** 2
    return max(unknown, scatters * _scatter(values, resolution))


def _scatter(values: Sequence[int | None], resolution: int) -> float:
    """Standard deviation, without what the grid's random place adds (that of values which are
    uniform over a resolution)."""
    numbers = [value or 0 for value in values]
    return sqrt(max(0.0, variance(numbers) - resolution**2 / 12)) if len(numbers) > 1 else 0.0
