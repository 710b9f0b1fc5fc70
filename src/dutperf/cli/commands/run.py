# SPDX-License-Identifier: Apache-2.0
"""``dutperf run PLAN.yaml``: several procedures over frame sizes, mixes of native traffic and
numbers of networks, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.api.results import fresh_directory
from dutperf.cli import options, plan_file
from dutperf.cli.commands.measure import measure_all, tell
from dutperf.cli.output.watch import Watchers, watched
from dutperf.run.testbench import bench

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN.yaml", help="Set-up, procedures and their options; see docs/plans.md.")
]


@watched
def run(plan: PlanFile, out: options.Out = None, as_json: options.Json = False, *, watchers: Watchers) -> None:
    """Run the procedures of a plan: of each mix the throughput first, then those that are measured
    at it."""
    planned = plan_file.load(plan)
    directory = out or fresh_directory(plan.stem)
    with bench(planned.source, *(conditions for _, conditions in planned.wanted)) as ready:
        result = measure_all(planned.wanted, ready, directory, watchers)
    tell(result, directory, as_json)
