# SPDX-License-Identifier: Apache-2.0
"""``dutperf fleet``: jobs on several testbeds, by Buildbot or Slurm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from dutperf import installation
from dutperf.cli import plan_file
from dutperf.cli.errors import reported, say
from dutperf.cli.help_screen import command_of, group
from dutperf.cli.output import terminal
from dutperf.fleet import (
    CHANGES_PORT,
    SUBMIT,
    Fleet,
    FleetError,
    buildbot_files,
    divided,
    fresh_passwords,
    keep_plan,
    slurm_file,
    write,
)

app = group("fleet", no_args_is_help=True, help="Run jobs on several testbeds.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory for the files; a new one.")]
Testbeds = Annotated[
    list[str],
    typer.Option("--testbed", metavar="NAME", help="A testbed, and the name of its lease; repeatable."),
]
Host = Annotated[str, typer.Option("--master", metavar="HOST", help="Where the testbeds find the master.")]
Command = Annotated[str, typer.Option("--command", metavar="FILE", help="The command line on the testbeds.")]
Scheduler = Annotated[Literal["buildbot", "slurm"], typer.Option("--scheduler", help="Which one to make files for.")]
Master = Annotated[Path, typer.Argument(metavar="DIR", help="Directory that dutperf fleet init made.")]
Jobs = Annotated[list[Path], typer.Argument(metavar="PLAN.yaml…", help="Plans: those of dutperf plan split.")]
Buildbot = Annotated[str, typer.Option("--buildbot", metavar="FILE", help="Buildbot's program on this host.")]


@command_of(app, "init")
def init(
    directory: Directory,
    testbed: Testbeds,
    scheduler: Scheduler = "buildbot",
    master: Host = "127.0.0.1",
    command: Command = "dutperf",
) -> None:
    """Write what the scheduler needs: of Buildbot the master's and each worker's directory, of Slurm a batch script."""
    with reported():
        fleet = Fleet(tuple(testbed), master, command)
        if scheduler == "slurm":
            write(directory, {"job.sbatch": slurm_file(fleet)})
            say(f"submit a job: sbatch --nodelist TESTBED {quote(str(directory))}/job.sbatch PLAN.yaml RESULTS")
            return
        write(directory, buildbot_files(fleet, fresh_passwords(testbed)))
        place = quote(str(directory))
        terminal.line(f"buildbot create-master --relocatable {place}/master && buildbot start {place}/master")
        for name in testbed:
            terminal.line(
                f"on testbed {name}, with a copy of {directory}/worker-{name}: buildbot-worker start worker-{name}"
            )
        say(f"submit jobs: dutperf fleet submit {place} PLAN.yaml…")


@command_of(app, "submit")
def submit(
    directory: Master,
    jobs: Jobs,
    testbed: Annotated[
        list[str] | None, typer.Option("--testbed", metavar="NAME", help="Only on these; default: on all in turn.")
    ] = None,
    buildbot: Buildbot = "buildbot",
) -> None:
    """Submit jobs to the master on this host. Each gets one testbed, and stays there."""
    with reported():
        passwords = _passwords(directory)
        known = sorted(passwords.keys() - {SUBMIT})
        if unknown := [name for name in testbed or () if name not in known]:
            raise FleetError(f"{directory} has no testbed {unknown[0]}: there are {', '.join(known)}")
        for job in jobs:
            plan_file.load(job)
        names = [job.stem for job in jobs]
        if len(set(names)) < len(names):
            raise FleetError("two jobs have the same name: their results would be in the same directory")
        for job in jobs:
            keep_plan(directory, job)
        for job, name in divided(jobs, testbed or known):
            _send(buildbot, passwords[SUBMIT], job, name)
            terminal.line(f"{job.stem}: {name}")


def _passwords(directory: Path) -> dict[str, str]:
    try:
        return dict(json.loads((directory / "master" / "passwords.json").read_text()))
    except (OSError, ValueError) as error:
        raise FleetError(f"{directory} is no directory of dutperf fleet init: {error}") from None


def _send(buildbot: str, password: str, job: Path, testbed: str) -> None:
    """The password goes by standard input, for which Buildbot asks where there is no terminal: everybody can read
    command lines."""
    argv = [buildbot, "sendchange", "--master", f"127.0.0.1:{CHANGES_PORT}", "--auth", "submit"]
    argv += ["--who", "dutperf", "--branch", testbed, "--comments", f"job {job.stem}"]
    argv += ["--property", f"job:{job.stem}", job.name]
    try:
        done = subprocess.run(
            argv, input=f"{password}\n", start_new_session=True, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise FleetError(
            f"{buildbot} cannot be started: {error.strerror} ({installation.library('buildbot', 'fleet')})"
        ) from None
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise FleetError(f"the master did not take {job.stem}: {lines[-1] if lines else 'no reason'}")
