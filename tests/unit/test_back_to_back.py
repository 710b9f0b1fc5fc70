# SPDX-License-Identifier: Apache-2.0
"""Longest bursts of simulated DUTs whose buffer is known, and what is not said of those that cannot
be measured."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from dutperf.model import Direction, DirectionCounts, LimitedBy, Quantiles, TrialResult, Verdict
from dutperf.procedures import back_to_back
from dutperf.procedures.back_to_back import PROCEDURE, BackToBackPoint, BackToBackProcedure
from dutperf.results.summary import SUMMARY, write_summary
from dutperf.run.campaign import PlanError, Summary
from dutperf.search import Outcome
from dutperf.setup.conditions import Rate
from dutperf.statistics.stopping import Auto
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import counts, journal_lines, measure, plan

RATE_FPS = 100_000
THROUGHPUT_FPS = 60_000


def bursts(
    tester: SimulatedTester, out: Path, media_fps: int | None = RATE_FPS, **conditions: Any
) -> tuple[BackToBackPoint, Summary]:
    """At 100,000 frames/s, of a DUT whose throughput is 60,000, to the frame, three times, unless
    ``conditions`` say otherwise."""
    chosen = {"throughput_from": {84: THROUGHPUT_FPS}, "burst_resolution": 1e-6, "drain_s": 2} | conditions
    summary = measure(tester, plan(media_fps, **chosen), out, "back-to-back")
    point = summary.points[0]
    assert isinstance(point, BackToBackPoint)
    return point, summary


def buffered(frames: int, **members: Any) -> SimulatedTester:
    return SimulatedTester(SimulatedDut(capacity_fps=THROUGHPUT_FPS, queue_frames=frames, **members))


def longest(queue_frames: int) -> int:
    """The longest burst of which no more than the queue is left when the server has had its time,
    by trying."""
    frames = 1
    while frames + 1 - queue_frames <= -(-THROUGHPUT_FPS * (frames + 1) // RATE_FPS):
        frames += 1
    return frames


@pytest.mark.parametrize("queue_frames", [0, 1, 10, 64, 1_000, 20_000])
def test_a_known_buffer_gives_its_burst_to_the_frame(tmp_path: Path, queue_frames: int) -> None:
    tester = buffered(queue_frames)
    point, _ = bursts(tester, tmp_path)
    expected = longest(queue_frames)
    assert point.burst_frames.values == (expected,) * 3
    assert (point.average_frames, point.minimum_frames, point.maximum_frames, point.standard_deviation_frames) == (
        expected,
        expected,
        expected,
        0,
    )
    assert point.implied_buffer_s == pytest.approx(expected / RATE_FPS)
    assert point.corrected_buffer_s == pytest.approx(expected / RATE_FPS * 0.4)
    assert point.corrected_buffer_s * RATE_FPS == pytest.approx(queue_frames, abs=1)
    assert (point.limited_by, point.upper_bound.load.value if point.upper_bound else None) == (
        LimitedBy.DUT,
        expected + 1,
    )


def test_every_trial_has_exactly_its_frames_and_time_to_receive_them(tmp_path: Path) -> None:
    tester = buffered(1_000)
    bursts(tester, tmp_path, repetitions=1)
    [search] = [event for event in journal_lines(tmp_path) if event["event"] == "search"]
    offered = [frames for frames, _ in search["loads"]]
    assert (
        [trial.intended(Direction.FORWARD) for trial in tester.trials]
        == [trial.intended(Direction.REVERSE) for trial in tester.trials]
        == offered
    )
    for trial, frames in zip(tester.trials, offered, strict=True):
        assert trial.forward is not None
        assert trial.forward.rate_fps == RATE_FPS
        own_drain_s = 2
        assert (trial.duration_ns + trial.drain_ns) / 1e9 == pytest.approx(own_drain_s + frames / THROUGHPUT_FPS)


@pytest.mark.long
def test_figures_of_a_dut_that_scatters(tmp_path: Path) -> None:
    """A loss that the verification does not forgive shortens a burst now and then."""
    point, _ = bursts(buffered(1_000, hiccup_ratio=0.1), tmp_path, repetitions=20, verifications=0)
    values = [value for value in point.burst_frames.values if value is not None]
    assert len(set(values)) > 2
    assert point.average_frames == pytest.approx(sum(values) / 20)
    assert (point.minimum_frames, point.maximum_frames) == (min(values), max(values))
    assert point.standard_deviation_frames == pytest.approx(stdev(values))
    forgiven, _ = bursts(buffered(1_000, hiccup_ratio=0.1), tmp_path / "verified", repetitions=20, verifications=5)
    assert forgiven.burst_frames.values == (longest(1_000),) * 20


def test_the_direction_that_holds_less_decides(tmp_path: Path) -> None:
    dut = SimulatedDut(capacity_fps={Direction.FORWARD: 60_000, Direction.REVERSE: 20_000}, queue_frames=100)
    both, _ = bursts(SimulatedTester(dut), tmp_path / "both", throughput_from={84: 20_000})
    forward, _ = bursts(SimulatedTester(dut), tmp_path / "forward", directions="forward")
    assert both.average_frames == pytest.approx(100 / 0.8, abs=2)
    assert forward.average_frames == longest(100)


def test_only_sizes_below_the_maximum_rate_are_measured(tmp_path: Path) -> None:
    tester = buffered(100)
    _, summary = bursts(tester, tmp_path, frame_sizes=(84, 1518), throughput_from={84: THROUGHPUT_FPS, 1518: RATE_FPS})
    small, large = summary.points
    assert isinstance(large, BackToBackPoint)
    assert (large.measured, large.average_frames, large.limited_by, large.has_number) == (
        False,
        None,
        LimitedBy.MEDIA,
        True,
    )
    assert "no burst is too long" in large.message
    assert "ended early" not in large.message
    assert {trial.forward.foreground.size for trial in tester.trials if trial.forward} == {84}
    assert not summary.without_number()
    assert small.finished == 3
    assert any("3 repetitions, fewer than 50" in deviation.text for deviation in summary.deviations)


def test_a_run_without_a_size_to_measure_ends_at_once(tmp_path: Path) -> None:
    tester = SimulatedTester()
    _, summary = bursts(tester, tmp_path, throughput_from={84: RATE_FPS})
    assert not tester.trials
    assert not summary.without_number()


def test_the_longest_burst_allowed_passes(tmp_path: Path) -> None:
    tester = buffered(10_000)
    point, _ = bursts(tester, tmp_path, max_burst_s=0.05)
    assert (point.limited_by, point.burst_frames.values, point.longest_frames) == (LimitedBy.RANGE, (5_000,) * 3, 5_000)
    assert "longer" in point.message


def test_the_testers_limit_is_not_the_duts(tmp_path: Path) -> None:
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=THROUGHPUT_FPS, queue_frames=100), SimulatedLimits(send_fps=80_000)
    )
    point, _ = bursts(tester, tmp_path, repetitions=1)
    assert point.limited_by_tester
    assert "limited by the tester" in point.message


def test_a_disturbed_tester_finds_the_same(tmp_path: Path) -> None:
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=THROUGHPUT_FPS, queue_frames=100), SimulatedLimits(disturbed_ratio=0.3)
    )
    point, _ = bursts(tester, tmp_path)
    assert point.burst_frames.values == (longest(100),) * 3
    assert point.trials.invalid > 0


def test_a_dut_that_forwards_nothing_has_no_burst(tmp_path: Path) -> None:
    for dies_after in (0, 5, 30):
        point, _ = bursts(buffered(100, dies_after_trials=dies_after), tmp_path / str(dies_after), repetitions=20)
        assert not point.has_number
        assert "forwards nothing" in point.message


def outcome(frames: int, lost: int, late_us: float) -> Outcome:
    """Of a valid trial in which frames left late."""
    late = Quantiles(p50=1, p99=1, p999=late_us, max=late_us)
    directions: dict[str, DirectionCounts] = {
        "forward": counts(frames, frames - lost, lateness_us=late),
        "reverse": counts(frames),
    }
    limits = back_to_back._Limits(RATE_FPS, True, THROUGHPUT_FPS, 10**6)
    return limits.outcome(TrialResult(trial=0, verdict=Verdict.VALID, **directions), plan().conditions, frames)


@pytest.mark.parametrize(
    ("frames", "lost", "late_us", "expected"),
    [
        (64, 0, 130, Outcome.PASSED),  # the DUT forwards 8 frames in that time
        (64, 0, 140, Outcome.UNMEASURABLE),
        (64, 9, 140, Outcome.UNMEASURABLE),
        (64, 10, 140, Outcome.FAILED),
        (1_000, 0, 800, Outcome.PASSED),
        (1_000, 0, 900, Outcome.UNMEASURABLE),
        (1_000, 1, 900, Outcome.UNMEASURABLE),
        (1_000, 55, 900, Outcome.FAILED),
    ],
)
def test_frames_that_left_late_are_another_burst(frames: int, lost: int, late_us: float, expected: Outcome) -> None:
    assert outcome(frames, lost, late_us) is expected


@pytest.mark.parametrize(
    ("conditions", "option", "words"),
    [
        ({"media": None}, "max_rate", "not known"),
        ({"throughput_from": None}, "rate", "no rate"),
        ({"throughput_from": {128: 1}}, "throughput_from", "84 bytes"),
        ({"rate": Rate.parse("60k")}, "rate", "both"),
    ],
)
def test_what_cannot_be_measured_names_its_option(conditions: dict[str, Any], option: str, words: str) -> None:
    media_fps = conditions.pop("media", RATE_FPS)
    with pytest.raises(PlanError, match=words) as caught:
        BackToBackProcedure(plan(media_fps, **{"throughput_from": {84: THROUGHPUT_FPS}, **conditions}))
    assert caught.value.option == option


def test_the_summary_is_made_from_the_journal_and_says_what_it_deviates_from(tmp_path: Path) -> None:
    chosen = {
        "throughput_from": None,
        "rate": Rate.parse("60k"),
        "max_rate": Rate.parse("90k"),
        "loss_tolerance": 0.001,
        "repetitions": 2,
    }
    _, summary = bursts(buffered(100), tmp_path, **chosen)
    assert write_summary(tmp_path, PROCEDURE) == summary
    written = json.loads((tmp_path / SUMMARY).read_text())
    assert "duration_s" not in written["conditions"]
    assert written["conditions"]["search"]["algorithm"].startswith("binary with loss verification")
    said = {(deviation.clause, deviation.text.split(",")[0]) for deviation in summary.deviations}
    assert {
        ("RFC 9004 section 5", "the throughput is given"),
        ("RFC 9004 section 6.2", "the bursts are sent at a given rate"),
        ("RFC 9004 section 6.2", "a trial passes with up to 0.1 % of a direction's frames lost"),
        ("RFC 2544 section 26.4", "2 repetitions"),
    } <= said
    assert not any("section 24" in clause for clause, _ in said)


def test_repetitions_may_decide_for_themselves(tmp_path: Path) -> None:
    point, _ = bursts(buffered(100), tmp_path, repetitions=Auto(minimum=6, maximum=20))
    assert point.repetitions.finished == 6
    assert point.burst_frames.median_interval is not None
    assert any("the median lies within" in remark for remark in point.remarks())
