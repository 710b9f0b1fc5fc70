# SPDX-License-Identifier: Apache-2.0
"""Ramps over simulated DUTs whose truth is known."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dutperf.cli import app
from dutperf.model import (
    LEFT_AND_RIGHT,
    LOSS_BINS,
    Direction,
    LateBursts,
    LateFrames,
    LimitedBy,
    Losses,
    Quantiles,
    Stamping,
    Trial,
    TrialResult,
)
from dutperf.procedures.ramp import PARTS, Ends, Ramp, RampFinding, ends_of, read, too_low_fps
from dutperf.results.summary import SUMMARY
from dutperf.run.campaign import PlanError, Summary
from dutperf.setup.conditions import Rate
from dutperf.tester import ProgressCallback, Tester
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import counts, measure, plan, stream, trial

FROM_FPS, TO_FPS, OVER_S = 1_000, 11_000, 5
ENDS = Ends(from_fps=FROM_FPS, to_fps=TO_FPS)
BIN_FPS = (TO_FPS - FROM_FPS) / LOSS_BINS


def ramp(tester: Tester, out: Path, **conditions: Any) -> Summary:
    """A ramp from 1,000 to 11,000 frames/s in 5 s."""
    chosen = {"from_rate": Rate.parse("1k"), "to_rate": Rate.parse("11k"), "repetitions": 1, **conditions}
    return measure(tester, plan(**chosen), out, "ramp")


@pytest.mark.parametrize("queue", [0, 100])
def test_the_first_loss_of_a_known_capacity(tmp_path: Path, queue: int) -> None:
    """Where the rate rises by 2,000 frames/s each second, a queue of b frames is full when the rate is
    sqrt(2 * 2,000 b) above the capacity."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=6_000, queue_frames=queue))
    [point] = ramp(tester, tmp_path).points
    expected = 6_000 + (2 * 2_000 * queue) ** 0.5
    assert point.first_loss_fps.median == pytest.approx(expected, abs=100)
    assert point.uncertainty_fps == pytest.approx(BIN_FPS)
    assert point.steady_loss_fps.median == pytest.approx(expected, abs=3 * BIN_FPS + 100)
    assert point.message.startswith(f"first loss at {point.first_loss_fps.median:,.0f} frames/s (uncertain by 40)")
    [one] = tester.trials
    assert (one.stamping, one.delay_parts, one.duration_s) == (Stamping.EVERY, PARTS, OVER_S)
    assert one.intended(Direction.FORWARD) == 30_000


def test_each_part_has_its_loss_and_its_delays(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=6_000, queue_frames=10, delay_us=70.0))
    summary = ramp(tester, tmp_path, repetitions=2)
    [point] = summary.points
    assert len(point.parts) == PARTS == len(point.rows())
    for number, part in enumerate(point.parts):
        assert part.load.value == FROM_FPS + (2 * number + 1) * 100
        for direction in LEFT_AND_RIGHT:
            assert part.sent[direction] == pytest.approx(2 * part.load.value * OVER_S / PARTS, abs=4)
            expected = max(0.0, 1 - 6_000 / part.load.value)
            if not 6_000 <= part.load.value <= 6_300:  # the queue fills
                assert part.loss_ratio[direction] == pytest.approx(expected, abs=0.01)
            delays = part.delay_us[direction]
            assert (delays.p50, delays.p99, delays.max) == (70, 70, 70)
        assert part.forwarded_fps == pytest.approx(min(part.load.value, 6_000), abs=120)
    assert sum(sum(part.sent.values()) for part in point.parts) == 4 * 30_000
    written = json.loads((tmp_path / SUMMARY).read_text())["points"][0]
    assert written == point.model_dump(mode="json")
    loss, delay = type(point).charts([point], [{}])
    assert {curve.label for curve in loss.curves} == {"forward", "reverse", "first loss"}
    assert {curve.label for curve in delay.curves} == {"median", "99th percentile", "maximum", "first loss"}
    assert {"RFC 2544 section 26.3"} <= {one.clause for one in summary.deviations}


def test_without_a_loss_there_is_a_result_too(tmp_path: Path) -> None:
    [point] = ramp(SimulatedTester(), tmp_path).points
    assert point.has_number
    assert (point.first_loss_fps.median, point.uncertainty_fps) == (None, None)
    assert point.message == "no frame was lost from 1,000 to 11,000 frames/s"


