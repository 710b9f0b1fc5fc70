# SPDX-License-Identifier: Apache-2.0
"""The campaign: repeats what is not valid, writes before it goes on, tells the observer, and leaves
a summary however it ends."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dutperf import journal
from dutperf.journal import JournalError
from dutperf.model import Cause, Load, Trial, TrialResult, Verdict
from dutperf.procedures import throughput
from dutperf.results import headline, tables
from dutperf.results.summary import SUMMARY
from dutperf.run import attempts, campaign
from dutperf.setup.conditions import Rate
from dutperf.tester import ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Counting, CountingDevice, Log, counts, journal_lines, measure, narrowed, plan

TO_1000: dict[str, Any] = {"max_rate": Rate.parse("1000"), "repetitions": 1}
"""Conditions under which a perfect DUT takes one trial, at 1,000 frames/s."""


class Scripted(SimulatedTester):
    """Of a perfect DUT, but the trials numbered in ``instead`` have another result, or raise."""

    def __init__(self, instead: dict[int, TrialResult | BaseException], **members: Any) -> None:
        super().__init__(**members)
        self.instead = instead

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        other = self.instead.get(len(self.trials) - 1, result)
        if isinstance(other, BaseException):
            raise other
        return other


def unsuccessful(verdict: Verdict, trial: int = 0) -> TrialResult:
    return TrialResult(trial=trial, verdict=verdict, causes=(Cause(code="engine_died", text="something went wrong"),))


@pytest.mark.parametrize("verdict", [Verdict.INVALID, Verdict.ABORTED])
def test_a_trial_that_is_not_valid_is_repeated_under_a_new_number(tmp_path: Path, verdict: Verdict) -> None:
    tester, log = Scripted({number: unsuccessful(verdict, number) for number in range(3)}), Log()
    [point] = measure(tester, plan(**TO_1000), tmp_path, log=log).points
    assert point.throughput_fps.values == (1000,)
    assert [trial.trial for trial in tester.trials] == [0, 1, 2, 3]
    assert {trial.forward.rate_fps for trial in tester.trials if trial.forward} == {1000}
    assert any(status.note is not None and "attempt 1 of" in status.note for status in log.statuses)


class Misfit(SimulatedTester):
    """The test setup loses frames at any rate: each trial shows that none can be valid."""

    code = "fragments"

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        cause = Cause(code=self.code, text="forward: 500 fragments arrived", lasts=True)
        lossy = {way: one.model_copy(update={"received": one.sent // 2}) for way, one in result.directions().items()}
        changed = {"verdict": Verdict.INVALID, "causes": (cause,), **{str(way): one for way, one in lossy.items()}}
        return result.model_copy(update=changed)


@pytest.mark.parametrize("search", ["binary", "mlr"])
def test_a_search_ends_at_once_where_no_trial_can_be_valid_with_the_test_setup(search: str, tmp_path: Path) -> None:
    tester = Misfit()
    [point] = measure(tester, plan(**TO_1000 | {"repetitions": 3, "search": search}), tmp_path).points
    assert len(tester.trials) == 1
    assert (point.throughput_fps.values, point.limited_by) == ((None,), "setup")
    assert point.message == (
        "at 1,000 frames/s: no trial can be valid with this test setup: forward: 500 fragments arrived"
        " (1 of 3 repetitions; it ended early because another trial would not be valid either)"
    )


@pytest.mark.parametrize(
    ("name", "conditions"),
    [
        ("frame-loss", {"max_rate": Rate.parse("1000"), "repetitions": 3}),
        ("load-latency", {"throughput_from": {84: 1000}, "loads": (10, 50), "repetitions": 3}),
        ("back-to-back", {"throughput_from": {84: 1000}, "max_rate": Rate.parse("2000"), "repetitions": 3}),
    ],
)
def test_a_case_ends_at_once_where_no_trial_can_be_valid(name: str, conditions: dict[str, Any], tmp_path: Path) -> None:
    tester = Misfit()
    [point] = measure(tester, plan(**conditions), tmp_path, name).points
    assert len(tester.trials) == 1
    assert point.limit in ("setup", None)  # of frame loss there is no rate
    assert "no trial can be valid with this test setup: forward: 500 fragments arrived" in point.message


class Slow(SimulatedTester):
    """Its DUT delays frames for longer than the drain, from 600 frames/s on."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        assert trial.forward is not None
        cause = Cause(code="drain", text="forward: give a longer drain")
        invalid = {"verdict": Verdict.INVALID, "causes": (cause,)}
        return result.model_copy(update=invalid if trial.forward.rate_fps >= 600 else {})


