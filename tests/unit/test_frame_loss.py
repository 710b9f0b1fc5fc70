# SPDX-License-Identifier: Apache-2.0
"""Frame loss rate of simulated DUTs whose truth is known."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import journal
from dutperf.model import LEFT_AND_RIGHT, Cause, Direction, LimitedBy, Load, Trial, TrialResult, Verdict
from dutperf.procedures.frame_loss import PROCEDURE, FrameLoss, rates_of
from dutperf.results.summary import SUMMARY, write_summary
from dutperf.run.attempts import ATTEMPTS
from dutperf.run.campaign import PlanError, Summary
from dutperf.setup.conditions import Rate
from dutperf.statistics.stopping import Auto
from dutperf.tester import ProgressCallback, Tester
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, journal_lines, measure, plan

PERCENT_1 = 2.5758
"""Standard deviations of the normal distribution's two-sided 99 % interval."""


def rates(*texts: str) -> tuple[Rate, ...]:
    return tuple(map(Rate.parse, texts))


def series(
    tester: Tester, out: Path, *, media_fps: int | None = 100_000, log: Log | None = None, **conditions: Any
) -> Summary:
    """A series over 84 byte frames with one repetition, unless ``conditions`` say otherwise."""
    return measure(tester, plan(media_fps, **{"repetitions": 1, **conditions}), out, "frame-loss", log)


def offered(tester: SimulatedTester) -> list[int]:
    return [stream.rate_fps for trial in tester.trials for stream in list(trial.streams().values())[:1]]


