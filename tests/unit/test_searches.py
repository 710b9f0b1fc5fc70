# SPDX-License-Identifier: Apache-2.0
"""Throughput with loss goals, with repetitions that decide for themselves, and of DUTs that
contradict themselves: simulated, truth known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dutperf.journal.events import event_of_json
from dutperf.model import LimitedBy, Load, Question, Trial, TrialResult, to_json
from dutperf.procedures.throughput import PROCEDURE, Throughput
from dutperf.results.inconsistency import contradictions
from dutperf.results.summary import summarise
from dutperf.run.campaign import PlanError
from dutperf.setup.conditions import Rate, Usual
from dutperf.setup.configuration import ParameterError
from dutperf.statistics.stopping import Auto, Stopped
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, journal_lines, measure, plan

MLR: dict[str, Any] = {"search": "mlr", "max_rate": Rate.parse("100k"), "goals": (0.0, 0.005)}
BUSY = SimulatedDut(capacity_fps=54_321)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("disturbed_ratio", [0.0, 0.2])
def test_each_goal_has_its_throughput(tmp_path: Path, seed: int, disturbed_ratio: float) -> None:
    truth_fps = 10_000 + 7_919 * seed
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=truth_fps), SimulatedLimits(disturbed_ratio=disturbed_ratio), seed
    )
    [point] = measure(tester, plan(**MLR), tmp_path).points
    assert point.limited_by is LimitedBy.DUT
    assert point.repetitions.stopped is Stopped.NUMBER
    assert [goal.loss_ratio for goal in point.goals] == [0.0, 0.005]
    assert point.goals[0].throughput_fps == point.throughput_fps
    for goal in point.goals:
        highest_fps = truth_fps / (1 - goal.loss_ratio)
        assert len(goal.throughput_fps.values) == 3
        assert all(
            value is not None and 0.995 * highest_fps - 1 <= value <= highest_fps + 1
            for value in goal.throughput_fps.values
        )
        assert all(value is not None and value <= truth_fps + 1 for value in goal.conditional_throughput_fps.values)
        assert goal.upper_bound is not None
        assert goal.upper_bound.load.value > highest_fps - 1
    assert point.goals[1].throughput_fps.median > point.goals[0].throughput_fps.median  # type: ignore[operator]


def test_random_loss_is_far_below_the_second_goal(tmp_path: Path) -> None:
    """0.01 % of random loss: near nothing without loss, all that the DUT can do with up to 0.5 %."""
    [point] = measure(
        SimulatedTester(SimulatedDut(capacity_fps=80_000, loss_ratio=0.0001)), plan(**MLR), tmp_path
    ).points
    strict, tolerant = (goal.throughput_fps.median for goal in point.goals)
    assert strict is None or strict < 20_000
    assert tolerant is not None
    assert 79_500 < tolerant < 80_500


@pytest.mark.parametrize(
    ("conditions", "asked"),
    [
        (
            {"resolution": Rate.parse("2k"), "loss_tolerance": 0.001},
            lambda rate_fps: {"tolerated_loss": 0.001, "resolution": 2_000 / rate_fps},
        ),
        ({"resolution": Rate.parse("5%")}, lambda rate_fps: {"resolution": 5_000 / rate_fps}),
        ({"search": "mlr", "goals": (0.001, 0.005)}, lambda _: {}),
    ],
    ids=["frames/s", "share of the media", "mlr"],
)
def test_a_trial_is_asked_what_the_search_wants_to_know(
    conditions: dict[str, Any], asked: Callable[[int], dict[str, Any]], tmp_path: Path
) -> None:
    tester = SimulatedTester(BUSY)
    measure(tester, plan(media_fps=100_000, **{"max_rate": Rate.parse("100k")} | conditions), tmp_path)
    assert tester.trials
    for one in tester.trials:
        assert one.question == Question(may_end_early=True, **asked(one.forward.rate_fps))  # type: ignore[union-attr]


def test_short_trials_are_what_the_tester_sends(tmp_path: Path) -> None:
    tester, log = SimulatedTester(BUSY), Log()
    measure(tester, plan(**MLR, duration_s=60, repetitions=1), tmp_path, log=log)
    lengths = [trial.duration_s for trial in tester.trials]
    assert (min(lengths), max(lengths)) == (1.0, 60.0)
    [search] = [event for event in journal_lines(tmp_path) if event["event"] == "search"]
    [whole] = [goal for goal in search["goals"] if goal["loss_ratio"] == 0]
    assert [whole["lower_bound"], "passed"] in whole["loads"]
    full = {trial.forward.rate_fps for trial in tester.trials if trial.forward and trial.duration_s == 60.0}
    assert {goal["lower_bound"] for goal in search["goals"]} <= full
    assert log.statuses[-1].trials_left == 0


@pytest.mark.parametrize(
    ("conditions", "minimum_fps"), [({}, 10), (MLR, 400), (MLR | {"min_rate": Rate.parse("2k")}, 2_000)]
)
def test_the_range_that_was_searched_is_stated(tmp_path: Path, conditions: dict[str, Any], minimum_fps: int) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=5))
    summary = measure(tester, plan(**conditions, repetitions=1), tmp_path)
    assert [limits["minimum_fps"] for limits in summary.conditions["ranges"]] == [minimum_fps]
    assert min(trial.forward.rate_fps for trial in tester.trials if trial.forward) == minimum_fps


def test_the_tester_s_limit_is_not_booked_as_the_dut_s(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=90_000), SimulatedLimits(send_fps=60_000))
    [point] = measure(tester, plan(**MLR, repetitions=1), tmp_path).points
    assert (point.limited_by, point.throughput_fps.values) == (LimitedBy.TESTER, (50_000,))
    assert "limited by the tester at 100,000 frames/s" in point.message
    assert all(goal.limited_by is LimitedBy.TESTER for goal in point.goals)


def test_a_dead_dut_has_no_throughput_for_any_goal(tmp_path: Path) -> None:
    [point] = measure(
        SimulatedTester(SimulatedDut(capacity_fps=54_321, dies_after_trials=12)), plan(**MLR, repetitions=20), tmp_path
    ).points
    assert point.throughput_fps.median is None
    assert point.repetitions.stopped is None
    assert point.message.startswith("the DUT forwards nothing")
    assert all(
        goal.throughput_fps.median is None and goal.conditional_throughput_fps.median is None for goal in point.goals
    )


def test_the_loss_goals_are_disclosed(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(BUSY), plan(**MLR), tmp_path)
    assert summary.conditions["search"] | {"version": "", "attempts": {}} == {
        "algorithm": "MLRsearch", "version": "", "goals": [0.0, 0.005], "start": "none", "attempts": {},
        "exceed_ratio": 0.0, "duration_sum_s": 5.0,
    }  # fmt: skip
    [deviation] = [deviation for deviation in summary.deviations if deviation.clause == "RFC 2544 section 26.1"]
    assert "0.5 %" in deviation.text
    alone = measure(SimulatedTester(BUSY), plan(**MLR | {"goals": ()}), tmp_path / "alone")
    assert not [deviation for deviation in alone.deviations if deviation.clause == "RFC 2544 section 26.1"]
    assert [goal.loss_ratio for goal in alone.points[0].goals] == [0.0]


def test_an_exceed_ratio_is_disclosed(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(BUSY), plan(**MLR, exceed_ratio=0.5, duration_sum_s=20.0), tmp_path)
    searched = summary.conditions["search"]
    assert (searched["exceed_ratio"], searched["duration_sum_s"]) == (0.5, 20.0)
    assert any("although up to 50 % of its trials fail" in deviation.text for deviation in summary.deviations)
    assert "more lost in up to 50 % of a load's trials" in summary.points[0].pass_criterion


@pytest.mark.parametrize(
    ("conditions", "option", "words"),
    [
        ({"goals": (0.0,)}, "goals", "need `search` mlr"),
        ({**MLR, "loss_tolerance": 0.001}, "loss_tolerance", "already say"),
        ({**MLR, "exceed_ratio": 0.5}, "exceed_ratio", "no effect where one trial decides"),
        ({**MLR, "duration_sum_s": 0.1}, "duration_sum_s", "already"),
        ({**MLR, "initial_rate": Rate.parse("1k")}, "initial_rate", "begins at the maximum"),
        ({**MLR, "max_rate": None}, "max_rate", "not known"),
        ({**MLR, "min_rate": Rate.parse("100k")}, "min_rate", "needs a range"),
        ({**MLR, "resolution": Rate.parse("1")}, "resolution", "less than a frame"),
    ],
)
def test_no_option_is_given_in_vain(tmp_path: Path, conditions: dict[str, Any], option: str, words: str) -> None:
    tester = SimulatedTester()
    with pytest.raises(PlanError, match=words) as caught:
        measure(tester, plan(**conditions), tmp_path / "run")
    assert caught.value.option == option
    assert not tester.trials
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("hiccup_ratio", "stopped", "fewest", "most"), [(0.0, Stopped.NARROW, 10, 10), (0.2, Stopped.MAXIMUM, 30, 30)]
)
def test_repetitions_go_on_until_the_median_is_known(
    tmp_path: Path, hiccup_ratio: float, stopped: Stopped, fewest: int, most: int
) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=54_321, hiccup_ratio=hiccup_ratio), seed=1)
    summary = measure(tester, plan(repetitions=Auto(maximum=30)), tmp_path)
    [point] = summary.points
    assert (point.repetitions.stopped, len(point.throughput_fps.values)) == (stopped, point.repetitions.finished)
    assert fewest <= point.repetitions.finished <= most
    assert summary.conditions["repetitions"] == to_json(Auto(maximum=30))
    interval = point.throughput_fps.median_interval
    assert interval is not None
    assert interval.confidence == 0.95
    assert interval.low is not None
    assert interval.high is not None
    assert (interval.high - interval.low <= 0.01 * interval.high) == (stopped is Stopped.NARROW)
    assert "ended early" not in point.message


def test_repetitions_end_where_nothing_passes(tmp_path: Path) -> None:
    [point] = measure(SimulatedTester(SimulatedDut(loss_ratio=0.5)), plan(repetitions=Auto()), tmp_path).points
    assert (point.repetitions.finished, point.repetitions.stopped) == (10, Stopped.NOTHING)
    assert point.throughput_fps.median is None


def test_every_goal_has_to_be_known(tmp_path: Path) -> None:
    """Scattered without loss, sharp with some: the strict goal keeps the repetitions going."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=80_000, loss_ratio=0.00001), seed=3)
    [point] = measure(tester, plan(**MLR, repetitions=Auto(maximum=12)), tmp_path).points
    assert (point.repetitions.finished, point.repetitions.stopped) == (12, Stopped.MAXIMUM)
    tolerant = point.goals[1].throughput_fps
    assert tolerant.dispersion_percent is not None
    assert tolerant.dispersion_percent < 1


