# SPDX-License-Identifier: Apache-2.0
"""Every procedure returns the truth: hundreds of seeded runs on simulated DUTs, in ``make truth`` three
times as many, each with an error that its procedure states.

What a DUT is capable of, how it loses and delays, which directions send and how often the tester is
disturbed is drawn for each run. Where the truth is a matter of chance, the figure has to lie where
chance puts it but for ``ERROR``, by bounds that hold for any number of frames: Bernstein's
inequality for a share, and thereby for the rank of a quantile. Over all runs together that is less
than one in ten thousand; the seeds are fixed, so a run that passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dutperf.model import LEFT_AND_RIGHT, Direction, LimitedBy
from dutperf.results.points import Point
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import measure, plan

ERROR = 1e-9
"""Chance that a figure lies outside its bounds although nothing is wrong."""
HISTOGRAM = 0.000125
"""Relative error of a delay, as its distribution is kept."""


@dataclass(frozen=True)
class World:
    """A DUT, its tester and the directions that send; all drawn from ``seed``."""

    seed: int
    dut: SimulatedDut
    directions: str
    disturbed_ratio: float
    capacity_fps: float
    """In the direction that is worse off."""

    def measured(self, name: str, out: Path, media_fps: int | None = None, **conditions: Any) -> Any:
        """The only point of a run."""
        tester = SimulatedTester(self.dut, SimulatedLimits(disturbed_ratio=self.disturbed_ratio), seed=self.seed)
        chosen = {"repetitions": 1, "duration_s": 2, "directions": self.directions}
        [point] = measure(tester, plan(media_fps, **(chosen | conditions)), out / str(self.seed), name).points
        assert isinstance(point, Point)
        return point


def world(seed: int) -> World:
    random = np.random.default_rng([2026, seed])
    directions = ("both", "both", "forward", "reverse")[seed % 4]
    active = list(LEFT_AND_RIGHT) if directions == "both" else [Direction(directions)]
    capacities = {direction: float(np.exp(random.uniform(log(2_000), log(500_000)))) for direction in LEFT_AND_RIGHT}
    shared = seed % 3 == 0
    total = capacities[Direction.FORWARD]
    worst = total / len(active) if shared else min(capacities[direction] for direction in active)
    dut = SimulatedDut(
        capacity_fps=total if shared else capacities,
        shared=shared,
        queue_frames=int(np.exp(random.uniform(0, log(2_000)))),
    )
    return World(seed, dut, directions, float(random.choice([0.0, 0.1])), worst)


def worlds(
    runs: int, change: Callable[[SimulatedDut, np.random.Generator], SimulatedDut] = lambda dut, _: dut
) -> Iterator[World]:
    for seed in range(runs):
        one = world(seed)
        yield replace(one, dut=change(one.dut, np.random.default_rng([7, seed])))


def some_or_all(few: int, runs: int) -> pytest.MarkDecorator:
    """For what takes long: ``few`` of the ``runs``, and all of them with those of full length."""
    return pytest.mark.parametrize("runs", [few, pytest.param(runs, marks=pytest.mark.truth)])


def fps(rate: float) -> Rate:
    return Rate(value=rate, unit="fps")


def bernstein(share: float, count: float) -> float:
    """How far the share of ``count`` independent events may be off its expectation, but for
    ``ERROR``."""
    chance = log(2 / ERROR)
    return sqrt(2 * share * (1 - share) * chance / count) + chance / (3 * count)


def exponential(mean: float, share: float) -> float:
    """Quantile."""
    return -inf if share <= 0 else inf if share >= 1 else -mean * log(1 - share)


@some_or_all(50, 300)
def test_throughput_by_binary_search(runs: int, tmp_path: Path) -> None:
    """Error: the resolution, and what the DUT's buffer takes, a buffer's frames over the trial's
    length."""
    for one in worlds(runs):
        point = one.measured("throughput", tmp_path, resolution=Rate.parse("1%"))
        value, above, buffered = point.throughput_fps.median, point.upper_bound.load.value, one.dut.queue_frames / 2
        assert point.limited_by is LimitedBy.DUT
        assert one.capacity_fps + buffered - 0.01 * above - 1 <= value <= one.capacity_fps + buffered + 1


@some_or_all(40, 100)
def test_throughput_by_mlrsearch_for_two_goals(runs: int, tmp_path: Path) -> None:
    """Error: the resolution as a share of the load; a goal's load may exceed the capacity by what
    the goal allows to be lost."""
    for one in worlds(runs, lambda dut, _: replace(dut, queue_frames=0)):
        maximum_fps = round(2.5 * one.capacity_fps)
        options = {
            "search": "mlr",
            "goals": (0.0, 0.005),
            "max_rate": fps(maximum_fps),
            "resolution": fps(maximum_fps // 100),
        }
        for goal in one.measured("throughput", tmp_path, **options).goals:
            truth, value = one.capacity_fps / (1 - goal.loss_ratio), goal.throughput_fps.median
            assert 0.99 * truth - 2 <= value <= truth + 1, (one, goal)


@some_or_all(40, 100)
def test_throughput_with_a_tolerance_is_what_the_dut_can_do_beside_its_random_loss(runs: int, tmp_path: Path) -> None:
    """Error: the resolution, and upwards what the tolerance allows to be lost."""
    lossy = worlds(runs, lambda dut, random: replace(dut, loss_ratio=random.uniform(0, 2e-4), queue_frames=0))
    for one in lossy:
        point = one.measured("throughput", tmp_path, loss_tolerance=0.005, resolution=Rate.parse("1%"))
        value, above = point.throughput_fps.median, point.upper_bound.load.value
        assert one.capacity_fps - 0.01 * above - 1 <= value <= one.capacity_fps / (1 - 0.005) + 1


@some_or_all(60, 150)
def test_frame_loss_rate(runs: int, tmp_path: Path) -> None:
    """Error: that of a share of so many frames, and a buffer's frames less."""
    lossy = worlds(
        runs, lambda dut, random: replace(dut, loss_ratio=float(np.exp(random.uniform(log(1e-5), log(0.2)))))
    )
    for one in lossy:
        rates = tuple(fps(max(50, round(share * one.capacity_fps))) for share in (0.5, 0.99, 1.2, 3))
        point = one.measured("frame-loss", tmp_path, rates=rates)
        for rate in point.rates:
            frames, passing = 2 * rate.load.value, min(1.0, one.capacity_fps / rate.load.value)
            buffered = min(1.0, passing + (one.dut.queue_frames + 1) / frames)
            chance = bernstein(one.dut.loss_ratio, frames * passing) + 1 / frames
            low, high = 1 - buffered * (1 - one.dut.loss_ratio), 1 - passing * (1 - one.dut.loss_ratio)
            assert low - chance <= rate.loss_ratio.worst.median <= high + chance, (one, rate)


