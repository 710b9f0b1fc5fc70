# SPDX-License-Identifier: Apache-2.0
"""When frames are due that do not come at a constant rate: counted as they are due, and by the
package as by the engine."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf.model import Bursts, Direction, LimitedBy, Poisson, Stream, Trial
from dutperf.model.pattern import JoiningTimes
from dutperf.procedures import rates
from dutperf.procedures.bench import PlanError
from dutperf.procedures.frame_loss import FrameLoss
from dutperf.procedures.throughput import ThroughputPoint
from dutperf.setup.conditions import Rate, Usual
from dutperf.tester import truth
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.tester.truth import Lost
from fakes import transcript
from plans import making, measure, plan, stream, trial

SECOND_NS = 10**9


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    rate_fps = draw(st.integers(1, 10**6))
    bursts = st.builds(Bursts, frames=st.integers(2, 3000), within_fps=st.none() | st.integers(rate_fps, 10**9))
    return stream(6, 84, rate_fps, pattern=draw(st.just(Poisson()) | bursts))


@given(streams(), st.integers(1, 10**10), st.integers(0, 2**53 - 1), st.data())
def test_a_frame_is_counted_before_a_time_exactly_where_it_is_due_before_it(
    one: Stream, duration_ns: int, seed: int, data: st.DataObject
) -> None:
    made = trial(forward=one, reverse=None, duration_ns=duration_ns, seed=seed)
    times, frames = made.times(Direction.FORWARD), made.intended(Direction.FORWARD)
    assert frames == trial(one.rate_fps, duration_ns=duration_ns).intended(Direction.FORWARD)  # whatever the pattern
    frame = data.draw(st.integers(0, frames - 1))
    due_ns = times.due_ns(frame)
    assert 0 <= times.due_ns(max(0, frame - 1)) <= due_ns < duration_ns
    assert times.frames_before(due_ns) <= frame < times.frames_before(due_ns + 1)
    time_ns = data.draw(st.integers(0, duration_ns))
    assert (times.frames_before(time_ns) > frame) == (due_ns < time_ns)


@given(st.integers(1, 10**6), st.integers(2, 2000), st.integers(1, 10**10), st.data())
def test_a_frame_of_joining_flows_is_counted_exactly_where_it_is_due(
    rate_fps: int, flows: int, apart_ns: int, data: st.DataObject
) -> None:
    times = JoiningTimes(rate_fps, flows, apart_ns)
    frame = data.draw(st.integers(0, max(1, 2 * times.frames_before(flows * apart_ns))))
    due_ns = times.due_ns(frame)
    assert times.frames_before(due_ns) <= frame < times.frames_before(due_ns + 1)
    time_ns = data.draw(st.integers(0, 2 * flows * apart_ns))
    sum_of_flows = sum(
        Fraction(rate_fps * (time_ns - flow * apart_ns), flows * SECOND_NS)
        for flow in range(min(flows, time_ns // apart_ns + 1))
    )
    assert times.frames_before(time_ns) == ceil(sum_of_flows)


def test_gaps_of_poisson_arrivals_vary_as_much_as_they_are_long() -> None:
    """Mean and standard deviation of an exponential distribution are the same; the engine's own
    tests look at its shape."""
    times = trial(forward=stream(6, 84, 20_000, pattern=Poisson())).times(Direction.FORWARD)
    gaps_us = [(after - before) / 1000 for before, after in pairwise(map(times.due_ns, range(20_000)))]
    mean_us = sum(gaps_us) / len(gaps_us)
    assert mean_us == pytest.approx(50, rel=0.001)
    assert (sum((gap - mean_us) ** 2 for gap in gaps_us) / len(gaps_us)) ** 0.5 == pytest.approx(mean_us, rel=0.05)


def test_package_and_engine_mean_the_same_times() -> None:
    """On ports that deliver nothing every frame is lost: the transcript has when they were due, to
    the ns, and how many in each part of the trial."""
    exchanges = [exchange for exchange in transcript.read("patterns") if exchange.events[-1]["event"] == "result"]
    for exchange in exchanges:
        assert exchange.request is not None
        made, result = Trial.model_validate(exchange.request["params"]), exchange.events[-1]
        for direction in made.streams():
            expected = truth.losses_of(made, direction, [Lost(0, made.intended(direction), made.intended(direction))])
            assert expected is not None
            assert result[direction]["losses"] == expected.model_dump(mode="json")
    assert len(exchanges) >= 3


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"pattern": {"kind": "poisson"}, "then": {"rate_fps": 5, "after_ns": 1}}, "one rate only"),
        ({"pattern": {"kind": "bursts", "frames": 2, "within_fps": 999}}, "is lower than the mean rate"),
        ({"pattern": {"kind": "bursts", "frames": 1}}, "greater than or equal to 2"),
        ({"pattern": {"kind": "constant"}}, "kind"),
    ],
)
def test_a_pattern_that_cannot_be_is_none(members: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        stream(6, 84, 1000, **members)


# --- a DUT that they meet -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "queue_frames", "lost"),
    [
        (Bursts(frames=32), 15, 1600),  # 16 of each of 100 bursts: one is served, 15 wait
        (Bursts(frames=32), 31, 0),
        (Bursts(frames=32, within_fps=16_000), 16, 0),  # while they come, half of them leave
        (Bursts(frames=32, within_fps=16_000), 15, 100),
        (Bursts(frames=3200), 31, 3200 - 32),
    ],
)
def test_a_queue_holds_what_it_can_of_a_burst(pattern: Bursts, queue_frames: int, lost: int) -> None:
    one = trial(forward=stream(6, 84, 3200, pattern=pattern), reverse=None)
    counts = SimulatedTester(SimulatedDut(capacity_fps=8_000, queue_frames=queue_frames)).run(one).forward
    assert counts is not None
    assert counts.lost == lost
    assert counts.losses is None or sum(counts.losses.bins) == counts.lost


def test_the_throughput_is_that_of_the_pattern(tmp_path: Path) -> None:
    """A DUT whose queue holds half a burst forwards a constant rate, and no bursts."""
    dut = SimulatedDut(capacity_fps=1000, queue_frames=15)
    for pattern, lowest_fps, highest_fps in (
        (None, 990, 1040),
        (Bursts(frames=16), 980, 1040),
        (Bursts(frames=32), 1, 50),
    ):
        what = plan(
            duration_s=1, repetitions=1, directions="forward", min_rate=Rate.parse("50"), max_rate=Rate.parse("2000")
        )
        with_pattern = _with(what.traffic.trial, pattern)
        summary = measure(
            SimulatedTester(dut),
            making(what, with_pattern),
            tmp_path / str(pattern),
        )
        [point] = summary.points
        assert isinstance(point, ThroughputPoint)
        median = point.throughput_fps.median
        if pattern == Bursts(frames=32):
            assert median is None or median == 0, median
            assert point.limited_by is LimitedBy.RANGE
        else:
            assert median is not None
            assert lowest_fps <= median <= highest_fps


def _with(make_trial: Any, pattern: Bursts | None) -> Any:
    def made(*place: Any) -> Trial:
        plain: Trial = make_trial(*place)
        update = {
            direction.value: one.model_copy(update={"pattern": pattern}) for direction, one in plain.streams().items()
        }
        return plain.model_copy(update=update)

    return made


# --- conditions -----------------------------------------------------------------------------------


def test_a_search_must_not_go_beyond_the_rate_of_bursts() -> None:
    chosen = FrameLoss(pattern="bursts:32", burst_rate=Rate.parse("50%"), max_rate=Rate.parse("501"))
    with pytest.raises(PlanError, match="bursts at 500 frames/s have no higher mean rate") as caught:
        rates.highest(chosen, 1000)
    assert caught.value.option == "burst_rate"
    assert rates.highest(chosen.model_copy(update={"max_rate": Rate.parse("500")}), 1000) == (500, False)
    with pytest.raises(PlanError, match="give a highest rate"):
        rates.highest(FrameLoss(pattern="bursts:32", burst_rate=Rate.parse("500")), None)


def test_measurements_of_other_patterns_have_other_names() -> None:
    names = [
        Usual().mix,
        Usual(pattern="poisson").mix,
        Usual(pattern="bursts:32").mix,
        Usual(pattern="bursts:32", burst_rate=Rate.parse("50%"), networks=256).mix,
    ]
    assert names == ["", "-poisson", "-bursts32", "-networks256-bursts32-at50pc"]
