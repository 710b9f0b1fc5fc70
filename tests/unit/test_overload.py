# SPDX-License-Identifier: Apache-2.0
"""Overload scalability (RFC 8219 10.2.1): from one flow to many, by the standard's formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import QUICK, dutperf
from dutperf.cli.commands.overload import flow_numbers
from dutperf.journal import JOURNAL
from dutperf.model import LEFT_AND_RIGHT, Load
from dutperf.report.html import REPORT
from dutperf.results import overload
from dutperf.results.comparison import Figure
from dutperf.results.overload import degradations, table
from dutperf.results.summary import SUMMARY, Summary
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure, plan


def measured(out: Path, flows: int | None, dut: SimulatedDut, name: str = "throughput", **conditions: Any) -> Summary:
    return measure(SimulatedTester(dut), plan(100_000, flows=flows, repetitions=1, **conditions), out, name)


def test_a_lower_throughput_of_many_flows_is_a_degradation(tmp_path: Path) -> None:
    one, ten, hundred = (
        measured(tmp_path / str(flows), flows, SimulatedDut(capacity_fps=fps), resolution=Rate.parse("20"))
        for flows, fps in ((1, 40_000), (10, 44_000), (100, 30_000))
    )
    found = {each.flows: each for each in degradations([one, ten, hundred])}
    assert found[10].percent == pytest.approx(-10, abs=0.2)
    assert found[100].percent == pytest.approx(25, abs=0.2)
    assert {each.figure for each in found.values()} == {"throughput_fps"}
    shown = table(list(found.values()))
    assert shown is not None
    assert [row[-1][0] for row in shown.rows] == ["-", "+"]


@pytest.mark.parametrize(("one", "many", "worse"), [(-1, 2, None), (2, -1, None), (-1, -2, 100), (1, 2, 100)])
def test_figures_of_different_signs_have_no_share(one: float, many: float, worse: float | None) -> None:
    """An IPDV has a sign: -200 % would say nothing."""
    figures = (Figure(median=value, values=(value,)) for value in (one, many))
    assert overload._percent(*figures, rises=True) == worse


def test_higher_losses_and_delays_of_many_flows_are_degradations(tmp_path: Path) -> None:
    rates = {"rates": (Rate.parse("20k"), Rate.parse("40k"))}
    one, many = (
        measured(tmp_path / str(flows), flows, SimulatedDut(capacity_fps=fps), "frame-loss", **rates)
        for flows, fps in ((1, 36_000), (5, 32_000))
    )
    found = [each for each in degradations([one, many]) if each.figure.endswith("loss_ratio.worst")]
    assert [each.load.value for each in found if each.load is not None] == [40_000, 20_000]
    assert [each.percent for each in found] == [pytest.approx(100, abs=0.1), None]
    shown = table(found)
    assert shown is not None
    assert shown.rows[1][-1] == "undefined"
    delays = {"rate": Rate.parse("10k"), "tags": 100, "tag_after_s": 1}
    slow = [
        measured(tmp_path / f"delay{flows}", flows, SimulatedDut(delay_us=us), "latency", **delays)
        for flows, us in ((1, 10.0), (5, 15.0))
    ]
    assert [each.percent for each in degradations(slow) if each.figure.endswith("TL")] == [pytest.approx(50, abs=1)] * 2


def test_losses_of_flows_that_begin_one_after_the_other_are_those_of_other_rates_too(tmp_path: Path) -> None:
    """A DUT that does not tell flows apart: fewer of the frames are lost, as some were sent more slowly."""
    rates = {"rates": (Rate.parse("40k"),), "flows_apart_s": 0.1}
    one, many = (
        measured(tmp_path / str(flows), flows, SimulatedDut(capacity_fps=20_000), "frame-loss", **rates)
        for flows in (1, 4)
    )
    found = [each for each in degradations([one, many]) if "loss_ratio" in each.figure]
    assert [each.percent for each in found] == [None] * len(found) != []
    throughputs = [
        measured(tmp_path / f"t{flows}", flows, SimulatedDut(capacity_fps=20_000), flows_apart_s=0.1)
        for flows in (1, 4)
    ]
    assert [each.percent for each in degradations(throughputs)] == [pytest.approx(0, abs=1)]


@pytest.mark.parametrize("name", ["latency", "pdv", "back-to-back", "recovery", "reset", "load-latency"])
def test_what_is_measured_at_the_throughput_of_each_number_of_flows_is_compared(name: str, tmp_path: Path) -> None:
    """Of the larger frames no throughput was found with many flows."""
    during: dict[str, Any] = {"outage_s": (1.2, 1.6)} if name == "reset" else {"recovery_s": 0.5}
    dut = SimulatedDut(capacity_fps=20_000, queue_frames=100, delay_us=50.0, **during)
    own: dict[str, dict[str, Any]] = {
        "latency": {"tags": 100, "tag_after_s": 1},
        "back-to-back": {"max_rate": Rate.parse("30k"), "max_burst_s": 0.1},
        "recovery": {"overload_s": 1},
        "reset": {"reset_after_s": 1},
        "load-latency": {"loads": (50, 100)},
    }
    chosen = {"duration_s": 4, **own.get(name, {})}
    one = measured(
        tmp_path / "1", 1, dut, name, throughput_from={84: 20_000, 128: 9_000}, frame_sizes=(84, 128), **chosen
    )
    many = measured(tmp_path / "9", 9, dut, name, throughput_from={84: 19_000}, frame_sizes=(84,), **chosen)
    found = degradations([one, many])
    assert {each.case for each in found} == {many.points[0].case}
    assert all(each.of_all is not None for each in found)
    loads = {(each.load, each.share_percent) for each in found}
    assert loads == (
        {(Load.fps(10_000), 50.0), (Load.fps(20_000), 100.0)} if name == "load-latency" else {(None, None)}
    )


@pytest.mark.parametrize(
    "conditions",
    [
        ({"flows": None}, {"flows": 9}),
        ({"flows": 2}, {"flows": 9}),
        ({"flows": 1}, {"flows": 1}),
        ({"flows": 1, "networks": 4}, {"flows": 9}),
    ],
    ids=["ports by frame are no single flow", "no single flow", "one flow twice", "other conditions"],
)
def test_what_differs_by_more_than_its_flows_has_no_share(tmp_path: Path, conditions: tuple[Any, Any]) -> None:
    dut = SimulatedDut(capacity_fps=30_000)
    found = [measured(tmp_path / str(n), dut=dut, **given) for n, given in enumerate(conditions)]
    assert degradations(found) == ()
    assert table(()) is None


def test_nothing_that_passes_has_no_share(tmp_path: Path) -> None:
    one = measured(tmp_path / "1", 1, SimulatedDut(capacity_fps=30_000))
    nothing = measured(tmp_path / "9", 9, SimulatedDut(dead_directions=frozenset(LEFT_AND_RIGHT)))
    [found] = degradations([one, nothing])
    assert found.of_one == pytest.approx(30_000, rel=0.02)
    assert (found.of_all, found.percent) == (None, None)


def test_flows_that_begin_one_after_the_other_are_told_with_their_interval(tmp_path: Path) -> None:
    dut = SimulatedDut(capacity_fps=30_000)
    one, many = (measured(tmp_path / str(flows), flows, dut, flows_apart_s=0.5) for flows in (1, 5))
    [found] = degradations([one, many])
    assert (found.flows, found.apart_s) == (5, 0.5)
    assert found.percent == pytest.approx(0, abs=1)
    shown = table([found])
    assert shown is not None
    assert shown.title.startswith("overload scalability (RFC 8219 10.2.2)")
    assert shown.rows[0][shown.heads.index("T, s")] == "0.5"


@pytest.mark.usefixtures("real_reports")
@pytest.mark.parametrize(
    ("apart", "clause", "lasts_ms"), [((), "10.2.1", 10), (("--flows-apart", "0.01"), "10.2.2", 10 + 7 * 10)]
)
def test_the_command_measures_each_procedure_with_one_flow_and_with_many(
    config: Path, tmp_path: Path, apart: tuple[str, ...], clause: str, lasts_ms: int
) -> None:
    """A trial is longer by the time in which flows still begin."""
    out = tmp_path / "out"
    given = (*QUICK, "--repetitions", "1", "--max-rate", "8000", "--resolution", "500", "--intermediate")
    named = ("overload", "throughput", "frame-loss", "--flows", "8")
    shown = dutperf(*named, "--config", config, *given, *apart, "--out", out)
    assert shown.exit_code == 0, shown.output
    assert f"overload scalability (RFC 8219 {clause})" in shown.stdout
    measured = json.loads((out / SUMMARY).read_text())["measurements"]
    assert [one["procedure"] for one in measured] == ["throughput", "frame-loss"] * 5
    assert [one["summary"]["conditions"]["flows"] for one in measured[::2]] == [1, 2, 4, 6, 8]
    assert "Overload scalability" in (out / REPORT).read_text()
    [of_all] = out.glob("throughput-flows8*")
    planned = json.loads((of_all / JOURNAL).read_text().splitlines()[0])
    assert planned["cases"][0]["first_trial"]["duration_ns"] == lasts_ms * 1_000_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("soak",), "soak is none of overload's procedures: throughput, "),
        (("throughput", "--tags", "500"), "--tags: has no effect on throughput"),
        (("throughput", "--flows", "1"), "'--flows': give one number from 2 to 1,000,000, not 1"),
        (("throughput", "--flows", "10,20"), "give one number from 2 to 1,000,000, not 10,20: it is"),
    ],
)
def test_the_command_refuses_what_would_do_nothing(config: Path, arguments: tuple[str, ...], words: str) -> None:
    shown = dutperf("overload", *arguments, "--config", config)
    assert shown.exit_code == 2
    assert words in " ".join(shown.output.replace("│", "").split())


def test_quarters_of_the_flows_are_each_measured_once() -> None:
    assert flow_numbers(1000, intermediate=True) == (1, 250, 500, 750, 1000)
    assert flow_numbers(3, intermediate=True) == (1, 2, 3)
    assert flow_numbers(1000, intermediate=False) == (1, 1000)


@pytest.mark.usefixtures("real_reports")
def test_a_suite_tells_it_in_every_form(config: Path, tmp_path: Path) -> None:
    given = (*QUICK, "--flows", "1,10", "--repetitions", "1", "--max-rate", "8000", "--resolution", "500")
    out = tmp_path / "out"
    shown = dutperf("throughput", "--config", config, *given, "--out", out)
    assert shown.exit_code == 0
    assert "overload scalability (RFC 8219 10.2.1)" in shown.stdout
    [found] = json.loads((out / SUMMARY).read_text())["overload"]
    assert (found["flows"], found["of_one"], found["percent"]) == (10, 8000, None), "the range of the search ended"
    assert "<h3>Overload scalability</h3>" in (out / REPORT).read_text()
    assert json.loads((out / "throughput-flows1" / SUMMARY).read_text())["conditions"]["flows"] == 1
