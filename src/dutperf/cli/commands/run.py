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
from dutperf.cli.commands.resume import resume_and_show
from dutperf.cli.output.watch import Watchers, watched
from dutperf.journal import is_being_written
from dutperf.run.suite import PLAN, SUITE, has_begun
from dutperf.run.testbench import bench
from dutperf.setup.configuration import ConfigError

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN.yaml", help="Test setup, procedures and their options; see docs/plans.md.")
]


LabOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option", metavar="KEY=VALUE", help="Instead of, or beside, those of the plan's lab-options; repeatable."
    ),
]


OrResume = Annotated[
    bool,
    typer.Option(
        "--or-resume",
        help=(
            "If DIR of --out has this plan's run, resume it, or show it if it is complete: a job that can be started"
            " any number of times."
        ),
    ),
]


@watched
def run(
    plan: PlanFile,
    lab_option: LabOption = None,
    out: options.Out = None,
    or_resume: OrResume = False,
    as_json: options.Json = False,
    *,
    watchers: Watchers,
) -> None:
    """Run the procedures of a plan: for each traffic mix the throughput first, then the procedures that
    need it."""
    planned = plan_file.load(plan)
    source = planned.source.with_lab_options(options.lab_options(lab_option))
    directory = out or fresh_directory(plan.stem)
    if or_resume and _has_begun(directory, plan, out):
        resume_and_show(directory, None, as_json, watchers)
    with bench(source, *(conditions for _, conditions in planned.wanted)) as ready:
        if or_resume:
            _keep(plan, directory)
        result = measure_all(planned.wanted, ready, directory, watchers)
    show_result(result, directory, as_json)


def _has_begun(directory: Path, plan: Path, out: Path | None) -> bool:
    """Whether the plan's run is in ``directory``.

    Raises:
        ConfigError: another plan's is.
    """
    if out is None:
        raise ConfigError("needs --out: the directory of the run", "--or-resume")
    if not ((directory / SUITE).exists() or is_being_written(directory) or has_begun(directory)):
        return False
    kept = directory / PLAN
    if not kept.exists() or kept.read_bytes() != plan.read_bytes():
        raise ConfigError(
            f"{directory} has the run of another plan, or of this one before it was changed", "--or-resume"
        )
    return True


def _keep(plan: Path, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / PLAN).write_bytes(plan.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot write {directory / PLAN}: {error.strerror}", "--out") from None
