# SPDX-License-Identifier: Apache-2.0
"""How many seconds of trials decide whether a load is a bound of a loss goal (RFC 9971 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from dutperf.search import Outcome

INITIAL_TRIAL_S = 1.0
"""The shortest trials, where the conditions' own are longer."""


@dataclass(frozen=True)
class Lengths:
    """The same for all goals of a search."""

    final_trial_s: float
    duration_sum_s: float
    """Of all full-length trials that decide on a load."""
    exceed_ratio: float = 0.0
    """Share of the duration sum that trials may have which lose more than the goal allows."""

    @property
    def initial_trial_s(self) -> float:
        return min(INITIAL_TRIAL_S, self.final_trial_s)

    @property
    def trials(self) -> int:
        """Full-length trials that a load needs."""
        return ceil(self.duration_sum_s / self.final_trial_s)

    def outcome(self, trials: Sequence[tuple[float, Outcome]]) -> Outcome | None:
        """Whether a load is a lower bound (passed) or an upper one (failed), by the lengths and outcomes of its
        measured trials (RFC 9971, load classification); None: they do not decide yet."""
        good_s = [length_s for length_s, outcome in trials if outcome is Outcome.PASSED]
        bad_s = [length_s for length_s, outcome in trials if outcome is not Outcome.PASSED]
        full_good_s, full_bad_s = (sum(one for one in some if one >= self.final_trial_s) for some in (good_s, bad_s))
        balance_s = (sum(good_s) - full_good_s) * self.exceed_ratio / (1 - self.exceed_ratio)
        excess_s = full_bad_s + max(0.0, sum(bad_s) - full_bad_s - balance_s)
        whole_s = max(self.duration_sum_s, excess_s + full_good_s)
        if excess_s > whole_s * self.exceed_ratio:
            return Outcome.FAILED
        return Outcome.PASSED if whole_s - full_good_s <= whole_s * self.exceed_ratio else None
