# SPDX-License-Identifier: Apache-2.0
"""``dutperf run PLAN.yaml``: several procedures over frame sizes, traffic mixes and numbers of networks,
in one command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf import journal
from dutperf.cli import options, plan_file
from dutperf.cli.commands.measure import measure_all, show_result
from dutperf.cli.commands.resume import resume_and_show
from dutperf.cli.errors import say
from dutperf.cli.output.watch import Watchers, watched
from dutperf.journal import PlanEvent, WriteError, held, is_being_written, not_written, of_kind
from dutperf.run import suite
from dutperf.run.earlier_runs import fresh_directory
from dutperf.run.suite import PLAN, SUITE, has_begun
from dutperf.run.testbench import Source, bench
from dutperf.setup.configuration import ConfigError

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="Test setup, procedures and their options.")]


LabOption = Annotated[
    list[str] | None,
    typer.Option("--lab-option", metavar="KEY=VALUE", help="Beside or instead of the plan's lab-options; repeatable."),
]


OrResume = Annotated[
    bool,
    typer.Option(
        "--or-resume",
        help="If --out has this plan's run, resume or show it.",
    ),
]


@watched
def run(
    plan: PlanFile,
    lab_option: LabOption = None,
    out: options.Out = None,
    or_resume: OrResume = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    *,
    watchers: Watchers,
) -> None:
    """Run the procedures of a plan.

    For each traffic mix the throughput is first, then the procedures that need it.
    """
    planned = plan_file.load(plan)
    source = planned.source.with_lab_options(options.lab_options(lab_option))
    directory = out or fresh_directory(plan.stem)
    with _kept(plan, out) if or_resume else nullcontext():
        if or_resume and _has_begun(directory):
            _check_lab_options(directory, source)
            resume_and_show(directory, source.file, as_json, verbose, watchers)
        conditions = [one for _, one in planned.wanted]
        with watchers.told(directory), bench(source, *conditions, say=say) as ready:
            result = measure_all(planned.wanted, ready, directory, watchers)
            status = show_result(result, directory, as_json, verbose)
        raise typer.Exit(status)


@contextmanager
def _kept(plan: Path, out: Path | None) -> Iterator[None]:
    """Within, the plan is in the directory of its run, and its lock is held: a job that is started twice at once
    measures once. Raises BeingWritten: another process measures there. Raises ConfigError: another plan's run is there,
    or it cannot be written."""
    if out is None:
        raise ConfigError("needs --out: the directory of the run", "--or-resume")
    kept, wanted = out / PLAN, plan.read_bytes()
    other = ConfigError(f"{out} has the run of another plan, or of this one before it was changed", "--or-resume")
    if not kept.exists() and _has_begun(out):
        resume = f"dutperf resume {shlex.quote(str(out))}"
        raise ConfigError(f"the run in {out} was begun without it, so its plan is not kept: {resume}", "--or-resume")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with held(kept, create=True):
            if kept.read_bytes() != wanted:
                if _has_begun(out):
                    raise other
                kept.write_bytes(wanted)
            yield
    except OSError as error:
        if error.filename is None or Path(error.filename) not in (out, kept):
            raise
        if isinstance(full := not_written(kept, error), WriteError):
            raise full from None
        raise ConfigError(f"cannot write {kept}: {error.strerror}", "--out") from None


def _check_lab_options(directory: Path, source: Source) -> None:
    """Raises ConfigError: the run in ``directory`` has a lab with other options."""
    recorded = suite.read(directory)[0].get("source", {}) if (directory / SUITE).exists() else _source_of(directory)
    if source.lab is not None and recorded.get("lab_options", {}) != dict(source.lab_options):
        raise ConfigError(f"{directory} has a run with other options of the lab", "--lab-option")


def _source_of(directory: Path) -> Mapping[str, Any]:
    plan = next(of_kind(journal.read(directory), PlanEvent), None)
    return {} if plan is None else plan.source


def _has_begun(directory: Path) -> bool:
    return (directory / SUITE).exists() or is_being_written(directory) or has_begun(directory)