def delaying(runs: int) -> Iterator[World]:
    return worlds(
        runs, lambda _, random: SimulatedDut(delay_us=random.uniform(5, 5_000), jitter_us=random.uniform(1, 500))
    )


def within_ranks(measured_ms: float, dut: SimulatedDut, share: float, frames: int) -> bool:
    """Whether a quantile lies between those of the ranks that chance may have put in its place."""
    error = bernstein(share, frames)
    low, high = (dut.delay_us + max(0.0, exponential(dut.jitter_us, share + shift)) for shift in (-error, error))
    return low * (1 - HISTOGRAM) <= measured_ms * 1000 <= high * (1 + HISTOGRAM)


def test_latency(tmp_path: Path) -> None:
    """Error: that of a quantile of so many tagged frames, and 0.0125 %."""
    for one in delaying(120):
        point = one.measured("latency", tmp_path, rate=fps(50_000), tags=100_000, tag_after_s=0)
        for figures in filter(None, (point.forward, point.reverse)):
            assert within_ranks(figures["TL"].median, one.dut, 0.5, 100_000)
            assert within_ranks(figures["WCL"].median, one.dut, 0.999, 100_000)


def test_pdv(tmp_path: Path) -> None:
    """Error: that of the quantile D99.9 and of the least of so many delays, and 0.0125 %."""
    for one in delaying(120):
        point = one.measured("pdv", tmp_path, rate=fps(50_000))
        least_us = one.dut.jitter_us * log(1 / ERROR) / 100_000
        for figures in filter(None, (point.forward, point.reverse)):
            assert (
                one.dut.delay_us * (1 - HISTOGRAM)
                <= figures["Dmin"].median * 1000
                <= (one.dut.delay_us + least_us) * (1 + HISTOGRAM)
            )
            assert within_ranks(figures["D99.9"].median, one.dut, 0.999, 100_000)
            assert figures["PDV"].median == pytest.approx(figures["D99.9"].median - figures["Dmin"].median)


