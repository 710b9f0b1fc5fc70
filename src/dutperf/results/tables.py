# SPDX-License-Identifier: Apache-2.0
"""The tables of a summary: as a person reads them, and as records of plain figures for other
programs. Both from its points and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.results.environments import flat
from dutperf.results.points import Row
from dutperf.results.summary import Summary

Record = dict[str, Any]
"""One line of figures: name (``throughput_fps.median``) to a number, a text, None, or a list of
numbers."""
SIZES = ("frame size", "IPv4")


@dataclass(frozen=True)
class Table:
    """Cells as a person reads them."""

    title: str
    heads: Row
    rows: tuple[Row, ...]

    def is_word(self, column: int) -> bool:
        """Whether a column holds words, not figures."""
        return self.heads[column].endswith("by") or not any(row[column].lstrip("-–")[:1].isdigit() for row in self.rows)


def results(summary: Summary) -> Table:
    """A row or more for each frame size: median, 1st and 99th percentile, and what else the
    procedure's points state."""
    kind = type(summary.points[0])
    rows = tuple(
        (str(point.frame_size), str(point.frame_size_ipv4), *row) for point in summary.points for row in point.rows()
    )
    passing = f" ({summary.points[0].passing})" if summary.points[0].passing else ""
    return Table(kind.title + passing, (*SIZES, *kind.columns), rows)


def messages(summary: Summary) -> list[tuple[str, bool]]:
    """What the figures of each frame size rest on, and what else is to be said of it and of the
    run; with whether it warns that the tester was the limit."""
    of_points = [
        message
        for point in summary.points
        for message in _messages(point.frame_size, point.message, point.remarks(), point.limited_by_tester)
    ]
    return of_points + [(text, False) for text in summary.idle_help] + [(move.said(), True) for move in summary.moves]


def dut_name(dut: Mapping[str, Any]) -> str:
    """Name and version; empty where the set-up has none."""
    return " ".join(str(dut[key]) for key in ("name", "version") if dut.get(key))


def records(summary: Summary) -> list[Record]:
    """All figures of the points, one record for each; where a point has a series, one for each of
    its entries. All records have the same names."""
    series = type(summary.points[0]).series
    each = [record for point in summary.points for record in _of_point(point.model_dump(mode="json"), series)]
    return uniform([{"procedure": summary.procedure, "dut": dut_name(summary.dut), **record} for record in each])


def uniform(rows: Sequence[Record]) -> list[Record]:
    """The same records, each with all the names that any of them has."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _of_point(point: Mapping[str, Any], series: str | None) -> Iterator[Record]:
    if series is None:
        yield dict(flat(point))
        return
    rest = {name: value for name, value in point.items() if name != series}
    for entry in point[series] or [{}]:
        yield {**dict(flat(rest)), **dict(flat(entry, series))}


def _messages(frame_size: int, message: str, remarks: Any, limited_by_tester: bool) -> Iterator[tuple[str, bool]]:
    warning = "limited by the tester, not the DUT: " if limited_by_tester else ""
    yield f"{frame_size} bytes: {warning}{message}", limited_by_tester
    for remark in remarks:
        yield f"{frame_size} bytes{remark}", False
