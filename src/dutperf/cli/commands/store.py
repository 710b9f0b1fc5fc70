# SPDX-License-Identifier: Apache-2.0
"""``dutperf store``: keeps result directories in a database, and finds them again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dutperf import store as stores
from dutperf.cli import completion, options
from dutperf.cli.errors import reported, say
from dutperf.cli.help_screen import command_of, group
from dutperf.cli.output import console, terminal
from dutperf.exit_status import WRONG_USAGE
from dutperf.results.measured import moment
from dutperf.results.tables import Table
from dutperf.spelling import count_of
from dutperf.store import Entry, Store

app = group("store", no_args_is_help=True, help="Keep results in a database, and find them again.")

StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        envvar="DUTPERF_STORE",
        help="The store. Default: ~/.local/share/dutperf/store.sqlite.",
    ),
]
Dut = Annotated[str | None, typer.Option("--dut", metavar="TEXT", help="A part of the DUT's name or version.")]
Procedure = Annotated[
    str | None, typer.Option("--procedure", metavar="NAME", help="Measurements by this procedure only.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="Measurements from this time on: 2026-11, 2026-11-25T12.")
]
Series = Annotated[
    str | None,
    typer.Option("--series", metavar="NAME", help="Measurements of this series, or whose name begins like this."),
]


def opened(file: Path | None, *, create: bool = False) -> Store:
    return Store(file or stores.usual_file(), create=create)


@command_of(app, "add")
def add(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR…",
            autocompletion=completion.results_directories,
            help="Directories of runs, suites, or folders of them.",
        ),
    ],
    store: StoreFile = None,
) -> None:
    """Add results, or read them again. The directories stay where they are, and stay the truth."""
    missed = list[str]()
    with reported(), opened(store, create=True) as kept:
        for directory in directories:
            added, unreadable = kept.add(directory)
            terminal.line(f"{directory}: {count_of(len(added), 'measurement')}")
            missed += unreadable
    _end_with(missed)


@command_of(app, "list")
def list_(
    store: StoreFile = None,
    dut: Dut = None,
    procedure: Procedure = None,
    since: Since = None,
    series: Series = None,
    as_json: options.Json = False,
) -> None:
    """List measurements: when, of which DUT, where. Those of one series can be compared over time."""
    with reported(), opened(store) as kept:
        found = kept.find(dut, procedure, since, series)
        if as_json:
            typer.echo(json.dumps([asdict(one) for one in found]))
            return
        if not found:
            say(
                "no measurement of the store is like that"
                if kept.find(newest=1)
                else "the store has no measurements yet"
            )
            return
        terminal.output().print(console.table(_table(found)))


@command_of(app, "rebuild")
def rebuild(store: StoreFile = None) -> None:
    """Read all directories again, and remove the measurements of those that are gone. Those of directories that cannot
    be read stay as they are."""
    with reported(), opened(store) as kept:
        number, gone, unreadable = kept.rebuild()
        for directory in gone:
            terminal.line(f"{directory} has no results any more: removed")
        terminal.line(f"{number} measurements")
    _end_with(unreadable)


def _end_with(unreadable: list[str]) -> None:
    """Say what could not be read, and end with a status that is not success."""
    for sentence in unreadable:
        say(sentence)
    if unreadable:
        raise typer.Exit(WRONG_USAGE)


def _table(found: list[Entry]) -> Table:
    heads = ("started", "procedure", "DUT", "series", "directory")
    rows = tuple(
        (
            *(moment(one.started).removesuffix(" UTC"), one.procedure, f"{one.dut} {one.dut_version}".strip()),
            *(one.series, one.directory + ("" if one.complete else " (not complete)")),
        )
        for one in found
    )
    return Table(f"{len(found)} measurements", heads, rows)
