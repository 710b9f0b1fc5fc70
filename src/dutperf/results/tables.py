# SPDX-License-Identifier: Apache-2.0
"""The tables of a summary: as text for a person, and as records of plain figures for other programs.
Both are made from its points alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.model import Axis, Case, axes_of, whose_rates
from dutperf.model.digits import lost_share
from dutperf.results.environments import duts, flat
from dutperf.results.points import Point, Row, measured
from dutperf.results.streams import StreamResult
from dutperf.results.summary import Summary

Record = dict[str, Any]
"""One line of figures: maps a name (``throughput_fps.median``) to a number, a text, None, or a list
of numbers."""


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    title: str
    heads: Row
    rows: tuple[Row, ...]
    keys: int = 1
    """Number of leading columns that identify a row; rows with the same ones follow each other."""

    def is_word(self, column: int) -> bool:
        """Whether a column holds words, not figures."""
        return self.heads[column].endswith("by") or not any(row[column].lstrip("-–")[:1].isdigit() for row in self.rows)


def results(summary: Summary) -> Table:
    """One or more rows for each case: median, 1st and 99th percentile, and further figures of the
    procedure."""
    kind = type(summary.points[0])
    axes = axes_of(point.case for point in summary.points)
    rows = tuple((*case_cells(point.case, axes), *row) for point in summary.points for row in point.rows())
    criterion = f" ({summary.points[0].pass_criterion})" if summary.points[0].pass_criterion else ""
    title = whose_rates(kind.title, (point.case for point in summary.points))
    return Table(title + criterion, (*(axis.heading for axis in axes), *kind.columns), rows, len(axes))


def by_stream(summary: Summary) -> Table | None:
    """A row for each stream at each load; None where no direction has several."""
    if not summary.streams:
        return None
    axes = axes_of(one.case for one in summary.streams)
    units = " or ".join(dict.fromkeys(one.load.unit.value for one in summary.streams))
    delays = dict.fromkeys(name for one in summary.streams for name in one.delay_ms)
    heads = ("trials", "sent", "received", "lost", "loss ratio", *(f"{name}, ms" for name in delays))
    rows = tuple(
        (
            *case_cells(one.case, axes),
            f"{one.load.value:,}",
            one.direction.value,
            one.stream,
            *(f"{count:,}" for count in (one.trials, one.sent, one.received, one.lost)),
            lost_share(one.loss_ratio),
            *(measured(one.delay_ms[name].median) if name in one.delay_ms else "-" for name in delays),
        )
        for one in summary.streams
    )
    return Table(
        f"by stream, valid trials{'; delays: median over the trials' if delays else ''}",
        (*(axis.heading for axis in axes), units, "direction", "stream", *heads),
        rows,
        len(axes),
    )


def stream_records(summary: Summary) -> list[Record]:
    """The results by stream, a record for each stream at each load; all have the same names."""
    return uniform(
        [
            {"procedure": summary.procedure, "dut": dut_name(summary.dut), **dict(flat(with_case(_of_stream(one))))}
            for one in summary.streams
        ]
    )


def _of_stream(one: StreamResult) -> dict[str, Any]:
    members = one.model_dump(mode="json")
    return {
        "case": members.pop("case"),
        one.load.unit.column: one.load.value,
        **{name: value for name, value in members.items() if name != "load"},
    }


def case_cells(case: Case, axes: Sequence[Axis[Any]]) -> Row:
    """A case in the columns of ``axes``; ``-`` where it has no value."""
    return tuple("-" if (value := case.get(axis)) is None else str(value) for axis in axes)


def messages(summary: Summary) -> list[tuple[str, bool]]:
    """Sentences on each case's figures and on the run; each with whether it is a warning, such as
    that the tester was the limit."""
    of_points = [message for point in summary.points for message in _messages(point)]
    return (
        of_points
        + [(remark.text, False) for remark in summary.remarks]
        + [(change.sentence(), True) for change in summary.environment_changes]
    )


def dut_name(dut: Mapping[str, Any]) -> str:
    """Name and version, of several DUTs in a row those of each; empty where the setup has none."""
    return ", ".join(" ".join(str(one[key]) for key in ("name", "version") if one.get(key)) for one in duts(dut))


def records(summary: Summary) -> list[Record]:
    """All figures of the points, one record for each point, or for each entry of a point's series.
    All records have the same names."""
    series = type(summary.points[0]).series
    each = [record for point in summary.points for record in _of_point(point.model_dump(mode="json"), series)]
    return uniform([{"procedure": summary.procedure, "dut": dut_name(summary.dut), **record} for record in each])


def uniform(rows: Sequence[Record]) -> list[Record]:
    """The same records, each with the names of all."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def with_case(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a point, or of its limits in the plan, with the case replaced by its values."""
    return {**members["case"], **{name: value for name, value in members.items() if name != "case"}}


def _of_point(point: Mapping[str, Any], series: str | None) -> Iterator[Record]:
    members = with_case(point)
    if series is None:
        yield dict(flat(members))
        return
    rest = {name: value for name, value in members.items() if name != series}
    for entry in members[series] or [{}]:
        yield {**dict(flat(rest)), **dict(flat(entry, series))}


def _messages(point: Point) -> Iterator[tuple[str, bool]]:
    warning = f"{point.limited_in_words}: " if point.needs_warning else ""
    message = point.message.removeprefix("limited by the tester ") if point.limited_by_tester else point.message
    yield f"{point.case}: {warning}{message}", bool(warning)
    for remark in point.remarks():
        yield f"{point.case}{remark}", False
