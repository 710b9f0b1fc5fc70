# SPDX-License-Identifier: Apache-2.0
"""System recovery of simulated DUTs whose recovery time is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dutperf.model import Direction, LimitedBy
from dutperf.procedures.times import TimesPoint
from dutperf.run import attempts
from dutperf.run.campaign import PlanError, Summary
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import measure, plan

THROUGHPUT_FPS = 50_000
EXACT_S = 10 / (THROUGHPUT_FPS * 0.55)
"""The simulated DUT loses every tenth frame while it recovers: its last lost frame is at most ten
frames from the truth."""


def recovery(
    dut: SimulatedDut, out: Path, limits: SimulatedLimits | None = None, media_fps: int | None = None, **conditions: Any
) -> tuple[SimulatedTester, TimesPoint, Summary]:
    """Two trials of 120 s at a throughput of 50,000 frames/s, unless ``conditions`` say otherwise."""
    tester = SimulatedTester(dut, limits or SimulatedLimits())
    chosen = {"rate": Rate.parse("50k"), "repetitions": 2, "duration_s": 120} | conditions
    summary = measure(tester, plan(media_fps, **chosen), out, "recovery")
    [point] = summary.points
    assert isinstance(point, TimesPoint)
    return tester, point, summary


def test_the_truth_comes_out(tmp_path: Path) -> None:
    """200 DUTs: capacities, queues, recovery times and overloads at random; the error is at most
    ten frames' time."""
    random = np.random.default_rng(1)
    for index in range(200):
        overload_s, recovery_s = float(random.uniform(1, 60)), float(10 ** random.uniform(-3, 1))
        dut = SimulatedDut(
            capacity_fps=int(random.integers(28_000, 54_000)),
            queue_frames=int(random.integers(0, 1000)),
            recovery_s=recovery_s,
        )
        conditions = {"overload_s": overload_s, "duration_s": overload_s + 20, "repetitions": 1, "seed": index}
        _, point, _ = recovery(dut, tmp_path / str(index), **conditions)
        for times in (point.forward, point.reverse):
            assert times is not None, point.message
            assert times["recovery"].median == pytest.approx(recovery_s, abs=EXACT_S)


def test_the_rates_are_110_percent_and_half_of_it(tmp_path: Path) -> None:
    tester, point, _ = recovery(SimulatedDut(capacity_fps=50_000, recovery_s=1.5), tmp_path)
    for trial in tester.trials:
        for stream in trial.streams().values():
            assert stream.then is not None
            assert (stream.rate_fps, stream.then.rate_fps, stream.then.after_ns) == (55_000, 27_500, 60 * 10**9)
        assert trial.intended(Direction.FORWARD) == 60 * 55_000 + 60 * 27_500
    assert point.rates_fps == {"rate_fps": 55_000, "reduced_fps": 27_500, "throughput_fps": 50_000}


def test_no_more_than_the_media_can_carry(tmp_path: Path) -> None:
    tester, _, _ = recovery(SimulatedDut(capacity_fps=50_000), tmp_path, media_fps=52_000)
    assert {stream.rate_fps for trial in tester.trials for stream in trial.streams().values()} == {52_000}


def test_a_dut_that_recovers_at_once(tmp_path: Path) -> None:
    _, point, _ = recovery(SimulatedDut(capacity_fps=50_000), tmp_path)
    assert point.forward is not None
    assert point.forward["recovery"].values == (0.0, 0.0)
    assert point.has_number


def test_a_dut_that_is_not_overloaded_has_no_recovery_time(tmp_path: Path) -> None:
    _, point, _ = recovery(SimulatedDut(capacity_fps={Direction.FORWARD: 50_000}, recovery_s=2.0), tmp_path)
    assert point.reverse is None
    assert point.forward is not None
    assert point.forward["recovery"].median == pytest.approx(2.0, abs=EXACT_S)
    assert "reverse: in 2 of 2 repetitions the overload lost no frame" in point.message
    assert point.outcomes["reverse"] == {"measured": 0, "not_caused": 2, "not_over": 0}


@pytest.mark.parametrize("dut", [SimulatedDut(capacity_fps=50_000, recovery_s=100), SimulatedDut(capacity_fps=20_000)])
def test_a_dut_that_does_not_recover_has_no_number(dut: SimulatedDut, tmp_path: Path) -> None:
    tester, point, _ = recovery(dut, tmp_path)
    assert not point.has_number
    assert "forward: in 1 of 1 repetitions frames were still lost" in point.message
    assert "ended early" not in point.message
    assert len(tester.trials) == 1


def test_a_lossy_dut_does_not_recover(tmp_path: Path) -> None:
    _, point, _ = recovery(SimulatedDut(capacity_fps=50_000, loss_ratio=0.001), tmp_path)
    assert not point.has_number


def test_a_dead_dut_ends_the_run(tmp_path: Path) -> None:
    tester, point, _ = recovery(SimulatedDut(dies_after_trials=1), tmp_path)
    assert len(tester.trials) == 2
    assert not point.has_number
    assert "forwards nothing" in point.message


def test_what_the_tester_cannot_send_is_its_limit(tmp_path: Path) -> None:
    tester, point, _ = recovery(SimulatedDut(capacity_fps=50_000), tmp_path, SimulatedLimits(send_fps=30_000))
    assert point.limited_by is LimitedBy.TESTER
    assert not point.has_number
    assert len(tester.trials) == attempts.ATTEMPTS, "a second repetition would not bring the figures back"


@pytest.mark.parametrize(
    ("conditions", "option"),
    [({"overload_s": 120}, "overload_s"), ({"rate": None}, "rate"), ({"rate": Rate.parse("5%")}, "rate")],
)
def test_what_cannot_be_measured_names_its_option(conditions: dict[str, Any], option: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        recovery(SimulatedDut(), tmp_path, **conditions)
    assert caught.value.option == option
    assert list(tmp_path.iterdir()) == []


def test_the_overload_of_a_short_trial_is_half_of_it_and_a_deviation(tmp_path: Path) -> None:
    tester, point, summary = recovery(SimulatedDut(capacity_fps=50_000), tmp_path, duration_s=3, repetitions=1)
    assert {stream.then.after_ns for trial in tester.trials for stream in trial.streams().values() if stream.then} == {
        1_500_000_000
    }
    assert point.has_number
    assert "an overload of 1.5 s, shorter than 60 s" in {deviation.text for deviation in summary.deviations}


def test_deviations(tmp_path: Path) -> None:
    _, _, summary = recovery(SimulatedDut(), tmp_path / "quick", overload_s=30, repetitions=1)
    said = {deviation.text for deviation in summary.deviations if "26.5" in deviation.clause}
    assert said == {
        "an overload of 30 s, shorter than 60 s",
        "the throughput is given, not measured by a test before",
    }
    _, _, summary = recovery(SimulatedDut(), tmp_path / "whole", rate=None, throughput_from={84: 50_000})
    assert not {deviation.clause for deviation in summary.deviations} & {
        "RFC 2544 section 26.5",
        "RFC 2544 sections 26.5, 26.6",
        "RFC 8219 section 12",
    }
