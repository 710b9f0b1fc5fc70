# SPDX-License-Identifier: Apache-2.0
"""Results beside each other: what is called a difference and how often wrongly, what cannot be
compared, and conditions that fail."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import Result

import command_line
import documented
import simulated_run
from dutperf import procedures
from dutperf.api import results
from dutperf.journal import JOURNAL
from dutperf.model import FRAME_SIZE, Case, Load, Trial, TrialResult
from dutperf.procedures.load_latency import LONE_FPS
from dutperf.report import junit
from dutperf.results import comparison, gate, tables
from dutperf.results.comparison import Compared, Comparison, Figure, Results, Row, Verdict, compare
from dutperf.results.gate import Condition, GateError, Outcome
from dutperf.setup.conditions import Rate
from dutperf.statistics import ranks
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import journal_lines, measure, plan

SPREAD = 0.01
"""Standard deviation of the capacity from trial to trial; throughputs then have a dispersion of
about 2 %, as software gateways do."""
REPETITIONS = 10
PAIRS = 120
"""Of runs. Fewer show the rates less exactly."""
SOME_OR_ALL = pytest.mark.parametrize("count", [40, pytest.param(PAIRS, marks=pytest.mark.truth)])


class WanderingTester:
    """A simulated DUT whose capacity is another one in each trial."""

    def __init__(self, capacity_fps: float, seed: int, **dut: Any) -> None:
        self._tester = SimulatedTester(SimulatedDut(capacity_fps=capacity_fps, **dut), seed=seed)
        self._capacity_fps = capacity_fps
        self._random = np.random.default_rng([11, seed])

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self._tester.dut = replace(
            self._tester.dut, capacity_fps=self._capacity_fps * (1 + self._random.normal(0, SPREAD))
        )
        return self._tester.run(trial, on_progress)

    def wait_until_quiet(self, limit_s: float) -> float:
        return self._tester.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        return {"tester": "simulated"}

    def close(self) -> None:
        """Nothing to release."""


def wandering(directory: Path, capacity_fps: float, chance: int, **conditions: Any) -> Path:
    """A throughput with trials of a second, known to 0.5 % of its rate, as searches end."""
    search = {
        name: Rate.parse(text) for name, text in (("resolution", "200"), ("initial_rate", "30k"), ("max_rate", "80k"))
    }
    measure(
        WanderingTester(capacity_fps, chance),
        plan(**{"repetitions": REPETITIONS, "duration_s": 1, **search} | conditions),
        directory,
    )
    return directory


def read(directory: Path) -> Results:
    return Results(str(directory), results.read(directory).measured)


def compared(base: Path, *others: Path, **options: Any) -> Comparison:
    return compare(read(base), [read(other) for other in others], **options)


def rows(*directories: Path) -> list[Row]:
    return [row for one in compared(*directories).compared for row in one.rows]


def dutperf(*arguments: str | Path) -> Result:
    """On a terminal that is wide enough."""
    return command_line.dutperf(*arguments, columns=250)


# --- error rates ----------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Comparison]]:
    """Makes pairs of runs, the second of a DUT with that share of the first one's capacity."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it is not the disk's safety that is tested

    def of(share: float, count: int = PAIRS, **conditions: Any) -> list[Comparison]:
        random = np.random.default_rng([3, round(share * 1000)])
        capacities_fps = random.uniform(35_000, 55_000, count)
        made = tmp_path / str(share)
        return [
            compared(
                wandering(made / f"a{seed}", fps, seed, **conditions),
                wandering(made / f"b{seed}", share * fps, seed + PAIRS, **conditions),
            )
            for seed, fps in enumerate(capacities_fps)
        ]

    return of


def verdicts(comparisons: list[Comparison]) -> list[Verdict]:
    return [one.compared[0].rows[0].verdict for one in comparisons]


def failures(comparisons: list[Comparison], condition: str) -> int:
    return sum(
        checked.outcome is Outcome.FAILED
        for one in comparisons
        for checked in gate.check([Condition.parse(condition)], one)
    )


