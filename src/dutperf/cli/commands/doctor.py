# SPDX-License-Identifier: Apache-2.0
"""``dutperf doctor``: what this machine has for measuring, what is missing, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dutperf.cli.calling import as_called
from dutperf.cli.errors import reported, say
from dutperf.cli.output import terminal
from dutperf.cli.output.steps import Yes, carry_out
from dutperf.engine.client import EngineCommand, engine_version
from dutperf.lab.definition import PROGRAMS
from dutperf.machine.doctor import Finding, Machine, examine, repairs
from dutperf.setup.configuration import ConfigError

_STYLE = {"ok": "green", "note": "yellow", "missing": "red"}


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Reserve huge pages, mount hugetlbfs, load vfio-pci; shows how to undo.",
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Check this machine: what is missing for measuring, what to do.

    --fix shows and then makes the changes that need no reboot. It does not change the kernel's
    command line (isolcpus, intel_iommu): the advice names those options.
    """
    with reported():
        if yes and not fix:
            raise ConfigError("has no effect without --fix", "--yes")
        machine = this_machine()
        terminal.output().print(as_table(examine(machine)))
        steps = repairs(machine) if fix else []
        if fix and not steps:
            say("nothing is missing that --fix could change")
        carry_out(machine, steps, yes=yes)


def this_machine() -> Machine:
    """This machine, with the engine that commands find and the programs that most labs start."""
    return Machine(
        find_engine=lambda: EngineCommand.find().program,
        engine_version=engine_version,
        lab_programs={**PROGRAMS, "tayga": "tayga"},
    )


def as_table(findings: list[Finding]) -> Table:
    """One row for each finding, with advice and what --fix does about it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        style = _STYLE[finding.state]
        below = (finding.advice, finding.repair and f"--fix: {finding.repair}")
        table.add_row(
            f"[{style}]{finding.state}[/]",
            finding.topic,
            "\n".join([escape(finding.text), *(f"[italic]{escape(as_called(one))}[/]" for one in below if one)]),
        )
    return table
