# SPDX-License-Identifier: Apache-2.0
"""Changes of the machine: show the steps, ask for consent, carry them out, show how to undo each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dutperf.cli.errors import say
from dutperf.cli.output import terminal
from dutperf.exit_status import NO_NUMBER
from dutperf.machine.access import Machine, MachineError
from dutperf.machine.steps import Step, check_root

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def carry_out(machine: Machine, steps: Sequence[Step], *, yes: bool) -> None:
    """Show the steps, ask, carry them out. Ends the command if the answer is no. Raises MachineError: no root; no
    terminal to ask on; a step failed, after those before it were carried out."""
    if not steps:
        return
    for step in steps:
        say("\n".join([f"{step.what}:", *(f"    {action}" for action in step.actions)]))
    check_root(machine)
    if not yes:
        _ask()
    for step in steps:
        step.do(machine)
        terminal.line(f"done: {step.what}\nundo: {step.undo}")
    say("these changes last until the next reboot")


def on_terminal() -> bool:
    """Whether a person can answer."""
    return sys.stdin.isatty()


def _ask() -> None:
    if not on_terminal():
        raise MachineError("there is no terminal to ask on: give --yes to do this without asking")
    if not typer.confirm("Do this?", err=True):
        say("nothing was changed")
        raise typer.Exit(NO_NUMBER)