@pytest.mark.long
@SOME_OR_ALL
def test_a_difference_of_5_percent_is_found_and_between_runs_of_the_same_dut_there_is_none(
    count: int, pairs: Callable[..., list[Comparison]]
) -> None:
    """At the stated rates: alpha for a difference where there is none, and 95 % of those of 5 %
    found."""
    same, slower = verdicts(pairs(1.0, count)), verdicts(pairs(0.95, count))
    assert count - same.count(Verdict.NO_DIFFERENCE) <= comparison.ALPHA * count
    assert slower.count(Verdict.LOWER) >= 0.95 * count


@pytest.mark.long
@pytest.mark.parametrize(
    ("resolution", "repetitions"),
    [*(pytest.param(fine, 10, marks=pytest.mark.truth) for fine in ("20", "50")), ("100", 6)],
)
def test_searches_finer_than_the_dut_scatters_make_no_differences(
    resolution: str, repetitions: int, pairs: Callable[..., list[Comparison]]
) -> None:
    """Repetitions are independent, so that ranks alone err as rarely as they say: the margin, a
    resolution, is small beside the scatter here."""
    made = pairs(1.0, 60, resolution=Rate.parse(resolution), repetitions=repetitions)
    found = verdicts(made)
    by_ranks = [
        ranks.tails(row.base.values, row.other.values).two_sided <= comparison.ALPHA
        for one in made
        for row in one.compared[0].rows
    ]  # type: ignore[union-attr]
    assert found.count(Verdict.NOT_JUDGED) == 0
    assert len(made) - found.count(Verdict.NO_DIFFERENCE) <= comparison.ALPHA * len(made)
    assert sum(by_ranks) <= 2 * comparison.ALPHA * len(made)  # of 60, more than 6 are seen in one of 25 where 3 are due


@pytest.mark.long
def test_a_difference_is_found_by_searches_finer_than_the_dut_scatters(pairs: Callable[..., list[Comparison]]) -> None:
    assert verdicts(pairs(0.95, 30, resolution=Rate.parse("20"))).count(Verdict.LOWER) >= 0.95 * 30


@pytest.mark.long
@SOME_OR_ALL
def test_a_condition_does_not_flap(count: int, pairs: Callable[..., list[Comparison]]) -> None:
    """Where the DUT has lost just as much as it may, a condition fails in a share alpha at most."""
    at_limit = pairs(0.97, count)
    assert failures(at_limit, "throughput_fps < -3%") <= comparison.ALPHA * count
    assert failures(at_limit, "throughput_fps > +1%") == 0
    assert failures(at_limit, "throughput_fps < -1%") >= 0.9 * count


@pytest.mark.long
def test_delays_are_compared_as_they_are(tmp_path: Path) -> None:
    """Their trials are independent, and end on no grid."""
    different = {1.0: 0, 1.05: 0}
    for factor in different:
        for seed in range(40):
            runs = [tmp_path / f"{factor}-{seed}-{name}" for name in "ab"]
            for number, (directory, delay_us) in enumerate(zip(runs, (100, 100 * factor), strict=True)):
                dut = SimulatedDut(delay_us=delay_us, jitter_us=20)
                chosen = {
                    "rate": Rate.parse("2k"),
                    "tags": 200,
                    "tag_after_s": 0,
                    "duration_s": 1,
                    "repetitions": 8,
                    "directions": "forward",
                }
                measure(SimulatedTester(dut, seed=2 * seed + number), plan(**chosen), directory, "latency")
            [row] = [row for row in rows(*runs) if row.figure == "forward.TL"]
            assert row.margin == 0
            different[factor] += row.verdict is not Verdict.NO_DIFFERENCE
    assert different[1.0] <= 2
    assert different[1.05] >= 38


