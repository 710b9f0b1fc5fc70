# SPDX-License-Identifier: Apache-2.0
"""``dutperf run PLAN.yaml``: several procedures over frame sizes, mixes of native traffic and numbers of networks, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli import log, options, plan_file
from dutperf.cli.errors import reported
from dutperf.cli.measure import measure_all, tell
from dutperf.cli.watch import Watchers
from dutperf.results import fresh_directory
from dutperf.testbench import bench

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="Set-up, procedures and their options; see docs/plans.md.")]


def run(
    plan: PlanFile,
    out: options.Out = None,
    as_json: options.Json = False,
    log_format: options.LogFormat = "text",
    metrics_port: options.MetricsPort = None,
    metrics_address: options.MetricsAddress = None,
    metrics_file: options.MetricsFile = None,
) -> None:
    """Run the procedures of a plan: of each mix the throughput first, then those that are measured at it."""
    with log.form(log_format), reported():
        watchers = Watchers.of(log_format=log_format, metrics_port=metrics_port, metrics_address=metrics_address, metrics_file=metrics_file)
        planned = plan_file.load(plan)
        directory = out or fresh_directory(plan.stem)
        with bench(planned.source, *(conditions for _, conditions in planned.wanted)) as ready:
            result = measure_all(planned.wanted, ready, directory, watchers)
        tell(result, directory, as_json)
