# SPDX-License-Identifier: Apache-2.0
"""Binary search: ends whatever happens, finds the truth within its resolution, and never names a
rate that did not pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import LimitedBy
from dutperf.search import MAX_RETRIES, Loss, Outcome
from dutperf.search.binary import HIGHEST, BinarySearch, Bounds, BoundsError, Resolution, SearchResult, Start

P, F, S, U = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_FORWARDING, Outcome.UNMEASURABLE
MOST_TRIALS = 500
"""More than any search needs: up to four times doubling, halving and bisecting over 30 bits, each
load followed by a probe."""

resolutions = st.one_of(
    st.integers(1, 100_000).map(lambda fps: Resolution(step=fps)),
    st.floats(0.0001, 0.2).map(lambda share: Resolution(share=share)),
)
rates = st.integers(1, HIGHEST)
places = st.none() | st.builds(Start, rates, st.just(0) | rates)
"""Where a search may begin, once in its range."""


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    ends = sorted((draw(rates), draw(rates)))
    minimum, maximum = draw(st.sampled_from([(None, None), (ends[0], None), (None, ends[1]), (ends[0], ends[1])]))
    initial = draw(st.one_of(st.none(), st.integers(minimum or 1, maximum or HIGHEST)))
    return Bounds(
        draw(resolutions),
        minimum=minimum,
        maximum=maximum,
        initial=initial,
        maximum_is_media=draw(st.booleans()),
    )


def search(limits: Bounds, measure: Callable[[int], Outcome], start: Start | None = None) -> SearchResult:
    one = BinarySearch(limits, start and Start(limits.clamp(start.load), start.step))
    for _ in range(MOST_TRIALS):
        load = one.next_load()
        if load is None:
            return one.result()
        one.record_outcome(measure(load))
    raise AssertionError(f"no end after {MOST_TRIALS} trials: {one.result().loads}")


def told(limits: Bounds, outcomes: Iterable[Outcome], start: Start | None = None) -> SearchResult:
    script: Iterator[Outcome] = iter(outcomes)
    return search(limits, lambda _: next(script), start)


def capable_of(truth_fps: int) -> Callable[[int], Outcome]:
    return lambda load: P if load <= truth_fps else F


@given(
    limits=bounds(),
    outcomes=st.lists(st.sampled_from(Outcome), max_size=MOST_TRIALS),
    last=st.sampled_from(Outcome),
    start=places,
)
def test_ends_for_any_outcomes_with_a_rate_that_passed(
    limits: Bounds, outcomes: list[Outcome], last: Outcome, start: Start | None
) -> None:
    found = told(limits, chain(outcomes, repeat(last)), start)
    passed = {rate for rate, outcome in found.loads if outcome is P}
    assert found.lower_bound is None or found.lower_bound in passed
    assert all(limits.lowest <= rate <= limits.highest for rate, _ in found.loads)
    if found.upper_bound is not None and found.lower_bound is not None:
        assert found.lower_bound < found.upper_bound
        assert (found.upper_bound, P) not in found.loads
        gap = found.upper_bound - found.lower_bound
        if found.limited_by is LimitedBy.DUT and found.unmeasurable:
            assert gap <= limits.resolution.widened(found.upper_bound)
            assert (found.upper_bound, U) not in found.loads[-1:]
            assert all(found.lower_bound < load < found.upper_bound for load in found.unmeasurable)
        else:
            assert gap <= limits.resolution.at(found.upper_bound)


@given(limits=bounds(), truth_fps=st.integers(0, HIGHEST), start=places)
def test_finds_the_truth_within_the_resolution(limits: Bounds, truth_fps: int, start: Start | None) -> None:
    found = search(limits, capable_of(truth_fps), start)
    if truth_fps < limits.lowest:
        assert found.lower_bound is None
    elif truth_fps >= limits.highest:
        assert found.lower_bound == limits.highest
        assert found.limited_by is (LimitedBy.MEDIA if limits.maximum_is_media else LimitedBy.RANGE)
    else:
        assert found.lower_bound is not None
        assert found.upper_bound is not None
        assert 0 <= truth_fps - found.lower_bound < limits.resolution.at(found.upper_bound)
        assert found.limited_by is LimitedBy.DUT


@given(limits=bounds(), dut_fps=st.integers(0, HIGHEST), tester_fps=st.integers(0, HIGHEST))
def test_names_the_lower_of_two_limits(limits: Bounds, dut_fps: int, tester_fps: int) -> None:
    found = search(limits, lambda rate: U if rate > tester_fps else capable_of(dut_fps)(rate))
    if tester_fps <= dut_fps and tester_fps < limits.highest:
        assert found.limited_by is LimitedBy.TESTER
    if found.limited_by is LimitedBy.DUT:
        assert dut_fps < tester_fps


@given(limits=bounds(), truth_fps=st.integers(0, HIGHEST), trials=st.integers(0, 10), start=places)
def test_a_dut_that_dies_has_no_value(limits: Bounds, truth_fps: int, trials: int, start: Start | None) -> None:
    before = iter(range(trials))
    found = search(limits, lambda rate: S if next(before, None) is None else capable_of(truth_fps)(rate), start)
    if len(found.loads) > trials:
        assert found.not_forwarding
        assert found.lower_bound is None
        assert found.limited_by is LimitedBy.DUT
        forwarded = start is not None or any(outcome is P for _, outcome in found.loads[:trials])
        assert [outcome for _, outcome in found.loads[trials:]] == [S, S] + [S] * (MAX_RETRIES if forwarded else 0)
        assert found.loads[-1][0] == limits.lowest


FINE = Resolution(step=100)
TABLE = [
    # what it is, bounds, where to begin, outcomes, rates expected, value, limited by
    (
        "the initial rate is the maximum and passes",
        Bounds(FINE, maximum=5000, initial=5000),
        None,
        [P],
        [5000],
        5000,
        LimitedBy.RANGE,
    ),
    (
        "no initial rate: the media's maximum first",
        Bounds(FINE, maximum=5000, maximum_is_media=True),
        None,
        [P],
        [5000],
        5000,
        LimitedBy.MEDIA,
    ),
    (
        "the initial rate passes below the maximum",
        Bounds(FINE, maximum=5000, initial=3000),
        None,
        [P, P],
        [3000, 5000],
        5000,
        LimitedBy.RANGE,
    ),
    (
        "doubles, then bisects",
        Bounds(Resolution(step=500)),
        None,
        [P, P, F, P, F],
        [1000, 2000, 4000, 3000, 3500],
        3000,
        LimitedBy.DUT,
    ),
    (
        "doubles from the minimum",
        Bounds(Resolution(step=2000), minimum=3000),
        None,
        [P, F, P],
        [3000, 6000, 4500],
        4500,
        LimitedBy.DUT,
    ),
    (
        "halves, then bisects",
        Bounds(Resolution(step=125)),
        None,
        [F, F, P, F],
        [1000, 500, 250, 375],
        250,
        LimitedBy.DUT,
    ),
    ("the user's minimum fails", Bounds(FINE, minimum=600), None, [F, F], [1000, 600], None, LimitedBy.RANGE),
    ("nothing passes at all", Bounds(FINE), None, [F] * 8, [1000, 500, 250, 125, 62, 31, 15, 10], None, LimitedBy.DUT),
    (
        "the minimum cannot be measured",
        Bounds(FINE, minimum=600),
        None,
        [U] * 3,
        [1000, 600, 600],
        None,
        LimitedBy.TESTER,
    ),
    (
        "beyond the tester's reach",
        Bounds(Resolution(step=1000)),
        None,
        [P, P, U, U, U],
        [1000, 2000, 4000, 3000, 3000],
        2000,
        LimitedBy.TESTER,
    ),
    (
        "bad luck, then fails",
        Bounds(Resolution(step=1000)),
        None,
        [P, P, U, U, F],
        [1000, 2000, 4000, 3000, 3000],
        2000,
        LimitedBy.DUT,
    ),
    (
        "bad luck, then passes",
        Bounds(Resolution(step=1000)),
        None,
        [P, P, U, U, P, F],
        [1000, 2000, 4000, 3000, 3000, 4000],
        3000,
        LimitedBy.DUT,
    ),
    *(
        (
            f"the limit cannot be measured, {name}",
            Bounds(Resolution(step=1000)),
            None,
            [P, P, U, P, U, last],
            [1000, 2000, 4000, 3000, 4000, 5000],
            3000,
            limited_by,
        )
        for name, last, limited_by in (
            ("but a load a little higher fails", F, LimitedBy.DUT),
            ("nor a little higher", U, LimitedBy.TESTER),
        )
    ),
    (
        "a load far above cannot be measured either",
        Bounds(Resolution(share=0.001), initial=10_000),
        None,
        [P, U, U, U, U, U, U, U, U, U, U, U, U, F],
        [
            10_000,
            20_000,
            15_000,
            12_500,
            11_250,
            10_625,
            10_312,
            10_156,
            10_078,
            10_039,
            10_019,
            10_009,
            10_009,
            10_050,
        ],
        10_000,
        LimitedBy.DUT,
    ),
    (
        "bad luck, a failure above",
        Bounds(Resolution(step=500)),
        None,
        [P, F, U, P],
        [1000, 2000, 1500, 1500],
        1500,
        LimitedBy.DUT,
    ),
    (
        "fails below what cannot be measured",
        Bounds(Resolution(step=1000)),
        None,
        [P, P, U, F],
        [1000, 2000, 4000, 3000],
        2000,
        LimitedBy.DUT,
    ),
    ("start: passes, next step fails", Bounds(FINE), Start(7000, 100), [P, F], [7000, 7100], 7000, LimitedBy.DUT),
    (
        "start: steps upwards double",
        Bounds(FINE),
        Start(7000, 100),
        [P, P, P, F, P, F],
        [7000, 7100, 7300, 7700, 7500, 7600],
        7500,
        LimitedBy.DUT,
    ),
    (
        "start: steps downwards double",
        Bounds(FINE),
        Start(7000, 100),
        [F, F, F, P, F, F],
        [7000, 6900, 6700, 6300, 6500, 6400],
        6300,
        LimitedBy.DUT,
    ),
    (
        "start: wide steps, then bisects",
        Bounds(FINE),
        Start(7000, 400),
        [F, P, P, F],
        [7000, 6600, 6800, 6900],
        6800,
        LimitedBy.DUT,
    ),
    (
        "start: a step beyond the range",
        Bounds(FINE, maximum=7100),
        Start(7000, 400),
        [P, P],
        [7000, 7100],
        7100,
        LimitedBy.RANGE,
    ),
    (
        "begins elsewhere, halves, bisects",
        Bounds(Resolution(step=125)),
        Start(900),
        [F, F, P, F],
        [900, 450, 225, 337],
        225,
        LimitedBy.DUT,
    ),
    ("silent at once, silent at the lowest rate", Bounds(FINE), None, [S, S], [1000, 10], None, LimitedBy.DUT),
    (
        "silent at the lowest rate: once more",
        Bounds(FINE, minimum=1000),
        None,
        [S, S],
        [1000, 1000],
        None,
        LimitedBy.DUT,
    ),
    (
        "silent when overloaded, but alive",
        Bounds(Resolution(step=500)),
        None,
        [S, P, P],
        [1000, 10, 505],
        505,
        LimitedBy.DUT,
    ),
    (
        "silent, then alive at the same rate",
        Bounds(FINE, minimum=1000),
        None,
        [S, P],
        [1000, 1000],
        None,
        LimitedBy.RANGE,
    ),
    (
        "silent, and the lowest rate fails",
        Bounds(FINE, minimum=10),
        None,
        [S, F],
        [1000, 10],
        None,
        LimitedBy.RANGE,
    ),
    (
        "silent, a sign of life cannot be measured",
        Bounds(Resolution(step=500)),
        None,
        [S, U, P],
        [1000, 10, 500],
        500,
        LimitedBy.DUT,
    ),
    ("dies half-way", Bounds(FINE), None, [P, P] + [S] * 5, [1000, 2000, 4000] + [10] * 4, None, LimitedBy.DUT),
    (
        "is down for a while half-way: also where nothing came through of two probes",
        Bounds(Resolution(step=500)),
        None,
        [P, P, S, S, S, P, P, P, P],
        [1000, 2000, 4000, 10, 10, 10, 3000, 3500],
        3500,
        LimitedBy.DUT,
    ),
]


@pytest.mark.parametrize(
    ("limits", "start", "outcomes", "rates", "value", "limited_by"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_course(
    limits: Bounds,
    start: Start | None,
    outcomes: list[Outcome],
    rates: list[int],
    value: int | None,
    limited_by: LimitedBy,
) -> None:
    found = told(limits, outcomes, start)
    assert [rate for rate, _ in found.loads] == rates
    assert (found.lower_bound, found.limited_by) == (value, limited_by)
    assert found.not_forwarding == (outcomes[-2:] == [S, S])


EPISODE = Loss(lost=700, sent=600_000, one_episode=True)
OF_ROUTER = Bounds(Resolution(share=0.005), initial=100_000)
OUTAGE = Loss(lost=10, sent=10, one_episode=True)


@pytest.mark.parametrize("trials", [1, 2, 3])
@pytest.mark.parametrize("began", range(12))
@pytest.mark.parametrize("start", [None, Start(226_000, 20_000)])
def test_an_outage_of_several_trials_decides_no_search(began: int, trials: int, start: Start | None) -> None:
    """The DUT goes down in one trial, and forwards nothing in those after it."""
    one = BinarySearch(OF_ROUTER, start)
    for number in range(MOST_TRIALS):
        if (load := one.next_load()) is None:
            break
        if 0 < number - began < trials:
            one.record_outcome(S, OUTAGE)
        elif load > 230_000:
            one.record_outcome(F, Loss(lost=load - 230_000, sent=load))
        else:
            one.record_outcome(*((F, EPISODE) if number == began else (P,)))
    found = one.result()
    assert found.limited_by is LimitedBy.DUT
    assert found.lower_bound is not None
    assert found.upper_bound is not None
    assert found.lower_bound <= 230_000 < found.upper_bound <= 1.006 * found.lower_bound


def test_a_share_as_resolution_is_of_the_upper_end() -> None:
    found = search(Bounds(Resolution(share=0.01)), capable_of(54_321))
    assert found.lower_bound is not None
    assert found.upper_bound is not None
    assert found.upper_bound - found.lower_bound <= 544


def test_what_is_left_is_told() -> None:
    one = BinarySearch(Bounds(Resolution(step=100), maximum=6400))
    left = []
    while (load := one.next_load()) is not None:
        left.append(one.trials_left())
        one.record_outcome(capable_of(3333)(load))
    assert left[-5:] == [5, 4, 3, 2, 1]
    assert one.trials_left() == 0


def test_nothing_can_be_told_after_the_end() -> None:
    one = BinarySearch(Bounds(FINE, maximum=5000))
    one.record_outcome(P)
    with pytest.raises(ValueError, match="ended"):
        one.record_outcome(P)


@pytest.mark.parametrize(
    ("bound", "members"),
    [
        ("minimum", {"minimum": 2000, "maximum": 1000}),
        ("initial", {"minimum": 500, "initial": 400}),
        ("initial", {"maximum": 500, "initial": 600}),
    ],
)
def test_bounds_that_contradict_each_other(bound: str, members: dict[str, int]) -> None:
    with pytest.raises(BoundsError) as caught:
        Bounds(FINE, **members)  # type: ignore[arg-type]
    assert caught.value.bound == bound


@given(limits=bounds(), truth_fps=st.integers(1_000, HIGHEST // 2), blind=st.floats(0, 0.01), start=places)
def test_where_loads_about_the_truth_cannot_be_measured_its_bounds_are_still_true(
    limits: Bounds, truth_fps: int, blind: float, start: Start | None
) -> None:
    """A disturbed tester sees no small loss: what the DUT loses hardly is unmeasurable."""
    visible = truth_fps * (1 + blind)
    found = search(limits, lambda rate: P if rate <= truth_fps else U if rate <= visible else F, start)
    assert found.lower_bound is None or found.lower_bound <= truth_fps
    if found.limited_by is LimitedBy.DUT and found.upper_bound is not None:
        assert found.upper_bound > truth_fps
        assert dict(found.loads)[found.upper_bound] is F


def test_a_failure_a_little_higher_tells_more_than_an_unmeasurable_load() -> None:
    """The DUT's limit is 10,000; between 10,000 and 10,045 the tester is blind."""
    limits = Bounds(Resolution(share=0.001), initial=10_000, maximum=20_000)
    found = search(limits, lambda rate: P if rate <= 10_000 else U if rate < 10_045 else F)
    assert (found.lower_bound, found.limited_by) == (10_000, LimitedBy.DUT)
    assert found.upper_bound is not None
    assert 10_045 <= found.upper_bound <= 10_050
    assert found.unmeasurable
    blind = search(limits, lambda rate: P if rate <= 10_000 else U if rate < 10_100 else F)
    assert (blind.lower_bound, blind.limited_by) == (10_000, LimitedBy.TESTER)


