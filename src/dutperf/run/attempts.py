# SPDX-License-Identifier: Apache-2.0
"""How often a load is tried until a trial says something about the DUT.

A trial is conclusive if it is valid, or proves in spite of a disturbance that the DUT fails.
"""

from __future__ import annotations

from collections import Counter

from dutperf.model import Case, Load, Trial, TrialResult, Verdict
from dutperf.procedures.bench import Place
from dutperf.search.binary import Resolution

ATTEMPTS = 4
"""Trials of one load before the tester counts as too slow for it."""
ATTEMPTS_WITHIN_REACH = 10
"""... if the tester has already run a conclusive trial of this case at that load or a higher one: it
is disturbed then, not too slow."""
AT_LEAST = 3
"""... of which this many are always run; further ones only within LOST_SHARE."""
ATTEMPTS_AT_THE_END, AT_LEAST_AT_THE_END = 4, 2
"""The same, if the search's bounds are so close that it does not need the load between them. Where it
offers that load again, and bad luck is no explanation, one more trial is enough."""
LOST_SHARE = 1 / 3
"""Inconclusive trials may take this share of the sending time of a run."""
UNLIKELY = 0.001
"""Bad luck of a lower probability is no explanation."""


def stated() -> dict[str, float]:
    """What decides how often a load is tried, for the record of a run."""
    return {
        "beyond_reach": ATTEMPTS,
        "within_reach": ATTEMPTS_WITHIN_REACH,
        "within_reach_at_least": AT_LEAST,
        "at_the_end": ATTEMPTS_AT_THE_END,
        "at_the_end_at_least": AT_LEAST_AT_THE_END,
        "inconclusive_share": LOST_SHARE,
        "unlikely": UNLIKELY,
    }


class Attempts:
    """The trials of a run, by load."""

    def __init__(self) -> None:
        self._reach: dict[Case, Load] = {}
        self._sent_s = {True: 0.0, False: 0.0}
        """By conclusive and inconclusive trials."""
        self._first = {True: 1, False: 1}
        """Loads whose first trial was conclusive, or was not. Both start at 1: no share is 0."""
        self._inconclusive: Counter[tuple[Case, int, Load]] = Counter()
        """Trials of a load in a repetition."""

    def visit(self, load: Load, place: Place) -> Visit:
        """The search at ``place`` offers ``load``."""
        return Visit(self, load, place)

    def is_within_reach(self, load: Load, case: Case) -> bool:
        """Whether a trial at this load or a higher one was conclusive. A load that is not a rate takes
        longer, but is never harder for the tester than a smaller one."""
        reached = self._reach.get(case)
        return reached is not None and (load <= reached or not load.unit.is_rate)

    def is_costly(self) -> bool:
        """Whether inconclusive trials took too much of the sending time so far."""
        return self._sent_s[False] > LOST_SHARE * sum(self._sent_s.values())

    def is_bad_luck(self, load: Load, place: Place) -> bool:
        """Whether the inconclusive trials of ``load`` are no more than could be expected from how often
        the tester is disturbed at other loads."""
        disturbed_share = self._first[False] / sum(self._first.values())
        return disturbed_share ** self._inconclusive[place.case, place.repetition, load] >= UNLIKELY

    def count(self, load: Load, place: Place, sent_s: float, *, is_conclusive: bool) -> None:
        """Count a trial of ``load`` that sent for ``sent_s`` seconds."""
        self._sent_s[is_conclusive] += sent_s
        if is_conclusive:
            self._reach[place.case] = max(load, self._reach.get(place.case, load))
        else:
            self._inconclusive[place.case, place.repetition, load] += 1

    def count_first(self, *, is_conclusive: bool) -> None:
        """Count the first trial of a load that a search needs."""
        self._first[is_conclusive] += 1


class Visit:
    """The trials for which a search offers a load once."""

    def __init__(self, attempts: Attempts, load: Load, place: Place) -> None:
        self._attempts = attempts
        self._load = load
        self._place = place
        self._is_within_reach = attempts.is_within_reach(load, place.case)
        self._trials = 0

    def goes_on_after(self, trial: Trial, result: TrialResult) -> int | None:
        """Count ``trial``. Returns how many trials there are at most if another one follows; None if
        none does."""
        self._trials += 1
        is_conclusive = result.verdict is Verdict.VALID or result.proven_failed is not None
        sent_s = trial.duration_s if result.ended_early_s is None else result.ended_early_s
        self._attempts.count(self._load, self._place, sent_s, is_conclusive=is_conclusive)
        is_narrow = _is_narrow(self._load, self._place, trial.question.resolution)
        if self._trials == 1 and not is_narrow:
            self._attempts.count_first(is_conclusive=is_conclusive)
        most, at_least = self._limits(is_narrow)
        return None if is_conclusive or self._trials >= (at_least if self._attempts.is_costly() else most) else most

    def _limits(self, is_narrow: bool) -> tuple[int, int]:
        """Trials at most, and how many of them are run whatever they cost."""
        if not self._is_within_reach:
            return ATTEMPTS, ATTEMPTS
        if not is_narrow:
            return ATTEMPTS_WITHIN_REACH, AT_LEAST
        if self._attempts.is_bad_luck(self._load, self._place):
            return ATTEMPTS_AT_THE_END, AT_LEAST_AT_THE_END
        is_offered_again = self._place.upper == self._load
        return (1, 1) if is_offered_again else (AT_LEAST_AT_THE_END, AT_LEAST_AT_THE_END)


def _is_narrow(load: Load, place: Place, resolution: float) -> bool:
    """Whether the bounds of a search are so close that it does not need ``load`` between them
    (:mod:`dutperf.search.binary`)."""
    if place.lower is None or place.upper is None or load > place.upper or not resolution:
        return False
    upper = place.upper.value
    return upper - place.lower.value <= Resolution(share=resolution).widened(upper)
