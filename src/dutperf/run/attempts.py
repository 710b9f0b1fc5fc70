# SPDX-License-Identifier: Apache-2.0
"""How often a load is tried until a trial says something about the DUT.

A trial is conclusive if it is valid, or proves in spite of a disturbance that the DUT fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from dutperf.judge.validity import OVERCOME
from dutperf.model import Case, Load, Trial, TrialResult, Verdict
from dutperf.procedures import evidence
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
IN_VAIN = 4
"""After so many further trials in a row that were inconclusive too, a search has no further ones beyond
LOST_SHARE: it can end without the load."""
ATTEMPTS_NEVER_CALM, NEVER_CALM_SHARE, JUDGED_BY = 2, 1 / 8, 8
"""Trials of one load of a search, one of them beyond LOST_SHARE, on a tester that is always disturbed: of
``JUDGED_BY`` trials or more, at most this share were valid without any late burst."""
APART = 3
"""So often, with valid trials between, loads of a range have to be inconclusive before it counts as
one that cannot be judged."""
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
        "in_vain": IN_VAIN,
        "never_calm": ATTEMPTS_NEVER_CALM,
        "apart": APART,
        "unlikely": UNLIKELY,
    }


class Attempts:
    """The trials of a run, by load."""

    def __init__(self) -> None:
        self._sent_s = {True: 0.0, False: 0.0}
        """By conclusive and inconclusive trials."""
        self._first = {True: 1, False: 1}
        """Visits with a conclusive trial, by whether it was their first. Both start at 1: no share is 0."""
        self._calm = {True: 0, False: 0}
        """Trials, by whether they were valid without any late burst."""
        self._in_vain = 0
        """Further trials of a load since the last one that was conclusive."""
        self._conclusive: dict[Case, set[Load]] = {}
        self._valid = 0
        """Valid trials so far."""
        self._inconclusive: list[Inconclusive] = []
        """Those of searches in which the DUT may have lost frames because of a disturbance."""

    def visit(self, load: Load, place: Place) -> Visit:
        """The search at ``place`` offers ``load``."""
        return Visit(self, load, place)

    def is_within_reach(self, load: Load, case: Case) -> bool:
        """Whether a trial at this load or a higher one was conclusive. A load that is not a rate takes
        longer, but is never harder for the tester than a smaller one."""
        reached = self._conclusive.get(case)
        return reached is not None and (load <= max(reached) or not load.unit.is_rate)

    def is_costly(self) -> bool:
        """Whether inconclusive trials took too much of the sending time so far."""
        return self._sent_s[False] > LOST_SHARE * sum(self._sent_s.values())

    def is_never_calm(self) -> bool:
        """Whether the tester is disturbed in nearly every trial, so that another one will be as well."""
        trials = sum(self._calm.values())
        return trials >= JUDGED_BY and self._calm[True] <= NEVER_CALM_SHARE * trials

    def helps_rarely(self) -> bool:
        """Whether a further trial of a load has been as inconclusive as the first for a while: what
        disturbs the tester goes on."""
        return self._in_vain >= IN_VAIN

    def is_bad_luck(self, load: Load, place: Place) -> bool:
        """Whether the inconclusive trials of ``load`` in this repetition are no more than could be
        expected from how often the tester is disturbed at other loads."""
        return self._probability(len(self._inconclusive_at(load, place))) >= UNLIKELY

    def is_dispensable(self, load: Load, place: Place) -> bool:
        """Whether ``load`` probably cannot be judged, and a search can do without it: there are conclusive
        loads below and above, and trials between these were inconclusive more often than could be expected.

        A DUT that hardly fails a load hardly fails those next to it, and no further trial changes that.
        A disturbance of the machine that lasts for a while is no reason to think so: inconclusive trials
        without a valid one between them count once. A load above one that could not be measured is not
        dispensable: where it fails, the search ends.
        """
        conclusive = self._conclusive.get(place.case, set())
        below = max((one for one in conclusive if one < load), default=None)
        above = min((one for one in conclusive if one > load), default=None)
        is_probe = place.upper is not None and load > place.upper
        if below is None or above is None or load in conclusive or is_probe:
            return False
        around = [one for one in self._inconclusive if one.place.case == place.case and below < one.load < above]
        times = len({one.valid_before for one in around})
        return times >= APART and self._probability(times) < UNLIKELY

    def _probability(self, inconclusive: int) -> float:
        """Of so many inconclusive trials by bad luck."""
        return float((self._first[False] / sum(self._first.values())) ** inconclusive)

    def settled(self, load: Load, place: Place) -> TrialResult | None:
        """The last trial of ``load``, if the search offers it once more but another trial would be as
        inconclusive."""
        if load != place.upper or not (self.is_never_calm() or self.is_dispensable(load, place)):
            return None
        own = self._inconclusive_at(load, place)
        return own[-1].result if own else None

    def _inconclusive_at(self, load: Load, place: Place) -> list[Inconclusive]:
        """Trials of ``load`` that the search at ``place`` asked for."""
        return [one for one in self._inconclusive if one.load == load and one.is_of(place)]

    def count(self, load: Load, place: Place, trial: Trial, result: TrialResult, *, is_first: bool) -> bool:
        """Count a trial of ``load``. ``is_first``: of this visit. Returns whether it was conclusive."""
        is_conclusive = result.verdict is Verdict.VALID or result.proven_failed is not None
        self._sent_s[is_conclusive] += trial.duration_s if result.ended_early_s is None else result.ended_early_s
        self._valid += result.verdict is Verdict.VALID
        bursts = [one.late_bursts for one in result.directions().values()]
        self._calm[result.verdict is Verdict.VALID and not any(bursts)] += 1
        if not is_first:
            self._in_vain = 0 if is_conclusive else self._in_vain + 1
        if is_conclusive:
            self._first[is_first] += 1
            self._conclusive.setdefault(place.case, set()).add(load)
        elif trial.question.resolution and {cause.code for cause in result.causes} <= OVERCOME:
            self._inconclusive.append(Inconclusive(load, place, result, self._valid))
        return is_conclusive


@dataclass(frozen=True)
class Inconclusive:
    """A trial of a search that does not tell whether the DUT or a disturbance lost the frames."""

    load: Load
    place: Place
    result: TrialResult
    valid_before: int
    """Valid trials of the run before it."""

    def is_of(self, place: Place) -> bool:
        """Whether the same search asked for it, with the same sending time."""
        own = self.place
        return (own.case, own.repetition, own.duration_s) == (place.case, place.repetition, place.duration_s)


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
        if trial.question.once or evidence.is_refused(result):
            return None
        most, at_least = self._limits(trial.question.resolution)
        return None if is_conclusive or self._trials >= (at_least if self._attempts.is_costly() else most) else most

    def _limits(self, resolution: float) -> tuple[int, int]:
        """Trials at most, and how many of them are run even if inconclusive trials have cost too much."""
        if not self._is_within_reach:
            return ATTEMPTS, ATTEMPTS
        if self._attempts.is_dispensable(self._load, self._place):
            return 1, 1
        is_narrow = _is_narrow(self._load, self._place, resolution)
        most, at_least = (ATTEMPTS_AT_THE_END, AT_LEAST_AT_THE_END) if is_narrow else (ATTEMPTS_WITHIN_REACH, AT_LEAST)
        if resolution and self._attempts.is_never_calm():
            return (1, 1) if is_narrow else (ATTEMPTS_NEVER_CALM, 1)
        if is_narrow and not self._attempts.is_bad_luck(self._load, self._place):
            is_offered_again = self._place.upper == self._load
            return (1, 1) if is_offered_again else (AT_LEAST_AT_THE_END, AT_LEAST_AT_THE_END)
        return most, 1 if resolution and self._attempts.helps_rarely() else at_least


def _is_narrow(load: Load, place: Place, resolution: float) -> bool:
    """Whether the bounds of a search are so close that it does not need ``load`` between them
    (:mod:`dutperf.search.binary`)."""
    if place.lower is None or place.upper is None or load > place.upper or not resolution:
        return False
    upper = place.upper.value
    return upper - place.lower.value <= Resolution(share=resolution).widened(upper)