def test_a_run_that_was_killed_says_how_many_repetitions_there_could_have_been(tmp_path: Path) -> None:
    measure(SimulatedTester(BUSY), plan(repetitions=Auto()), tmp_path)
    events = journal_lines(tmp_path)
    seventh = next(
        index for index, event in enumerate(events) if event["event"] == "search" and event["repetition"] == 7
    )
    [point] = summarise([event_of_json(event) for event in events[: seventh + 1]], PROCEDURE).points
    assert (point.repetitions.finished, point.repetitions.stopped) == (7, None)
    assert (
        "(7 of at most 100 repetitions; the run ended early because it was killed or could not write)" in point.message
    )
    assert point.throughput_fps.median_interval is not None


def test_the_observer_hears_why_there_is_no_further_repetition(tmp_path: Path) -> None:
    log = Log()
    measure(SimulatedTester(BUSY), plan(repetitions=Auto()), tmp_path, log=log)
    assert log.statuses[0].repetitions == 10
    assert (log.statuses[-1].trials_left, log.statuses[-1].repetition) == (0, 10)
    assert (log.statuses[-1].note or "").endswith("; no further repetition: narrow enough")


@pytest.mark.parametrize(
    ("conditions", "value_fps"),
    [
        ({"search": "binary"}, 40_000),  # the first half of 100,000 lies in the dip: nothing above it is offered
        ({"search": "binary", "initial_rate": Rate.parse("70k")}, 80_000),
        ({"search": "mlr"}, 80_000),  # what 100,000 left over is offered next
    ],
)
def test_a_dut_that_passes_above_a_failure_is_met_by_rule(
    tmp_path: Path, conditions: dict[str, Any], value_fps: int
) -> None:
    """It fails from 40,000 to 60,000 frames/s, and manages 80,000: the value is the highest that
    passed below the lowest that failed, as searched."""
    dut = SimulatedDut(capacity_fps=80_000, dip_fps=(40_000, 60_000))
    [point] = measure(
        SimulatedTester(dut),
        plan(**conditions, repetitions=2, max_rate=Rate.parse("100k"), resolution=Rate.parse("1k")),
        tmp_path,
    ).points
    assert point.throughput_fps.median == pytest.approx(value_fps, rel=0.02)
    assert (point.inconsistent, point.limited_by) == ((), LimitedBy.DUT)