class Sometimes(SimulatedTester):
    """Tests a DUT that has the capacity of ``dut`` in those trials, by their number, that ``limited`` names, and dies
    after a number of trials."""

    def __init__(self, limited: Collection[int], dies_after_trials: int | None = None) -> None:
        super().__init__()
        self._limited, self._dies = limited, dies_after_trials

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        number = len(self.trials)
        dead = self._dies is not None and number >= self._dies
        limit = {"capacity_fps": 6_000} if number in self._limited else {}
        self.dut = SimulatedDut(dies_after_trials=0 if dead else None, **limit)
        return super().run(trial, on_progress)


def test_a_repetition_without_a_loss_is_beyond_the_ramp(tmp_path: Path) -> None:
    [most] = ramp(Sometimes({0, 2}), tmp_path / "most", repetitions=3).points
    assert most.first_loss_fps.median == pytest.approx(6_000, abs=100)
    assert "at the first loss" in most.main_figure().text
    [few] = ramp(Sometimes({1}), tmp_path / "few", repetitions=3).points
    assert few.first_loss_fps.median is None
    assert few.main_figure().text == "no loss up to 11,000 frames/s per direction in 2 of 3 repetitions"


def test_a_repetition_in_which_nothing_passes_leaves_no_figure(tmp_path: Path) -> None:
    [point] = ramp(Sometimes(range(3), dies_after_trials=1), tmp_path, repetitions=3).points
    assert not point.has_number
    assert point.first_loss_fps.median is None
    assert "the DUT forwards nothing" in point.message


def test_the_testers_limit_is_not_the_duts(tmp_path: Path) -> None:
    [point] = ramp(SimulatedTester(limits=SimulatedLimits(receive_fps=2_000)), tmp_path).points
    assert (point.has_number, point.limited_by, point.parts) == (False, LimitedBy.TESTER, ())


def test_a_dut_that_forwards_nothing_ends_the_run(tmp_path: Path) -> None:
    [point] = ramp(SimulatedTester(SimulatedDut(dies_after_trials=0)), tmp_path, repetitions=3).points
    assert not point.has_number
    assert "the DUT forwards nothing" in point.message


# --- one trial ------------------------------------------------------------------------------------


def in_bins(**frames: int) -> tuple[int, ...]:
    """Frames by the number of their bin (``b120=3``)."""
    return tuple(frames.get(f"b{number}", 0) for number in range(LOSS_BINS))


def reading(lost: dict[str, int], late: dict[str, int] | None = None, unevenly: dict[str, int] | None = None) -> Any:
    """Of a direction with losses in these bins, the first one in the middle of its bin. ``late``: frames in late
    bursts; ``unevenly``: those that left late by less."""
    profile = ENDS.profile(OVER_S * 10**9)
    one: Trial = trial(
        forward=stream(6, 84, profile.mean_fps, pattern=profile), reverse=None, duration_ns=OVER_S * 10**9
    )
    bins = in_bins(**lost)
    first = next((number for number, frames in enumerate(bins) if frames), 0)
    made = counts(
        30_000,
        30_000 - sum(bins),
        lateness_us=Quantiles(p50=1, p99=2, p999=3, max=2_000 if late else 4),
        losses=Losses(first_s=(first + 0.5) * OVER_S / LOSS_BINS, last_s=4.9, longest_run=1, bins=bins)
        if lost
        else None,
        late_bursts=LateBursts(frames=sum(late.values()), bins=in_bins(**late)) if late else None,
        late_frames=LateFrames(frames=sum(unevenly.values()), bins=in_bins(**unevenly)) if unevenly else None,
    )
    return read(one, Direction.FORWARD, made, ENDS)


def test_a_loss_where_frames_left_late_is_not_the_first() -> None:
    told = reading({"b50": 3, "b150": 2, "b151": 5}, late={"b50": 8})
    assert told.lossless_fps == FROM_FPS + 150 * BIN_FPS, "the DUT lost nothing at higher rates either"
    assert told.first_loss_fps == FROM_FPS + 151 * BIN_FPS  # the end of its bin
    assert [number for number, part in enumerate(told.parts) if part.late] == [10]
    assert [(number, part.lost) for number, part in enumerate(told.parts) if part.lost] == [(10, 3), (30, 7)]


