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
"""The same, if the search's bounds are so close that it does not need the load between them."""
LOST_SHARE = 1 / 3
"""Inconclusive trials may take this share of the sending time of a run."""
UNLIKELY = 0.0005
"""If so many inconclusive trials are less probable by bad luck, the load cannot be judged."""


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
        """Loads with a conclusive trial, by whether it was their first. Both start at 1: no share is 0."""
        self._conclusive: dict[Case, set[Load]] = {}
        """Loads with a conclusive trial."""
        self._inconclusive: Counter[tuple[Case, int, Load]] = Counter()
        """Trials of a load in a repetition."""
        self._last: dict[Offer, TrialResult] = {}
        """The last inconclusive trials."""

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

    def is_dispensable(self, load: Load, place: Place) -> bool:
        """Whether ``load`` probably cannot be judged, and a search can do without it: there are conclusive
        loads below and above, and more inconclusive trials between these than could be expected from
        how often the tester is disturbed at other loads.

        A DUT that hardly fails a load hardly fails those next to it, and no further trial changes that.
        A load above one that could not be measured is not dispensable: where it fails, the search ends.
        """
        conclusive = self._conclusive.get(place.case, set())
        below = max((one for one in conclusive if one < load), default=None)
        above = min((one for one in conclusive if one > load), default=None)
        is_probe = place.upper is not None and load > place.upper
        if below is None or above is None or is_probe:
            return False
        if load in conclusive:
            trials = self._inconclusive[place.case, place.repetition, load]
        else:
            trials = sum(
                trials
                for (case, _, one), trials in self._inconclusive.items()
                if case == place.case and below < one < above
            )
        disturbed_share = self._first[False] / sum(self._first.values())
        return disturbed_share**trials < UNLIKELY

    def settled(self, load: Load, place: Place) -> TrialResult | None:
        """The last trial of ``load``, if the search offers it once more but another trial would be as
        inconclusive."""
        is_offered_again = load == place.upper
        return self._last.get(_offer(load, place)) if is_offered_again and self.is_dispensable(load, place) else None

    def count(self, load: Load, place: Place, trial: Trial, result: TrialResult, *, is_first: bool) -> bool:
        """Count a trial of ``load``. ``is_first``: of this visit. Returns whether it was conclusive."""
        is_conclusive = result.verdict is Verdict.VALID or result.proven_failed is not None
        self._sent_s[is_conclusive] += trial.duration_s if result.ended_early_s is None else result.ended_early_s
        if is_conclusive:
            self._first[is_first] += 1
            self._reach[place.case] = max(load, self._reach.get(place.case, load))
            self._conclusive.setdefault(place.case, set()).add(load)
        else:
            self._inconclusive[place.case, place.repetition, load] += 1
            self._last[_offer(load, place)] = result
        return is_conclusive


Offer = tuple[Case, int, Load, float | None]


def _offer(load: Load, place: Place) -> Offer:
    """What distinguishes the trials that a search asks for."""
    return place.case, place.repetition, load, place.duration_s


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
        is_conclusive = self._attempts.count(self._load, self._place, trial, result, is_first=self._trials == 1)
        most, at_least = self._limits(trial.question.resolution)
        return None if is_conclusive or self._trials >= (at_least if self._attempts.is_costly() else most) else most

    def _limits(self, resolution: float) -> tuple[int, int]:
        """Trials at most, and how many of them are run whatever they cost."""
        if not self._is_within_reach:
            return ATTEMPTS, ATTEMPTS
        if resolution and self._attempts.is_dispensable(self._load, self._place):
            return 1, 1
        if _is_narrow(self._load, self._place, resolution):
            return ATTEMPTS_AT_THE_END, AT_LEAST_AT_THE_END
        return ATTEMPTS_WITHIN_REACH, AT_LEAST


def _is_narrow(load: Load, place: Place, resolution: float) -> bool:
    """Whether the bounds of a search are so close that it does not need ``load`` between them
    (:mod:`dutperf.search.binary`)."""
    if place.lower is None or place.upper is None or load > place.upper or not resolution:
        return False
    upper = place.upper.value
    return upper - place.lower.value <= Resolution(share=resolution).widened(upper)
