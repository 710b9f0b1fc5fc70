# SPDX-License-Identifier: Apache-2.0
"""A series of loads from the highest down, as RFC 2544 26.3 has it: it ends where two loads in a
row pass.

A load that could not be measured says nothing about the DUT: it neither passed nor failed, and the
count of loads in a row starts again.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.search import NO_LOSS, Loss, Outcome, Probes
from dutperf.search.binary import DEFAULT_MINIMUM

PASSES_IN_A_ROW = 2
"""RFC 2544 26.3: "until there are two successive trials in which no frames are lost"."""


class Series:
    """Call :meth:`next_load` and :meth:`record_outcome` in turn until the former is None.

    Where nothing comes through in some direction, the DUT may not work at all. A low load is then
    a probe (:class:`dutperf.search.Probes`). If nothing comes through either, the series ends; else the DUT
    lost all frames of the load before.
    """

    def __init__(self, loads: Sequence[int], *, to_the_end: bool, lowest: int = 1, has_forwarded: bool = False) -> None:
        """``loads`` from the highest down; ``to_the_end``: offer all of them, whatever passes; ``lowest``: a probe has
        no lower load; ``has_forwarded``: the DUT did in an earlier series."""
        self._loads = loads
        self._probe = max(DEFAULT_MINIMUM, lowest)
        self._to_the_end = to_the_end
        self._offered = 0
        self._passes_in_a_row = 0
        self._probed_for: int | None = None
        self._probes = Probes(has_forwarded=has_forwarded)
        self.lower: int | None = None
        """Highest load that passed."""
        self.upper: int | None = None
        """Lowest load that did not pass."""

    @property
    def not_forwarding(self) -> bool:
        """Whether the DUT forwards nothing at all."""
        return self._probes.not_forwarding

    @property
    def probing(self) -> bool:
        """Whether the next load is a probe, not one of the series."""
        return self._probed_for is not None

    def next_load(self) -> int | None:
        if self.not_forwarding:
            return None
        if self._probed_for is not None:
            return min(self._probe, self._probed_for)
        return self._loads[self._offered] if self.trials_left() else None

    def record_outcome(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """Take the outcome of the load that :meth:`next_load` named. Raises ValueError: the series has ended."""
        load = self.next_load()
        if load is None:
            raise ValueError("the series has ended")
        self._probes.see(outcome, loss)
        if self.probing:
            self._probed_for = self._probed_for if self._probes.another(outcome) else None
            return
        self._offered += 1
        self._count(load, outcome)

    def trials_left(self) -> int:
        """Most loads that are still to be offered."""
        enough = not self._to_the_end and self._passes_in_a_row >= PASSES_IN_A_ROW
        return 0 if enough or self.not_forwarding else len(self._loads) - self._offered

    def _count(self, load: int, outcome: Outcome) -> None:
        self._passes_in_a_row = self._passes_in_a_row + 1 if outcome is Outcome.PASSED else 0
        if outcome is Outcome.PASSED:
            self.lower = self.lower or load
        else:
            self.upper = load
        self._probed_for = load if outcome is Outcome.NOT_FORWARDING else None
