# SPDX-License-Identifier: Apache-2.0
"""Soak: the interval that holds after any number of trials, when it ends, and that known probabilities come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import procedures
from dutperf.judge import validity
from dutperf.model import Cause, LimitedBy, Trial, TrialResult, Verdict
from dutperf.procedures.bench import PlanError
from dutperf.procedures.soak import HOPELESS
from dutperf.setup.conditions import Rate
from dutperf.statistics import sequential
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import measure, narrowed, plan


def soak(tester: SimulatedTester, out: Path, **conditions: Any) -> Any:
    usual = {"rate": Rate.parse("10k"), "duration_s": 1, "soak_s": 500, "frame_sizes": (84,)}
    return measure(tester, plan(**{**usual, **conditions}), out, "soak").points[0]


# --- the interval ---------------------------------------------------------------------------------


@given(trials=st.integers(0, 5000), data=st.data(), confidence=st.floats(0.5, 0.999))
def test_an_interval_has_the_observed_share_in_it(trials: int, data: st.DataObject, confidence: float) -> None:
    events = data.draw(st.integers(0, trials))
    low, high = sequential.interval(events, trials, confidence)
    assert 0 <= low <= (events / trials if trials else 0.5) <= high <= 1
    others = sequential.interval(trials - events, trials, confidence)
    assert (1 - others[1], 1 - others[0]) == pytest.approx((low, high), abs=1e-9)
    wider = sequential.interval(events, trials, 1 - (1 - confidence) / 10)
    assert wider[0] <= low
    assert wider[1] >= high


def test_an_interval_narrows_with_the_trials() -> None:
    highs = [sequential.interval(0, trials, 0.95)[1] for trials in (1, 10, 100, 1000, 10_000)]
    assert highs == sorted(highs, reverse=True)
    assert highs[2] == pytest.approx(0.0570, abs=0.0005), "by hand: (1 - p)^100 = 0.05 B(1/2, 100.5) / B(1/2, 1/2)"


@pytest.mark.long
@pytest.mark.parametrize("probability", [0.02, 0.3])
def test_all_intervals_of_a_run_cover_the_truth_with_the_stated_confidence(probability: float) -> None:
    """However often one looks: 400 runs of 300 trials, each looked at after every trial."""
    random = np.random.default_rng(7)
    missed = 0
    for _ in range(400):
        events = np.cumsum(random.random(300) < probability)
        missed += any(
            not low <= probability <= high
            for low, high in (sequential.interval(int(k), n, 0.9) for n, k in enumerate(events, 1))
        )
    assert missed <= 40 + 2 * 6, "10 % of the runs, and two standard deviations"


@pytest.mark.parametrize(("events", "trials", "confidence"), [(2, 1, 0.9), (-1, 3, 0.9), (0, 1, 0), (0, 1, 1)])
def test_what_is_no_observation_is_refused(events: int, trials: int, confidence: float) -> None:
    with pytest.raises(ValueError, match=r"events|confidence"):
        sequential.interval(events, trials, confidence)


class Disturbed(SimulatedTester):
    """Loses frames in one of five trials, and is disturbed in others: the trials with both are not valid."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        if not result.worst_loss_ratio or len(self.trials) % 2:
            return result
        cause = Cause(code=validity.DUT_DISTURBED, text="others had its core")
        return result.model_copy(update={"verdict": Verdict.INVALID, "causes": (cause,)})


# --- the procedure --------------------------------------------------------------------------------


def test_a_dut_that_loses_nothing_is_below_the_target_as_soon_as_that_is_known(tmp_path: Path) -> None:
    point = soak(SimulatedTester(), tmp_path, target=0.1)
    assert (point.lossy, point.verdict, point.lost, point.limited_by) == (0, "below", 0, None)
    assert point.high < 0.1 <= sequential.interval(0, point.measured - 1, 0.95)[1]
    assert point.message.endswith("below the target of 0.1")


def test_a_dut_that_loses_often_is_above_it(tmp_path: Path) -> None:
    point = soak(SimulatedTester(SimulatedDut(hiccup_ratio=0.4), seed=3), tmp_path, target=0.1)
    assert point.verdict == "above"
    assert point.low > 0.1
    assert point.lossy == sum(ratio > 0 for ratio in point.loss_ratio.values)
    assert point.lost == point.lossy or point.lost > point.lossy, "a hiccup is a frame in either direction"


def test_a_probability_at_the_target_stays_open_until_the_time_is_over(tmp_path: Path) -> None:
    dut = SimulatedDut(hiccup_ratio=0.05)
    point = soak(SimulatedTester(dut, seed=5), tmp_path, target=0.0975, soak_s=60)
    assert (point.verdict, point.measured) == ("open", 60)
    assert point.low < 0.0975 < point.high
    assert "not known to be below or above" in point.message


