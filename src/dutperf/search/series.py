# SPDX-License-Identifier: Apache-2.0
"""A series of loads from the highest down, as RFC 2544 26.3 has it: it ends where two loads in a
row pass.

A load that could not be measured says nothing about the DUT: it is neither a load that passed nor
one that failed, and the two in a row begin anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.search import Outcome
from dutperf.search.binary import DEFAULT_MINIMUM

PASSES_IN_A_ROW = 2
"""RFC 2544 26.3: "until there are two successive trials in which no frames are lost"."""


class Series:
    """Ask :meth:`next_load`, tell :meth:`tell`, until the former is None.

    A load that is silent (nothing came through in some direction) raises the question whether the
    DUT works at all. A low load is tried once then: if it is silent too, the series ends. If not,
    the DUT lost all frames of the load before.
    """

    def __init__(self, loads: Sequence[int], *, to_the_end: bool) -> None:
        """``loads`` from the highest down; ``to_the_end``: all of them, whatever passes."""
        self._loads = loads
        self._to_the_end = to_the_end
        self._offered = 0
        self._passes_in_a_row = 0
        self._silent_at: int | None = None
        self.silent = False
        """Whether the DUT forwards nothing at all."""
        self.lower: int | None = None
        """Highest load that passed."""
        self.upper: int | None = None
        """Lowest load that did not pass."""

    @property
    def probing(self) -> bool:
        """Whether the next load is not one of the series, but asks for a sign of life."""
        return self._silent_at is not None

    def next_load(self) -> int | None:
        """The load to offer next; None where the series has ended."""
        if self.silent:
            return None
        if self._silent_at is not None:
            return min(DEFAULT_MINIMUM, self._silent_at)
        return self._loads[self._offered] if self.trials_left() else None

    def tell(self, outcome: Outcome) -> None:
        """``outcome`` of the load that :meth:`next_load` asked for.

        Raises:
            ValueError: the series has ended.
        """
        load = self.next_load()
        if load is None:
            raise ValueError("the series has ended")
        if self.probing:
            self._silent_at = None
            self.silent = outcome is Outcome.SILENT
            return
        self._offered += 1
        self._learn(load, outcome)

    def trials_left(self) -> int:
        """Most loads that are still to be offered."""
        enough = not self._to_the_end and self._passes_in_a_row >= PASSES_IN_A_ROW
        return 0 if enough or self.silent else len(self._loads) - self._offered

    def _learn(self, load: int, outcome: Outcome) -> None:
        self._passes_in_a_row = self._passes_in_a_row + 1 if outcome is Outcome.PASSED else 0
        if outcome is Outcome.PASSED:
            self.lower = self.lower or load
        else:
            self.upper = load
        self._silent_at = load if outcome is Outcome.SILENT else None