def test_losses_only_where_frames_left_late_are_nobodys() -> None:
    told = reading({"b50": 3}, late={"b50": 8})
    assert told.first_loss_fps is None
    assert told.lossless_fps == TO_FPS
    at_the_end = reading({"b249": 3}, late={"b249": 8})
    assert (at_the_end.first_loss_fps, at_the_end.lossless_fps) == (None, FROM_FPS + 249 * BIN_FPS)


def test_neither_first_nor_steady_loss_is_where_frames_left_late() -> None:
    """Late from the 70th bin to the 149th: the DUT lost its first frame somewhere there."""
    late = {f"b{number}": 5 for number in range(70, 150)}
    told = reading({f"b{number}": 9 for number in range(80, LOSS_BINS)}, late=late)
    assert told.lossless_fps == pytest.approx(FROM_FPS + 70 * BIN_FPS)
    assert told.first_loss_fps is not None
    assert told.first_loss_fps > FROM_FPS + 150 * BIN_FPS
    assert told.steady_loss_fps == told.first_loss_fps
    found = RampFinding(readings={Direction.FORWARD: told}, message=None)
    assert found.is_uncertain(ENDS)
    clear = RampFinding(readings={Direction.FORWARD: reading({"b50": 3, "b150": 2}, late={"b50": 8})}, message=None)
    assert not clear.is_uncertain(ENDS)


class LateInTheMiddle(SimulatedTester):
    """Sends frames late for most of the first ``disturbed`` trials, which nevertheless count as valid."""

    def __init__(self, disturbed: int) -> None:
        super().__init__(SimulatedDut(capacity_fps=6_000))
        self._disturbed = disturbed

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        if len(self.trials) > self._disturbed:
            return result
        bins = tuple(5 if 60 <= number < 200 else 0 for number in range(LOSS_BINS))
        late = LateBursts(frames=sum(bins), bins=bins)
        ways = result.directions().items()
        disturbed = {str(way): each.model_copy(update={"late_bursts": late}) for way, each in ways}
        return result.model_copy(update=disturbed)


@pytest.mark.parametrize("disturbed", [0, 1, 2])
def test_a_ramp_with_an_uncertain_first_loss_is_repeated(tmp_path: Path, disturbed: int) -> None:
    tester = LateInTheMiddle(disturbed)
    [point] = ramp(tester, tmp_path).points
    assert len(tester.trials) == disturbed + 1
    assert point.first_loss_fps.median == pytest.approx(6_000, abs=100)


def test_a_first_loss_that_stays_uncertain_is_no_figure(tmp_path: Path) -> None:
    [point] = ramp(LateInTheMiddle(3), tmp_path).points
    assert (point.has_number, point.limited_by, point.first_loss_fps.median) == (False, LimitedBy.TESTER, None)
    assert point.message.startswith("limited by the tester from 3,400 to 10,")
    assert len(point.parts) == PARTS, "its losses and delays are shown"


def test_a_short_stall_explains_as_many_losses_as_frames_that_left_late() -> None:
    told = reading({"b50": 3, "b150": 4}, unevenly={"b50": 3, "b150": 3})
    assert told.lossless_fps == FROM_FPS + 150 * BIN_FPS
    assert told.first_loss_fps == FROM_FPS + 151 * BIN_FPS
    assert reading({"b50": 3}, unevenly={"b50": 3}).first_loss_fps is None


