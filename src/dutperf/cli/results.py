# SPDX-License-Identifier: Apache-2.0
"""Reads what is in the directory of a run or a suite, finished or not; and writes the report beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dutperf import campaign, journal, suite
from dutperf.campaign import Summary
from dutperf.journal import JOURNAL, JournalError
from dutperf.report import export, html
from dutperf.report.html import REPORT
from dutperf.report.measured import Measured
from dutperf.report.summary import summarise
from dutperf.suite import SUITE, Measurement, Part, SuiteSummary

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Where a run, or a suite of them, has its results.")]
NOT_YET = "not measured yet"


@dataclass(frozen=True)
class Results:
    """What there is at one moment."""

    summary: Summary | SuiteSummary
    measured: tuple[Measured, ...]
    """In order; of a run, the only one."""

    @property
    def is_complete(self) -> bool:
        """Whether everything came to its end, or was found to be impossible."""
        return all(one.is_complete if one.events else one.note != NOT_YET for one in self.measured)

    @property
    def is_under_way(self) -> bool:
        """Whether a process writes one of the journals."""
        return any(one.under_way for one in self.measured)


def read(directory: Path) -> Results:
    """The results in ``directory``, from its journals; nothing is written.

    Raises:
        JournalError: there are none, or they cannot be read.
    """
    return _suite(directory) if (directory / SUITE).exists() else _run(directory)


def write_report(directory: Path) -> Path:
    """Make ``directory/report.html``, and say where it is.

    Raises:
        JournalError: there are no results, or they cannot be read.
        WriteError: it cannot be written.
    """
    path = directory / REPORT
    export.write(path, html.page(read(directory).measured).encode())
    return path


def _run(directory: Path) -> Results:
    under_way = journal.is_being_written(directory)  # asked first: one that ends meanwhile is not taken for a killed one
    events = journal.read(directory)
    plan = journal.plan_of(events, directory / JOURNAL)
    definition = campaign.definition_of(plan)
    summary = summarise(events, definition.point)
    return Results(summary, (Measured(definition.name, summary, events, under_way=under_way),))


def _suite(directory: Path) -> Results:
    _, measurements = suite.read(directory)
    notes = suite.notes(directory)
    measured = tuple(_part(one, directory / one.name, notes.get(one.name)) for one in measurements)
    parts = tuple(
        Part(name=one.name, procedure=measurement.definition.name, note=one.note, summary=one.summary)
        for one, measurement in zip(measured, measurements, strict=True)
    )
    return Results(SuiteSummary(measurements=parts), measured)


def _part(one: Measurement, directory: Path, note: str | None) -> Measured:
    if not (directory / JOURNAL).exists():
        return Measured(one.name, None, note=note or NOT_YET)
    try:
        [measured] = _run(directory).measured
    except JournalError as error:
        return Measured(one.name, None, note=str(error))
    return Measured(one.name, measured.summary, measured.events, note, measured.under_way)