def test_a_least_rate_is_no_minimum_of_the_user() -> None:
    """Directions of 100:1 need it. A DUT that passes nothing there is the limit, not the range."""
    bounds = Bounds(Resolution(step=1), least=100, maximum=1_000)
    assert bounds.lowest == 100
    assert Bounds(Resolution(step=1), minimum=5, least=100).lowest == 100
    one = BinarySearch(bounds)
    while one.next_load() is not None:
        one.record_outcome(Outcome.FAILED)
    assert one.result().limited_by is LimitedBy.DUT


def test_steps_begin_anew_above_a_load_that_passed_when_it_was_offered_again() -> None:
    one = BinarySearch(Bounds(Resolution(step=10), maximum=1_000_000), Start(10_000, 800))
    outcomes = {10_000: Outcome.PASSED, 10_800: Outcome.UNMEASURABLE}
    seen: dict[int, int] = {}
    while (load := one.next_load()) is not None:
        seen[load] = seen.get(load, 0) + 1
        if load > 10_800:
            break
        one.record_outcome(Outcome.PASSED if seen[load] > 1 else outcomes.get(load, Outcome.PASSED))
    assert load == 11_600


def test_an_outage_that_ends_during_the_probe_decides_no_search() -> None:
    """It began with the last frames of a trial, and of the probe a single frame came through."""
    one, told = BinarySearch(OF_ROUTER), [(F, EPISODE), (S, OUTAGE), (F, Loss(9, 10, one_episode=True))]
    while (load := one.next_load()) is not None:
        one.record_outcome(*(told.pop(0) if told else (P,) if load <= 230_000 else (F, Loss(load - 230_000, load))))
    found = one.result()
    assert (found.limited_by, found.not_forwarding) == (LimitedBy.DUT, False)
    assert found.lower_bound is not None
    assert 228_000 <= found.lower_bound <= 230_000


