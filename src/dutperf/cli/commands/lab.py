# SPDX-License-Identifier: Apache-2.0
"""``dutperf lab``: DUTs in network namespaces of this machine, for manual tests."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Annotated

import typer
from rich.table import Table

from dutperf import lab
from dutperf.cli import completion, options
from dutperf.cli.errors import reported, say
from dutperf.cli.help_screen import command_of, group
from dutperf.cli.output import terminal
from dutperf.exit_status import NO_NUMBER

app = group("lab", no_args_is_help=True, help="DUTs in network namespaces of this machine.")
Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.labs, help="See dutperf lab list.")]


@command_of(app, "list")
def list_labs() -> None:
    """List the labs."""
    _print(("lab", "description"), [(info.name, info.summary) for info in lab.list_labs()])
    say("options of a lab: dutperf lab show NAME")


@command_of(app, "show")
def show_lab(name: Name) -> None:
    """Describe a lab and its options."""
    with reported():
        info = lab.describe(name)
        terminal.line(f"{info.name}: {info.summary}")
        _print(("option (--lab-option KEY=VALUE)", "description"), list(info.options.items()))


def _print(columns: Sequence[str], rows: Sequence[tuple[str, str]]) -> None:
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    terminal.output().print(table)


@command_of(app, "up")
def up(name: Name, lab_option: options.LabOptions = None) -> None:
    """Bring a lab up until dutperf lab down; prints the path of its configuration file."""
    with reported():
        others = lab.standing(name)
        path = lab.up(name, options.lab_options(lab_option))
        end = f"take it down with: dutperf lab down {name}"
        if others:
            files = ", or ".join(f"--config {quote(str(other))}" for other in others)
            say(f"another lab {name} is up already: measure it with {files}")
            end = f"take all of them down with: dutperf lab down {name}"
        say(f"lab {name} is up; measure it with --config {quote(str(path))}; {end}")
        typer.echo(path)


@command_of(app, "down")
def down(name: Name) -> None:
    """Take down every lab of that name."""
    with reported():
        if not lab.down(name):
            say(f"lab {name} was not up")
            raise typer.Exit(NO_NUMBER)
