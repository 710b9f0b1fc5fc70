# SPDX-License-Identifier: Apache-2.0
"""Load-latency over simulated DUTs whose truth is known."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import LEFT_AND_RIGHT, LimitedBy, Stamping
from dutperf.procedures.load_latency import LONE_FPS, LoadLatency, rates_of
from dutperf.results.summary import SUMMARY
from dutperf.run.campaign import PlanError, Summary
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import ParameterError
from dutperf.tester import Tester
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import measure, plan


def load_latency(tester: Tester, out: Path, **conditions: Any) -> Summary:
    """At loads of a throughput of 10,000 frames/s."""
    chosen = {"rate": Rate.parse("10k"), "repetitions": 1, "duration_s": 1.0, **conditions}
    return measure(tester, plan(**chosen), out, "load-latency")


def test_each_load_has_its_rate_delays_and_loss(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=8_000, queue_frames=0, delay_us=70.0))
    summary = load_latency(tester, tmp_path, loads=(0, 10, 50, 100, 120), repetitions=2)
    [point] = summary.points
    rates = [LONE_FPS, 1_000, 5_000, 10_000, 12_000]
    assert [at.load.value for at in point.loads] == rates
    assert [trial.forward.rate_fps for trial in tester.trials if trial.forward] == rates * 2
    assert {trial.stamping for trial in tester.trials} == {Stamping.EVERY}
    for at in point.loads:
        for direction in LEFT_AND_RIGHT:
            assert at.loss_ratio[direction].median == pytest.approx(max(0.0, 1 - 8_000 / at.load.value), abs=0.01)
            delays = at.delay_us[direction]
            assert {name: figure.values for name, figure in delays.items()} == {
                **dict.fromkeys(("min", "p50", "p99", "p999", "max"), (70.0, 70.0)),
                "pdv": (0.0, 0.0),
            }
    assert [row[0] for row in point.rows()] == ["lone", "10%", "50%", "100%", "120%"]
    assert point.message.startswith("at 12,000 frames/s: forward lost 4,000 of 12,000")
    written = json.loads((tmp_path / SUMMARY).read_text())["points"][0]
    assert written == point.model_dump(mode="json")
    delay, loss = type(point).charts([point], [{}])
    assert {curve.label for curve in loss.curves} == {"forward", "reverse"}
    assert all(curve.x == (0, 10, 50, 100, 120) for curve in (*delay.curves, *loss.curves))


@pytest.mark.parametrize("pattern", ["constant", "bursts:64", "poisson"])
def test_lone_frames_are_alone(tmp_path: Path, pattern: str) -> None:
    """No frame of the other direction is under way either, and none in a burst."""
    tester = SimulatedTester()
    load_latency(tester, tmp_path, loads=(0, 50), pattern=pattern)
    lone, _ = tester.trials
    due = sorted(lone.times(way).due_ns(frame) for way in lone.streams() for frame in range(lone.intended(way)))
    assert len(due) == 2 * LONE_FPS
    assert {later - earlier for earlier, later in pairwise(due)} == {5_000_000}


def test_lone_frames_of_a_slow_dut_are_fewer() -> None:
    assert rates_of((0.0, 10.0, 100.0), 500, None) == (25, 50, 500)


def test_a_load_beyond_the_tester_leaves_the_others(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(receive_fps=7_000))
    [point] = load_latency(tester, tmp_path, loads=(50, 100)).points
    assert [at.limited_by for at in point.loads] == [None, LimitedBy.TESTER]
    assert point.loads[1].loss_ratio == point.loads[1].delay_us == {}
    assert (point.has_number, point.limited_by) == (True, None)
    assert point.rows()[1][2:] == ("-",) * 6 + ("tester",)
    assert point.message.endswith("; the tester, not the DUT, is the limit at 10,000 frames/s: no figures there")


def test_the_tester_alone_has_no_number(tmp_path: Path) -> None:
    [point] = load_latency(SimulatedTester(limits=SimulatedLimits(receive_fps=50)), tmp_path, loads=(0, 50)).points
    assert (point.has_number, point.limited_by) == (False, LimitedBy.TESTER)


def test_a_dut_that_forwards_nothing_ends_the_run(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(dies_after_trials=0))
    [point] = load_latency(tester, tmp_path, repetitions=3).points
    assert not point.has_number
    assert "the DUT forwards nothing" in point.message
    assert point.loads == ()


def test_loads_are_sorted_and_may_be_written_with_their_unit() -> None:
    assert LoadLatency(loads="100%, 0,50").loads == (0, 50, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "10,10", "-1", "1001", "ten"])
def test_loads_that_are_none(text: str) -> None:
    with pytest.raises(ParameterError):
        LoadLatency(loads=text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loads", "throughput_fps", "media_fps", "words"),
    [
        ((0, 1), 100, None, r"1 % of 100 frames/s are 1 frames/s: not more than lone frames, 1"),
        ((10, 11), 5, None, r"11 % of 5 frames/s are 1 frames/s: not more than 10 %, 1"),
        ((50, 120), 10_000, 11_000, r"120 % of 10,000 frames/s are above the highest rate, 11,000"),
    ],
)
def test_loads_that_are_no_rates(
    loads: tuple[float, ...], throughput_fps: int, media_fps: int | None, words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        rates_of(loads, throughput_fps, media_fps)


@given(st.sets(st.integers(1, 100), min_size=1), st.integers(20_000, 10_000_000))
def test_rates_are_the_shares_and_rise(shares: set[int], throughput_fps: int) -> None:
    loads = tuple(map(float, sorted(shares)))
    rates = rates_of((0.0, *loads), throughput_fps, throughput_fps)
    assert list(rates) == sorted(set(rates))
    assert all(abs(rate - throughput_fps * load / 100) <= 0.5 for rate, load in zip(rates[1:], loads, strict=True))
