# SPDX-License-Identifier: Apache-2.0
"""The results in the directory of a run or a suite, finished or not, as objects, rows and data frames;
and the report."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf import journal
from dutperf.api.arguments import path_of
from dutperf.journal import JOURNAL, JournalError, not_written
from dutperf.model import FRAME_SIZE
from dutperf.report import export, html
from dutperf.report.html import REPORT
from dutperf.results import tables
from dutperf.results.deviations import OF_A_SEARCH
from dutperf.results.measured import Measured
from dutperf.results.summary import SUMMARY, summarise
from dutperf.results.tables import Record
from dutperf.run import campaign, suite
from dutperf.run.campaign import PlanError, Summary
from dutperf.run.suite import SUITE, Measurement, Part, SuiteSummary
from dutperf.setup import conditions
from dutperf.setup.conditions import AtThroughput, Conditions, DelayFiles, Foreground, Model, Rate, Usual
from dutperf.setup.configuration import ParameterError

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

    def __repr__(self) -> str:
        return f"Results({str(self.directory)!r}: {', '.join(map(repr, self.measured))})"

    def _repr_html_(self) -> str:
        """The tables of all measurements, for a notebook."""
        return "".join(html.table_of(one) for one in self.measured)

    @property
    def is_complete(self) -> bool:
        """Whether every measurement has finished, or was impossible."""
        return all(one.is_complete if one.events else one.note != NOT_YET for one in self.measured)

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
            ImportError: pandas or pyarrow is not installed (``dutperf[pandas]``).
        """
        return self.to_arrow(trials=trials).to_pandas()

    def to_polars(self, *, trials: bool = False) -> polars.DataFrame:
        """The :meth:`rows` as a data frame of Polars.

        Raises:
            ImportError: Polars or pyarrow is not installed (``dutperf[polars]``).
        """
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


def fresh_directory(procedure: str) -> Path:
    """A new directory ``results/DATE-TIME-PROCEDURE`` under the current one. It is made at once: two runs may begin in
    the same second. If nothing is written there, it is removed at the end of the program.

    Raises:
        JournalError: it cannot be made.
    """
    stem = Path("results") / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{procedure}"
    for path in (stem, *(stem.with_name(f"{stem.name}-{number}") for number in range(2, 1000))):
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise not_written(path, error) from None
        atexit.register(_remove_if_empty, path.resolve())
        return path
    raise JournalError(f"cannot write {stem}: there are a thousand runs of this second")


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def chosen(model: type[Model], given: Mapping[str, Any]) -> tuple[Model, ...]:
    """As :func:`dutperf.setup.conditions.each`. ``throughput_from`` may be the directory of an earlier run;
    ``delays_to`` must not hold the delays of another run.

    Raises:
        ParameterError: an invalid value.
        PlanError: see :func:`earlier_throughput`.
    """
    prior = given.get("throughput_from")
    members = {name: value for name, value in given.items() if name != "throughput_from" or isinstance(value, Mapping)}
    made = tuple(map(with_fresh_files, conditions.each(model, members)))
    return made if prior is None or isinstance(prior, Mapping) else tuple(at_throughput_of(prior, one) for one in made)


def at_throughput_of(earlier: Results | str | os.PathLike[str], wanted: Model) -> Model:
    """``wanted``, to be measured at the throughput that an earlier run found.

    Raises:
        ParameterError: no path, or the procedure does not measure at a throughput.
        PlanError: see :func:`earlier_throughput`.
    """
    if not isinstance(wanted, AtThroughput):
        raise ParameterError("only procedures at the throughput take one", "throughput_from")
    directory = earlier.directory if isinstance(earlier, Results) else path_of(earlier, "throughput_from")
    return wanted.model_copy(update=earlier_throughput(directory, wanted))


def with_fresh_files(wanted: Model) -> Model:
    """``wanted``, whose files of delays are new ones.

    Raises:
        ParameterError: the directory holds the delays of another run.
    """
    if not isinstance(wanted, DelayFiles) or wanted.delays_to is None:
        return wanted
    return wanted.model_copy(update={"delays_to": _fresh(path_of(wanted.delays_to, "delays_to"))})


def _fresh(directory: Path) -> str:
    """The absolute path: the engine may have another working directory."""
    if any(directory.glob("*/trial-*.npy")):
        raise ParameterError(
            f"{directory} holds the delays of another run: choose another directory or remove them", "delays_to"
        )
    return str(directory.absolute())


def _text(value: Any) -> str:
    return value.text() if isinstance(value, Foreground) else str(value)


def earlier_throughput(directory: Path, wanted: Conditions) -> dict[str, Any]:
    """Members of the conditions from an earlier run: median throughput (frames/s) by frame size, and the
    deviations of its search. In a suite it is the run with the traffic of ``wanted``.

    Raises:
        PlanError: no summary of a throughput run, no number in it, or other traffic.
    """
    place = suite.throughput_in(directory, wanted)
    if place != directory and not place.exists():
        raise PlanError(f"{directory} has no throughput of this traffic ({place.name})", option="throughput_from")
    try:
        summary = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
        medians = {point["case"][FRAME_SIZE.name]: point["throughput_fps"]["median"] for point in summary["points"]}
        measured = {name: summary["conditions"][name] for name in ("foreground", "networks", "directions")}
        deviations = [one["text"] for one in summary.get("deviations", ()) if one["clause"] in OF_A_SEARCH]
        burst_rate = summary["conditions"].get("burst_rate")
        measured |= {
            "pattern": summary["conditions"].get("pattern", Usual().pattern),
            "burst_rate": burst_rate and Rate.model_validate(burst_rate),
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise PlanError(f"{place} has no {SUMMARY} of a throughput run", option="throughput_from") from None
    measured["foreground"] = Foreground.model_validate(measured["foreground"])
    differing = [
        f"{name.replace('_', ' ')} {_text(value)}"
        for name, value in measured.items()
        if value != getattr(wanted.every, name)
    ]
    if differing:
        raise PlanError(
            f"the throughput in {place} was measured with other traffic ({', '.join(differing)})",
            option="throughput_from",
        )
    found = {size: int(median) for size, median in medians.items() if median is not None and median >= 1}
    if not found:
        raise PlanError(f"the run in {place} found no throughput", option="throughput_from")
    return {"throughput_from": found, "throughput_deviations": tuple(deviations)}


def _run(directory: Path) -> Results:
    under_way = journal.is_being_written(directory)  # before reading: a run that ends meanwhile was not killed
    events = journal.read(directory)
    plan = journal.plan_of(events, directory / JOURNAL)
    definition = campaign.definition_of(plan)
    summary = summarise(events, definition)
    return Results(directory, summary, (Measured(definition.name, summary, events, under_way=under_way),))


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
        return Measured(one.name, None, note=str(error))
    return Measured(one.name, measured.summary, measured.events, note, measured.under_way)
