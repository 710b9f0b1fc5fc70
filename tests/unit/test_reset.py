# SPDX-License-Identifier: Apache-2.0
"""Reset of simulated DUTs whose outage is known, and the command that resets a real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dutperf import journal, procedures
from dutperf.dut.device import Device
from dutperf.journal import ResultEvent, ResumedJournal, of_kind
from dutperf.model import Arrivals, LimitedBy, Trial, TrialResult, Verdict
from dutperf.procedures.reset import Reset, read
from dutperf.procedures.times import TimesPoint
from dutperf.run import attempts, campaign
from dutperf.run.campaign import PlanError, Summary
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import ConfigError, Dut
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, SimulatedDevice, counts, measure, plan, resume

RATE_FPS = 20_000


def reset(
    dut: SimulatedDut, out: Path, limits: SimulatedLimits | None = None, **conditions: Any
) -> tuple[SimulatedDevice, TimesPoint, Summary]:
    """Two trials of 30 s at 20,000 frames/s with a reset after 10 s, unless ``conditions`` say
    otherwise."""
    chosen = plan(**{"rate": Rate.parse("20k"), "repetitions": 2, "duration_s": 30} | conditions)
    summary = measure(SimulatedTester(dut, limits or SimulatedLimits()), chosen, out, "reset")
    [point] = summary.points
    assert isinstance(point, TimesPoint)
    assert isinstance(chosen.dut, SimulatedDevice)
    return chosen.dut, point, summary


def test_the_truth_comes_out(tmp_path: Path) -> None:
    """200 DUTs: outages of 11 ms to 15 s at random; by arrival gap at most two frames' intervals too
    long, by loss at most one wrong."""
    random = np.random.default_rng(2)
    for index in range(200):
        from_s, outage_s = float(random.uniform(10, 14)), float(10 ** random.uniform(np.log10(0.011), np.log10(15)))
        _, point, _ = reset(
            SimulatedDut(outage_s=(from_s, from_s + outage_s)), tmp_path / str(index), repetitions=1, seed=index
        )
        for times in (point.forward, point.reverse):
            assert times is not None, point.message
            assert outage_s <= times["arrival_gap"].median + 1e-9 <= outage_s + 2 / RATE_FPS
            assert times["loss"].median == pytest.approx(outage_s, abs=1 / RATE_FPS)


def test_a_headline_says_where_its_figures_are_of_different_directions(tmp_path: Path) -> None:
    _, point, _ = reset(SimulatedDut(outage_s=(10.5, 12)), tmp_path)
    assert point.forward is not None
    loss = point.forward["loss"]

    def headline(forward_s: float, reverse_s: float) -> str:
        named = {"forward": forward_s, "reverse": reverse_s}
        times = {way: {"arrival_gap": loss, "loss": loss.model_copy(update={"median": s})} for way, s in named.items()}
        times["forward"]["arrival_gap"] = loss.model_copy(update={"median": 9.0})
        return str(point.model_copy(update=times).main_figure().text)

    assert headline(2.0, 1.0).endswith("by loss in the slower direction")
    assert headline(1.0, 2.0).endswith("by loss, each in the slower direction")


def test_each_trial_resets_the_dut_once(tmp_path: Path) -> None:
    resets, point, _ = reset(SimulatedDut(outage_s=(10.5, 12)), tmp_path, repetitions=5)
    assert (resets.started, resets.finished, resets.killed) == (5, 5, 0)
    assert point.forward is not None
    assert len(point.forward["arrival_gap"].values) == 5


NO_TIME: list[tuple[str, SimulatedDut, str, str]] = [
    ("nothing happens", SimulatedDut(), "not_caused", "the DUT was probably not reset"),
    (
        "shorter than can be told",
        SimulatedDut(outage_s=(11, 11.009)),
        "not_caused",
        "no arrival gap was longer than 0.01 s",
    ),
    ("before the reset", SimulatedDut(outage_s=(3, 5)), "not_caused", "the longest arrival gap was before the reset"),
    ("it stays away", SimulatedDut(outage_s=(11, 99)), "not_over", "forwarding had not resumed when the trial ended"),
    ("it was away before", SimulatedDut(outage_s=(0, 12)), "not_over", "nothing came through before the reset"),
]


@pytest.mark.parametrize(("dut", "outcome", "words"), [row[1:] for row in NO_TIME], ids=[row[0] for row in NO_TIME])
def test_where_there_is_no_time_it_is_said_why(dut: SimulatedDut, outcome: str, words: str, tmp_path: Path) -> None:
    _, point, _ = reset(dut, tmp_path)
    assert not point.has_number
    repetitions = (
        1 if outcome == "not_over" else 2
    )  # one that is not over takes the figures away: another one would be for nothing
    assert point.outcomes["forward"][outcome] == point.outcomes["reverse"][outcome] == point.repetitions == repetitions
    assert words in point.message


@pytest.mark.parametrize(
    ("gap_s", "last_s", "outcome"),
    [
        pytest.param((10.0, 40.0), 59.9999, "measured", id="it came back"),
        pytest.param((10.0, 40.0), 45.0, "not_over", id="it is down again, for less long so far"),
        pytest.param((1.0, 7.0), 55.0, "not_over", id="away since the reset, shorter than before it"),
        pytest.param((1.0, 7.0), 59.9999, "not_caused", id="before the reset"),
    ],
)
def test_what_the_arrivals_of_a_trial_show(gap_s: tuple[float, float], last_s: float, outcome: str) -> None:
    arrivals = Arrivals(first_s=0.0, last_s=last_s, longest_gap_from_s=gap_s[0], longest_gap_to_s=gap_s[1])
    made = counts(60_000, 30_000, arrivals=arrivals)
    assert read(made, Reset(duration_s=60.0, reset_after_s=10.0), {}).outcome == outcome


def test_a_rate_beyond_the_tester_has_no_figures(tmp_path: Path) -> None:
    resets, point, _ = reset(SimulatedDut(outage_s=(11, 12)), tmp_path, SimulatedLimits(send_fps=5_000), repetitions=1)
    assert point.limited_by is LimitedBy.TESTER
    assert resets.started == resets.finished == attempts.ATTEMPTS


def test_deviations(tmp_path: Path) -> None:
    _, _, summary = reset(SimulatedDut(outage_s=(11, 12)), tmp_path, frame_sizes=(84,))
    clauses = [deviation.clause for deviation in summary.deviations]
    assert "RFC 8219 section 5.1.1" not in clauses
    assert not any(deviation.text.startswith("measured with frames of") for deviation in summary.deviations)
    larger = measure(
        SimulatedTester(),
        plan(rate=Rate.parse("20k"), repetitions=1, duration_s=30, frame_sizes=(84, 128)),
        tmp_path / "larger",
        "reset",
    )
    assert any(
        deviation.text == "measured with frames of 128 bytes, not of the smallest size, 84"
        for deviation in larger.deviations
    )


@pytest.mark.parametrize(
    ("conditions", "option"), [({"reset_after_s": 28.5}, "reset_after_s"), ({"rate": None}, "rate")]
)
def test_what_cannot_be_measured_names_its_option(conditions: dict[str, Any], option: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        reset(SimulatedDut(), tmp_path, **conditions)
    assert caught.value.option == option
    assert list(tmp_path.iterdir()) == []


def test_without_a_command_there_is_nothing_to_measure() -> None:
    with pytest.raises(PlanError, match=r"dut\.commands\.reset"):
        procedures.find("reset").make(replace(plan(rate=Rate.parse("1k"), duration_s=30), dut=Device(Dut())))


# --- what is started during a trial ---------------------------------------------------------------


class Fails(SimulatedDevice):
    """A command that ends badly."""

    def finish(self) -> None:
        raise ConfigError("ended with status 5", "dut.commands.reset")


class Interrupted(SimulatedTester):
    """Somebody presses Ctrl-C while the trial runs."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        super().run(trial, on_progress)
        raise KeyboardInterrupt