@pytest.mark.parametrize("search", ["binary", "mlr"])
def test_a_load_at_which_the_test_setup_does_not_fit_is_no_limit_of_the_tester(search: str, tmp_path: Path) -> None:
    log = Log()
    summary = measure(Slow(), plan(**TO_1000 | {"search": search}), tmp_path, log=log)
    [point] = summary.points
    upper = point.message.partition(":")[0]
    assert upper.startswith("at ")
    assert (point.limited_by, point.message) == ("setup", f"{upper}: forward: give a longer drain")
    [(text, warns)] = headline.of_summary(summary).figures
    assert ", limited by the test setup, which does not fit; 1 repetition" in text
    assert warns
    assert f", limited by the test setup, which does not fit; {upper}" in (log.statuses[-1].note or "")
    said = [text for text, _ in tables.messages(summary) if text.startswith("84 bytes")]
    assert said[:1] == [f"84 bytes: limited by the test setup, which does not fit: {point.message}"]


def test_at_a_rate_of_a_series_too(tmp_path: Path) -> None:
    series = {"rates": tuple(map(Rate.parse, ("1000", "800", "500"))), "repetitions": 1}
    [point] = measure(Slow(), plan(**series), tmp_path / "loss", "frame-loss").points
    assert [rate.limited_by for rate in point.rates] == ["setup", "setup", None]
    assert "; DUT and test setup do not fit at 1,000 and 800 frames/s: no figures there" in point.message
    [point] = measure(Slow(), plan(rate="1000"), tmp_path / "traffic", "traffic").points
    assert (point.limited_by, [rate.limited_by for rate in point.rates]) == ("setup", ["setup"])


@pytest.mark.parametrize(
    ("dut", "limit"),
    [(SimulatedDut(capacity_fps=700), "the DUT"), (SimulatedDut(), "the search range")],
)
def test_the_line_of_a_repetition_says_what_limits_it(dut: SimulatedDut, limit: str, tmp_path: Path) -> None:
    log = Log()
    [point] = measure(SimulatedTester(dut), plan(**TO_1000), tmp_path, log=log).points
    value = f"{point.throughput_fps.median:,.0f} frames/s"
    assert log.statuses[-1].note == f"repetition 1: {value}, limited by {limit}; {point.message}"


class PassingMisfit(Misfit):
    """The setup does not fit in the trials numbered ``misfits`` alone: a route that goes away and comes back."""

    def __init__(self, *misfits: int) -> None:
        super().__init__()
        self.misfits = misfits

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        run = super().run if len(self.trials) in self.misfits else partial(SimulatedTester.run, self)
        return run(trial, on_progress)


SOAK = {"rate": Rate.parse("1000"), "soak_s": 10.0, "duration_s": 0.5}


def test_what_no_trial_could_be_valid_with_may_pass(tmp_path: Path) -> None:
    tester = PassingMisfit(1, 2)
    [point] = measure(tester, plan(**SOAK), tmp_path, "soak").points
    assert len(tester.trials) > 10
    assert point.perhaps == 2


def test_a_soak_that_no_trial_can_be_valid_of_says_why(tmp_path: Path) -> None:
    tester = PassingMisfit(0)
    [point] = measure(tester, plan(**SOAK), tmp_path, "soak").points
    assert len(tester.trials) == 1
    assert point.message.endswith("(it ended early because another trial would not be valid either)")


def test_a_search_goes_on_after_a_load_that_met_what_passes(tmp_path: Path) -> None:
    tester = PassingMisfit(1)
    [point] = measure(tester, plan(**TO_1000 | {"repetitions": 3}), tmp_path).points
    assert point.throughput_fps.values == (1000, 1000, 1000)


def test_addresses_that_do_not_fit_end_the_run(tmp_path: Path) -> None:
    tester = Misfit()
    tester.code = "address_conflict"
    with pytest.raises(TesterError, match="no trial can be valid with this test setup") as error:
        measure(tester, plan(**TO_1000), tmp_path)
    assert (error.value.code, len(tester.trials)) == ("address_conflict", 1)


def test_a_load_beyond_the_testers_reach_is_given_up_after_a_few_attempts_and_a_second_chance(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=600))
    [point] = measure(tester, plan(**TO_1000, resolution=Rate.parse("600")), tmp_path).points
    offered = [trial.forward.rate_fps for trial in tester.trials if trial.forward]
    assert offered == [1000] * attempts.ATTEMPTS + [500] + [1000] * attempts.ATTEMPTS
    assert point.throughput_fps.values == (500,)


