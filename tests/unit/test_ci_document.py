# SPDX-License-Identifier: Apache-2.0
"""The pipeline in docs/ci.md is one: its YAML is read, its commands have options that there are,
its plan can be planned, its conditions name figures."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

import documented
from dutperf.cli import app, plan_file
from dutperf.results.gate import Condition

DOCUMENT = Path(__file__).parents[2] / "docs" / "ci.md"
WORKFLOW, PLAN = (part.split("```")[0] for part in DOCUMENT.read_text().split("```yaml\n")[1:])


def steps() -> list[dict[str, Any]]:
    document = yaml.safe_load(WORKFLOW)
    [job] = document["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def commands() -> list[list[str]]:
    """What its steps have dutperf do."""
    lines = [shlex.split(line) for step in steps() for line in step.get("run", "").splitlines()]
    starts = [(line, [word == "dutperf" or word.endswith("dutperf)") for word in line]) for line in lines]
    return [
        line[found.index(True) + 1 : line.index(">>") if ">>" in line else None]
        for line, found in starts
        if True in found
    ]


def test_it_measures_and_compares() -> None:
    assert [words[0] for words in commands()] == ["run", "compare"]
    assert all(("uses" in step) != ("run" in step) for step in steps())


@pytest.mark.parametrize("words", commands(), ids=lambda words: words[0])
def test_its_commands_have_options_that_there_are(words: list[str]) -> None:
    group = typer.main.get_command(app)
    context = group.make_context("dutperf", list(words))
    name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])  # type: ignore[attr-defined]
    command.make_context(name, rest, parent=context)
    with pytest.raises(Exception, match="No such option"):
        command.make_context(name, [*rest, "--none-such"], parent=context)


def test_its_plan_is_one(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    assert [definition.name for definition, _ in plan_file.load(path).wanted] == ["throughput", "latency"]
    assert PLAN.splitlines()[0].removeprefix("# ") in commands()[0]


def test_its_conditions_name_figures_of_its_procedures(tmp_path: Path) -> None:
    directory = documented.measure(
        tmp_path / "suite", documented.a_suite(throughput={"repetitions": 10}, latency={"repetitions": 10})
    )
    conditions = [word for word in commands()[1] if "<" in word or ">" in word]
    assert len([Condition.parse(one) for one in conditions]) == 2
    result = CliRunner().invoke(
        app, ["compare", str(directory), str(directory), *(word for one in conditions for word in ("--fail-if", one))]
    )
    assert result.exit_code in (0, 3), result.output  # 2 is a name that there is not
