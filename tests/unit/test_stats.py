# SPDX-License-Identifier: Apache-2.0
"""Median, percentiles and dispersion as RFC 2330 11.3 and RFC 8219 section 12 define them."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.statistics import intervals

samples = st.lists(st.one_of(st.none(), st.integers(1, 10**9)), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([3], 3),
        ([3, 1, 2], 2),
        ([4, 1, 3, 2], 2.5),
        ([None, 5, 7], 5),
        ([None, None, 7], None),
        ([None, 7], None),
        ([None, 6, 8, 9], 7),
    ],
)
def test_median(values: list[int | None], median: float | None) -> None:
    assert intervals.median(values) == median


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
    assert intervals.percentile(list(range(count, 0, -1)), percent) == expected


@given(samples, st.integers(1, 100))
def test_percentile_is_the_smallest_value_that_enough_do_not_exceed(values: list[int | None], percent: int) -> None:
    found = intervals.percentile(values, percent)
    assert found in values

    def not_above(limit: float | None) -> int:
        return sum(value is None or (limit is not None and value <= limit) for value in values)

    assert not_above(found) * 100 >= percent * len(values)
    smaller = [value for value in values if found is not None and (value is None or value < found)]
    assert all(not_above(value) * 100 < percent * len(values) for value in smaller)


def test_dispersion() -> None:
    assert intervals.dispersion_percent([95, 100, 105]) == 10
    assert intervals.dispersion_percent([100, 100]) == 0
    assert intervals.dispersion_percent([None, 100, 105]) is None


@pytest.mark.parametrize(
    "function", [intervals.median, intervals.dispersion_percent, lambda values: intervals.percentile(values, 1)]
)
def test_nothing_to_summarise(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="no values"):
        function([])


@pytest.mark.parametrize("percent", [0, 101])
def test_no_percentile(percent: int) -> None:
    with pytest.raises(ValueError, match="percentile"):
        intervals.percentile([1], percent)


@pytest.mark.parametrize(
    ("count", "confidence", "low", "high"),
    [
        # 1 - 2 * 2^-n (the smallest and the greatest value) where that is the confidence; else
        # moved inwards, from the tables of the paper's formula
        (6, 1 - 2 / 2**6, 1, 6),
        (10, 1 - 2 * 11 / 2**10, 2, 9),
        (5, 0.95, None, None),
        (6, 0.95, 1.357, 5.643),
        (20, 0.95, 6.235, 14.765),
    ],
)
def test_interval_of_the_median_of_1_to_count(
    count: int, confidence: float, low: float | None, high: float | None
) -> None:
    found = intervals.median_interval([*range(count, 0, -1)], confidence)
    assert found == (None if low is None else pytest.approx((low, high), abs=0.01))


def test_interval_of_a_large_sample_is_that_of_the_normal_approximation() -> None:
    found = intervals.median_interval([*range(1, 10_001)], 0.95)
    assert found == pytest.approx((5000.5 - 98, 5000.5 + 98), abs=1)


@pytest.mark.parametrize(
    ("missing", "low", "high"),
    [(0, 3, 8), (2, 3, 8), (3, None, 8), (5, None, 8), (7, None, 8), (8, None, None), (10, None, None)],
)
def test_an_interval_with_missing_values(missing: int, low: int | None, high: int | None) -> None:
    """Of 10 values the third and the eighth, wherever the lowest are missing; nothing is made up
    for a missing one."""
    found = intervals.median_interval(
        [None if value <= missing else value for value in range(1, 11)], 1 - 2 * 56 / 2**10 - 1e-9
    )
    assert found is not None
    for end, expected in zip(found, (low, high), strict=True):
        assert (end is None) == (expected is None)
        assert end is None or expected is None or end == pytest.approx(expected, abs=1)


@given(samples, st.sampled_from([0.8, 0.9, 0.95, 0.99, 0.999]))
def test_an_interval_holds_the_median_and_grows_with_the_confidence(
    values: list[int | None], confidence: float
) -> None:
    found, wider = intervals.median_interval(values, confidence), intervals.median_interval(values, 0.9999)
    assert (found is None) == (len(values) < intervals.smallest_sample(confidence))
    middle = intervals.median(values)
    if found is None or middle is None:
        return
    low, high = found
    assert high is not None
    assert low is None or low <= middle
    assert middle <= high
    if wider is not None:
        assert wider[0] is None or (low is not None and wider[0] <= low)
        assert wider[1] is not None
        assert wider[1] >= high


@pytest.mark.parametrize(("confidence", "count"), [(0.8, 4), (0.9, 5), (0.95, 6), (0.99, 8), (0.999, 11)])
def test_the_smallest_sample(confidence: float, count: int) -> None:
    assert intervals.smallest_sample(confidence) == count


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=30))
def test_values_missing_because_they_are_higher_are_the_mirror_of_lower_ones(values: list[float | None]) -> None:
    mirrored = [None if value is None else -value for value in values]
    lower, higher = intervals.median(values), intervals.median(mirrored, missing=inf)
    assert higher == (None if lower is None else -lower)
    ends, others = intervals.median_interval(values, 0.95), intervals.median_interval(mirrored, 0.95, missing=inf)
    if ends is None or others is None:
        assert ends == others
    else:
        assert others[::-1] == pytest.approx([None if end is None else -end for end in ends])