def test_a_load_within_reach_gets_more_attempts_while_they_take_no_more_than_their_share(tmp_path: Path) -> None:
    """Of 40 trials that tell something, 20 more may tell nothing; then a load has the fewest attempts, twice."""
    bad = {
        number: unsuccessful(Verdict.INVALID, number) for number in range(40, 40 + attempts.ATTEMPTS_WITHIN_REACH - 1)
    }
    [point] = measure(Scripted(bad), plan(**{**TO_1000, "repetitions": 41}), tmp_path / "few").points
    assert point.throughput_fps.values == (1000,) * 41
    worse = {number: unsuccessful(Verdict.INVALID, number) for number in range(1, 100)}
    tester = Scripted(worse)
    [point] = measure(
        tester, plan(**{**TO_1000, "repetitions": 2, "min_rate": Rate.parse("1000")}), tmp_path / "many"
    ).points
    assert point.limited_by == "tester"
    assert len(tester.trials) == 1 + 2 * attempts.AT_LEAST


def test_before_it_tries_once_more_it_waits_until_the_machine_is_quiet_and_less_long_where_that_is_in_vain(
    tmp_path: Path,
) -> None:
    waits: list[float] = []

    class Busy(Scripted):
        def wait_until_quiet(self, limit_s: float) -> float:
            waits.append(limit_s)
            return limit_s if len(waits) < 3 else 0.0

    tester = Busy({number: unsuccessful(Verdict.INVALID, number) for number in range(20)})
    measure(tester, plan(**TO_1000, min_rate=Rate.parse("1000"), duration_s=4), tmp_path)
    assert waits[:4] == [4.0, 2.0, 1.0, 4.0]


def test_only_trials_that_nobody_interferes_with_may_be_ended_early(tmp_path: Path) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "throughput": {"max_rate": Rate.parse("1000")},
        "frame-loss": {"max_rate": Rate.parse("1000")},
        "recovery": {"rate": Rate.parse("50k"), "duration_s": 120, "overload_s": 60},
        "reset": {"rate": Rate.parse("1000"), "duration_s": 60},
    }
    endable = {}
    for name, conditions in kinds.items():
        tester = SimulatedTester()
        measure(tester, plan(**conditions, repetitions=1), tmp_path / name, name)
        endable[name] = {trial.question.may_end_early for trial in tester.trials}
    assert endable == {"throughput": {True}, "frame-loss": {True}, "recovery": {False}, "reset": {False}}


