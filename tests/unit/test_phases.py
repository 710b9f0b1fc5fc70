# SPDX-License-Identifier: Apache-2.0
"""Trials with preliminary phases: each phase is run and judged by itself, and only the measuring one
counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dutperf import journal
from dutperf.journal import ResumedJournal
from dutperf.judge import validity
from dutperf.model import (
    ANY_LOSS,
    LOSS_BINS,
    Cause,
    Delays,
    Direction,
    LateBursts,
    Load,
    Losses,
    Phase,
    Quantiles,
    Question,
    Trial,
    TrialResult,
    Verdict,
    members_of,
    to_json,
)
from dutperf.run.campaign import Plan
from dutperf.setup import configuration
from dutperf.setup.conditions import Rate, SingleTrial
from dutperf.setup.configuration import Dut
from dutperf.tester import ProgressCallback, phases
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import CountingDevice, Log, SimulatedDevice, make_trial, making, measure, plan, resume, stream, trial


def phase(number: int, **members: Any) -> Phase:
    times = {"duration_ns": 10**9, "drain_ns": 0}
    return Phase(trial=number, **{**times, "forward": stream(6, 84, 500), **members})


def with_preliminary(**members: Any) -> Trial:
    return trial(1000, number=1, preliminary=(phase(0),), **members)


class Verdicts(SimulatedTester):
    """Of a perfect DUT, whose trials are called what ``verdicts`` say by number."""

    def __init__(self, verdicts: dict[int, Verdict]) -> None:
        super().__init__()
        self.verdicts = verdicts

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        verdict = self.verdicts.get(trial.trial, Verdict.VALID)
        causes = () if verdict is Verdict.VALID else (Cause(code="sender_late", text="a frame left 60 ms late"),)
        return result.model_copy(update={"verdict": verdict, "causes": causes})


def test_the_phases_are_sent_in_their_order_and_only_the_measuring_one_counts() -> None:
    tester = SimulatedTester(dut=SimulatedDut(capacity_fps=800))
    result = phases.run(tester, with_preliminary())
    assert [(one.trial, one.preliminary) for one in tester.trials] == [(0, ()), (1, ())]
    assert (result.trial, result.verdict) == (1, Verdict.VALID)
    assert result.forward is not None
    assert result.forward.sent == 1000
    assert result.forward.lost > 0
    [before] = result.preliminary
    assert before.trial == 0
    assert before.forward is not None
    assert (before.forward.sent, before.forward.lost) == (500, 0)


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ({}, Verdict.VALID),
        ({0: Verdict.INVALID}, Verdict.INVALID),
        ({1: Verdict.INVALID}, Verdict.INVALID),
        ({0: Verdict.INVALID, 1: Verdict.ABORTED}, Verdict.ABORTED),
    ],
)
def test_a_trial_is_as_valid_as_the_worst_of_its_phases(verdicts: dict[int, Verdict], whole: Verdict) -> None:
    result = phases.run(Verdicts(verdicts), with_preliminary())
    assert result.verdict is whole
    said = [cause.text for cause in result.causes]
    assert ("preliminary phase: a frame left 60 ms late" in said) == (0 in verdicts)
    assert ("a frame left 60 ms late" in said) == (1 in verdicts)
    assert result.preliminary[0].verdict is verdicts.get(0, Verdict.VALID)


@pytest.mark.parametrize("early", [True, False])
def test_after_an_invalid_preliminary_phase_the_rest_is_sent_only_where_someone_looks_at_it(early: bool) -> None:
    tester = Verdicts({0: Verdict.INVALID})
    result = phases.run(tester, with_preliminary(question=Question(may_end_early=early)))
    assert [one.trial for one in tester.trials] == ([0] if early else [0, 1])
    assert result.verdict is Verdict.INVALID
    assert (result.forward is None, result.ended_early_s) == ((True, 0.0) if early else (False, None))


def test_nothing_follows_an_aborted_phase() -> None:
    tester = Verdicts({0: Verdict.ABORTED})
    assert phases.run(tester, with_preliminary()).verdict is Verdict.ABORTED
    assert len(tester.trials) == 1


def test_what_surrounds_the_measuring_phase_does_not_surround_the_others() -> None:
    tester, around = SimulatedTester(), []

    class Surrounding(SimulatedDevice):
        def losses_during(self, run: Callable[[], TrialResult]) -> TrialResult:
            result = run()
            around.append(result.trial)
            return result

    phases.run(tester, with_preliminary(), dut=Surrounding(Dut()))
    assert around == [1]


def test_phases_of_one_trial_have_different_numbers() -> None:
    with pytest.raises(ValidationError, match="two phases of a trial have the same number"):
        trial(number=0, preliminary=(phase(0),))


def test_json_says_nothing_of_phases_that_are_not_there() -> None:
    assert "preliminary" not in to_json(trial())
    one = with_preliminary()
    assert Trial.model_validate(to_json(one)) == one
    assert "preliminary" not in one.request()
    result = phases.run(SimulatedTester(), one)
    assert TrialResult.model_validate(to_json(result)) == result
    assert "preliminary" not in to_json(phases.run(SimulatedTester(), trial()))


def test_warm_up_is_the_trials_own_traffic_before_it_with_a_number_of_its_own() -> None:
    setup = configuration.parse(_members(), origin="here")
    conditions = SingleTrial(frame_sizes=(64,), duration_s=10, warm_up_s=3, learning_rest_s=2)
    made = make_trial(setup, conditions, 64, 1000, 65535)
    [warm_up] = made.preliminary
    assert (warm_up.trial, made.trial) == (65535, 0)
    assert (warm_up.forward, warm_up.reverse) == (made.forward, made.reverse)
    assert (warm_up.duration_s, warm_up.drain_ns, warm_up.rest_ns) == (3, 0, 2 * 10**9)
    assert (made.duration_s, made.rest_ns) == (10, None)
    assert made.whole_s == pytest.approx(2 + 3 + 10 + conditions.drain_s)


def _members() -> dict[str, Any]:
    side = {"version": 4, "port": "null", "gateway_mac": "02:00:00:00:00:01"}
    return {"left": side | {"ipv4": "198.18.0.2/24"}, "right": side | {"ipv4": "198.19.0.2/24"}}


def warm(**conditions: Any) -> Plan[Any]:
    """A plan whose trials are preceded by a phase of a second."""
    usual = plan(max_rate=Rate.parse("4000"), repetitions=1, resolution=Rate.parse("500"), **conditions)

    def make_trial(case: Any, load: Load, number: int) -> Trial:
        made = usual.traffic.trial(case, load, number + 1)
        return made.model_copy(update={"preliminary": (phase(number, question=Question(tolerated_loss=0.99)),)})

    return making(usual, make_trial)


def test_a_search_numbers_all_phases_and_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    dut = SimulatedDut(capacity_fps=2200)
    whole = SimulatedTester(dut=dut)
    [point] = measure(whole, warm(), tmp_path / "whole").points
    numbers = [one.trial for one in whole.trials]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 4
    assert point.throughput_fps.values == (2000,)
    events = journal.read(tmp_path / "whole")
    assert journal.next_trial(events) == len(numbers)

    cut = tmp_path / "cut"
    cut.mkdir()
    lines = (tmp_path / "whole/journal.jsonl").read_bytes().splitlines(keepends=True)
    kept = [number for number, line in enumerate(lines) if b'"event": "result"' in line][1] + 1
    (cut / "journal.jsonl").write_bytes(b"".join(lines[:kept]))
    rest = SimulatedTester(dut=dut)
    with ResumedJournal.open(cut) as recorded:
        [resumed] = resume(rest, warm(), recorded, Log()).points
    assert resumed.throughput_fps.values == (2000,)
    assert [one.trial for one in rest.trials] == numbers[4:]


def test_what_the_dut_counts_before_the_measuring_phase_is_not_its_loss(tmp_path: Path) -> None:
    """The reading before the trial is taken after the warm-up."""
    tester, readings = SimulatedTester(dut=SimulatedDut(capacity_fps=2200)), []

    def count() -> Any:
        readings.append(len(tester.trials))
        return {Direction.FORWARD: {"queue": 7 * len(tester.trials)}}

    measure(tester, replace(warm(), dut=CountingDevice(count)), tmp_path, log=Log())
    assert readings[:4] == [1, 2, 3, 4]


# --- a phase that tolerates loss, by what followed it ------------------------------------------------------


class Counted(SimulatedTester):
    """Of a DUT, with these counts of the first direction in the phases of these numbers."""

    def __init__(self, members: dict[int, dict[str, Any]]) -> None:
        super().__init__()
        self.members = members

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        members = self.members.get(trial.trial, {})
        assert result.forward is not None
        by = {Direction.FORWARD: result.forward.model_copy(update=members)}
        verdict, causes = validity.judge(trial, by)
        update = {"verdict": verdict, "causes": causes, "doubts": validity.doubts(trial, by)}
        return result.model_copy(update={**members_of(by), "reverse": None, **update})


def late_burst(frames: int, late_ms: float) -> dict[str, Any]:
    bins = tuple(frames if part == 100 else 0 for part in range(LOSS_BINS))
    return {
        "lateness_us": Quantiles(p50=1, p99=1, p999=1, max=1000 * late_ms),
        "late_bursts": LateBursts(frames=frames, longest=frames, bins=bins),
    }


def lost(frames: int) -> dict[str, Any]:
    bins = tuple(frames if part == 100 else 0 for part in range(LOSS_BINS))
    return {"received": 500 - frames, "losses": Losses(first_s=0.4, last_s=0.4, longest_run=1, bins=bins)}


FLOODED = {"misdelivered": {"c": 30}}
FEW_FLOODED = {"misdelivered": {"c": 1, "d": 1}}
DELAYS_OF_1_MS = {"delay_us": Delays(p50=1000, p99=1000, p999=1000, max=1000, min=1000)}
FOLLOWING = [
    ("a burst, and floods", late_burst(45, 45), FLOODED, {"sender_bursts"}),
    ("a burst, and a pass", late_burst(45, 45), {}, set()),
    ("more floods than frames in bursts", late_burst(45, 45), {"misdelivered": {"c": 46}}, set()),
    ("a burst as in any trial", late_burst(32, 9), FEW_FLOODED, set()),
    ("a longer one", late_burst(33, 9), FEW_FLOODED, {"sender_bursts"}),
    ("a loss in a burst, and floods", {**late_burst(5, 9), **lost(5)}, FLOODED, {"sender_bursts"}),
    ("a loss in a burst, and a loss", {**late_burst(5, 9), **lost(5)}, lost(1), {"sender_bursts"}),
    ("a loss in a burst, and delays", {**late_burst(5, 9), **lost(5)}, DELAYS_OF_1_MS, {"sender_bursts"}),
    ("a loss in a burst, and a pass", {**late_burst(5, 9), **lost(5)}, {}, set()),
    ("a loss after a long stall, and floods", {**late_burst(20, 20), **lost(300)}, FLOODED, {"sender_late"}),
    ("a loss of the DUT's own, and a loss", lost(5), lost(1), set()),
    ("a late burst, and a loss", late_burst(45, 45), lost(40), set()),
]


@pytest.mark.parametrize(("before", "after", "codes"), [row[1:] for row in FOLLOWING], ids=[r[0] for r in FOLLOWING])
def test_a_phase_that_tolerates_loss_is_judged_by_what_follows(
    before: dict[str, Any], after: dict[str, Any], codes: set[str]
) -> None:
    tolerant = phase(0, question=Question(tolerated_loss=ANY_LOSS))
    asked = Trial(trial=1, duration_ns=10**9, drain_ns=0, forward=stream(6, 84, 500), preliminary=(tolerant,))
    result = phases.run(Counted({0: before, 1: after}), asked)
    assert {cause.code for cause in result.causes} == codes
    assert all(cause.text.startswith("preliminary phase: ") for cause in result.causes)
    assert result.verdict is (Verdict.INVALID if codes else Verdict.VALID)
    assert TrialResult.model_validate(to_json(result)) == result
