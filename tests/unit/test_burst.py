# SPDX-License-Identifier: Apache-2.0
"""The search for the longest burst: ends whatever happens, finds the truth within its resolution,
and one accident alone fails no burst."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import LimitedBy
from dutperf.search import Loss, Outcome
from dutperf.search.binary import SearchResult
from dutperf.search.burst import FIRST_FRAMES, BurstSearch

P, F, S, U = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_FORWARDING, Outcome.UNMEASURABLE
LONGEST = 10_000_000
MOST_TRIALS = 1_000
longest = st.integers(1, LONGEST)
shares = st.floats(1e-6, 0.5)
verifications = st.integers(0, 3)


def search(limits: tuple[int, float, int], measure: Callable[[int], Outcome]) -> SearchResult:
    one = BurstSearch(*limits)
    for _ in range(MOST_TRIALS):
        frames = one.next_load()
        if frames is None:
            with pytest.raises(ValueError, match="ended"):
                one.record_outcome(P)
            assert one.trials_left() == 0
            return one.result()
        one.record_outcome(measure(frames))
    raise AssertionError(f"no end after {MOST_TRIALS} trials")


@given(limits=st.tuples(longest, shares, verifications), truth=st.integers(0, LONGEST))
def test_finds_the_truth_within_the_resolution(limits: tuple[int, float, int], truth: int) -> None:
    found = search(limits, lambda frames: P if frames <= truth else F)
    if truth >= limits[0]:
        assert (found.lower_bound, found.upper_bound, found.limited_by) == (limits[0], None, LimitedBy.RANGE)
        return
    assert (found.lower_bound or 0) <= truth < (found.upper_bound or 0)
    assert (found.upper_bound or 0) - (found.lower_bound or 0) <= max(1, limits[1] * (found.upper_bound or 0))
    assert found.limited_by is LimitedBy.DUT
    assert found.loads[0][0] == min(FIRST_FRAMES, limits[0])
    failed = [frames for frames, outcome in found.loads if outcome is F]
    assert all(failed.count(frames) == 1 + limits[2] for frames in failed)


@given(
    limits=st.tuples(longest, shares, verifications),
    outcomes=st.lists(st.sampled_from(Outcome), max_size=300),
    last=st.sampled_from(Outcome),
)
def test_ends_for_any_outcomes_with_a_burst_that_passed(
    limits: tuple[int, float, int], outcomes: list[Outcome], last: Outcome
) -> None:
    told: Iterator[Outcome] = chain(outcomes, repeat(last))
    found = search(limits, lambda _: next(told))
    assert found.lower_bound is None or (found.lower_bound, P) in found.loads
    assert all(1 <= frames <= limits[0] for frames, _ in found.loads)


def test_one_accident_fails_no_burst_and_two_do() -> None:
    met: set[int] = set()

    def first_time_lost(frames: int) -> Outcome:
        met.add(frames) if (new := frames not in met) else None
        return F if new or frames > 1_000 else P

    assert search((4_096, 1e-6, 1), first_time_lost).lower_bound == 1_000
    met.clear()
    assert search((4_096, 1e-6, 0), first_time_lost).lower_bound is None


def test_a_dead_dut_has_no_value_and_is_asked_for_a_sign_of_life() -> None:
    found = search((4_096, 0.01, 1), lambda _: S)
    assert (found.not_forwarding, found.lower_bound, found.limited_by) == (True, None, LimitedBy.DUT)
    assert found.loads == ((64, S), (64, S), (1, S), (1, S))


@pytest.mark.parametrize("began", range(2, 20))
@pytest.mark.parametrize("trials", [2, 3, 5])
def test_an_outage_of_several_bursts_decides_no_search(began: int, trials: int) -> None:
    one, number = BurstSearch(4_096, 0.001, 1), 0
    while (frames := one.next_load()) is not None:
        if began <= number < began + trials:
            one.record_outcome(S, Loss(frames, frames, one_episode=True))
        else:
            one.record_outcome(P if frames <= 1_000 else F)
        number += 1
    assert one.result().lower_bound == 1_000


def test_a_dut_without_a_buffer_is_not_dead() -> None:
    """Of a burst of one frame everything is lost where one is: that is a loss like any other."""
    found = search((4_096, 0.01, 0), lambda frames: F if frames > 1 else S)
    assert (found.not_forwarding, found.lower_bound, found.upper_bound, found.limited_by) == (
        False,
        None,
        1,
        LimitedBy.DUT,
    )
    assert search((4_096, 0.01, 0), lambda frames: F if frames > 1 else P).lower_bound == 1


def test_a_burst_that_cannot_be_measured_is_never_a_loss() -> None:
    found = search((4_096, 0.001, 1), lambda frames: U if frames > 1_000 else P)
    assert (found.lower_bound, found.limited_by) == (1_000, LimitedBy.TESTER)