def test_the_journal_has_each_event_before_the_next_thing_happens(tmp_path: Path) -> None:
    class Watching(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            last = journal_lines(tmp_path)[-1]
            assert (last["event"], last["trial"]["trial"]) == ("trial", trial.trial)
            return super().run(trial, on_progress)

    class Checking(Log):
        def update(self, status: Any) -> None:
            super().update(status)
            if status.last is not None and status.progress is None:
                recorded = [event for event in journal_lines(tmp_path) if event["event"] == "result"]
                assert len(recorded) == status.trials_done

    measure(Watching(SimulatedDut(capacity_fps=5000)), plan(frame_sizes=(84, 128)), tmp_path, log=Checking())
    kinds = [event["event"] for event in journal_lines(tmp_path)]
    assert kinds[:2] == ["plan", "environment"]
    assert kinds[-1] == "end"
    assert kinds.count("search") == 6
    assert kinds.count("trial") == kinds.count("result")


def test_the_observer_is_told_what_is_tried_and_what_is_left(tmp_path: Path) -> None:
    log = Log()
    measure(SimulatedTester(SimulatedDut(capacity_fps=5000)), plan(), tmp_path, log=log)
    first, last = log.statuses[0], log.statuses[-1]
    assert (first.trying, first.repetition, first.trials_done, first.last) == (Load.fps(1000), 1, 0, None)
    assert first.remaining_s >= 5 * first.trials_left > 0
    assert (last.repetition, last.repetitions, last.trials_left) == (3, 3, 0)
    assert any(status.progress is not None for status in log.statuses)
    assert all(status.lower < status.upper for status in log.statuses if status.lower and status.upper)
    done = [status.trials_done for status in log.statuses]
    assert done == sorted(done)


@pytest.mark.parametrize(
    ("raised", "outcome", "words"),
    [
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        (TesterError("no answer from 198.18.0.1"), "error", "no answer"),
        (ValueError(), "error", "ValueError"),
    ],
)
def test_a_run_that_breaks_off_leaves_a_summary(
    tmp_path: Path, raised: BaseException, outcome: str, words: str
) -> None:
    tester = Scripted({2: raised}, dut=SimulatedDut())
    with pytest.raises(type(raised)):
        measure(tester, plan(**{**TO_1000, "repetitions": 20}), tmp_path)
    end = journal_lines(tmp_path)[-1]
    assert (end["event"], end["outcome"]) == ("end", outcome)
    assert words in end["message"]
    [point] = json.loads((tmp_path / SUMMARY).read_text())["points"]
    assert point["throughput_fps"]["values"] == [1000, 1000]
    assert "2 of 20 repetitions" in point["message"]


@pytest.mark.parametrize("line", [1, 2])
def test_a_run_that_is_interrupted_while_its_first_lines_are_written_says_so(
    line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is in the file before it is on the disk: whoever sees it may send the signal then."""
    real, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        if descriptor_is_the_journal(descriptor, tmp_path):
            calls.append(descriptor)
            if len(calls) == line:
                raise KeyboardInterrupt
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        measure(SimulatedTester(), plan(**TO_1000), tmp_path)
    events = [event["event"] for event in journal_lines(tmp_path)]
    assert events == [*["plan", "environment"][:line], "end"]
    assert (tmp_path / SUMMARY).exists()


def a_size_twice(what: campaign.Plan[Any]) -> campaign.Plan[Any]:
    return replace(what, conditions=what.conditions.model_copy(update={"frame_sizes": (84, 84)}))


def no_setup(what: campaign.Plan[Any]) -> campaign.Plan[Any]:
    return replace(what, config={"left": {"port": "null"}})


@pytest.mark.parametrize("unreadable", [a_size_twice, no_setup])
def test_what_nobody_could_read_is_refused_before_the_first_frame(unreadable: Any, tmp_path: Path) -> None:
    tester, what = Scripted({}), unreadable(narrowed(plan(**TO_1000), "throughput"))
    with pytest.raises(JournalError, match="nothing was sent, because nobody could read the results"):
        campaign.measure(throughput.PROCEDURE, tester, what, tmp_path / "out", Log())
    assert not tester.trials
    assert not (tmp_path / "out").exists()


def descriptor_is_the_journal(descriptor: int, directory: Path) -> bool:
    return Path(f"/proc/self/fd/{descriptor}").resolve() == (directory / journal.JOURNAL).resolve()


def test_a_result_that_lacks_a_direction_is_never_taken_for_a_pass(tmp_path: Path) -> None:
    tester = Scripted({0: TrialResult(trial=0, verdict=Verdict.VALID, forward=counts())})
    with pytest.raises(TesterError, match="the trial sends forward, reverse"):
        measure(tester, plan(**TO_1000), tmp_path)


def test_a_directory_with_a_journal_is_refused(tmp_path: Path) -> None:
    measure(SimulatedTester(), plan(**TO_1000), tmp_path)
    before = (tmp_path / journal.JOURNAL).read_bytes()
    with pytest.raises(JournalError, match="another run"):
        measure(SimulatedTester(), plan(**TO_1000), tmp_path)
    assert (tmp_path / journal.JOURNAL).read_bytes() == before


def test_trial_numbers_start_again_where_a_frame_cannot_carry_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "TRIAL_NUMBERS", 3)
    tester = SimulatedTester()
    measure(tester, plan(**{**TO_1000, "repetitions": 5}), tmp_path)
    assert [trial.trial for trial in tester.trials] == [0, 1, 2, 0, 1]


def test_what_the_dut_counts_is_in_the_journal_and_in_the_diagnosis(tmp_path: Path) -> None:
    tester = Counting(SimulatedDut(capacity_fps=700))
    [point] = measure(tester, replace(plan(**TO_1000), dut=CountingDevice(tester.dut_losses)), tmp_path).points
    results = [event["result"] for event in journal_lines(tmp_path) if event["event"] == "result"]
    assert all(
        sum(result["dut_losses"]["forward"].values()) == sum(result[way]["lost"] for way in ("forward", "reverse"))
        for result in results
    )
    assert point.upper_bound.forward.dut["queue"] == point.upper_bound.forward.lost + point.upper_bound.reverse.lost
    assert f"the DUT counts {point.upper_bound.forward.dut['queue']:,}, others among them" in " ".join(point.remarks())