def in_episodes(
    limits: Bounds, truth_fps: int, has_episode: Callable[[int], bool], start: Start | None = None
) -> SearchResult:
    """Of a DUT that forwards ``truth_fps``, and loses frames in one episode of those trials, by their number,
    that ``has_episode`` names."""
    one = BinarySearch(limits, start)
    for number in range(MOST_TRIALS):
        load = one.next_load()
        if load is None:
            return one.result()
        if load > truth_fps:
            one.record_outcome(F, Loss(lost=load - truth_fps, sent=load))
        elif has_episode(number):
            one.record_outcome(F, EPISODE)
        else:
            one.record_outcome(P)
    raise AssertionError("no end")


@pytest.mark.parametrize("episode", range(14))
@pytest.mark.parametrize("start", [None, Start(226_000, 20_000)])
def test_a_load_that_failed_by_one_episode_is_offered_again_before_it_bounds_the_result(
    episode: int, start: Start | None
) -> None:
    """In whichever trial it comes."""
    found = in_episodes(OF_ROUTER, 230_000, lambda number: number == episode, start)
    assert found.lower_bound is not None
    assert found.upper_bound is not None
    assert found.lower_bound <= 230_000 < found.upper_bound
    assert found.upper_bound - found.lower_bound <= 0.005 * found.upper_bound
    twice = [load for load, _ in found.loads if [one for one, _ in found.loads].count(load) > 1]
    assert len(twice) <= 2, "one load, once more"