def test_the_interval_covers_the_truth_of_simulated_duts(tmp_path: Path) -> None:
    covered = 0
    for seed in range(20):
        tester = SimulatedTester(SimulatedDut(hiccup_ratio=0.1), seed=seed)
        point = soak(tester, tmp_path / str(seed), target=0.5, confidence=0.9, soak_s=100, directions="forward")
        covered += point.low <= 0.1 <= point.high
    assert covered >= 16


def test_tolerated_loss_is_none(tmp_path: Path) -> None:
    dut = SimulatedDut(hiccup_ratio=1.0)
    point = soak(SimulatedTester(dut), tmp_path / "a", target=0.3, loss_tolerance=0.001)
    assert (point.lossy, point.verdict, point.lost > 0) == (0, "below", True)
    assert soak(SimulatedTester(dut), tmp_path / "b", target=0.3).verdict == "above"


def test_a_loss_that_a_disturbance_may_have_caused_is_neither_left_out_nor_the_dut_s(tmp_path: Path) -> None:
    """Left out, or repeated until it is valid, it would make the DUT look better than it is."""
    tester = Disturbed(SimulatedDut(hiccup_ratio=0.2), seed=4)
    point = soak(tester, tmp_path, target=0.19, soak_s=100, directions="forward")
    assert len(tester.trials) == point.measured == 100, "no trial is repeated"
    assert point.lossy > 0 < point.perhaps
    assert point.lossy + point.perhaps == sum(ratio > 0 for ratio in point.loss_ratio.values)
    assert point.low == pytest.approx(sequential.interval(point.lossy, 100, 0.95)[0])
    assert point.high == pytest.approx(sequential.interval(point.lossy + point.perhaps, 100, 0.95)[1])
    assert (point.low < 0.2 < point.high, point.verdict) == (True, "open")
    assert f"{point.perhaps} more perhaps because of a disturbance" in point.message


@pytest.mark.parametrize("received", [1, 0])
def test_a_disturbed_trial_that_lost_everything_is_as_open_as_one_that_lost_nearly_everything(
    received: int, tmp_path: Path
) -> None:
    class Outage(SimulatedTester):
        """In one of five trials, while others have the DUT's core."""

        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            if len(self.trials) % 5:
                return result
            assert result.forward is not None
            counts = result.forward.model_copy(update={"received": received})
            cause = Cause(code=validity.DUT_DISTURBED, text="others had its core")
            return result.model_copy(update={"verdict": Verdict.INVALID, "causes": (cause,), "forward": counts})

    point = soak(Outage(), tmp_path, target=0.1, soak_s=100, directions="forward")
    assert (point.measured, point.lossy, point.perhaps, point.unmeasured) == (100, 0, 20, 0)
    assert (point.lost, point.verdict) == (20 * (10_000 - received), "open")


def test_a_tester_that_is_too_slow_gives_up_soon(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=5_000))
    assert soak(tester, tmp_path, soak_s=1000).limited_by is LimitedBy.TESTER
    assert len(tester.trials) == HOPELESS


def test_trials_that_the_tester_could_not_measure_are_left_out(tmp_path: Path) -> None:
    limits = SimulatedLimits(disturbed_ratio=0.5)
    point = soak(SimulatedTester(limits=limits, seed=2), tmp_path / "a", target=0.2, soak_s=30)
    assert point.measured + point.unmeasured == 30
    assert point.unmeasured > 0
    assert f"{point.unmeasured} more could not be measured" in point.message
    point = soak(SimulatedTester(limits=SimulatedLimits(send_fps=5_000)), tmp_path / "b", soak_s=3)
    assert (point.has_number, point.limited_by) == (False, LimitedBy.TESTER)


def test_a_dut_that_forwards_nothing_ends_it(tmp_path: Path) -> None:
    point = soak(SimulatedTester(SimulatedDut(dies_after_trials=0)), tmp_path)
    assert not point.has_number
    assert point.message.startswith("the DUT forwards nothing")


def test_a_dut_that_forwards_nothing_any_more_lost_the_frames_of_its_last_trial(tmp_path: Path) -> None:
    point = soak(SimulatedTester(SimulatedDut(dies_after_trials=5)), tmp_path)
    assert (point.measured, point.lossy, point.lost) == (6, 1, point.sent // 6)
    assert point.message.startswith("the DUT forwards nothing")


def test_the_load_is_a_share_of_the_throughput() -> None:
    made = procedures.find("soak").make(
        narrowed(plan(throughput_from={84: 20_000}, load_percent=90, frame_sizes=(84,)), "soak")
    )
    assert made.first_load(made.cases[0]).value == 18_000
    with pytest.raises(PlanError, match="above the highest rate, 10,000") as caught:
        procedures.find("soak").make(narrowed(plan(10_000, rate=Rate.parse("9k"), load_percent=120), "soak"))
    assert caught.value.option == "load_percent"
