# SPDX-License-Identifier: Apache-2.0
"""How often a load is tried: fewer times where the search can do without it, and once more only where
bad luck may be the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dutperf.model import FRAME_SIZE, Case, Load, Question, TrialResult, Verdict
from dutperf.procedures.bench import Place
from dutperf.run.attempts import (
    AT_LEAST_AT_THE_END,
    ATTEMPTS,
    ATTEMPTS_AT_THE_END,
    ATTEMPTS_WITHIN_REACH,
    Attempts,
)
from plans import trial

CASE = Case({FRAME_SIZE: 84})
LOAD = Load.fps(10_010)
TRIAL = trial(question=Question(resolution=0.001))
OPEN = Place(CASE, repetition=1, repetitions=1, trials_left=5)
NARROW = Place(CASE, 1, 1, 5, lower=Load.fps(10_000), upper=Load.fps(10_020))
AGAIN = Place(CASE, 1, 1, 5, lower=Load.fps(10_000), upper=LOAD)


def trials(attempts: Attempts, load: Load, place: Place, *verdicts: Verdict) -> int:
    """How many of ``verdicts`` are used before the load is left."""
    visit = attempts.visit(load, place)
    for number, verdict in enumerate(verdicts, 1):
        if visit.goes_on_after(TRIAL, TrialResult(trial=0, verdict=verdict)) is None:
            return number
    raise AssertionError("it goes on")


def after(conclusive: int, inconclusive: int = 0) -> Attempts:
    """The attempts of a run in which so many loads were conclusive at once, and so many not."""
    attempts = Attempts()
    for number in range(conclusive):
        trials(attempts, Load.fps(20_000 + number), OPEN, Verdict.VALID)
    for number in range(inconclusive):
        trials(attempts, Load.fps(10_100 + number), OPEN, Verdict.INVALID, Verdict.VALID)
    return attempts


INVALID = [Verdict.INVALID] * 20


def test_a_load_beyond_reach_and_one_within() -> None:
    assert trials(Attempts(), LOAD, OPEN, *INVALID) == ATTEMPTS
    assert trials(after(100), LOAD, OPEN, *INVALID) == ATTEMPTS_WITHIN_REACH


def test_a_load_that_the_search_does_not_need_gets_fewer() -> None:
    assert trials(after(60, 40), LOAD, NARROW, *INVALID) == ATTEMPTS_AT_THE_END


def test_a_load_above_the_bounds_may_be_the_only_one_that_fails() -> None:
    assert trials(after(100), Load.fps(10_050), NARROW, *INVALID) == ATTEMPTS_WITHIN_REACH


@pytest.fixture
def calm() -> Attempts:
    """Of a run in which loads below and above were conclusive at once."""
    attempts = after(100)
    trials(attempts, Load.fps(10_000), OPEN, Verdict.VALID)
    return attempts


def test_where_others_are_hardly_disturbed_the_load_itself_cannot_be_judged(calm: Attempts) -> None:
    assert calm.settled(LOAD, AGAIN) is None
    assert trials(calm, LOAD, NARROW, *INVALID) == AT_LEAST_AT_THE_END
    assert trials(calm, LOAD, AGAIN, *INVALID) == 1
    settled = calm.settled(LOAD, AGAIN)
    assert settled is not None
    assert settled.verdict is Verdict.INVALID
    assert calm.settled(LOAD, replace(AGAIN, duration_s=1.0)) is None


def test_loads_next_to_one_that_cannot_be_judged_get_one_trial(calm: Attempts) -> None:
    trials(calm, LOAD, NARROW, *INVALID)
    later = replace(OPEN, repetition=2)
    assert trials(calm, Load.fps(10_005), later, *INVALID) == 1
    assert trials(calm, Load.fps(10_011), later, *INVALID) == 1


def test_one_that_can_be_judged_parts_them(calm: Attempts) -> None:
    trials(calm, LOAD, NARROW, *INVALID)
    trials(calm, Load.fps(10_005), OPEN, Verdict.VALID)
    assert trials(calm, Load.fps(10_004), OPEN, *INVALID) == AT_LEAST_AT_THE_END
    assert trials(calm, Load.fps(10_006), OPEN, *INVALID) == 1


def test_where_a_procedure_needs_each_load_none_is_dispensable(calm: Attempts) -> None:
    every = trial(question=Question())
    visit = calm.visit(LOAD, OPEN)
    limits = [visit.goes_on_after(every, TrialResult(trial=0, verdict=Verdict.INVALID)) for _ in range(3)]
    assert limits == [ATTEMPTS_WITHIN_REACH] * 3


def test_where_others_are_disturbed_too_it_gets_the_same_once_more() -> None:
    busy = after(60, 40)
    trials(busy, LOAD, NARROW, *INVALID)
    assert trials(busy, LOAD, AGAIN, *INVALID) == ATTEMPTS_AT_THE_END


@pytest.mark.parametrize("place", [OPEN, NARROW, AGAIN])
def test_the_first_conclusive_trial_is_the_last(place: Place) -> None:
    assert trials(after(100), LOAD, place, Verdict.VALID) == 1