@pytest.mark.parametrize("capacity_fps", [5_000, 34_567, 65_000, 99_999, 200_000])
def test_a_known_capacity_gives_the_loss_of_each_rate(tmp_path: Path, capacity_fps: int) -> None:
    """What a server of that capacity cannot take is lost: 1 − capacity / rate, to the frame."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=capacity_fps))
    [point] = series(tester, tmp_path).points
    for rate in point.rates:
        expected = max(0.0, 1 - capacity_fps / rate.load.value)
        for figures in (rate.loss_ratio.worst, rate.loss_ratio.forward, rate.loss_ratio.reverse):
            assert figures.median == pytest.approx(expected, abs=1 / (5 * rate.load.value))
    lossless = [rate_fps for rate_fps in range(100_000, 0, -10_000) if rate_fps <= capacity_fps]
    assert point.first_lossless_fps == max(lossless, default=None)
    assert offered(tester) == [rate_fps for rate_fps in range(100_000, 0, -10_000) if rate_fps not in lossless[2:]]
    assert point.has_number


@pytest.mark.long
def test_known_random_loss_lies_in_its_interval(tmp_path: Path) -> None:
    """Over 1,000 seeded trials the share whose 99 % interval holds the truth is 99 %, but for what
    chance allows a thousandth of the time."""
    truth, missed, seen = 0.01, 0, 0
    for seed in range(100):
        [point] = series(
            SimulatedTester(SimulatedDut(loss_ratio=truth), seed=seed), tmp_path / str(seed), directions="forward"
        ).points
        for rate in point.rates:
            deviation = PERCENT_1 * (truth * (1 - truth) / (5 * rate.load.value)) ** 0.5
            missed += abs(rate.loss_ratio.worst.median - truth) > deviation
            seen += 1
    assert seen == 1_000
    assert 1 <= missed <= next(most for most in range(seen) if _at_most(most, seen, 0.01) > 0.999)


def _at_most(most: int, of: int, probability: float) -> float:
    return sum(comb(of, hits) * probability**hits * (1 - probability) ** (of - hits) for hits in range(most + 1))


def test_directions_are_told_apart_and_the_worse_is_named(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps={Direction.FORWARD: 100_000, Direction.REVERSE: 50_000}))
    [point] = series(tester, tmp_path, rates=rates("80k")).points
    [rate] = point.rates
    assert (rate.loss_ratio.forward.median, rate.loss_ratio.reverse.median, rate.loss_ratio.worst.median) == (
        0,
        0.375,
        0.375,
    )


def test_one_direction_alone(tmp_path: Path) -> None:
    [point] = series(SimulatedTester(), tmp_path, directions="reverse", rates=rates("80k")).points
    assert point.rates[0].loss_ratio.forward is None
    assert point.rates[0].loss_ratio.reverse == point.rates[0].loss_ratio.worst


def test_a_tolerance_ends_the_series_and_is_disclosed(tmp_path: Path) -> None:
    dut = SimulatedDut(loss_ratio=0.0001)
    [strict] = series(SimulatedTester(dut), tmp_path / "strict").points
    log = Log()
    summary = series(SimulatedTester(dut), tmp_path / "tolerant", loss_tolerance=0.0005, log=log)
    [tolerant] = summary.points
    assert (len(strict.rates), strict.first_lossless_fps, len(tolerant.rates), tolerant.first_lossless_fps) == (
        10,
        None,
        2,
        100_000,
    )
    assert "no rate with no loss, down to 10,000" in strict.message
    assert "no loss (up to 0.05 % of a direction's frames lost)" in tolerant.message
    assert any(
        "0.05 %" in deviation.text for deviation in summary.deviations if deviation.clause == "RFC 2544 section 26.3"
    )
    assert (
        log.statuses[-1].note == "repetition 1: no loss (up to 0.05 % of a direction's frames lost) at 100,000 frames/s"
    )
    assert tolerant.rates[0].loss_ratio.worst.median > 0


def test_the_testers_limit_is_not_booked_as_the_duts(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=50_000), SimulatedLimits(receive_fps=45_000))
    [point] = series(tester, tmp_path).points
    beyond = [rate for rate in point.rates if rate.load.value > 45_000]
    assert [rate.load.value for rate in beyond] == [100_000, 90_000, 80_000, 70_000, 60_000, 50_000]
    for rate in beyond:
        assert (rate.limited_by, rate.loss_ratio.worst.median, rate.loss_ratio.worst.values) == (
            LimitedBy.TESTER,
            None,
            (None,),
        )
        assert (rate.trials.valid, rate.trials.invalid) == (0, ATTEMPTS)
    assert all(rate.limited_by is None and rate.loss_ratio.worst.median == 0 for rate in point.rates[len(beyond) :])
    assert point.first_lossless_fps == 40_000
    assert point.has_number
    assert not point.limited_by_tester
    assert (
        "the tester, not the DUT, is the limit at 100,000, 90,000, 80,000, 70,000, 60,000 and 50,000 frames/s:"
        in point.message
    )


def test_a_tester_that_never_makes_a_valid_trial(tmp_path: Path) -> None:
    summary = series(
        SimulatedTester(limits=SimulatedLimits(disturbed_ratio=1.0)), tmp_path, rates=rates("1000", "2000")
    )
    [point] = summary.points
    assert summary.without_number() == (point,)
    assert point.limited_by_tester
    assert point.first_lossless_fps is None


def test_a_rate_measured_in_some_repetitions_only_has_no_figures(tmp_path: Path) -> None:
    """Where trials with loss are disturbed more easily, those that are left flatter the DUT."""

    class DisturbedLater(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            disturbed = {"verdict": Verdict.INVALID, "causes": (Cause(code="sender_late", text="late"),)}
            return result if len(self.trials) < 3 else result.model_copy(update=disturbed)

    [point] = series(DisturbedLater(), tmp_path, rates=rates("1000"), repetitions=3).points
    [rate] = point.rates
    figures = rate.loss_ratio.worst
    assert (rate.limited_by, figures.values, figures.median, figures.p1, figures.p99) == (
        LimitedBy.TESTER,
        (0, 0, None),
        None,
        None,
        None,
    )
    assert point.first_lossless_fps is None


def test_disturbed_trials_are_repeated(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=55_000), SimulatedLimits(disturbed_ratio=0.3), seed=2)
    [point] = series(tester, tmp_path).points
    assert (point.first_lossless_fps, point.rates[0].loss_ratio.worst.values) == (50_000, (0.45,))
    assert sum(rate.trials.invalid for rate in point.rates) > 0


def test_repetitions_are_whole_series_and_are_summarised_by_rate(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(loss_ratio=0.00003), seed=1)
    [point] = series(tester, tmp_path, repetitions=4, directions="forward", duration_s=1, media_fps=20_000).points
    ends = [event for event in journal_lines(tmp_path) if event["event"] == "series"]
    assert (point.repetitions, len(ends)) == (4, 4)
    assert len(offered(tester)) == sum(len(rate.loss_ratio.worst.values) for rate in point.rates)
    for rate in point.rates:
        figures = rate.loss_ratio.worst
        assert (figures.p1, figures.p99) == (min(figures.values), max(figures.values))
    lossless = [rate.load.value for rate in point.rates if set(rate.loss_ratio.worst.values) == {0}]
    assert point.first_lossless_fps == max(lossless)
    assert point.first_lossless_fps < max(rate.load.value for rate in point.rates if 0 in rate.loss_ratio.worst.values)


def test_a_list_is_measured_to_its_end_from_the_highest_down(tmp_path: Path) -> None:
    tester = SimulatedTester()
    [point] = series(tester, tmp_path, rates=rates("10k", "20k", "50%", "1k")).points
    assert offered(tester) == [50_000, 20_000, 10_000, 1_000]
    assert [rate.percent_of_maximum for rate in point.rates] == [50, 20, 10, 1]
    assert point.first_lossless_fps == 50_000


def test_a_loss_below_a_lossless_rate_is_said(tmp_path: Path) -> None:
    class WorseBelow(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            self.dut = SimulatedDut(loss_ratio=0.1 if trial.streams()[Direction.FORWARD].rate_fps < 5_000 else 0)
            return super().run(trial, on_progress)

    [point] = series(WorseBelow(), tmp_path, rates=rates("10k", "4k", "3k")).points
    assert point.first_lossless_fps == 10_000
    assert "but some at the lower 4,000 and 3,000 frames/s" in point.message


def test_a_lower_rate_that_the_tester_could_not_measure_is_no_loss_there(tmp_path: Path) -> None:
    class DisturbedBelow(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            self.limits = SimulatedLimits(disturbed_ratio=float(trial.streams()[Direction.FORWARD].rate_fps < 5_000))
            return super().run(trial, on_progress)

    [point] = series(DisturbedBelow(), tmp_path, rates=rates("10k", "4k")).points
    assert (
        point.message
        == "no loss at 10,000 frames/s; the tester, not the DUT, is the limit at 4,000 frames/s: no figures there"
    )


def test_a_sign_of_life_that_is_asked_for_is_no_rate_of_the_series(tmp_path: Path) -> None:
    """A rate so low that the DUT is asked for a sign of life at the same one."""
    [point] = series(SimulatedTester(SimulatedDut(dies_after_trials=0)), tmp_path, rates=rates("10")).points
    assert [rate.loss_ratio.worst.values for rate in point.rates] == [(1,)]


@pytest.mark.parametrize(("dies_after", "rates_measured"), [(0, 1), (3, 4), (10, 10)])
def test_a_dut_that_forwards_nothing_ends_its_cases(tmp_path: Path, dies_after: int, rates_measured: int) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=5_000, dies_after_trials=dies_after))
    summary = series(tester, tmp_path, frame_sizes=(84, 1518))
    first, second = summary.points
    assert len(first.rates) == rates_measured
    dead = second if dies_after == 10 else first
    assert dead in summary.without_number()
    assert "the DUT forwards nothing in the forward and the reverse direction" in dead.message
    assert offered(tester)[-1] == 10
    assert journal_lines(tmp_path)[-1]["outcome"] == ("completed" if dead is second else "ended")


def test_a_dut_that_drops_all_under_overload_only_is_no_dead_one(tmp_path: Path) -> None:
    class Livelocked(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            self.dut = SimulatedDut(
                dead_directions=frozenset(LEFT_AND_RIGHT)
                if trial.streams()[Direction.FORWARD].rate_fps > 75_000
                else frozenset()
            )
            return super().run(trial, on_progress)

    [point] = series(Livelocked(), tmp_path).points
    assert [rate.loss_ratio.worst.median for rate in point.rates] == [1, 1, 1, 0, 0]
    assert point.first_lossless_fps == 70_000
    assert point.has_number


def test_without_the_medias_maximum(tmp_path: Path) -> None:
    tester = SimulatedTester()
    summary = series(tester, tmp_path / "run", media_fps=None, max_rate=Rate.parse("5000"))
    assert offered(tester) == [5_000, 4_500]
    assert [rate.percent_of_maximum for rate in summary.points[0].rates] == [None, None]
    with pytest.raises(PlanError, match="media's maximum frame rate is not known") as caught:
        series(tester, tmp_path / "none", media_fps=None)
    assert caught.value.option == "max_rate"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("conditions", "option", "words"),
    [
        ({"step": Rate.parse("10.1%")}, "step", "10.1 % is wider than 10 %"),
        ({"step": Rate.parse("10001")}, "step", "10,001 frames/s is wider than 10 %"),
        ({"step": Rate.parse("1")}, "step", "more than 10,000 rates"),
        ({"max_rate": Rate(value=2e9, unit="fps")}, "max_rate", "1,000,000,000"),
        ({"rates": rates("1000", "1k")}, "rates", "the same rate twice"),
        ({"rates": rates("1000", "101%")}, "rates", "101,000 frames/s are above the media's maximum of 100,000"),
        ({"rates": rates("1000"), "step": Rate.parse("5%")}, "step", "no effect"),
        ({"rates": rates("1000"), "max_rate": Rate.parse("5%")}, "max_rate", "no effect"),
    ],
)
def test_rates_that_cannot_be(conditions: dict[str, Any], option: str, words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        rates_of(FrameLoss(**conditions), 100_000)
    assert caught.value.option == option


def test_repetitions_cannot_decide_for_themselves(tmp_path: Path) -> None:
    tester = SimulatedTester()
    with pytest.raises(PlanError, match="no single figure for auto") as caught:
        series(tester, tmp_path / "run", repetitions=Auto())
    assert caught.value.option == "repetitions"
    assert not tester.trials
    assert not (tmp_path / "run").exists()


def test_percentages_of_an_unknown_maximum() -> None:
    with pytest.raises(PlanError, match="media_mbps") as caught:
        rates_of(FrameLoss(rates=rates("10k", "50%")), None)
    assert caught.value.option == "rates"


@pytest.mark.parametrize(
    ("maximum_fps", "step", "expected"),
    [
        (1_488_090, None, list(range(1_488_090, 0, -148_809))),
        (1_000, Rate.parse("100"), list(range(1_000, 0, -100))),
        (49_000, Rate.parse("1000"), list(range(49_000, 0, -1_000))),
        (1_000, Rate.parse("3%"), list(range(1_000, 0, -30))),
        (5, None, [5, 4, 3, 2, 1]),
    ],
)
def test_steps(maximum_fps: int, step: Rate | None, expected: list[int]) -> None:
    assert list(rates_of(FrameLoss(step=step), maximum_fps)) == expected


@given(maximum_fps=st.integers(1, 10**9), percent=st.floats(0.5, 10))
def test_no_step_is_wider_than_the_rfc_allows(maximum_fps: int, percent: float) -> None:
    descending = rates_of(FrameLoss(step=Rate(value=percent, unit="percent")), maximum_fps)
    assert descending[0] == maximum_fps
    assert min(descending) >= 1
    gaps = [high - low for high, low in zip(descending, (*descending[1:], 0), strict=True)]
    assert all(0 < gap <= maximum_fps * percent / 100 + 1 for gap in gaps)


DEVIATIONS = [
    ({}, 100_000, 1, {"RFC 8219 section 12": "a single iteration"}),
    ({"repetitions": 2}, 100_000, 2, {}),
    (
        {"repetitions": 2, "max_rate": Rate.parse("50%")},
        100_000,
        2,
        {"RFC 2544 section 26.3": "below the media's maximum"},
    ),
    ({"repetitions": 2, "max_rate": Rate.parse("1000")}, None, 2, {"RFC 2544 section 26.3": "maximum is not known"}),
    ({"repetitions": 2, "rates": rates("1000")}, 100_000, 2, {"RFC 2544 section 26.3": "given list"}),
    (
        {"repetitions": 2, "loss_tolerance": 0.01},
        100_000,
        2,
        {"RFC 2544 section 26.3": "1 % of a direction's frames lost"},
    ),
]


@pytest.mark.parametrize(("conditions", "media_fps", "finished", "expected"), DEVIATIONS)
def test_deviations(
    tmp_path: Path, conditions: dict[str, Any], media_fps: int | None, finished: int, expected: dict[str, str]
) -> None:
    summary = series(SimulatedTester(), tmp_path, media_fps=media_fps, **conditions)
    own = {
        one.clause: one.text
        for one in summary.deviations
        if one.clause in ("RFC 2544 section 26.1", "RFC 2544 section 26.3", "RFC 8219 section 12")
    }
    assert summary.points[0].finished == finished
    assert own.keys() == expected.keys()
    assert all(words in own[clause] for clause, words in expected.items())


def test_the_summary_has_its_form_and_comes_from_the_journal_alone(tmp_path: Path) -> None:
    summary = series(SimulatedTester(SimulatedDut(capacity_fps=75_000)), tmp_path)
    before = json.loads((tmp_path / SUMMARY).read_text())
    (tmp_path / SUMMARY).unlink()
    assert write_summary(tmp_path, PROCEDURE) == summary
    assert json.loads((tmp_path / SUMMARY).read_text()) == before
    assert set(before) == {
        "procedure",
        "dut",
        "environment",
        "conditions",
        "deviations",
        "trials",
        "points",
        "remarks",
        "streams",
        "environment_changes",
    }
    assert (before["procedure"], before["conditions"]["search"]["algorithm"]) == ("frame-loss", "series")
    assert not {"resolution", "min_rate", "initial_rate"} & set(before["conditions"])
    [point] = before["points"]
    assert set(point) == {
        "case",
        "pass_criterion",
        "message",
        "rates",
        "first_lossless_fps",
        "repetitions",
        "not_forwarding",
    }
    assert set(point["rates"][0]) == {"load", "percent_of_maximum", "loss_ratio", "limited_by", "trials"}
    assert set(point["rates"][0]["loss_ratio"]) == {"forward", "reverse", "worst"}
    assert point["rates"][0]["loss_ratio"]["worst"] == {"median": 0.25, "p1": 0.25, "p99": 0.25, "values": [0.25]}


def test_a_killed_run_at_any_byte_has_a_summary(tmp_path: Path) -> None:
    series(SimulatedTester(SimulatedDut(capacity_fps=75_000)), tmp_path / "run", repetitions=2)
    whole = (tmp_path / "run" / journal.JOURNAL).read_bytes()
    for end in range(whole.index(b"\n") + 1, len(whole), 997):
        (tmp_path / journal.JOURNAL).write_bytes(whole[:end])
        [point] = write_summary(tmp_path, PROCEDURE).points
        assert (
            point.finished == 2
            or f"({point.finished} of 2 repetitions; the run ended early because it was killed or could not write)"
            in point.message
        )


def test_the_observer_is_told_what_is_tried_and_what_is_left(tmp_path: Path) -> None:
    log = Log()
    series(SimulatedTester(SimulatedDut(capacity_fps=75_000)), tmp_path, repetitions=2, frame_sizes=(84, 128), log=log)
    first, last = log.statuses[0], log.statuses[-1]
    assert (first.procedure, first.trying, first.trials_left) == ("frame-loss", Load.fps(100_000), 40)
    assert (last.repetition, last.trials_left) == (2, 0)
    assert {status.note for status in log.statuses} >= {"repetition 1: no loss at 70,000 frames/s"}
    assert all(status.lower < status.upper for status in log.statuses if status.lower and status.upper)