def test_a_dut_that_changes_between_repetitions_is_reported(tmp_path: Path) -> None:
    """It gets a little better half-way: a later repetition passes what an earlier one saw fail."""

    class Recovering(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            self.dut = SimulatedDut(capacity_fps=50_000 if len(self.trials) < 8 else 53_000)
            return super().run(trial, on_progress)

    [point] = measure(Recovering(), plan(max_rate=Rate.parse("100k"), resolution=Rate.parse("1k")), tmp_path).points
    assert point.inconsistent
    assert {one.load.value > 50_000 for one in point.inconsistent} == {True}
    assert any(one.passed for one in point.inconsistent)
    assert any(one.failed for one in point.inconsistent)


def test_a_dut_that_fails_by_chance_is_reported(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=54_321, hiccup_ratio=0.2), seed=1)
    [point] = measure(tester, plan(repetitions=10), tmp_path).points
    searches = [event for event in journal_lines(tmp_path) if event["event"] == "search"]
    assert point.inconsistent
    assert all(one.passed + one.failed > 0 and one.load.value <= 54_321 for one in point.inconsistent)
    for search in searches:  # the value stays the highest that passed below the lowest that failed, in that search
        failed = [rate for rate, outcome in search["loads"] if outcome == "failed"]
        passed = [rate for rate, outcome in search["loads"] if outcome == "passed"]
        assert search["lower_bound"] == max(
            (rate for rate in passed if rate < min(failed, default=rate + 1)), default=None
        )