def test_ipdv(tmp_path: Path) -> None:
    """Error: those of the median and the extremes of so many changes. The change of a delay with
    exponential jitter has Laplace's distribution."""
    for one in delaying(120):
        point = one.measured("ipdv", tmp_path, rate=fps(20_000))
        half, jitter_us = 40_000 / 2, one.dut.jitter_us  # every second change is independent of the others
        near = -jitter_us * log(1 - 2 * bernstein(0.5, half))
        narrow, wide = (jitter_us * log(half / (4 * log(2 / ERROR))), jitter_us * log(40_000 / ERROR))
        for figures in filter(None, (point.forward, point.reverse)):
            assert abs(figures["median"].median) * 1000 <= near
            assert narrow <= figures["max"].median * 1000 <= wide
            assert narrow <= -figures["min"].median * 1000 <= wide


@some_or_all(30, 200)
def test_back_to_back_frames(runs: int, tmp_path: Path) -> None:
    """Error: the resolution, and a frame or two because frames are whole. An accident in every
    fiftieth trial is forgiven."""
    for one in worlds(runs, lambda dut, _: replace(dut, hiccup_ratio=0.02)):
        rate_fps = round(one.capacity_fps * (1.05 + one.seed % 7))
        options = {
            "throughput_from": {84: int(one.capacity_fps)},
            "max_rate": fps(rate_fps),
            "burst_resolution": 0.01,
            "verifications": 3,
        }
        point = one.measured("back-to-back", tmp_path, **options)
        served = one.capacity_fps / rate_fps
        value, above = point.average_frames, point.upper_bound.load.value
        assert (
            one.dut.queue_frames / (1 - served) - max(1, 0.01 * above) - 1
            <= value
            <= (one.dut.queue_frames + 1) / (1 - served) + 1
        ), (one, point)
        assert point.corrected_buffer_s == pytest.approx(value / rate_fps * (1 - int(one.capacity_fps) / rate_fps))


MEDIA_FPS = 1_488_095
"""Gigabit Ethernet, frames of 64 bytes."""


@some_or_all(1, 10)
def test_random_loss_without_tolerance_and_with_it(runs: int, tmp_path: Path) -> None:
    """Lencse, Kovács, Shima, IJATES2 9(2), 2020: a router that loses one frame in 10,000 has almost
    no throughput by RFC 2544, and another one each time; with a tolerance of 0.011 % it has the
    media's."""
    for seed in range(runs):
        router = World(seed, SimulatedDut(loss_ratio=1e-4), "both", 0.0, MEDIA_FPS)
        common = {"duration_s": 60, "repetitions": 20, "resolution": fps(10)}
        strict = router.measured("throughput", tmp_path / "strict", MEDIA_FPS, **common)
        values = [value or 0 for value in strict.throughput_fps.values]
        assert max(values) < 0.01 * MEDIA_FPS
        assert len(set(values)) > 5
        assert max(values) > 2 * min(values)
        tolerant = router.measured("throughput", tmp_path / "tolerant", MEDIA_FPS, **common, loss_tolerance=0.00011)
        assert tolerant.throughput_fps.values.count(MEDIA_FPS) == 20
        assert tolerant.limited_by is LimitedBy.MEDIA
