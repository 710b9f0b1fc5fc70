# SPDX-License-Identifier: Apache-2.0
"""What a procedure needs to be one: the example of CONTRIBUTING.md, a file of its own, is measured,
summarised and becomes a command."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from dutperf import procedures
from dutperf.cli.commands import measure
from dutperf.journal import TrialEvent, of_kind, read
from dutperf.model import AAAA_NAMES, FRAME_SIZE
from dutperf.procedures.definition import Definition
from dutperf.results.comparison import figures_of
from dutperf.results.summary import write_summary
from dutperf.run import campaign
from dutperf.setup.conditions import Rate, WithMaximum
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Everything, Log, plan
from plans import measure as measured
from simulated_run import a_plan, a_tester

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def example(tmp_path: Path) -> Iterator[ModuleType]:
    [code] = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL)
    file = tmp_path / "one_rate.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("one_rate", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["one_rate"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["one_rate"]


def test_the_example_finds_the_truth(example: ModuleType, tmp_path: Path) -> None:
    tester, chosen = SimulatedTester(SimulatedDut(capacity_fps=7_500)), {"repetitions": 2, "frame_sizes": (84, 128)}
    summary = campaign.measure(
        example.PROCEDURE, tester, plan(max_rate=Rate.parse("10k"), **chosen), tmp_path / "run", Log()
    )
    assert [(point.case[FRAME_SIZE], point.loss_ratio.values) for point in summary.points] == [
        (84, (0.25, 0.25)),
        (128, (0.25, 0.25)),
    ]
    assert write_summary(tmp_path / "run", example.PROCEDURE) == summary
    assert not summary.without_number()


def test_the_example_knows_the_testers_limit(example: ModuleType, tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=5_000))
    summary = campaign.measure(
        example.PROCEDURE, tester, plan(max_rate=Rate.parse("10k"), repetitions=1), tmp_path / "run", Log()
    )
    assert measure.exit_status(summary) == 3


def test_the_example_is_a_command(example: ModuleType) -> None:
    app = typer.Typer()
    app.command(example.PROCEDURE.name)(measure.command(example.PROCEDURE))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    assert (shown.exit_code, "--max-rate" in shown.stdout, "--min-rate" in shown.stdout) == (0, True, False)


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
def test_definitions(definition: Definition) -> None:
    assert procedures.find(definition.name) is definition
    assert definition.conditions.recorded(definition.conditions().stated()) == definition.conditions()
    assert definition.conditions.__doc__
    assert definition.example


def test_a_journal_states_only_conditions_that_its_procedure_uses() -> None:
    chosen = Everything(max_rate="10k", min_rate="1k", step="5%")
    stated = {name: value for name, value in dict(chosen).items() if value is not None}
    own = {definition.name: definition.conditions.recorded(stated).stated() for definition in procedures.every()}
    assert {"min_rate", "resolution"} <= own["throughput"].keys()
    assert {"min_rate", "resolution"}.isdisjoint(own["frame-loss"])
    assert ("step" in own["frame-loss"], "step" in own["throughput"]) == (True, False)
    with_maximum = {name for name, stated in own.items() if "max_rate" in stated}
    assert with_maximum == {one.name for one in procedures.every() if issubclass(one.conditions, WithMaximum)}
    searches = {"throughput", "establishment-rate", "table-capacity", "address-learning-rate", "broadcast"}
    assert {*searches, "frame-loss", "back-to-back"} <= with_maximum


@pytest.mark.parametrize("name", procedures.NAMES)
def test_frames_that_are_too_long_for_the_tester_end_their_case_alone(name: str, tmp_path: Path) -> None:
    why = "left.port: the MTU of eth1 is 1500"
    planned = a_plan(name)
    cases = planned.traffic.cases()
    axis = FRAME_SIZE if FRAME_SIZE in cases[0] else AAAA_NAMES
    first, other = cases[0][axis], cases[-1][axis]
    planned = replace(
        planned,
        conditions=planned.conditions.model_copy(update={"repetitions": 1}),
        too_long=lambda case: why if case[axis] == first else None,
    )
    summary = measured(a_tester([], name), planned, tmp_path, name)
    for point in summary.points:
        assert (why in point.message) is (point.case[axis] == first), point
    assert {point.finished > 0 for point in summary.points if point.case[axis] == first} == {False}
    values = {event.case[axis.name] for event in of_kind(read(tmp_path), TrialEvent)}
    assert values == {other} != {first}
    text = "\n".join(map(str, summary.deviations))
    assert "0 repetitions" not in text


@pytest.mark.parametrize("name", ["latency", "pdv", "ipdv", "load-latency", "ramp", "reset", "back-to-back"])
def test_a_dut_that_dies_between_repetitions_has_no_figure(name: str, tmp_path: Path) -> None:
    """Whatever it did before: else it would be judged by the repetitions in which it lived."""
    planned = a_plan(name)
    dut = SimulatedDut(capacity_fps=60_000, outage_s=(1.2, 1.3) if name == "reset" else None)
    assert all(point.has_number for point in measured(SimulatedTester(dut), planned, tmp_path / "alive", name).points)
    trials = [event.repetition for event in of_kind(read(tmp_path / "alive"), TrialEvent)]
    dying = SimulatedTester(replace(dut, dies_after_trials=trials.index(max(trials))))
    for point in measured(dying, planned, tmp_path / "dying", name).points:
        assert not point.has_number
        assert "forwards nothing" in point.message
        assert not any(figure.median is not None for _, figure in figures_of(point))
