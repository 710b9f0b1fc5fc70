# SPDX-License-Identifier: Apache-2.0
"""Repetitions of a search: where each begins, what that costs, that they are independent, and that
the median's interval covers as often as it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_search import bounds, capable_of, rates, search

from dutperf.search import Outcome, restart
from dutperf.search.binary import HIGHEST, BinarySearch, Bounds, Resolution, Start
from dutperf.search.restart import FIRST_STEP, PriorResults
from dutperf.statistics import stopping
from dutperf.statistics.stopping import Auto, Rule

RUNS = 1_000
"""Seeded runs of each DUT; the share that is covered is known to 0.7 % then."""
RESOLUTION = 100
LIMITS = Bounds(Resolution(step=RESOLUTION), initial=30_000, maximum=80_000)
SHARES = Bounds(Resolution(share=0.002))
seeds = st.text(max_size=3)
values = st.lists(st.none() | rates, min_size=1, max_size=8)

Passes = Callable[[int], bool]
Begins = Callable[[Bounds, PriorResults, str], Start]


def steady(random: Random) -> tuple[float, Passes]:
    """A capacity, and whether a trial at a rate passes."""
    capacity_fps = random.uniform(40_000, 50_000)
    return capacity_fps, lambda rate_fps: rate_fps <= capacity_fps


def noisy(scatter_fps: float) -> Callable[[Random], tuple[float, Passes]]:
    """A capacity that is another one in each trial."""

    def made(random: Random) -> tuple[float, Passes]:
        capacity_fps = random.uniform(40_000, 50_000)
        return capacity_fps, lambda rate_fps: rate_fps <= random.gauss(capacity_fps, scatter_fps)

    return made


def lossy(random: Random) -> tuple[float, Passes]:
    """Loses one frame in 10,000 whatever the rate, in trials of a second: it passes the less often,
    the higher the rate."""
    return 0.0, lambda rate_fps: random.random() < exp(-1e-4 * rate_fps)


def where_the_last_one_ended(limits: Bounds, prior: PriorResults, seed: str) -> Start:
    """For comparison: with a step of the resolution from the last value."""
    del seed
    return Start(prior.expected, limits.resolution.at(prior.expected))


@dataclass(frozen=True)
class Repeated:
    """Values of many runs less the run's capacity, and the trials of each repetition after the
    first."""

    values: list[list[float]]
    trials: np.ndarray

    def coverage_percent(self, rule: Rule) -> float:
        """In how many runs the interval holds the true median, that of all runs' repetitions."""
        truth = float(np.median([value for run in self.values for value in run[1:]]))
        found = [stopping.interval(rule, run) for run in self.values]
        return 100 * float(np.mean([low <= truth <= high for low, high in found]))  # type: ignore[misc]

    def correlation(self) -> float:
        """Of the ranks of successive repetitions' values, without the first, which knows of none."""
        pairs = np.array([pair for run in self.values for pair in pairwise(run[1:])])
        return float(np.corrcoef(pairs.argsort(axis=0).argsort(axis=0).T)[0, 1])


def run(limits: Bounds, dut: Passes, rule: Rule, begins: Begins, seed: int) -> tuple[list[int | None], list[int]]:
    """A run's values, and its repetitions' trials."""
    found: list[int | None] = []
    trials: list[int] = []
    start: Start | None = None
    while stopping.stopped(rule, found) is None:
        one = BinarySearch(limits, start)
        while (rate_fps := one.next_load()) is not None:
            one.record_outcome(Outcome.PASSED if dut(rate_fps) else Outcome.FAILED)
        ended = one.result()
        found.append(ended.lower_bound)
        trials.append(len(ended.loads))
        start = begins(limits, PriorResults(ended.lower_bound or ended.upper_bound or 1, found), f"{seed} {len(found)}")
    return found, trials


@lru_cache
def repeated(name: str, rule: Rule = 10, begins: Begins = restart.begin) -> Repeated:
    make, limits = DUTS[name]
    runs, trials = [], []
    for seed in range(RUNS):
        capacity_fps, dut = make(Random(f"{name} {seed}"))
        found, counts = run(limits, dut, rule, begins, seed)
        runs.append([(value or 0) - capacity_fps for value in found])
        trials.append(counts[1:10])
    return Repeated(runs, np.array(trials))


DUTS = {
    "steady": (steady, LIMITS),
    "scatters by a resolution": (noisy(RESOLUTION), LIMITS),
    "scatters by ten resolutions": (noisy(10 * RESOLUTION), LIMITS),
    "the resolution is a share": (noisy(500), SHARES),
    "loses at random": (lossy, SHARES),
}


QUICK = ("scatters by ten resolutions", "loses at random")
EACH = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in DUTS]
)