# --- one pair -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Throughputs of the same DUT, of a slower one, and of others that must not be compared without
    a word."""
    made = tmp_path_factory.mktemp("runs")
    return {
        "base": wandering(made / "base", 40_000, 1),
        "same": wandering(made / "same", 40_000, 2),
        "slower": wandering(made / "slower", 38_000, 3),
        "shorter": wandering(made / "shorter", 40_000, 4, duration_s=0.5, frame_sizes=(84, 128)),
        "few": wandering(made / "few", 30_000, 5, repetitions=3),
        "dead": wandering(made / "dead", 10, 6),
        "beyond": beyond(made / "beyond"),
    }


def beyond(directory: Path) -> Path:
    """Limited by the tester."""
    measure(
        SimulatedTester(limits=SimulatedLimits(send_fps=20_000)),
        plan(repetitions=REPETITIONS, max_rate=Rate.parse("50k")),
        directory,
    )
    return directory


def test_medians_difference_and_interval(runs: dict[str, Path]) -> None:
    [row] = rows(runs["base"], runs["slower"])
    assert row.base is not None
    assert row.other is not None
    assert row.base.median is not None
    assert row.other.median is not None
    points = [results.read(runs[name]).measured[0].summary.points[0] for name in ("base", "slower")]  # type: ignore[union-attr]
    assert [row.base.median, row.other.median] == [point.throughput_fps.median for point in points]  # type: ignore[attr-defined]
    assert row.difference == row.other.median - row.base.median
    assert row.difference_percent == pytest.approx(100 * row.difference / row.base.median)
    assert row.interval is not None
    assert row.interval[0] <= row.difference <= row.interval[1] < 0
    assert row.margin >= 200
    shift = ranks.shift_interval(row.base.values, row.other.values, 0.05)
    assert shift is not None
    assert row.interval == (shift[0] - row.margin, shift[1] + row.margin)
    assert (row.measurement, row.case, row.figure, row.verdict, row.why) == (
        "throughput",
        Case({FRAME_SIZE: 84}),
        "throughput_fps",
        Verdict.LOWER,
        "",
    )


def test_a_run_does_not_differ_from_itself(runs: dict[str, Path]) -> None:
    [row] = rows(runs["base"], runs["base"])
    assert (row.difference, row.p, row.verdict) == (0, 1, Verdict.NO_DIFFERENCE)


def test_a_figure_that_the_search_s_range_limits_says_so(runs: dict[str, Path], tmp_path: Path) -> None:
    other = wandering(tmp_path, 90_000, 2)
    [row] = rows(runs["base"], other)
    assert row.verdict is Verdict.HIGHER
    assert (
        "is limited by the search range, not by the DUT, which may do more"
        in dutperf("compare", runs["base"], other).stdout
    )


def test_rows_are_corrected_for_their_number(runs: dict[str, Path]) -> None:
    alone = rows(runs["base"], runs["slower"])[0].p
    several = rows(runs["base"], runs["slower"], runs["same"], runs["same"])[0].p
    assert alone is not None
    assert several == pytest.approx(3 * alone)


UNJUDGED = [("beyond", "other: limited by the tester"), ("killed", "other: not complete")]


@pytest.fixture
def killed(runs: dict[str, Path], tmp_path: Path) -> Path:
    """Half of the base's run, and a torn line."""
    directory = tmp_path / "killed"
    directory.mkdir()
    whole = (runs["base"] / JOURNAL).read_bytes()
    (directory / JOURNAL).write_bytes(whole[: len(whole) // 2])
    return directory


@pytest.mark.parametrize(("name", "why"), UNJUDGED)
def test_what_says_nothing_about_the_dut_is_shown_and_not_judged(
    name: str, why: str, runs: dict[str, Path], killed: Path
) -> None:
    directory = {**runs, "killed": killed}[name]
    [row] = rows(runs["base"], directory)
    assert (row.verdict, row.why, row.p, row.interval) == (Verdict.NOT_JUDGED, why, None, None)
    assert row.difference is not None
    result = dutperf("compare", runs["base"], directory, "--fail-if", "throughput_fps < -3%")
    assert result.exit_code == 3
    assert (
        f"throughput_fps < -3%: not judged: throughput, 84 bytes, throughput_fps of {directory}: {why}" in result.stdout
    )


def test_a_campaign_that_was_killed_says_so_everywhere(runs: dict[str, Path], killed: Path) -> None:
    said = "not complete: it was killed or could not write after"
    assert f"throughput is {said}" in dutperf("show", killed).stdout
    assert dutperf("report", killed).exit_code == 0
    assert said in (killed / "report.html").read_text()
    for form in ("text", "markdown", "json"):
        assert f"throughput of {killed}: {said}" in dutperf("compare", runs["base"], killed, "--format", form).stdout
    assert f"resume with: dutperf resume {killed}" in dutperf("show", killed).stdout
    for form, suffix in (("markdown", "md"), ("latex", "tex")):
        assert dutperf("export", killed, "--format", form, "--out", killed / "export").exit_code == 0
        assert said in (killed / "export" / f"throughput.{suffix}").read_text()


def test_a_campaign_killed_before_its_first_result_is_no_basis_either(runs: dict[str, Path], killed: Path) -> None:
    first = (killed / JOURNAL).read_bytes().splitlines(keepends=True)[0]
    (killed / JOURNAL).write_bytes(first)
    for pair in ((runs["base"], killed), (killed, runs["base"])):
        result = dutperf("compare", *pair, "--fail-if", "throughput_fps < -3%")
        assert result.exit_code == 3
        assert "not measured" in result.output


# --- conditions of the measurements ---------------------------------------------------------------


def test_what_was_measured_otherwise_is_named(runs: dict[str, Path]) -> None:
    [one] = compared(runs["base"], runs["shorter"]).compared
    said = {
        mismatch.name: (mismatch.base, mismatch.other, mismatch.weight) for mismatch in one.mismatches["throughput"]
    }
    assert said["sending time of a trial, s"] == ("1.0", "0.5", "warned")
    assert said["frame sizes, bytes with FCS"] == ("84", "84, 128", "warned")
    assert said["deviation from RFC 2544 section 24"][0] == "trials of 1 s, shorter than 60 s"
    assert [row.why for row in one.rows] == ["", "base has no figure: 128 bytes: not measured"]
    shown = dutperf("compare", runs["base"], runs["shorter"])
    assert shown.exit_code == 0
    assert "warning: different conditions: sending time of a trial, s: 1.0 against 0.5" in shown.stdout


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"loss_tolerance": 0.01}, "loss ratio goal per direction"),
        ({"directions": "forward"}, "directions that send"),
        ({"frame_timeout_ms": 50, "drain_s": 1}, "frame timeout, ms"),
        ({"foreground": "2:1"}, "foreground traffic n:m, the rest is native IPv6"),
        ({"repetitions": 9}, "repetitions asked for"),
    ],
)
def test_each_condition_that_differs_is_a_reason_to_be_strict(
    change: dict[str, Any], name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    other = wandering(tmp_path, 40_000, 2, **change)
    [one] = compared(runs["base"], other).compared
    assert name in [mismatch.name for mismatch in one.mismatches["throughput"] if mismatch.weight == "warned"]
    result = dutperf("compare", runs["base"], other, "--strict")
    assert result.exit_code == 2
    assert "were measured under other conditions: " in result.stderr
    assert name in result.stderr


def test_what_is_compared_may_differ(runs: dict[str, Path], tmp_path: Path) -> None:
    other = wandering(tmp_path / "seed", 40_000, 2, seed=9)
    assert dutperf("compare", runs["base"], other, "--strict").exit_code == 0
    assert "random seed: 0 against 9" in dutperf("compare", runs["base"], other).stdout


def edited(source: Path, directory: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """The same run, if its journal had said something else."""
    events = journal_lines(source)
    change(events)
    directory.mkdir()
    (directory / JOURNAL).write_text("".join(json.dumps(event) + "\n" for event in events))
    return directory


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("dutperf",), "0.0.9", "dutperf"),
        (("source",), {"lab": "kernel-ipv4", "lab_options": {"rate": "5"}}, "set-up lab options rate"),
        (("config",), {"left": {"port": "af_packet:other"}}, "set-up left port"),
        (("dut",), {"name": "simulated", "version": "2"}, "dut version"),
    ],
)
def test_versions_labs_and_set_ups_are_looked_at(
    path: tuple[str, ...], value: Any, name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    other = edited(runs["base"], tmp_path / "other", lambda events: events[0].update({path[0]: value}))
    [one] = compared(runs["base"], other).compared
    assert name in [mismatch.name for mismatch in one.mismatches["throughput"]]


@pytest.mark.parametrize("listed", [False, True])
def test_a_lab_s_namespace_is_another_one_each_time(runs: dict[str, Path], tmp_path: Path, listed: bool) -> None:
    def config(name: str) -> Path:
        link = {"overhead": 20, "passed": f"ip netns exec {name} true"}
        change = {
            "config": {
                "engine": {"netns": name, "dut_netns": name},
                "dut": {"control": name},
                "between": [link] if listed else link,
            },
            "dut": {"name": "lab", "control": name},
        }
        return edited(runs["base"], tmp_path / name, lambda events: events[0].update(change))

    [one] = compared(config("a"), config("b")).compared
    assert one.mismatches["throughput"] == ()


def subtract(events: list[dict[str, Any]]) -> None:
    events[0]["conditions"].update(subtract_calibration=True)
    for frame in events[0]["cases"]:
        frame["subtracted"] = {"delay_ms": 0.001, "frame_size": 84, "date": "2026-01-01"}


def test_figures_that_mean_something_else_are_not_compared(tmp_path: Path, runs: dict[str, Path]) -> None:
    options: dict[str, Any] = {"rate": Rate.parse("5k"), "tag_after_s": 0, "duration_s": 1}
    for name, change in (("rfc8219", {"tags": 100}), ("rfc2544", {"definition": "rfc2544"})):
        measure(SimulatedTester(), plan(**options, **change), tmp_path / name, "latency")
    calibrated = edited(tmp_path / "rfc8219", tmp_path / "calibrated", subtract)
    for other, why in (
        (tmp_path / "rfc2544", "definition of latency"),
        (calibrated, "the tester's own delay is subtracted from latencies"),
        (runs["base"], "only"),
    ):
        result = dutperf("compare", tmp_path / "rfc8219", other)
        assert result.exit_code == 2
        assert why in result.stderr


# --- conditions that fail -------------------------------------------------------------------------

GATES = [
    pytest.param("slower", "throughput_fps < -3%", 1, id="a loss of five percent"),
    pytest.param("slower", "throughput_fps.median < -1000", 1, id="as exports name it, in its unit"),
    pytest.param("slower", "throughput_fps < -6%", 0, id="more is allowed"),
    pytest.param("slower", "throughput_fps > +3%", 0, id="the other way round"),
    pytest.param("same", "throughput_fps < -3%", 0, id="the same"),
    pytest.param("dead", "throughput_fps < -3%", 1, id="nothing passes any more"),
]


@pytest.mark.parametrize(("other", "condition", "status"), GATES)
def test_conditions(other: str, condition: str, status: int, runs: dict[str, Path]) -> None:
    result = dutperf("compare", runs["base"], runs[other], "--fail-if", condition)
    assert result.exit_code == status, result.output
    assert (
        f"{condition}: {'failed' if status else 'holds'}: throughput, 84 bytes, throughput_fps of {runs[other]}: "
        in result.stdout
    )


BEYOND = [
    pytest.param("> +5%", "misses", "works", 0, id="shorter than beyond what was tried"),
    pytest.param("> +5%", "works", "misses", 1, id="no interval is long enough any more"),
    pytest.param("< -5%", "works", "misses", 0, id="nor is that a shorter one"),
    pytest.param("< -5%", "misses", "works", 1, id="one is long enough now"),
]


@pytest.mark.parametrize(("condition", "base", "other", "status"), BEYOND)
def test_a_missing_value_may_be_beyond_what_was_tried(
    condition: str, base: str, other: str, status: int, tmp_path: Path
) -> None:
    """Of burst intervals: one that no interval is long enough for is longer than any."""
    for name, loss in (("works", 0.0), ("misses", 0.5)):
        chosen = plan(max_rate=Rate.parse("50k"), bursts=(16,), interval_resolution=0.05, duration_s=1)
        measure(SimulatedTester(SimulatedDut(loss_ratio=loss)), chosen, tmp_path / name, "burst-interval")
    asked = ("compare", tmp_path / base, tmp_path / other, "--fail-if", f"interval_us {condition}", "--by-median")
    result = dutperf(*asked)
    assert result.exit_code == status, result.output
    assert "beyond what was tried" in result.stdout


def test_a_condition_that_could_never_fail_is_refused(runs: dict[str, Path]) -> None:
    arguments = ("compare", runs["few"], runs["few"], "--fail-if", "throughput_fps < -3%")
    assert dutperf(*arguments).exit_code == 0  # one in 20 arrangements is just enough
    result = dutperf(*arguments, "--alpha", "0.01")
    assert result.exit_code == 2
    assert "could never fail: measure 5 repetitions each" in result.stderr
    assert dutperf(*arguments, "--alpha", "0.01", "--by-median").exit_code == 0
    assert (
        dutperf(
            "compare", runs["base"], runs["few"], "--alpha", "0.001", "--fail-if", "throughput_fps < -3%", "--by-median"
        ).exit_code
        == 1
    )


def test_what_only_the_base_has_is_not_passed_over(runs: dict[str, Path]) -> None:
    assert dutperf("compare", runs["shorter"], runs["base"], "--fail-if", "throughput_fps < -30%").exit_code == 3
    assert dutperf("compare", runs["base"], runs["shorter"], "--fail-if", "throughput_fps < -30%").exit_code == 0


class Queueing(SimulatedTester):
    """Of a DUT in which frames wait at rates above that of lone frames."""

    waiting_us = 50.0

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        is_lone = trial.forward is not None and trial.forward.rate_fps <= LONE_FPS
        self.dut = SimulatedDut(delay_us=50.0 if is_lone else self.waiting_us)
        return super().run(trial, on_progress)


def test_loads_are_compared_by_their_share_of_each_throughput(tmp_path: Path) -> None:
    for name, throughput_fps, waiting_us in (("base", 2_000, 50.0), ("other", 1_900, 5_000.0)):
        tester = Queueing()
        tester.waiting_us = waiting_us
        chosen = {"throughput_from": {84: throughput_fps}, "loads": (0, 50, 100), "repetitions": 5, "duration_s": 1}
        measure(tester, plan(**chosen, frame_sizes=(84,), directions="forward"), tmp_path / name, "load-latency")
    gated = ("compare", tmp_path / "base", tmp_path / "other", "--fail-if", "loads.delay_us.forward.p50 > +10%")
    done = dutperf(*gated)
    assert done.exit_code == 1, done.output
    assert done.stdout.count("> +10%: failed") == 2
    assert "loads.delay_us.forward.p50 at 50 % of the throughput" in done.stdout
    found = [row for row in rows(tmp_path / "base", tmp_path / "other") if row.figure == "loads.delay_us.forward.p50"]
    assert [(row.at, row.load, row.other and row.other.load) for row in found] == [
        ("0 % of the throughput", Load.fps(LONE_FPS), Load.fps(LONE_FPS)),
        ("50 % of the throughput", Load.fps(1_000), Load.fps(950)),
        ("100 % of the throughput", Load.fps(2_000), Load.fps(1_900)),
    ]


def test_a_load_that_only_one_run_has_is_shown_and_not_judged(tmp_path: Path) -> None:
    both, one = (Rate.parse("10k"), Rate.parse("20k")), (Rate.parse("10k"),)
    for name, listed in (("both", both), ("one", one)):
        chosen = {"rates": listed, "repetitions": 5, "duration_s": 1}
        measure(SimulatedTester(SimulatedDut(capacity_fps=15_000)), plan(**chosen), tmp_path / name, "frame-loss")
    asked = ("--fail-if", "rates.loss_ratio.worst > +0.1")
    done = dutperf("compare", tmp_path / "both", tmp_path / "one", *asked)
    assert done.exit_code == 3, done.output
    assert (
        "not judged: frame-loss, 84 bytes, 20,000 frames/s, rates.loss_ratio.worst: other has no figure" in done.stdout
    )
    assert dutperf("compare", tmp_path / "one", tmp_path / "both", *asked).exit_code == 0
    [last] = [row for row in rows(tmp_path / "one", tmp_path / "both") if row.load == Load.fps(20_000)]
    assert (last.base, last.verdict) == (None, Verdict.NOT_JUDGED)


def test_a_series_of_rates_that_ends_earlier_is_that_of_a_better_dut(tmp_path: Path) -> None:
    for name, capacity_fps in (("worse", 12_000), ("better", 18_000)):
        chosen = {"max_rate": "20k", "repetitions": 5, "duration_s": 1}
        measure(SimulatedTester(SimulatedDut(capacity_fps=capacity_fps)), plan(**chosen), tmp_path / name, "frame-loss")
    asked = ("--fail-if", "rates.loss_ratio.worst > +0.1")
    assert {row.load for row in rows(tmp_path / "worse", tmp_path / "better")} < {
        Load.fps(rate) for rate in range(2_000, 22_000, 2_000)
    }
    assert dutperf("compare", tmp_path / "worse", tmp_path / "better", *asked).exit_code == 0


WRONG = [
    (("--fail-if", "throughput < -3%"), "--fail-if: there is no figure throughput; there are throughput_fps"),
    (
        ("--fail-if", "throughput_fps < 3%"),
        "--fail-if: 'throughput_fps < 3%' is not a condition: give FIGURE < or > and a difference with its sign",
    ),
    (("--fail-if", "throughput_fps = -3%"), "is not a condition"),
    (("--by-median",), "--by-median: has no effect without --fail-if"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_what_cannot_be_is_one_sentence(arguments: tuple[str, ...], said: str, runs: dict[str, Path]) -> None:
    result = dutperf("compare", runs["base"], runs["same"], *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_one_directory_is_too_few(runs: dict[str, Path]) -> None:
    assert "give at least two directories" in dutperf("compare", runs["base"]).stderr


@given(st.text(max_size=12))
def test_any_other_text_is_no_condition(text: str) -> None:
    try:
        condition = Condition.parse(text)
    except GateError:
        return
    assert condition.figure
    assert any(sign in text for sign in "+-")


@given(st.from_regex(r"\A[a-z]+(\.[A-Za-z0-9]+)? ?[<>] ?[+-][0-9]{1,3}(\.[0-9]{1,2})?%?\Z"), st.floats(-1e6, 1e6))
def test_a_condition_s_limit(text: str, value: float) -> None:
    condition = Condition.parse(text)
    assert condition.moved(value) - value == pytest.approx(
        condition.limit * (abs(value) / 100 if condition.is_percent else 1), abs=1e-6
    )


def test_a_share_of_nothing_is_still_nothing() -> None:
    """Loss that was not there before is more than any percentage of it."""
    base, other = (Figure(median=value, values=(value,) * 6) for value in (0.0, 1e-4))
    row = Row(
        measurement="frame-loss",
        case=Case({FRAME_SIZE: 84}),
        load=Load.fps(20_000),
        figure="rates.loss_ratio.worst",
        base=base,
        other=other,
    )
    made = Comparison(alpha=0.05, compared=(Compared(base="a", other="b", mismatches={}, states=(), rows=(row,)),))
    [checked] = gate.check([Condition.parse("rates.loss_ratio.worst > +50%")], made)
    assert checked.outcome is Outcome.FAILED
    assert comparison.percent_of(1e-4, 0.0) is None


# --- every procedure, suites, forms ---------------------------------------------------------------


@pytest.mark.parametrize("name", procedures.NAMES)
def test_every_procedure_has_figures_that_its_exports_have(name: str, tmp_path: Path) -> None:
    dut = SimulatedDut(
        capacity_fps=54_321, addresses=simulated_run.TABLE, outage_s=(1.2, 1.6) if name == "reset" else None
    )
    summary = measure(SimulatedTester(dut), simulated_run.a_plan(name), tmp_path, name)
    exported = {column for record in tables.records(summary) for column in record}
    figures = [(figure, value) for point in summary.points for figure, value in comparison.figures_of(point)]
    assert figures
    assert {f"{figure}.median" for figure, _ in figures} <= exported
    medians = {record[f"{figure}.median"] for record in tables.records(summary) for figure, _ in figures}
    assert {value.median for _, value in figures} <= medians
    shown = dutperf("compare", tmp_path, tmp_path)
    assert shown.exit_code == 0, shown.output
    assert re.search("no difference shown|too few repetitions", shown.stdout)


def test_suites_are_compared_measurement_by_measurement(tmp_path: Path) -> None:
    chosen = documented.a_suite(
        throughput={}, latency={"tags": 50}, frame_loss={"rates": (Rate.parse("20k"), Rate.parse("60k"))}
    )
    first, second = (documented.measure(tmp_path / name, chosen) for name in ("a", "b"))
    [one] = compared(first, second).compared
    figures = {(row.measurement, row.load, row.figure) for row in one.rows}
    assert {
        ("throughput", None, "throughput_fps"),
        ("latency", None, "forward.TL"),
        ("frame-loss", Load.fps(60_000), "rates.loss_ratio.worst"),
    } <= figures
    assert all(row.p == 1 for row in one.rows)
    alone = compared(first / "throughput", second).compared[0]
    assert {row.measurement for row in alone.rows} == {"throughput"}
    assert any("only" in state and "latency" in state for state in alone.states)


def test_json_and_markdown_say_what_the_text_says(runs: dict[str, Path]) -> None:
    arguments = ("compare", runs["base"], runs["slower"], "--fail-if", "throughput_fps < -3%", "--format")
    document = json.loads(dutperf(*arguments, "json").stdout)
    [row] = document["compared"][0]["rows"]
    assert (row["verdict"], document["alpha"], document["conditions"][0]["outcome"]) == ("lower", 0.05, "failed")
    markdown, text = (dutperf(*arguments, form).stdout for form in ("markdown", "text"))
    for said in (
        comparison.digits(row["base"]["median"]),
        comparison.digits(row["difference"], "+"),
        "error rate 0.05 (Holm",
        "lower",
        "-3%: failed",
    ):
        assert said in markdown
        assert said in text


def test_conditions_are_tests_for_a_ci_system(tmp_path: Path) -> None:
    checked = [
        junit.Checked("a < -3%", "b: throughput, <64 bytes>", "holds", "1 against 1"),
        junit.Checked("a < -3%", "b\udcff & c\ufffe", "failed", "0 against 1\x07"),
        junit.Checked("a > +1", "d", "not judged", "limited by the tester"),
    ]
    junit.write(tmp_path / "out.xml", "dutperf compare", checked)
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert suite.attrib == {"name": "dutperf compare", "tests": "3", "failures": "1", "errors": "1"}
    assert [[(found.tag, found.get("message")) for found in case] for case in suite] == [
        [],
        [("failure", "0 against 1�")],
        [("error", "limited by the tester")],
    ]
    assert [case.get("classname") for case in suite] == ["b: throughput, <64 bytes>", "b� & c�", "d"]
    first, second = (measure(SimulatedTester(), plan(max_rate="10k"), tmp_path / name).points for name in ("a", "b"))
    assert first == second
    file = tmp_path / "gate.xml"
    asked = ("compare", tmp_path / "a", tmp_path / "b", "--fail-if", "throughput_fps < -50%", "--alpha", "0.1")
    done = dutperf(*asked, "--junit", file)
    assert done.exit_code == 0, done.output
    assert ElementTree.parse(file).getroot().get("failures") == "0"


@pytest.mark.parametrize(
    ("number", "other", "verdict"),
    [
        (3, 5_000.0, Verdict.TOO_FEW),
        (4, 5_000.0, Verdict.LOWER),
        (4, 50_000.0, Verdict.NO_DIFFERENCE),
        (1, 50_000.0, Verdict.TOO_FEW),
    ],
)
def test_samples_that_cannot_show_a_difference_are_called_too_few(number: int, other: float, verdict: Verdict) -> None:
    """Three against three never have a p below 0.1, however far they are apart."""
    base, another = (
        Figure(median=value, values=tuple(value + n for n in range(number))) for value in (50_000.0, other)
    )
    row = Row(measurement="throughput", case=Case({}), load=None, figure="throughput_fps", base=base, other=another)
    p = row.tails().two_sided
    assert comparison._judged(row.model_copy(update={"p": p}), iter([p]), comparison.ALPHA, 1).verdict is verdict


@pytest.mark.parametrize(("repetitions", "verdict"), [(5, Verdict.TOO_FEW), (6, Verdict.HIGHER)])
def test_repetitions_that_show_a_difference_in_one_row_may_be_too_few_for_all(
    repetitions: int, verdict: Verdict, tmp_path: Path
) -> None:
    """Five against five have a p of 2/252 at least, which Holm's correction multiplies by the eight rows."""
    listed = tuple(Rate.parse(f"{thousands}k") for thousands in range(41, 49))
    for name, capacity_fps in (("base", 40_000), ("half", 20_000)):
        tester = SimulatedTester(SimulatedDut(capacity_fps=capacity_fps, queue_frames=0))
        chosen = plan(rates=listed, repetitions=repetitions, duration_s=1)
        measure(tester, chosen, tmp_path / name, "frame-loss")
    assert [row.verdict for row in rows(tmp_path / "base", tmp_path / "half")] == [verdict] * 8
