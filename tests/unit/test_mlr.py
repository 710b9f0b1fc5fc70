# SPDX-License-Identifier: Apache-2.0
"""MLRsearch behind the search's interface: every goal's truth within the resolution, whatever
happens to the trials."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.model import LimitedBy
from dutperf.search import MAX_RETRIES, NO_LOSS, Loss, Outcome
from dutperf.search.binary import Bounds, BoundsError, Resolution, SearchResult
from dutperf.search.lengths import Lengths
from dutperf.search.mlr import MlrSearch

Told = tuple[Outcome, Loss]
Measure = Callable[[int, float], Told]
MOST_TRIALS = 600
UNMEASURABLE = (Outcome.UNMEASURABLE, NO_LOSS)
FINE = Resolution(step=500)
TO_100K = Bounds(FINE, maximum=100_000)
GOALS = (0.0, 0.005)


def lossy(lost: int, sent: int) -> Told:
    outcome = Outcome.NOT_FORWARDING if lost == sent else Outcome.FAILED if lost else Outcome.PASSED
    return outcome, Loss(lost, sent)


def capable_of(truth_fps: float) -> Measure:
    """Loses what is more, to the frame."""

    def measure(load: int, duration_s: float) -> Told:
        sent = max(1, int(load * duration_s))
        return lossy(max(0, sent - int(truth_fps * duration_s)) if load > truth_fps else 0, sent)

    return measure


def search(
    limits: Bounds,
    measure: Measure,
    goals: tuple[float, ...] = GOALS,
    duration_s: float = 60.0,
    duration_sum_s: float | None = None,
    exceed_ratio: float = 0.0,
) -> tuple[SearchResult, list[tuple[int, float]]]:
    lengths = Lengths(duration_s, duration_sum_s or duration_s, exceed_ratio)
    one, offered = MlrSearch(limits, goals, lengths), []
    for _ in range(MOST_TRIALS):
        load, length_s = one.next_load(), one.next_duration_s()
        if load is None or length_s is None:
            assert one.trials_left() == 0
            with pytest.raises(ValueError, match="ended"):
                one.record_outcome(Outcome.PASSED)
            return one.result(), offered
        assert one.trials_left() >= 1
        offered.append((load, length_s))
        one.record_outcome(*measure(load, length_s))
    raise AssertionError(f"no end after {MOST_TRIALS} trials: {offered}")


@settings(max_examples=60, deadline=None)
@given(
    truth_fps=st.integers(1_000, 99_000),
    resolution=st.integers(200, 5_000),
    goals=st.lists(st.sampled_from([0.0, 0.001, 0.005, 0.05]), min_size=1, max_size=3, unique=True).map(
        lambda some: tuple(sorted(some))
    ),
    duration_s=st.sampled_from([0.5, 1.0, 5.0, 60.0]),
)
def test_every_goal_s_truth_is_found_within_the_resolution(
    truth_fps: int, resolution: int, goals: tuple[float, ...], duration_s: float
) -> None:
    limits = Bounds(Resolution(step=resolution), maximum=100_000, minimum=1_000)
    found, offered = search(limits, capable_of(truth_fps), goals, duration_s)
    assert [goal.loss_ratio for goal in found.goals] == list(goals)
    assert found.goals[0].result.lower_bound == found.lower_bound
    frame = 1 + 1 / duration_s  # rates are whole, and so are the frames of a trial
    for goal in found.goals:
        value, above = goal.result.lower_bound, goal.result.upper_bound
        assert value is not None
        highest = truth_fps / (1 - goal.loss_ratio)
        assert value <= highest + frame
        assert (value, duration_s) in offered
        if above is None:
            assert (value, goal.result.limited_by) == (100_000, LimitedBy.RANGE)
            continue
        assert value < above
        assert above >= highest - frame
        assert above - value <= resolution / 100_000 * above + 1
        assert goal.result.limited_by is LimitedBy.DUT
        assert goal.conditional == pytest.approx(min(value, truth_fps), rel=0.0005, abs=2)


def test_trials_grow_to_their_full_length() -> None:
    _, offered = search(TO_100K, capable_of(54_321))
    lengths = [length_s for _, length_s in offered]
    assert min(lengths) == 1.0
    assert max(lengths) == 60.0
    assert lengths.index(60.0) > lengths.index(1.0)
    assert sum(lengths) < 60.0 * len(lengths) / 2


def test_a_short_trial_never_shows_that_a_load_passes() -> None:
    """Capable of 80,000 for three seconds, of 50,000 for ever."""
    found, _ = search(
        TO_100K, lambda rate, length_s: capable_of(80_000 if length_s <= 3 else 50_000)(rate, length_s), (0.0,)
    )
    assert found.lower_bound is not None
    assert 49_700 < found.lower_bound <= 50_000
    assert all(outcome is Outcome.FAILED for rate, outcome in found.loads if rate > 50_000)


ENDS = [
    # what it is, bounds, measure, value, above, limited by
    (
        "the media's maximum passes",
        Bounds(FINE, maximum=100_000, maximum_is_media=True),
        capable_of(1e9),
        100_000,
        None,
        LimitedBy.MEDIA,
    ),
    ("the range's end passes", TO_100K, capable_of(1e9), 100_000, None, LimitedBy.RANGE),
    ("nothing passes", TO_100K, lambda rate, _: lossy(rate // 2, rate), None, 400, LimitedBy.DUT),
    (
        "the user's minimum fails",
        Bounds(FINE, minimum=600, maximum=100_000),
        capable_of(300),
        None,
        600,
        LimitedBy.RANGE,
    ),
    ("the tester's reach is below the range", TO_100K, lambda *_: UNMEASURABLE, None, 781, LimitedBy.TESTER),
    (
        "the tester reaches a quarter",
        TO_100K,
        lambda rate, _: UNMEASURABLE if rate > 30_000 else lossy(0, rate),
        25_000,
        50_000,
        LimitedBy.TESTER,
    ),
]


@pytest.mark.parametrize(
    ("limits", "measure", "value", "above", "limited_by"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_how_a_search_ends(
    limits: Bounds, measure: Measure, value: int | None, above: int | None, limited_by: LimitedBy
) -> None:
    found, _ = search(limits, measure, (0.0,))
    assert (found.limited_by, found.not_forwarding) == (limited_by, False)
    assert (found.lower_bound, found.upper_bound) == (value, above)


def test_below_the_tester_s_reach_a_limit_is_the_dut_s() -> None:
    found, _ = search(
        TO_100K, lambda rate, length: UNMEASURABLE if rate > 30_000 else capable_of(9_000)(rate, length), (0.0,)
    )
    assert found.limited_by is LimitedBy.DUT
    assert found.lower_bound is not None
    assert 8_950 < found.lower_bound <= 9_000


def test_a_load_that_cannot_be_measured_is_never_a_loss() -> None:
    """Bad luck at the fourth trial: the load is offered once more, and what is found is the same."""
    calm, offered = search(TO_100K, capable_of(54_321))
    turns = iter(range(MOST_TRIALS))
    found, again = search(
        TO_100K, lambda rate, length: UNMEASURABLE if next(turns) == 3 else capable_of(54_321)(rate, length)
    )
    assert again == [*offered[:4], *offered[3:]]
    assert (found.lower_bound, found.upper_bound, found.limited_by) == (
        calm.lower_bound,
        calm.upper_bound,
        LimitedBy.DUT,
    )


def test_a_load_has_a_second_chance_at_each_length() -> None:
    """The short trial of the maximum needs two attempts, and so does the full-length one."""
    missed: set[tuple[int, float]] = set()

    def measure(load: int, duration_s: float) -> Told:
        if (load, duration_s) not in missed and duration_s in (1.0, 60.0):
            missed.add((load, duration_s))
            return UNMEASURABLE
        return lossy(0, load)

    found, offered = search(TO_100K, measure, (0.0,))
    assert offered == [(100_000, 1.0)] * 2 + [(100_000, pytest.approx(7.746, abs=0.001))] + [(100_000, 60.0)] * 2
    assert (found.lower_bound, found.limited_by) == (100_000, LimitedBy.RANGE)


@pytest.mark.parametrize("loses_more", [0, 1])
def test_a_load_that_cannot_be_measured_twice_ends_the_search(loses_more: int) -> None:
    """Whatever was lost: in trials that are not valid that differs from one to the next, and says
    nothing."""
    turns = iter(range(MOST_TRIALS))

    def measure(rate: int, length: float) -> Told:
        turn = next(turns)
        return (Outcome.UNMEASURABLE, Loss(turn * loses_more, 1000)) if turn >= 4 else capable_of(54_321)(rate, length)

    found, offered = search(TO_100K, measure)
    assert len(offered) == 6
    assert offered[4] == offered[5]
    assert (found.upper_bound, found.limited_by) == (offered[5][0], LimitedBy.TESTER)
    assert found.lower_bound is None or found.lower_bound < offered[5][0]


@pytest.mark.parametrize("trials", [0, 1, 4])
def test_a_dut_that_dies_has_no_value(trials: int) -> None:
    before = iter(range(trials))
    found, offered = search(
        TO_100K,
        lambda rate, length: lossy(rate, rate) if next(before, None) is None else capable_of(54_321)(rate, length),
    )
    assert len(offered) == trials + 2 + (MAX_RETRIES if trials else 0)
    assert (found.not_forwarding, found.lower_bound, found.limited_by) == (True, None, LimitedBy.DUT)
    assert found.upper_bound == offered[-1][0] == 400
    assert all(
        goal.result.not_forwarding and goal.result.lower_bound is None and goal.conditional is None
        for goal in found.goals
    )


def test_silent_when_overloaded_but_alive() -> None:
    found, offered = search(
        TO_100K, lambda rate, length: lossy(rate, rate) if rate > 20_000 else capable_of(15_000)(rate, length), (0.0,)
    )
    assert [rate for rate, _ in offered[:2]] == [100_000, 400]
    assert not found.not_forwarding
    assert found.lower_bound is not None
    assert 14_900 < found.lower_bound <= 15_000


@settings(max_examples=40, deadline=None)
@given(
    seed=st.lists(
        st.sampled_from(["pass", "fail", "silent", "unmeasurable"]), min_size=MOST_TRIALS, max_size=MOST_TRIALS
    )
)
def test_ends_for_any_outcomes_with_a_rate_that_passed(seed: list[str]) -> None:
    turns = iter(seed)
    said = {"pass": lossy(0, 1000), "fail": lossy(20, 1000), "silent": lossy(1000, 1000), "unmeasurable": UNMEASURABLE}
    passed, failed = set(), set()

    def measure(load: int, duration_s: float) -> Told:
        turn = next(turns)
        (passed if turn == "pass" and duration_s == 60.0 else failed).add(load)
        return said[turn]

    found, offered = search(TO_100K, measure, (0.0,))
    assert all(400 <= rate <= 100_000 for rate, _ in offered)
    assert found.lower_bound is None or found.lower_bound in passed
    assert found.upper_bound is None or found.upper_bound in failed


@pytest.mark.parametrize(
    ("limits", "bound"),
    [
        (Bounds(FINE, minimum=1_000, maximum=1_000), "minimum"),
        (Bounds(FINE, minimum=300, maximum=100_000), "minimum"),
        (Bounds(Resolution(step=1), maximum=100_000), "resolution"),
    ],
)
def test_ranges_that_cannot_be(limits: Bounds, bound: str) -> None:
    with pytest.raises(BoundsError) as caught:
        MlrSearch(limits, (0.0,), Lengths(60.0, 60.0))
    assert caught.value.bound == bound


@pytest.mark.parametrize("episode", range(12))
def test_a_load_that_failed_by_one_episode_is_offered_again(episode: int) -> None:
    """... and if it passes, the library never sees the episode."""
    calm, number = capable_of(60_000), count()

    def measure(load: int, duration_s: float) -> Told:
        outcome, lost = calm(load, duration_s)
        if next(number) != episode or lost.lost:
            return outcome, lost
        return Outcome.FAILED, Loss(700, lost.sent, one_episode=True)

    found, _ = search(TO_100K, measure)
    undisturbed, _ = search(TO_100K, calm)
    assert (found.lower_bound, found.upper_bound) == (undisturbed.lower_bound, undisturbed.upper_bound)


@pytest.mark.parametrize("trials", [2, 3])
@pytest.mark.parametrize("began", range(12))
def test_an_outage_of_several_trials_decides_no_search(began: int, trials: int) -> None:
    """The DUT goes down in one trial, and forwards nothing in those after it."""
    calm, numbers = capable_of(60_000), count()

    def measure(load: int, duration_s: float) -> Told:
        outcome, lost = calm(load, duration_s)
        after = next(numbers) - began
        if 0 < after < trials:
            return Outcome.NOT_FORWARDING, Loss(lost.sent, lost.sent, one_episode=True)
        return (outcome, lost) if after or lost.lost else (Outcome.FAILED, Loss(700, lost.sent, one_episode=True))

    found, _ = search(TO_100K, measure)
    undisturbed, _ = search(TO_100K, calm)
    assert (found.lower_bound, found.upper_bound) == (undisturbed.lower_bound, undisturbed.upper_bound)


def test_a_dut_with_an_episode_in_every_trial_is_measured_as_before() -> None:
    def measure(load: int, duration_s: float) -> Told:
        sent = int(load * duration_s)
        return (Outcome.FAILED, Loss(700, sent, one_episode=True)) if load > 60_000 else (Outcome.PASSED, Loss(0, sent))

    found, offered = search(TO_100K, measure, goals=(0.0,))
    assert found.lower_bound is not None
    assert 59_500 <= found.lower_bound <= 60_000
    assert len(offered) - len(set(offered)) == MAX_RETRIES


def in_two_of_five_trials(bad_above: int, truth_fps: float) -> Measure:
    """Loses one per cent in two of five trials at loads above ``bad_above``, and in all above the truth."""
    number = count()

    def measure(load: int, duration_s: float) -> Told:
        sent = int(load * duration_s)
        if load <= bad_above or (load <= truth_fps and next(number) % 5 not in (1, 3)):
            return lossy(0, sent)
        return lossy(sent // 100, sent)

    return measure


@pytest.mark.parametrize(
    ("duration_s", "duration_sum_s"),
    [(1.0, 21.0), (60.0, 120.0)],
    ids=["one second, 21 s in all", "a minute, two in all (ETSI GS NFV-TST 009)"],
)
def test_an_exceed_ratio_looks_through_trials_that_fail_at_times(duration_s: float, duration_sum_s: float) -> None:
    dut = in_two_of_five_trials(30_000, 60_000)
    strict, _ = search(TO_100K, dut, (0.0,), duration_s)
    tolerant, offered = search(TO_100K, dut, (0.0,), duration_s, duration_sum_s, 0.5)
    assert strict.lower_bound is not None
    assert tolerant.lower_bound is not None
    assert tolerant.upper_bound is not None
    assert strict.lower_bound < 60_000 - 500
    assert 59_400 < tolerant.lower_bound <= 60_000 < tolerant.upper_bound
    at_bound = [length_s for load, length_s in offered if load == tolerant.lower_bound]
    assert sum(at_bound) * 2 > duration_sum_s
    assert dict(tolerant.loads)[tolerant.lower_bound] is Outcome.PASSED


def test_a_duration_sum_alone_needs_all_trials_to_pass() -> None:
    found, offered = search(TO_100K, in_two_of_five_trials(30_000, 60_000), (0.0,), 1.0, 5.0)
    assert found.lower_bound is not None
    assert 29_700 < found.lower_bound <= 30_000
    assert sum(length_s for load, length_s in offered if load == found.lower_bound) >= 5.0


@settings(max_examples=25, deadline=None)
@given(
    seed=st.lists(st.integers(0, 99), min_size=1_000, max_size=1_000),
    exceed_ratio=st.sampled_from([0.0, 0.1, 0.5, 0.8]),
    lengths_s=st.sampled_from([(1.0, 1.0), (1.0, 7.0), (5.0, 12.0), (60.0, 120.0)]),
)
def test_the_bounds_are_those_that_the_trials_classify(
    seed: list[int], exceed_ratio: float, lengths_s: tuple[float, float]
) -> None:
    """The library's bounds and this module's classification of loads are one."""
    turns, trials = iter(seed), dict[int, list[tuple[float, Outcome]]]()

    def measure(load: int, duration_s: float) -> Told:
        outcome = lossy(10 if next(turns) < load // 1_000 else 0, 1_000)
        trials.setdefault(load, []).append((duration_s, outcome[0]))
        return outcome

    found, _ = search(TO_100K, measure, (0.0,), *lengths_s, exceed_ratio)
    lengths = Lengths(*lengths_s, exceed_ratio)
    if found.lower_bound is not None:
        assert lengths.outcome(trials[found.lower_bound]) is Outcome.PASSED
    if found.upper_bound is not None:
        assert lengths.outcome(trials[found.upper_bound]) is Outcome.FAILED