def with_resets(resets: SimulatedDevice, **conditions: Any) -> campaign.Plan:
    chosen = {"rate": Rate.parse("20k"), "repetitions": 2, "duration_s": 30} | conditions
    return replace(plan(**chosen), dut=resets)


class Unseen(SimulatedTester):
    """The progress of the first trial is not seen: this process did not run meanwhile."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        return super().run(trial, on_progress if self.trials else None)


def test_a_trial_in_which_the_dut_was_not_reset_is_invalid_and_made_again(tmp_path: Path) -> None:
    resets, tester = SimulatedDevice(Dut()), Unseen(SimulatedDut(outage_s=(11, 12)))
    summary = measure(tester, with_resets(resets, frame_sizes=(84,)), tmp_path, "reset")
    assert (len(tester.trials), resets.started, summary.points[0].finished) == (3, 2, 2)
    results = [event.result for event in of_kind(journal.read(tmp_path), ResultEvent)]
    assert [one.verdict for one in results] == [Verdict.INVALID, Verdict.VALID, Verdict.VALID]
    assert [cause.code for cause in results[0].causes] == ["action_missed"]


def test_a_command_that_fails_ends_the_run_and_the_trial_is_made_again(tmp_path: Path) -> None:
    """What was measured before stands, and is not measured again."""
    dut, conditions = SimulatedDut(outage_s=(11, 12)), {"frame_sizes": (84,)}
    with pytest.raises(ConfigError, match="ended with status 5"):
        measure(SimulatedTester(dut), with_resets(Fails(Dut()), **conditions), tmp_path, "reset")
    resets, tester = SimulatedDevice(Dut()), SimulatedTester(dut)
    with ResumedJournal.open(tmp_path) as recorded:
        summary = resume(tester, with_resets(resets, **conditions), recorded, Log())
    assert (len(tester.trials), resets.started, summary.points[0].finished) == (2, 2, 2)
    with ResumedJournal.open(tmp_path) as recorded:
        again = resume(
            SimulatedTester(dut), with_resets(resets := SimulatedDevice(Dut()), **conditions), recorded, Log()
        )
    assert (resets.started, again.points) == (0, summary.points)


def test_an_interruption_ends_the_command(tmp_path: Path) -> None:
    resets = SimulatedDevice(Dut())
    with pytest.raises(KeyboardInterrupt):
        measure(Interrupted(), with_resets(resets), tmp_path, "reset")
    assert (resets.started, resets.finished, resets.killed) == (1, 0, 1)
