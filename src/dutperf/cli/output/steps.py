# SPDX-License-Identifier: Apache-2.0
"""Changes of the machine: shown, agreed to, carried out, and how each is undone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dutperf.cli.errors import say
from dutperf.cli.output import console
from dutperf.exit_status import NO_NUMBER
from dutperf.machine.access import Machine, MachineError
from dutperf.machine.steps import Step, check_root

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def carry_out(machine: Machine, steps: Sequence[Step], *, yes: bool) -> None:
    """Show the steps, ask, do them. Ends the command where the answer is no.

    Raises:
        MachineError: no root; nobody to ask; a step that failed, those before it are done then.
    """
    if not steps:
        return
    for step in steps:
        say("\n".join([f"{step.what}:", *(f"    {action}" for action in step.actions)]))
    check_root(machine)
    if not yes:
        _ask()
    for step in steps:
        step.do(machine)
        console.line(f"done: {step.what}\nundo: {step.undo}")
    say("all of this lasts until the machine starts again")


def on_terminal() -> bool:
    """Whether somebody can answer."""
    return sys.stdin.isatty()


def _ask() -> None:
    if not on_terminal():
        raise MachineError("nobody is here to be asked: give --yes to do this without asking")
    if not typer.confirm("Do this?", err=True):
        say("nothing was changed")
        raise typer.Exit(NO_NUMBER)
