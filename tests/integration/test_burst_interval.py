# SPDX-License-Identifier: Apache-2.0
"""Burst interval: simulated DUTs and the reference DUT, whose capacity and queue are known."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf.model import LimitedBy, Trial
from dutperf.procedures.bench import PlanError
from dutperf.procedures.burst_interval import BURST, BurstIntervalPoint
from dutperf.setup.configuration import ParameterError
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure, plan
from undisturbed import until

RATE_FPS = 100_000
RESOLUTION = 0.005
CONDITIONS: dict[str, Any] = {
    "max_rate": RATE_FPS,
    "interval_resolution": RESOLUTION,
    "duration_s": 0.5,
    "drain_s": 0.1,
    "repetitions": 1,
    "directions": "forward",
}


def points_of(tester: SimulatedTester, out: Path, **conditions: Any) -> tuple[BurstIntervalPoint, ...]:
    points = measure(tester, plan(**{**CONDITIONS, **conditions}), out, "burst-interval").points
    assert all(isinstance(point, BurstIntervalPoint) for point in points)
    return points  # type: ignore[return-value]


def within(burst: int, capacity_fps: float, queue: int, duration_s: float = 0.5) -> tuple[float, float]:
    """The least and the largest interval, in µs, that is true of such a DUT: over a trial its queue may fill."""
    least_us = burst / (capacity_fps + (queue + 1) / duration_s) * 1e6
    return least_us * (1 - RESOLUTION), burst / capacity_fps * 1e6 * (1 + RESOLUTION)


def test_the_truth_comes_out(tmp_path: Path) -> None:
    generator = random.Random(21)
    for number in range(8):
        burst, capacity_fps = generator.choice([16, 64, 256, 1024]), generator.randint(5_000, 90_000)
        needed = burst * (1 - capacity_fps / RATE_FPS)
        queue = round(needed * generator.choice([0.8, 1.3])) + 2
        dut = SimulatedDut(capacity_fps=capacity_fps, queue_frames=queue)
        [point] = points_of(SimulatedTester(dut), tmp_path / str(number), bursts=burst)
        if queue + 1 < needed:
            assert (point.limited_by, point.interval_us.median) == (LimitedBy.RANGE, None), (burst, dut)
            assert "no interval up to half of a trial is long enough" in point.message
            continue
        least_us, largest_us = within(burst, capacity_fps, queue)
        assert point.interval_us.median is not None, (burst, dut, point.message)
        assert least_us <= point.interval_us.median <= largest_us, (burst, dut)
        assert point.pause_us == pytest.approx(point.interval_us.median - (burst - 1) / RATE_FPS * 1e6)


def test_every_length_of_each_frame_size_is_a_case_of_its_own(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=50_000, queue_frames=10_000))
    points = points_of(tester, tmp_path, bursts="64,16", frame_sizes=(84, 128), interval_resolution=0.1)
    assert [tuple(point.case.key().values()) for point in points] == [(84, 16), (84, 64), (128, 16), (128, 64)]
    assert {point.case[BURST] for point in points} == {16, 64}
    sent: list[Trial] = tester.trials
    assert {(one.forward.pattern.frames, one.forward.pattern.within_fps) for one in sent if one.forward} == {
        (16, RATE_FPS),
        (64, RATE_FPS),
    }


def test_a_dut_that_is_fast_enough_needs_no_pause(tmp_path: Path) -> None:
    [point] = points_of(SimulatedTester(SimulatedDut()), tmp_path, bursts=16)
    assert (point.limited_by, point.interval_us.median) == (LimitedBy.RANGE, 160)
    assert point.pause_us == pytest.approx(10)
    assert "without a pause" in point.message


def test_what_cannot_be_measured_names_its_option(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="2 bursts of 1,024 frames at 1,000 frames/s take longer") as caught:
        points_of(SimulatedTester(), tmp_path, max_rate=1_000, bursts=1_024)
    assert caught.value.option == "duration_s"
    with pytest.raises(PlanError, match="the rate within a burst"):
        points_of(SimulatedTester(), tmp_path, max_rate=None)
    for wrong in ("16,16", "1", "", "16,x"):
        with pytest.raises(ParameterError, match="bursts"):
            dutperf.BurstInterval(bursts=wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
@pytest.mark.long
def test_the_capacity_and_the_queue_of_a_real_dut_are_read(tmp_path: Path) -> None:
    """64 frames at 100,000 a second leave 52 in a DUT of 20,000; 1,024 leave 820."""
    capacity_fps, queue = 20_000, 200
    options = {"capacity_fps": str(capacity_fps), "queue": str(queue)}
    chosen = dutperf.BurstInterval(**{**CONDITIONS, "bursts": (64, 1024), "interval_resolution": 0.02})

    def points() -> tuple[Any, ...]:
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        return dutperf.measure(chosen, out, lab="refdut-ipv4", lab_options=options).summary.points

    short, long = until(points, lambda found: [one.limited_by for one in found] == [LimitedBy.DUT, LimitedBy.RANGE])
    assert (long.interval_us.median, "no interval up to half of a trial is long enough" in long.message) == (None, True)
    least_us, largest_us = within(64, capacity_fps, queue)
    assert least_us * 0.98 <= short.interval_us.median <= largest_us * 1.02, short.message
