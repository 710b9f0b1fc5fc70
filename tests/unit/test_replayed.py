# SPDX-License-Identifier: Apache-2.0
"""A journal's trials, replayed, give the same summary; a trial that was never run is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.journal import JournalWriter, ResultEvent, TrialEvent
from dutperf.model import Load, TrialResult, Verdict
from dutperf.tester import Progress, TesterError
from dutperf.tester.replayed import ReplayedTester
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import counts, measure, plan, trial


@pytest.mark.parametrize("seed", range(5))
def test_a_run_is_repeated_from_its_journal(tmp_path: Path, seed: int) -> None:
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=54_321, loss_ratio=1e-6), SimulatedLimits(disturbed_ratio=0.2), seed
    )
    first = measure(tester, plan(frame_sizes=(84, 128)), tmp_path / "first")
    again = measure(ReplayedTester.of(tmp_path / "first"), plan(frame_sizes=(84, 128)), tmp_path / "again")
    assert again.points == first.points
    assert again.environment["tester"] == tester.environment()


def test_other_conditions_are_not_answered(tmp_path: Path) -> None:
    measure(SimulatedTester(), plan(max_rate={"value": 1000, "unit": "fps"}), tmp_path)
    tester = ReplayedTester.of(tmp_path)
    with pytest.raises(TesterError) as caught:
        tester.run(trial(1000, seed=99))
    assert caught.value.code == "not_recorded"


def test_the_same_trial_twice_gets_both_results_in_order(tmp_path: Path) -> None:
    results = [
        TrialResult(trial=0, verdict=Verdict.VALID, forward=counts(1000, received), reverse=counts())
        for received in (1000, 990)
    ]
    with JournalWriter.create(tmp_path) as journal:
        for result in results:
            journal.write(TrialEvent(load=Load.fps(1000), attempt=1, trial=trial()))
            journal.write(ResultEvent(load=Load.fps(1000), attempt=1, trial=0, result=result))
        journal.write(TrialEvent(load=Load.fps(1000), attempt=1, trial=trial()))  # killed while it ran
    tester = ReplayedTester.of(tmp_path)
    seen: list[Progress] = []
    assert [tester.run(trial(), seen.append), tester.run(trial())] == results
    assert seen == [Progress(1.0, 2000, 2000)]
    with pytest.raises(TesterError, match="no result for trial 0"):
        tester.run(trial())
