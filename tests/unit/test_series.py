# SPDX-License-Identifier: Apache-2.0
"""A series of rates: which come next after which outcomes, and where it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.search import Outcome
from dutperf.search.series import Series

P, F, S, U = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_FORWARDING, Outcome.UNMEASURABLE
RATES = (1000, 900, 800, 700, 600)


def offered(rates: tuple[int, ...], outcomes: list[Outcome], *, to_the_end: bool = False) -> tuple[list[int], Series]:
    """Every load of a series that is told these outcomes, the last of them again and again."""
    series, loads = Series(rates, to_the_end=to_the_end), []
    while (load := series.next_load()) is not None:
        series.record_outcome(outcomes[min(len(loads), len(outcomes) - 1)])
        loads.append(load)
    return loads, series


@pytest.mark.parametrize(
    ("outcomes", "to_the_end", "loads"),
    [
        pytest.param([P], False, [1000, 900], id="two without loss"),
        pytest.param([F, P], False, [1000, 900, 800], id="the first loses"),
        pytest.param([F, P, F, P], False, [1000, 900, 800, 700, 600], id="two that are not in a row do not count"),
        pytest.param([F], False, [1000, 900, 800, 700, 600], id="all lose"),
        pytest.param([P, U, P], False, [1000, 900, 800, 700], id="what could not be measured breaks the row"),
        pytest.param([U, U, P], False, [1000, 900, 800, 700], id="beyond the tester's reach it goes on downwards"),
        pytest.param([P], True, list(RATES), id="to the end"),
        pytest.param([S, S], False, [1000, 10], id="dead: one more trial, at a low rate"),
        pytest.param([P, S, S, S, P], False, [1000, 900, 10, 10, 10, 800, 700], id="down for a while"),
        pytest.param([P] + [S] * 5, False, [1000, 900, 10, 10, 10, 10], id="dead since"),
        pytest.param([F, S, F, F], False, [1000, 900, 10, 800, 700, 600], id="silent once, alive at the low rate"),
        pytest.param(
            [S, P, S, P],
            False,
            [1000, 10, 900, 10, 800, 700],
            id="each silence is asked about; a sign of life is no rate of the series",
        ),
        pytest.param(
            [S, U, P], False, [1000, 10, 900, 800], id="a sign of life that could not be measured is no death"
        ),
    ],
)
def test_what_is_offered(outcomes: list[Outcome], to_the_end: bool, loads: list[int]) -> None:
    assert offered(RATES, outcomes, to_the_end=to_the_end)[0] == loads


@pytest.mark.parametrize(
    ("outcomes", "silent"), [([S], True), ([F, S], True), ([S, P], False), ([S, U, P], False), ([F], False)]
)
def test_when_the_dut_forwards_nothing(outcomes: list[Outcome], silent: bool) -> None:
    series = offered(RATES, outcomes)[1]
    assert (series.not_forwarding, series.next_load()) == (silent, None)


def test_the_bracket_for_a_progress_line() -> None:
    series = offered(RATES, [F, P, F, P])[1]
    assert (series.lower, series.upper) == (900, 800)


def test_a_low_rate_is_its_own_sign_of_life() -> None:
    assert offered((7, 5), [S])[0] == [7, 7]


def test_a_series_that_has_ended_is_told_no_more() -> None:
    series = offered(RATES, [P])[1]
    with pytest.raises(ValueError, match="ended"):
        series.record_outcome(P)


@given(
    rates=st.sets(st.integers(1, 10**6), min_size=1, max_size=40),
    outcomes=st.lists(st.sampled_from(Outcome), min_size=1, max_size=60),
    to_the_end=st.booleans(),
)
def test_every_rate_once_and_the_estimate_is_never_too_low(
    rates: set[int], outcomes: list[Outcome], to_the_end: bool
) -> None:
    descending = tuple(sorted(rates, reverse=True))
    series, told, number = Series(descending, to_the_end=to_the_end), [], 0
    while (load := series.next_load()) is not None:
        left = series.trials_left() + series.probing
        assert left > 0
        if not series.probing:
            told.append((load, outcomes[min(number, len(outcomes) - 1)]))
        series.record_outcome(outcomes[min(number, len(outcomes) - 1)])
        number += 1
        assert series.trials_left() < left or series.probing
    assert tuple(rate for rate, _ in told) == descending[: len(told)]
    two_pass = [outcome for _, outcome in told[-2:]] == [P, P]
    assert series.not_forwarding or len(told) == len(descending) or (two_pass and not to_the_end)
