# SPDX-License-Identifier: Apache-2.0
"""Median, percentiles and dispersion as RFC 2330 11.3 and RFC 8219 section 12 define them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import stats

samples = st.lists(st.one_of(st.none(), st.integers(1, 10**9)), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("values", "median"),
    [([3], 3), ([3, 1, 2], 2), ([4, 1, 3, 2], 2.5), ([None, 5, 7], 5), ([None, None, 7], None), ([None, 7], None), ([None, 6, 8, 9], 7)],
)
def test_median(values: list[int | None], median: float | None) -> None:
    assert stats.median(values) == median


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (1, 1, 1),
        (1, 99, 1),
        (20, 1, 1),
        (20, 99, 20),
        (99, 99, 99),
        (100, 1, 1),
        (100, 99, 99),
        (101, 1, 2),
        (101, 99, 100),
        (200, 1, 2),
        (200, 99, 198),
        (4, 50, 2),
    ],
)
def test_percentile_of_1_to_count(count: int, percent: int, expected: int) -> None:
    assert stats.percentile(list(range(count, 0, -1)), percent) == expected


@given(samples, st.integers(1, 100))
def test_percentile_is_the_smallest_value_that_enough_do_not_exceed(values: list[int | None], percent: int) -> None:
    found = stats.percentile(values, percent)
    assert found in values

    def not_above(limit: float | None) -> int:
        return sum(value is None or (limit is not None and value <= limit) for value in values)

    assert not_above(found) * 100 >= percent * len(values)
    smaller = [value for value in values if found is not None and (value is None or value < found)]
    assert all(not_above(value) * 100 < percent * len(values) for value in smaller)


def test_dispersion() -> None:
    assert stats.dispersion_percent([95, 100, 105]) == 10
    assert stats.dispersion_percent([100, 100]) == 0
    assert stats.dispersion_percent([None, 100, 105]) is None


@pytest.mark.parametrize("function", [stats.median, stats.dispersion_percent, lambda values: stats.percentile(values, 1)])
def test_nothing_to_summarise(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="no values"):
        function([])


@pytest.mark.parametrize("percent", [0, 101])
def test_no_percentile(percent: int) -> None:
    with pytest.raises(ValueError, match="percentile"):
        stats.percentile([1], percent)
