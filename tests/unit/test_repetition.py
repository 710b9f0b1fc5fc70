# SPDX-License-Identifier: Apache-2.0
"""When repetitions end, and whether the interval that they end with keeps its promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf.statistics import stopping
from dutperf.statistics.stopping import Auto, Stopped, Values

Draw = Callable[[np.random.Generator, int], np.ndarray]
RUNS = 2_000
"""Seeded runs for each distribution; the share that is covered is known to half a percent then."""


def lognormal(sigma: float) -> Draw:
    return lambda random, count: 100_000 * np.exp(sigma * random.standard_normal(count))


def uniform(half: float) -> Draw:
    return lambda random, count: 100_000 * (1 + half * random.uniform(-1, 1, count))


def bimodal(share: float, gap: float) -> Draw:
    """Two modes, each 1 % wide; ``share`` of the values in the lower one."""
    return lambda random, count: (
        100_000 * (1 + gap * (random.random(count) >= share) + 0.01 * random.standard_normal(count))
    )


def on_a_grid(draw: Draw, step: float) -> Draw:
    """As a search sees them that has this resolution."""
    return lambda random, count: np.floor(draw(random, count) / step) * step


def course(rule: Auto, values: Values) -> tuple[int, Stopped]:
    """How many of ``values`` are taken, and why not more."""
    for count in range(1, len(values) + 1):
        stopped = stopping.stopped(rule, values[:count])
        if stopped is not None:
            return count, stopped
    raise AssertionError("no end")


def coverage_percent(rule: Auto, draw: Draw) -> tuple[float, set[Stopped]]:
    """In how many runs the final interval holds the true median; and how they ended."""
    truth = float(np.sort(draw(np.random.default_rng(0), 2_000_001))[1_000_000])
    covered, endings = 0, set()
    for seed in range(RUNS):
        values = draw(np.random.default_rng([1, seed]), rule.maximum).tolist()
        count, stopped = course(rule, values)
        found = stopping.interval(rule, values[:count])
        assert found is not None
        low, high = found
        assert low is not None
        assert high is not None
        covered += low <= truth <= high
        endings.add(stopped)
        if stopped is Stopped.NARROW:
            assert high - low <= rule.width_share * np.median(values[:count])
    return covered / RUNS * 100, endings


CONTINUOUS = {
    "narrow at once": (lognormal(0.003), Auto()),
    "lognormal 1 %": (lognormal(0.01), Auto()),
    "lognormal 2 %": (lognormal(0.02), Auto()),
    "lognormal 5 %, never narrow": (lognormal(0.05), Auto()),
    "uniform 1.2 %, the hardest": (uniform(0.012), Auto()),
    "uniform 2 %": (uniform(0.02), Auto()),
    "bimodal, 70 % low": (bimodal(0.7, 0.05), Auto()),
    "bimodal, 90 % low": (bimodal(0.9, 0.1), Auto()),
    "other limits": (lognormal(0.02), Auto(minimum=20, maximum=60, width_share=0.02)),
}
OF_EACH_KIND = ("lognormal 2 %", "uniform 1.2 %, the hardest", "bimodal, 70 % low")


@pytest.mark.parametrize(
    ("draw", "rule"),
    [
        pytest.param(*row, id=name, marks=[] if name in OF_EACH_KIND else [pytest.mark.long])
        for name, row in CONTINUOUS.items()
    ],
)
def test_the_interval_covers_the_true_median_as_often_as_it_says(draw: Draw, rule: Auto) -> None:
    percent, _ = coverage_percent(rule, draw)
    assert 93 <= percent <= 97


@pytest.mark.parametrize(
    ("draw", "endings"), [(lognormal(0.003), {Stopped.NARROW}), (lognormal(0.05), {Stopped.MAXIMUM})]
)
def test_how_the_runs_end(draw: Draw, endings: set[Stopped]) -> None:
    assert coverage_percent(Auto(), draw)[1] == endings


@pytest.mark.parametrize("step", [130, 700, 1_900])
def test_values_on_the_grid_of_a_search_are_covered_at_least_as_often(step: float) -> None:
    """None of these grids has 100,000 on it: there, half of the values would be below and every
    number down to the next one a median."""
    percent, _ = coverage_percent(Auto(), on_a_grid(lognormal(0.01), step))
    assert percent >= 93


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("20", 20),
        ("auto", Auto()),
        ("auto:width=2%,max=50", Auto(width_share=0.02, maximum=50)),
        (
            "auto:min=12,max=40,width=0.005,confidence=99%",
            Auto(minimum=12, maximum=40, width_share=0.005, confidence=0.99),
        ),
    ],
)
def test_how_a_rule_is_written(text: str, rule: stopping.Rule) -> None:
    assert stopping.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither a number nor auto"),
        ("-3", "neither a number nor auto"),
        ("often", "neither a number nor auto"),
        ("auto:", "neither a number nor auto"),
        ("auto:often=3", "'often=3' is not a setting: give width=1%, min=10"),
        ("auto:min=5%", "'min=5%' is not a setting"),
        ("auto:min", "'min' is not a setting"),
        ("auto:min=5", "min=5 is too few: an interval of 95 % confidence needs 6"),
        ("auto:max=8", r"min \(10\) is above max \(8\)"),
        ("auto:width=200%", "width should be less than or equal to 1"),
        ("auto:confidence=50%", "confidence should be greater than or equal to 0.8"),
        ("auto:min=1.5", "min should be a valid integer"),
    ],
)
def test_what_is_no_rule(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        stopping.parse(text)


@given(st.integers(6, 300), st.integers(0, 300))
def test_looks_are_few_and_end_at_the_maximum(minimum: int, more: int) -> None:
    rule = Auto(minimum=minimum, maximum=minimum + more)
    looks = list(rule.looks())
    assert looks == sorted(set(looks))
    assert (looks[0], looks[-1]) == (rule.minimum, rule.maximum)
    assert len(looks) <= 12
    for count in range(rule.maximum + 1):
        assert stopping.next_look(rule, count) in looks
        assert stopping.next_look(rule, count) > count or count == rule.maximum


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([100] * 9, None),
        ([100] * 10, Stopped.NARROW),
        ([100] * 11, None),
        ([100, 200] * 5, None),
        ([100, 200] * 10, Stopped.MAXIMUM),
        ([None] * 10, Stopped.NOTHING),
        ([None] * 3 + [100] * 7, None),
        ([None] * 1 + [100] * 9, Stopped.NARROW),
        ([None, 100] * 10, Stopped.MAXIMUM),
    ],
)
def test_when_it_ends(values: list[int | None], expected: Stopped | None) -> None:
    assert stopping.stopped(Auto(maximum=20), values) is expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [([100] * 10, Stopped.NARROW), ([100, 200] * 5, None), ([None] * 10, Stopped.NOTHING)],
)
def test_of_several_series_all_have_to_be_satisfied(second: list[int | None], expected: Stopped | None) -> None:
    assert stopping.stopped(Auto(), [500] * 10, second) is expected
    assert stopping.stopped(Auto(), second, [500] * 10) is expected


def test_a_number_is_a_number() -> None:
    assert [stopping.stopped(3, [5] * count) for count in range(5)] == [
        None,
        None,
        None,
        Stopped.NUMBER,
        Stopped.NUMBER,
    ]
    assert stopping.next_look(3, 1) == 3
    assert stopping.interval(3, [5, 6, 7]) is None
    assert stopping.interval(3, []) is None
    assert stopping.interval(7, [1, 2, 3, 4, 5, 6, 7]) is not None


def test_a_rule_has_limits() -> None:
    with pytest.raises(ValidationError):
        Auto(confidence=1.0)
