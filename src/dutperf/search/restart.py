# SPDX-License-Identifier: Apache-2.0
"""Where a repetition's binary search begins: near the prior results, which saves trials, and yet
independent of them.

A confidence interval over repetitions presumes that they are independent. Two simple starts break
this. A search that starts at the last result with steps of the resolution ends nearby, even if the
DUT scatters more widely. Searches that all start at the same load end on the same grid, at the same
distance from the truth.

So a search begins at a random place within a wide step around the last result, and its first step
is that wide. The loads that it can reach by such steps form a grid with a random offset, whatever
the prior results; the last result only selects the grid load to begin with. This choice does not
matter where the step is wider than the DUT's scatter: of two neighbouring grid loads the lower one
passes and the higher one fails, and both are always offered. Width and effect:
docs/decisions/0005-repetitions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, sqrt
from random import Random
from statistics import variance

from dutperf.search.binary import Bounds, Start

FIRST_STEP = 16
"""First step of the second repetition, in resolutions: the scatter is unknown then. Each later
repetition may halve it, down to one."""
STEP_DEVIATIONS = 5
"""The first step is at least about so many standard deviations of the prior results."""
FEW = 4
"""With fewer differences, a standard deviation is too often far too small; the step is widened by
the square of the proportion."""
WIDEST = 0.5
"""A first step wider than this share of the last result saves no trials: then the search ignores
the last result."""


@dataclass(frozen=True)
class PriorResults:
    """Results of the earlier repetitions: where the next one is expected, and all values (None:
    nothing passed)."""

    expected: int
    values: Sequence[int | None]


def begin(bounds: Bounds, prior: PriorResults, seed: str) -> Start:
    """Where the next repetition's search begins; the same for the same ``seed``."""
    expected, uniform = prior.expected, Random(seed).random()
    width = _step_width(prior.values, bounds.resolution.at(expected))
    if width > WIDEST * expected:
        return Start(bounds.clamp(round(bounds.first / 2**uniform)))
    # The finest resolution times a power of two: then bisecting takes no extra trial.
    finest = bounds.resolution.at(round(expected - width))
    step = finest << max(0, round(log2(width / finest)))
    if expected >= bounds.highest:  # if the highest load passes again, the search ends
        return Start(bounds.highest, max(1, round(step * (1 + uniform) / 2)))
    return Start(bounds.clamp(expected + round(step * (uniform - 0.5))), step)


def _step_width(values: Sequence[int | None], resolution: int) -> float:
    """Width of the first step, from the scatter of the prior results."""
    least = max(1.0, FIRST_STEP * 0.5 ** (len(values) - 1)) * resolution
    deviations = STEP_DEVIATIONS * max(1.0, FEW / max(1, len(values) - 1)) ** 2
    return max(least, deviations * _scatter(values, resolution))


def _scatter(values: Sequence[int | None], resolution: int) -> float:
    """Standard deviation of the values, less the part that the grid's random offset adds (uniform
    over a resolution)."""
    numbers = [value or 0 for value in values]
    return sqrt(max(0.0, variance(numbers) - resolution**2 / 12)) if len(numbers) > 1 else 0.0