@EACH
def test_the_interval_covers_the_median_of_whole_searches_as_often_as_it_says(name: str) -> None:
    """Where the DUT scatters by its own size, the second repetition, which cannot know it,
    resembles the first."""
    least = 91 if name == "loses at random" else 93
    assert least <= repeated(name).coverage_percent(10) <= 97


def test_that_of_repetitions_which_decide_for_themselves_does_too() -> None:
    rule = Auto(maximum=22, width_share=0.005)
    runs = repeated("scatters by a resolution", rule)
    assert len({len(one) for one in runs.values}) > 1
    assert 93 <= runs.coverage_percent(rule) <= 97


@EACH
def test_no_repetition_resembles_the_one_before(name: str) -> None:
    """Ranks of 8,000 independent pairs correlate by less than 0.034 but for one in 400 times."""
    assert abs(repeated(name).correlation()) < 0.034


def test_searches_that_begin_where_the_last_one_ended_would() -> None:
    """What the two tests above would say of them: they can fail."""
    chained = repeated("scatters by ten resolutions", begins=where_the_last_one_ended)
    assert chained.correlation() > 0.3
    assert chained.coverage_percent(10) < 85
    assert repeated("steady", begins=where_the_last_one_ended).coverage_percent(10) < 50


@pytest.mark.parametrize(
    ("name", "most_of_ten", "most_at_last"),
    [("steady", 3.5, 2.5), ("scatters by a resolution", 5, 4.5), ("scatters by ten resolutions", 8, 7.5)],
)
def test_trials_of_a_repetition(name: str, most_of_ten: float, most_at_last: float) -> None:
    """A search that begins with the whole range takes 11 here."""
    trials = repeated(name).trials
    assert trials.mean() <= most_of_ten
    assert trials[:, -1].mean() <= most_at_last


@given(limits=bounds(), near_fps=rates, found=values, seed=seeds)
def test_it_begins_within_the_range_and_at_the_same_place_for_the_same_seed(
    limits: Bounds, near_fps: int, found: list[int | None], seed: str
) -> None:
    prior = PriorResults(limits.clamp(near_fps), found)
    start = restart.begin(limits, prior, seed)
    assert limits.lowest <= start.load <= limits.highest
    assert start == restart.begin(limits, prior, seed)
    assert start.step == 0 or start.step >= 1


@given(limits=bounds(), truth_fps=st.integers(0, HIGHEST), near_fps=rates, found=values, seed=seeds)
def test_it_finds_the_truth_wherever_it_begins(
    limits: Bounds, truth_fps: int, near_fps: int, found: list[int | None], seed: str
) -> None:
    ended = search(
        limits, capable_of(truth_fps), restart.begin(limits, PriorResults(limits.clamp(near_fps), found), seed)
    )
    if limits.lowest <= truth_fps < limits.highest:
        assert ended.lower_bound is not None
        assert ended.upper_bound is not None
        assert 0 <= truth_fps - ended.lower_bound < limits.resolution.at(ended.upper_bound)
    else:
        assert ended.lower_bound == (None if truth_fps < limits.lowest else limits.highest)


def test_places_are_uniform_over_the_step() -> None:
    starts = [restart.begin(LIMITS, PriorResults(45_000, [45_000]), str(seed)) for seed in range(400)]
    assert {one.step for one in starts} == {FIRST_STEP * RESOLUTION}
    shares = sorted((one.load - 45_000) / starts[0].step + 0.5 for one in starts)
    assert max(abs(share - index / 400) for index, share in enumerate(shares)) < 1.63 / 20  # Kolmogorov, 1 %


@pytest.mark.parametrize(
    ("found", "step_fps"),
    [
        ([45_000] * 2, 800),
        ([45_000] * 5, 100),
        ([45_000, 45_090] * 5, 200),
        ([44_000, 45_000] * 5, 3_200),
        ([20_000, 45_000] * 5, 0),
        ([None, 45_000] * 5, 0),
    ],
)
def test_the_first_step_is_wider_than_the_values_scatter(found: list[int | None], step_fps: int) -> None:
    assert restart.begin(LIMITS, PriorResults(45_000, found), "any").step == step_fps


def test_where_the_highest_rate_passed_it_is_offered_first() -> None:
    starts = [restart.begin(LIMITS, PriorResults(80_000, [80_000] * 2), str(seed)) for seed in range(50)]
    assert {one.load for one in starts} == {80_000}
    assert len({one.step for one in starts}) > 10


def test_what_scatters_by_its_own_size_is_searched_in_the_whole_range() -> None:
    starts = [
        restart.begin(LIMITS, PriorResults(last, [last, 500] * 3), str(seed))
        for last in (45_000, 1_000)
        for seed in range(50)
    ]
    assert starts[:50] == starts[50:]  # whatever the last value
    assert all(15_000 <= one.load <= 30_000 for one in starts)
