# SPDX-License-Identifier: Apache-2.0
"""A series of rates from the highest down, as RFC 2544 26.3 has it: it ends where two rates in a
row pass.

A rate that could not be measured says nothing about the DUT: it is neither a rate that passed nor
one that failed, and the two in a row begin anew.

Rates are in frames/s per direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.search import Outcome
from dutperf.search.binary import DEFAULT_MINIMUM_FPS

PASSES_IN_A_ROW = 2
"""RFC 2544 26.3: "until there are two successive trials in which no frames are lost"."""


class Series:
    """Ask :meth:`next_fps`, tell :meth:`tell`, until the former is None.

    A rate that is silent (nothing came through in some direction) raises the question whether the
    DUT works at all. A low rate is tried once then: if it is silent too, the series ends. If not,
    the DUT lost all frames of the rate before.
    """

    def __init__(self, rates_fps: Sequence[int], *, to_the_end: bool) -> None:
        """``rates_fps`` from the highest down; ``to_the_end``: all of them, whatever passes."""
        self._rates_fps = rates_fps
        self._to_the_end = to_the_end
        self._offered = 0
        self._passes_in_a_row = 0
        self._silent_at_fps: int | None = None
        self.silent = False
        """Whether the DUT forwards nothing at all."""
        self.lower_fps: int | None = None
        """Highest rate that passed."""
        self.upper_fps: int | None = None
        """Lowest rate that did not pass."""

    @property
    def probing(self) -> bool:
        """Whether the next load is not one of the series, but asks for a sign of life."""
        return self._silent_at_fps is not None

    def next_fps(self) -> int | None:
        """The rate to offer next; None where the series has ended."""
        if self.silent:
            return None
        if self._silent_at_fps is not None:
            return min(DEFAULT_MINIMUM_FPS, self._silent_at_fps)
        return self._rates_fps[self._offered] if self.trials_left() else None

    def tell(self, outcome: Outcome) -> None:
        """``outcome`` of the load that :meth:`next_fps` asked for.

        Raises:
            ValueError: the series has ended.
        """
        rate_fps = self.next_fps()
        if rate_fps is None:
            raise ValueError("the series has ended")
        if self.probing:
            self._silent_at_fps = None
            self.silent = outcome is Outcome.SILENT
            return
        self._offered += 1
        self._learn(rate_fps, outcome)

    def trials_left(self) -> int:
        """Most rates that are still to be offered."""
        enough = not self._to_the_end and self._passes_in_a_row >= PASSES_IN_A_ROW
        return 0 if enough or self.silent else len(self._rates_fps) - self._offered

    def _learn(self, rate_fps: int, outcome: Outcome) -> None:
        self._passes_in_a_row = self._passes_in_a_row + 1 if outcome is Outcome.PASSED else 0
        if outcome is Outcome.PASSED:
            self.lower_fps = self.lower_fps or rate_fps
        else:
            self.upper_fps = rate_fps
        self._silent_at_fps = rate_fps if outcome is Outcome.SILENT else None
