# SPDX-License-Identifier: Apache-2.0
"""How often a load is tried: fewer times where the search can do without it, and once more only where
bad luck may be the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dutperf.model import (
    FRAME_SIZE,
    LOSS_BINS,
    Case,
    Cause,
    LateBursts,
    Load,
    Question,
    TrialResult,
    Verdict,
)
from dutperf.procedures.bench import Place
from dutperf.results import labels
from dutperf.run.attempts import (
    APART,
    AT_LEAST,
    AT_LEAST_AT_THE_END,
    ATTEMPTS,
    ATTEMPTS_AT_THE_END,
    ATTEMPTS_NEVER_CALM,
    ATTEMPTS_WITHIN_REACH,
    IN_VAIN,
    JUDGED_BY,
    Attempts,
    stated,
)
from plans import counts, trial

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


def test_where_others_are_hardly_disturbed_the_load_itself_cannot_be_judged() -> None:
    calm = after(100)
    assert trials(calm, LOAD, NARROW, *INVALID) == AT_LEAST_AT_THE_END
    assert trials(calm, LOAD, AGAIN, *INVALID) == 1


@pytest.fixture
def unclear() -> Attempts:
    """Of a run in which a load was inconclusive at ``APART`` times, between others that were conclusive."""
    attempts = after(100)
    for _ in range(APART):
        trials(attempts, Load.fps(10_000), OPEN, Verdict.VALID)
        trials(attempts, LOAD, NARROW, *INVALID)
    return attempts


def test_loads_next_to_one_that_cannot_be_judged_get_one_trial(unclear: Attempts) -> None:
    later = replace(OPEN, repetition=2)
    assert trials(unclear, Load.fps(10_005), later, *INVALID) == 1
    assert trials(unclear, Load.fps(10_011), later, *INVALID) == 1


def test_one_that_can_be_judged_parts_them(unclear: Attempts) -> None:
    trials(unclear, Load.fps(10_005), OPEN, Verdict.VALID)
    assert trials(unclear, Load.fps(10_004), OPEN, *INVALID) == ATTEMPTS_WITHIN_REACH
    assert trials(unclear, Load.fps(10_006), OPEN, *INVALID) == 1


def test_a_disturbance_that_lasts_for_a_while_makes_no_load_impossible_to_judge() -> None:
    """No valid trial lies between the inconclusive ones."""
    calm = after(100)
    trials(calm, Load.fps(10_000), OPEN, Verdict.VALID)
    for number in range(APART + 1):
        assert trials(calm, Load.fps(10_010 + number), OPEN, *INVALID) == ATTEMPTS_WITHIN_REACH


def test_a_load_offered_again_that_cannot_be_judged_is_settled(unclear: Attempts) -> None:
    settled = unclear.settled(LOAD, AGAIN)
    assert settled is not None
    assert settled.verdict is Verdict.INVALID
    assert unclear.settled(LOAD, NARROW) is None, "it is not offered again"
    assert unclear.settled(LOAD, replace(AGAIN, duration_s=1.0)) is None, "for another sending time"
    assert unclear.settled(LOAD, replace(AGAIN, repetition=2)) is None


@pytest.mark.parametrize(
    ("question", "code"), [(Question(), "dut_disturbed"), (Question(resolution=0.001), "link_down")]
)
def test_only_what_a_search_cannot_tell_from_a_disturbance_counts(question: Question, code: str) -> None:
    """Not trials that a procedure needs for their figures, nor those that failed for other reasons."""
    attempts = after(100)
    invalid = TrialResult(trial=0, verdict=Verdict.INVALID, causes=(Cause(code=code, text="it was"),))
    for _ in range(2 * APART):
        trials(attempts, Load.fps(10_000), OPEN, Verdict.VALID)
        visit = attempts.visit(LOAD, OPEN)
        for _ in range(ATTEMPTS_WITHIN_REACH - 1):
            visit.goes_on_after(trial(question=question), invalid)
    assert attempts.settled(LOAD, AGAIN) is None
    assert not attempts.is_dispensable(LOAD, OPEN)


def test_where_others_are_disturbed_too_it_gets_the_same_once_more() -> None:
    busy = after(60, 40)
    trials(busy, LOAD, NARROW, *INVALID)
    assert trials(busy, LOAD, AGAIN, *INVALID) == ATTEMPTS_AT_THE_END


@pytest.fixture
def in_vain() -> Attempts:
    """Of a run in which further trials have not helped, and inconclusive ones have cost too much."""
    attempts = after(IN_VAIN)
    assert trials(attempts, LOAD, OPEN, *INVALID) >= AT_LEAST
    assert trials(attempts, LOAD, OPEN, *INVALID) == AT_LEAST
    return attempts


def test_where_further_trials_are_in_vain_there_are_none_until_one_helps(in_vain: Attempts) -> None:
    assert trials(in_vain, LOAD, OPEN, *INVALID) == 1
    for _ in range(30):
        trials(in_vain, LOAD, OPEN, Verdict.VALID)
    assert trials(in_vain, LOAD, OPEN, Verdict.INVALID, Verdict.VALID) == 2, "they cost little again"
    while not in_vain.is_costly():
        trials(in_vain, LOAD, OPEN, Verdict.INVALID, Verdict.VALID)
    assert trials(in_vain, LOAD, OPEN, *INVALID) == AT_LEAST, "the last one helped"


@pytest.fixture
def never_calm() -> Attempts:
    """Of a run in which frames left in bursts in every trial, though it was valid as a rule."""
    attempts = Attempts()
    for number in range(JUDGED_BY):
        attempts.visit(Load.fps(20_000 + number), OPEN).goes_on_after(TRIAL, stalled(Verdict.VALID))
    return attempts


def stalled(verdict: Verdict) -> TrialResult:
    bursts = LateBursts(frames=20, bins=(20, *[0] * (LOSS_BINS - 1)))
    return TrialResult(trial=0, verdict=verdict, forward=counts(late_bursts=bursts), reverse=counts())


def test_where_no_trial_is_calm_a_search_does_not_wait_for_one(never_calm: Attempts) -> None:
    assert trials(never_calm, LOAD, OPEN, *INVALID) == ATTEMPTS_NEVER_CALM
    assert trials(never_calm, Load.fps(10_011), OPEN, *INVALID) == ATTEMPTS_NEVER_CALM
    assert trials(never_calm, Load.fps(10_012), OPEN, *INVALID) == 1, "beyond their share of the time"
    assert trials(never_calm, LOAD, NARROW, *INVALID) == 1
    assert never_calm.settled(LOAD, AGAIN) is not None


def test_who_needs_figures_waits_nevertheless(never_calm: Attempts) -> None:
    visit = never_calm.visit(LOAD, OPEN)
    figures = trial(question=Question())
    used = [visit.goes_on_after(figures, stalled(Verdict.INVALID)) for _ in range(ATTEMPTS_NEVER_CALM)]
    assert None not in used


def test_a_calm_trial_now_and_then_is_worth_waiting_for(never_calm: Attempts) -> None:
    for number in range(4):
        trials(never_calm, Load.fps(20_000 + number), OPEN, Verdict.VALID)
    assert trials(never_calm, LOAD, OPEN, *INVALID) > ATTEMPTS_NEVER_CALM
    assert never_calm.settled(LOAD, AGAIN) is None


def test_a_trial_that_is_needed_for_its_figures_is_tried_again_nevertheless(in_vain: Attempts) -> None:
    visit = in_vain.visit(LOAD, OPEN)
    figures, invalid = trial(question=Question()), TrialResult(trial=0, verdict=Verdict.INVALID)
    assert [visit.goes_on_after(figures, invalid) is None for _ in range(AT_LEAST)] == [False, False, True]


@pytest.mark.parametrize("place", [OPEN, NARROW, AGAIN])
def test_the_first_conclusive_trial_is_the_last(place: Place) -> None:
    assert trials(after(100), LOAD, place, Verdict.VALID) == 1


def test_each_number_has_a_label() -> None:
    assert {f"search.attempts.{name}" for name in stated()} <= labels.of_conditions().keys()