def test_a_consistent_dut_is_not_reported(tmp_path: Path) -> None:
    [point] = measure(SimulatedTester(BUSY), plan(repetitions=10), tmp_path).points
    assert point.inconsistent == ()


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([], []),
        ([(1, "passed"), (2, "failed")], []),
        ([(1, "passed"), (3, "failed"), (2, "passed")], []),
        ([(2, "passed"), (1, "failed")], [(1, 0, 1), (2, 1, 0)]),
        ([(2, "passed"), (2, "failed")], [(2, 1, 1)]),
        ([(2, "passed"), (1, "not_forwarding")], [(1, 0, 1), (2, 1, 0)]),
        ([(2, "passed"), (1, "unmeasurable")], []),
        (
            [(5, "failed"), (1, "passed"), (2, "failed"), (3, "passed"), (4, "passed")],
            [(2, 0, 1), (3, 1, 0), (4, 1, 0)],
        ),
    ],
)
def test_contradictions(loads: list[tuple[int, str]], expected: list[tuple[int, int, int]]) -> None:
    assert [
        (one.load.value, one.passed, one.failed)
        for one in contradictions((Load.fps(fps), outcome) for fps, outcome in loads)
    ] == expected


def test_conditions_with_goals_and_rules_go_through_json_unchanged() -> None:
    conditions = Throughput(search="mlr", goals=(0.005, 0.0), repetitions=Auto(width_share=0.02))
    assert conditions.loss_goals() == (0.0, 0.005)
    assert Throughput.model_validate(json.loads(json.dumps(to_json(conditions)))) == conditions
    assert Usual(loss_tolerance=0.01).loss_goals() == (0.01,)


@pytest.mark.parametrize(
    "members", [{"goals": (0.0, 0.0)}, {"goals": (1.0,)}, {"search": "guess"}, {"repetitions": {"minimum": 3}}]
)
def test_what_cannot_be(members: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Throughput(**members)