@given(
    capacity_fps=st.integers(2_000, 9_000),
    queue=st.integers(2, 600),
    waits=st.lists(st.tuples(st.floats(0.0, 4.5), st.floats(0.001, 0.01)), min_size=1, max_size=3),
)
@settings(max_examples=60)
def test_frames_left_late_make_the_first_loss_too_low_by_no_more_than_it_says(
    capacity_fps: int, queue: int, waits: list[tuple[float, float]]
) -> None:
    slope = ENDS.rise_fps / OVER_S
    times_s = [(math.sqrt(FROM_FPS**2 + 2 * slope * number) - FROM_FPS) / slope for number in range(30_000)]
    leaves_s, late = list(times_s), [0] * LOSS_BINS
    for begin_s, wait_s in waits:
        for number, due in enumerate(times_s):
            if begin_s <= due < begin_s + wait_s:
                leaves_s[number] = max(leaves_s[number], begin_s + wait_s)
    leaves_s = list(accumulate(leaves_s, max))
    for due, left in zip(times_s, leaves_s, strict=True):
        if left > due:
            late[int(due / OVER_S * LOSS_BINS)] += 1
    punctual, disturbed = (first_loss(times_s, each, capacity_fps, queue) for each in (times_s, leaves_s))
    assume(punctual and disturbed)
    assert punctual
    assert disturbed
    assert disturbed <= punctual + BIN_FPS
    # A queue shorter than a burst overflows in it: that loss blames nobody (the bin is not clear).
    assume(late[int((disturbed - FROM_FPS) / BIN_FPS)] == 0)
    bound = too_low_fps(disturbed, late, OVER_S, ENDS)
    assert punctual <= disturbed + bound + BIN_FPS


def first_loss(times_s: list[float], leaves_s: list[float], capacity_fps: int, queue: int) -> float | None:
    """The rate at which the first frame was due that a queue had no place for."""
    waiting, before_s = 0.0, 0.0
    for due, left in zip(times_s, leaves_s, strict=True):
        waiting, before_s = max(0.0, waiting - (left - before_s) * capacity_fps), left
        if waiting + 1 > queue:
            return ENDS.at(due / OVER_S)
        waiting += 1
    return None


def test_the_first_loss_is_uncertain_by_the_late_frames_that_took_of_the_queue() -> None:
    lost = {f"b{number}": 9 for number in range(150, LOSS_BINS)}
    told = reading(lost, unevenly={"b140": 20})
    assert told.first_loss_fps == pytest.approx(FROM_FPS + 150.5 * BIN_FPS)
    assert told.too_low_fps == pytest.approx(2_000 * 20 / (9.5 * BIN_FPS))
    assert reading(lost, unevenly={"b200": 20}).too_low_fps == 0, "they left after it"
    found = RampFinding(readings={Direction.FORWARD: told}, message=None)
    assert found.within(ENDS) == (FROM_FPS + 150 * BIN_FPS, told.first_loss_fps + told.too_low_fps)


def test_a_single_loss_is_told_from_a_lasting_one() -> None:
    told = reading({"b20": 1} | {f"b{number}": 2 for number in range(200, LOSS_BINS)})
    assert told.first_loss_fps == pytest.approx(FROM_FPS + 20.5 * BIN_FPS)
    assert told.steady_loss_fps == FROM_FPS + 200 * BIN_FPS
    assert reading({"b20": 1}).steady_loss_fps is None


# --- conditions -----------------------------------------------------------------------------------


def test_the_rates_of_a_ramp() -> None:
    assert ends_of(Ramp(to_rate=Rate.parse("50k")), None) == Ends(from_fps=500, to_fps=50_000)
    assert ends_of(Ramp(), 1_000_000) == Ends(from_fps=10_000, to_fps=1_000_000)
    assert ends_of(Ramp(from_rate=Rate.parse("50%")), 1_000_000) == Ends(from_fps=500_000, to_fps=1_000_000)
    assert Ramp(duration_s="1.5s").duration_s == 1.5  # type: ignore[arg-type]
    assert Ramp(duration_s="500ms").duration_s == 0.5  # type: ignore[arg-type]


def test_a_wrong_option_is_named_as_it_was_typed() -> None:
    shown = CliRunner().invoke(app, ["ramp", "--lab", "kernel-ipv4", "--to", "20k", "--over", "8x"])
    assert shown.exit_code == 2
    assert "--over: '8x' is not a time" in shown.stderr


@pytest.mark.parametrize(
    ("from_rate", "to_rate", "media_fps", "words"),
    [
        (None, None, None, "to_rate: give the rate at which the ramp ends"),
        (None, "2M", 1_000_000, "to_rate: 2,000,000 frames/s are above the media's maximum"),
        ("10k", "10k", None, "from_rate: a ramp rises, but not from 10,000 to 10,000"),
        ("1%", "10k", None, "from_rate: a rate in % needs the media's speed"),
    ],
)
def test_rates_that_are_not_possible(from_rate: Any, to_rate: Any, media_fps: int | None, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        ends_of(Ramp(from_rate=from_rate, to_rate=to_rate), media_fps)
