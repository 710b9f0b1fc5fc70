# SPDX-License-Identifier: Apache-2.0
"""``dutperf export DIR``: the tables as files for other programs or documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from dutperf.api import results
from dutperf.cli.errors import reported
from dutperf.cli.options import Directory, directory_of
from dutperf.report import export as files
from dutperf.results import tables
from dutperf.results.measured import Measured
from dutperf.results.tables import Table
from dutperf.setup.configuration import ConfigError

EXPORT = "export"
FORMATS = {
    "csv": files.Format.CSV,
    "parquet": files.Format.PARQUET,
    "latex": files.Format.LATEX,
    "markdown": files.Format.MARKDOWN,
}

Form = Annotated[
    Literal["csv", "parquet", "latex", "markdown"],
    typer.Option(
        "--format",
        help="csv, parquet: every figure; latex, markdown: the table as shown.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", parser=directory_of, help="Directory for the files. Default: DIR/export."),
]
Trials = Annotated[bool, typer.Option("--trials", help="Export every trial instead of the results; csv or parquet.")]

Streams = Annotated[
    bool, typer.Option("--streams", help="Export the results by stream, if a direction has several; any format.")
]


def export(
    directory: Directory, form: Form = "csv", trials: Trials = False, streams: Streams = False, out: Out = None
) -> None:
    """Export the tables of a run or a suite, for other programs.

    One file for each measurement: DIR/export/NAME.csv, .parquet, .tex or .md.
    """
    with reported():
        chosen = FORMATS[form]
        if trials and chosen in files.TABLES:
            raise ConfigError(f"trials are exported as csv or parquet, not as {form}", "--format")
        if trials and streams:
            raise ConfigError("export either the trials or the results by stream", "--streams")
        measured = [one for one in results.read(directory).measured if one.summary is not None]
        if not measured:
            raise ConfigError("there is nothing to export: nothing has been measured yet", "")
        if streams:
            measured = [one for one in measured if one.summary is not None and one.summary.streams]
            if not measured:
                raise ConfigError("there are no results by stream: no direction has several streams", "--streams")
        of = "-trials" if trials else "-streams" if streams else ""
        for one in measured:
            path = (out or directory / EXPORT) / f"{one.name}{of}.{chosen}"
            files.write(path, _streams(one, chosen) if streams else _content(one, chosen, trials))
            typer.echo(str(path))


def _content(one: Measured, form: files.Format, trials: bool) -> bytes:
    assert one.summary is not None, "only measurements with a summary are exported"
    if form in files.TABLES:
        return files.TABLES[form](_with_state(tables.results(one.summary), one))
    return files.RECORDS[form](one.records(of_trials=trials))


def _streams(one: Measured, form: files.Format) -> bytes:
    assert one.summary is not None, "only measurements with a summary are exported"
    table = tables.by_stream(one.summary)
    assert table is not None, "only measurements with several streams are exported so"
    if form in files.TABLES:
        return files.TABLES[form](_with_state(table, one))
    return files.RECORDS[form](one.stream_records())


def _with_state(table: Table, one: Measured) -> Table:
    """A table that says so where the measurement is not complete."""
    state = one.state()
    return table if state is None else replace(table, title=f"{table.title} ({state})")
