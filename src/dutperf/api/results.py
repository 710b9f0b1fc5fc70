# SPDX-License-Identifier: Apache-2.0
"""The results in the directory of a run or a suite, finished or not, as objects, rows and data frames;
and the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dutperf import journal, procedures
from dutperf.errors import require
from dutperf.journal import JOURNAL, JournalError
from dutperf.report import export, html
from dutperf.report.html import REPORT
from dutperf.results import tables
from dutperf.results.measured import Measured
from dutperf.results.summary import summarise
from dutperf.results.tables import Record
from dutperf.run import campaign, suite
from dutperf.run.campaign import Summary
from dutperf.run.suite import SUITE, Measurement, Part, SuiteSummary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

NOT_YET = "not measured yet"


@dataclass(frozen=True, repr=False)
class Results:
    """The results at one moment. ``results["latency"]`` is the measurement of that name (the folder in a
    suite, else the procedure); ``"latency" in results`` says whether it exists. Iteration yields the
    measurements in their order."""

    directory: Path
    """Directory of the journals."""
    summary: Summary | SuiteSummary
    """Content of ``summary.json``; of a suite, the summaries of its parts."""
    measured: tuple[Measured, ...]
    """The measurements in order; a run has one."""

    def __getitem__(self, name: str) -> Measured:
        """Raises KeyError if there is no measurement of that name."""
        for one in self.measured:
            if one.name == name:
                return one
        raise KeyError(f"no measurement is called {name}; there are {', '.join(one.name for one in self.measured)}")

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.measured)

    def __len__(self) -> int:
        return len(self.measured)

    def __contains__(self, name: object) -> bool:
        return any(one.name == name for one in self.measured)

    @property
    def can_be_resumed(self) -> bool:
        """Whether something is left to be measured, and nobody measures it."""
        chosen = all(one.plan.procedure in procedures.NAMES for one in self.measured if one.events)
        return chosen and not (self.is_complete or self.is_under_way)

    def __repr__(self) -> str:
        return f"Results({str(self.directory)!r}: {', '.join(map(repr, self.measured))})"

    def _repr_html_(self) -> str:
        """The tables of all measurements, for a notebook."""
        return "".join(html.table_of(one) for one in self.measured)

    @property
    def is_complete(self) -> bool:
        """Whether every measurement has finished, or was impossible."""
        return all(
            one.is_complete if one.events else not one.unreadable and one.note != NOT_YET for one in self.measured
        )

    @property
    def is_under_way(self) -> bool:
        """Whether a process writes one of the journals."""
        return any(one.under_way for one in self.measured)

    def rows(self, *, trials: bool = False) -> list[Record]:
        """The figures of all measurements, with the names and units of ``dutperf export``: a row
        for each point, or of ``trials`` each trial.

        Rates are frames/s per direction. Figures that a measurement does not have are None.
        """
        return tables.uniform([record for one in self.measured for record in one.records(of_trials=trials)])

    def to_arrow(self, *, trials: bool = False) -> pyarrow.Table:
        """The :meth:`rows` as a table of PyArrow, as ``dutperf export --format parquet`` writes
        them."""
        return export.arrow(self.rows(trials=trials))

    def to_pandas(self, *, trials: bool = False) -> pandas.DataFrame:
        """The :meth:`rows` as a data frame of pandas.

        Raises:
            MissingLibrary: pandas or pyarrow is not installed (``dutperf[pandas]``).
        """
        require("pandas", "pandas", "to_pandas()")
        return self.to_arrow(trials=trials).to_pandas()

    def to_polars(self, *, trials: bool = False) -> polars.DataFrame:
        """The :meth:`rows` as a data frame of Polars.

        Raises:
            MissingLibrary: Polars or pyarrow is not installed (``dutperf[polars]``).
        """
        require("polars", "polars", "to_polars()")
        import polars

        frame = polars.from_arrow(self.to_arrow(trials=trials))
        assert isinstance(frame, polars.DataFrame), "a table becomes a frame"
        return frame

    def write_report(self) -> Path:
        """Write ``report.html`` into the directory; returns its path.

        Raises:
            WriteError: it cannot be written.
        """
        path = self.directory / REPORT
        export.write(path, html.page(self.measured).encode())
        return path


def read(directory: Path) -> Results:
    """The results in ``directory``, from its journals; nothing is written.

    Raises:
        JournalError: there are none, or they cannot be read.
    """
    return _suite(directory) if (directory / SUITE).exists() else _run(directory)


def write_report(directory: Path) -> Path:
    """Write ``directory/report.html``; returns its path.

    Raises:
        JournalError: there are no results, or they cannot be read.
        WriteError: it cannot be written.
    """
    return read(directory).write_report()


def _run(directory: Path) -> Results:
    under_way = journal.is_being_written(directory)  # before reading: a run that ends meanwhile was not killed
    events = journal.read(directory)
    plan = journal.plan_of(events, directory / JOURNAL)
    reader = campaign.reader_of(plan)
    summary = summarise(events, reader)
    return Results(directory, summary, (Measured(reader.name, summary, events, under_way=under_way),))


def _suite(directory: Path) -> Results:
    _, measurements = suite.read(directory)
    notes = suite.notes(directory)
    measured = tuple(_part(one, directory / one.name, notes.get(one.name)) for one in measurements)
    parts = tuple(
        Part(name=one.name, procedure=measurement.definition.name, note=one.note, summary=one.summary)
        for one, measurement in zip(measured, measurements, strict=True)
    )
    return Results(directory, SuiteSummary(measurements=parts), measured)


def _part(one: Measurement, directory: Path, note: str | None) -> Measured:
    if not (directory / JOURNAL).exists():
        return Measured(one.name, None, note=note or NOT_YET)
    try:
        [measured] = _run(directory).measured
    except JournalError as error:
        return Measured(one.name, None, note=str(error), unreadable=True)
    return Measured(one.name, measured.summary, measured.events, note, measured.under_way)
