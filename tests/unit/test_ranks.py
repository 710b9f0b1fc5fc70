# SPDX-License-Identifier: Apache-2.0
"""Rank tests: against every arrangement counted one by one, against published tables, and by how
often they err."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.statistics import ranks
from dutperf.statistics.ranks import Tails

few = st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=1, max_size=6)


def counted(first: list[Any], second: list[Any]) -> Tails:
    """By trying every way to choose the second sample."""
    together = [-inf if value is None else value for value in (*first, *second)]
    midranks = [
        sum(other < value for other in together) + (sum(other == value for other in together) + 1) / 2
        for value in together
    ]
    sums = [sum(chosen) for chosen in combinations(midranks, len(second))]
    seen = sum(midranks[len(first) :])
    return Tails(sum(one <= seen for one in sums) / len(sums), sum(one >= seen for one in sums) / len(sums))


@given(few, few)
def test_chances_are_those_of_all_arrangements(first: list[int | None], second: list[int | None]) -> None:
    assert ranks.tails(first, second) == pytest.approx(counted(first, second))


@given(few, few)
def test_the_samples_may_be_exchanged(first: list[int | None], second: list[int | None]) -> None:
    there, back = ranks.tails(first, second), ranks.tails(second, first)
    assert (there.low, there.high) == pytest.approx((back.high, back.low))


CRITICAL = [
    (5, 5, 0.05, 2),
    (8, 8, 0.05, 13),
    (10, 10, 0.05, 23),
    (20, 20, 0.05, 127),
    (10, 10, 0.01, 16),
    (7, 12, 0.05, 18),
    (20, 20, 0.01, 105),
]
"""Sizes, two-sided alpha, and the greatest U that is significant: the tables of Mann and Whitney as
textbooks have them."""


@pytest.mark.parametrize(("first", "second", "alpha", "greatest"), CRITICAL)
def test_critical_values_are_the_published_ones(first: int, second: int, alpha: float, greatest: int) -> None:
    assert ranks._outside(first, second, alpha) == greatest + 1


def test_an_interval_agrees_with_the_test() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        first, second = random.normal(0, 1, 7), random.normal(1, 1, 9)
        found = ranks.shift_interval(list(first), list(second), 0.05)
        assert found is not None
        assert (ranks.tails(list(first), list(second)).two_sided <= 0.05) == (found[0] > 0 or found[1] < 0)


def test_an_interval_covers_the_shift_as_often_as_it_says() -> None:
    random = np.random.default_rng(6)
    for sizes in ((6, 6), (60, 60)):
        pairs = [(list(random.gamma(2, 1, sizes[0])), list(random.gamma(2, 1, sizes[1]) + 3)) for _ in range(2_000)]
        covered = [low <= 3 <= high for low, high in (ranks.shift_interval(*pair, 0.05) or (0, 0) for pair in pairs)]
        assert 0.935 <= np.mean(covered) <= 0.98


def test_there_is_no_interval_of_too_few_values_or_of_missing_ones() -> None:
    assert ranks.shift_interval([1, 2, 3], [4, 5, 6], 0.05) is None
    assert ranks.shift_interval([1, 2, 3], [4, 5, 6], 0.1) == (1, 5)
    assert ranks.shift_interval([1, 2, None, 3], [4, 5, 6, 7], 0.1) is None


def test_large_samples_are_judged_as_the_exact_test_would() -> None:
    random = np.random.default_rng(7)
    for shift in (0, 1, 2):
        first, second = [list(random.integers(0, 12, 50) + offset) for offset in (0, shift)]
        midranks = ranks._doubled_midranks([*first, *second])
        seen = sum(midranks[50:])
        assert ranks._normal(midranks, 50, seen) == pytest.approx(
            ranks._exact(tuple(sorted(midranks)), 50, seen), rel=0.1, abs=1e-4
        )
    assert ranks.tails([1.0] * 80, [1.0] * 80) == Tails(1.0, 1.0)
    assert ranks.tails([1.0] * 80, [2.0] * 80).high < 1e-20


def test_no_more_false_alarms_than_stated_also_on_a_coarse_grid() -> None:
    random = np.random.default_rng(8)
    for grid in (1e-6, 0.5, 2):
        alarms = [
            ranks.tails(*[list(np.round(random.normal(0, 1, 8) / grid)) for _ in range(2)]).two_sided <= 0.05
            for _ in range(1_500)
        ]
        assert np.mean(alarms) <= 0.067  # 0.05, and three standard deviations


def test_the_smallest_chance() -> None:
    assert ranks.tails([1, 2, 3], [4, 5, 6]).high == pytest.approx(ranks.smallest_p(3, 3)) == pytest.approx(1 / 20)


def test_holm_s_adjustment() -> None:
    assert ranks.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert ranks.holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_no_correction_and_bonferroni_s(chances: list[float]) -> None:
    adjusted = ranks.holm(chances)
    assert all(before <= after <= 1 for before, after in zip(chances, adjusted, strict=True))
    assert adjusted[chances.index(min(chances))] == min(1.0, len(chances) * min(chances))
    assert [one for _, one in sorted(zip(chances, adjusted, strict=True))] == sorted(adjusted)


def test_a_sample_without_values() -> None:
    with pytest.raises(ValueError, match="no values"):
        ranks.tails([], [1.0])
