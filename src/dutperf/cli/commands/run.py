# SPDX-License-Identifier: Apache-2.0
"""``dutperf run PLAN.yaml``: several procedures over frame sizes, traffic mixes and numbers of networks,
in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.api.results import fresh_directory
from dutperf.cli import options, plan_file
from dutperf.cli.commands.measure import measure_all, show_result
from dutperf.cli.output.watch import Watchers, watched
from dutperf.run.testbench import bench

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN.yaml", help="Test setup, procedures and their options; see docs/plans.md.")
]


LabOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option", metavar="KEY=VALUE", help="Instead of, or beside, those of the plan's lab-options; repeatable."
    ),
]


@watched
def run(
    plan: PlanFile,
    lab_option: LabOption = None,
    out: options.Out = None,
    as_json: options.Json = False,
    *,
    watchers: Watchers,
) -> None:
    """Run the procedures of a plan: for each traffic mix the throughput first, then the procedures that
    need it."""
    planned = plan_file.load(plan)
    source = planned.source.with_lab_options(options.lab_options(lab_option))
    directory = out or fresh_directory(plan.stem)
    with bench(source, *(conditions for _, conditions in planned.wanted)) as ready:
        result = measure_all(planned.wanted, ready, directory, watchers)
    show_result(result, directory, as_json)
