# SPDX-License-Identifier: Apache-2.0
"""Two definitions of latency on DUTs that delay some frames: RFC 2544's single tagged frame hits or
misses them, RFC 8219's many frames see them each time.

The case of Lencse, Kovács and Shima ("Gaming with the Throughput and the Latency Benchmarking
Measurement Procedures of RFC 2544", IJATES2 9(2), 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from dutperf.cli import condition_options
from dutperf.journal import Finding
from dutperf.model import Load, TrialResult
from dutperf.procedures import latency
from dutperf.procedures.bench import MakeTrial, Place, Plan
from dutperf.procedures.delays import DelaysPoint
from dutperf.procedures.latency import Latency
from dutperf.procedures.trial_action import TrialAction
from dutperf.results.points import Recorded
from dutperf.run.campaign import PlanError
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure, plan

GAMING = SimulatedDut(delay_us=100, slow_every=10, slow_us=1e6)
"""Every tenth frame takes a second."""
RUNS = 100
RATE = Rate.parse("1k")
CONFORMING: dict[str, Any] = {
    "rate": RATE,
    "duration_s": 120,
    "drain_s": 2,
    "tag_after_s": 60,
    "repetitions": 20,
    "directions": "forward",
}


@dataclass
class MemoryBench:
    """A procedure's bench (dutperf.procedures.bench.Bench) that keeps the journal in memory:
    hundreds of runs take seconds."""

    what: Plan
    tester: SimulatedTester
    events: list[Finding] = field(default_factory=list)

    def measure(self, _load: Load, _place: Place, make: MakeTrial, _action: TrialAction | None = None) -> TrialResult:
        return self.tester.run(make(len(self.tester.trials)))

    def record(self, finding: Finding, place: Place) -> None:
        self.events.append(finding.model_copy(update={"case": place.case.key(), "repetition": place.repetition}))

    def say(self, note: str, place: Place) -> None:
        """Nobody listens."""


def run_of(seed: int, **conditions: Any) -> DelaysPoint:
    """One whole latency measurement with that seed."""
    what = plan(**CONFORMING | conditions)
    bench = MemoryBench(what, SimulatedTester(GAMING, seed=seed))
    procedure = latency.latency(what)
    assert procedure.run(bench) is None
    return latency.point(
        Recorded(what.traffic.cases()[0], procedure.description()["cases"][0], bench.events, what.conditions)
    )


@pytest.mark.long
def test_rfc_2544s_latency_is_a_matter_of_chance() -> None:
    """A run of 20 trials meets no slow frame in 0.9^20 = 12 % of all cases; then its mean is 0.1
    ms, else at least 50 ms."""
    points = [run_of(seed, definition="rfc2544") for seed in range(RUNS)]
    means = [point.forward["latency"].mean for point in points]
    missed = [mean for mean in means if mean < 1]
    assert 3 <= len(missed) <= 25
    assert max(means) / min(means) > 100
    assert fmean(means) == pytest.approx(100, rel=0.25)
    for point, mean in zip(points, means, strict=True):
        figures = point.forward["latency"]
        assert mean == pytest.approx(fmean(figures.values))
        assert figures.median == median(figures.values)
        assert (figures.p1, figures.p99) == (min(figures.values), max(figures.values))
    pairs = [max(pair) / min(pair) for pair in zip(means[::2], means[1::2], strict=True)]
    assert sum(ratio > 100 for ratio in pairs) >= 3


def test_rfc_8219s_latency_shows_them_in_every_run() -> None:
    for seed in range(RUNS):
        figures = run_of(seed, tags=500).forward
        assert figures["TL"].median == pytest.approx(0.1)
        assert figures["WCL"].median == pytest.approx(1000.1)
        assert min(figures["WCL"].values) == pytest.approx(1000.1)
        assert figures["TL"].mean is None


def test_one_frame_is_tagged_after_60_seconds() -> None:
    what = plan(**CONFORMING, definition="rfc2544")
    tester = SimulatedTester()
    latency.latency(what).run(MemoryBench(what, tester))
    assert {
        (trial.tagged.count, trial.tagged.after_ns, trial.duration_ns) for trial in tester.trials if trial.tagged
    } == {(1, 60 * 10**9, 120 * 10**9)}
    assert len(tester.trials) == 20


def test_the_summary_says_which_definition(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(), plan(**CONFORMING, definition="rfc2544"), tmp_path / "mean", "latency")
    [point] = summary.points
    assert "RFC 1242 3.8" in point.latency_is
    remarks = list(point.remarks())
    assert remarks[0].startswith(": after 20 repetitions the median latency lies within forward")
    assert any("store-and-forward" in remark for remark in remarks)
    said = {deviation.clause: deviation.text for deviation in summary.deviations}
    assert "RFC 2544 section 26.2" not in said
    assert "one tagged frame a trial" in said["RFC 8219 section 7.2"]
    other = measure(SimulatedTester(), plan(**CONFORMING, tags=500), tmp_path / "many", "latency")
    assert {"RFC 2544 section 26.2", "RFC 8219 section 7.2"}.isdisjoint(
        {deviation.clause for deviation in other.deviations}
    )


@pytest.mark.parametrize(("tag_after", "tagged_s"), [({"tag_after_s": 2}, 2), ({}, 5)])
def test_a_quick_run_deviates(tag_after: dict[str, Any], tagged_s: float, tmp_path: Path) -> None:
    """Where it does not say when to tag, it tags halfway."""
    quick = {"duration_s": 10, "repetitions": 3} | tag_after
    conforming = {name: value for name, value in CONFORMING.items() if name != "tag_after_s"}
    summary = measure(SimulatedTester(), plan(**conforming | quick, definition="rfc2544"), tmp_path, "latency")
    [text] = [deviation.text for deviation in summary.deviations if deviation.clause == "RFC 2544 section 26.2"]
    assert (
        text
        == f"3 repetitions, fewer than 20; trials of 10 s, shorter than 120 s; frames are tagged from {tagged_s} s,"
        " not from 60 s"
    )


def test_a_lost_tagged_frame_counts_and_is_said(tmp_path: Path) -> None:
    """As the longest latency it could have had: from its tag to the end of receiving."""
    tester = SimulatedTester(
        SimulatedDut(loss_ratio=0.6)
    )  # more than half of all frames: the simulation loses the same share of the tagged ones
    summary = measure(tester, plan(**CONFORMING, definition="rfc2544"), tmp_path, "latency")
    [point] = summary.points
    assert point.forward["latency"].mean == pytest.approx(62_000)
    assert point.stamped_lost == 20
    assert any(remark.startswith(": 20 stamped frames were lost") for remark in point.remarks())


def test_more_than_one_tag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        measure(SimulatedTester(), plan(**CONFORMING, definition="rfc2544", tags=500), tmp_path, "latency")
    assert caught.value.option == "tags"


@pytest.mark.parametrize(
    ("chosen", "tags"),
    [({}, 50_000), ({"definition": "rfc2544"}, 1), ({"tags": 7}, 7), ({"definition": "rfc2544", "tags": 7}, 7)],
)
def test_how_many_frames_are_tagged_without_being_told(chosen: dict[str, Any], tags: int) -> None:
    [made] = condition_options.chosen(Latency, {"tags": None} | chosen)
    assert made.tags == tags
    assert Latency.model_validate(made.model_dump(mode="json")) == made