def test_a_dut_with_an_episode_in_every_trial_has_its_bound_after_one_more_trial() -> None:
    """As one that collects garbage in each: the rate below which it does not is found as before."""
    one, offered = BinarySearch(Bounds(Resolution(step=10), maximum=100_000)), []
    while (load := one.next_load()) is not None:
        offered.append(load)
        one.record_outcome(*((P,) if load <= 60_000 else (F, EPISODE)))
    found = one.result()
    assert found.lower_bound is not None
    assert 59_990 <= found.lower_bound <= 60_000
    assert found.limited_by is LimitedBy.DUT
    assert found.upper_bound == offered[-1] == offered[-2]
    assert len(set(offered)) == len(offered) - 1


def test_a_second_look_that_says_nothing_changes_nothing() -> None:
    one = BinarySearch(Bounds(Resolution(step=10), minimum=1_000, maximum=1_020))
    one.record_outcome(F, EPISODE)
    one.record_outcome(P)  # the minimum
    one.record_outcome(P)
    assert (one.lower, one.next_load()) == (1_010, 1_020)
    one.record_outcome(U)
    assert one.next_load() is None
    assert (one.result().upper_bound, one.result().limited_by) == (1_020, LimitedBy.DUT)


@given(
    limits=bounds(),
    outcomes=st.lists(st.tuples(st.sampled_from(Outcome), st.booleans()), max_size=MOST_TRIALS),
    last=st.tuples(st.sampled_from(Outcome), st.booleans()),
    start=places,
)
def test_ends_whatever_is_lost_in_episodes(
    limits: Bounds, outcomes: list[tuple[Outcome, bool]], last: tuple[Outcome, bool], start: Start | None
) -> None:
    one = BinarySearch(limits, start and Start(limits.clamp(start.load), start.step))
    for number, (outcome, is_episode) in enumerate(chain(outcomes, repeat(last))):
        if one.next_load() is None:
            break
        assert number < MOST_TRIALS
        one.record_outcome(outcome, EPISODE if is_episode else Loss(1, 10))
    found = one.result()
    assert found.lower_bound is None or (found.lower_bound, P) in found.loads
    if found.upper_bound is not None and found.lower_bound is not None:
        assert found.lower_bound < found.upper_bound
        assert (found.upper_bound, P) not in found.loads
