# SPDX-License-Identifier: Apache-2.0
"""What the pages show of a store. Every address has the identifier of a measurement, which follows from its journal:
it stays when the store is made again, or the directory moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dutperf.api import results
from dutperf.errors import DutperfError, StoreError
from dutperf.journal import journals_of
from dutperf.report import html
from dutperf.report.html import REPORT
from dutperf.results import comparison
from dutperf.results.comparison import Incomparable, Results
from dutperf.results.tables import Table
from dutperf.store import Entry, Kept, Store, trend
from dutperf.web import own_files
from dutperf.web.errors import Refused, without_directories

PAGE = 50
MOST_OF_A_HISTORY = 200
"""The newest measurements of a series; change points take time."""
_FILTERS = ("dut", "procedure", "since", "series")


@dataclass(frozen=True)
class Stored:
    """A store; each request opens it."""

    file: Path

    def search(self, asked: dict[str, str], page: int) -> dict[str, Any]:
        """A page of the measurements, the newest first. Raises Refused: what was asked for is no time."""
        filters = {name: asked[name] for name in _FILTERS if asked.get(name)}
        with self._open() as store:
            try:
                number = store.count(**filters)
            except StoreError as error:
                raise Refused(without_directories(error), 503 if error.is_temporary else 400) from None
            found = store.find(**filters, newest=PAGE, before=PAGE * (page - 1))
            listed = [{**as_json(one), "figure": _first(store.figures(one.id))} for one in reversed(found)]
        return {
            "measurements": listed,
            "number": number,
            "page": page,
            "pages": max(1, -(-number // PAGE)),
        }

    def measurement(self, identifier: str) -> tuple[Entry, list[Kept]]:
        """A measurement and its figures. Raises Refused: there is none."""
        with self._open() as store:
            entry = store.get(identifier)
            if entry is None:
                raise Refused("there is no such measurement", 404)
            return entry, store.figures(identifier)

    def history(self, series: str) -> tuple[list[Entry], int, list[dict[str, Any]]]:
        """The newest measurements of a series, their number in all, and the trend of each figure. Raises Refused: there
        is no such series."""
        with self._open() as store:
            found = store.find(series=series, newest=MOST_OF_A_HISTORY)
            if not found or found[0].series != series:  # a part of a name finds several
                raise Refused("there is no such series", 404)
            return found, store.count(series=series), [trend.as_json(one, "id") for one in trend.trends(store, found)]

    def compared(self, base: str, other: str) -> tuple[Entry, Entry, list[Table], list[str]]:
        """Two measurements side by side: tables, and remarks. Raises Refused: there is none, or they cannot be
        compared."""
        first, second = self.measurement(base)[0], self.measurement(other)[0]
        try:
            read = [Results(one.id, results.read(Path(one.directory)).measured) for one in (first, second)]
            found = comparison.compare(read[0], read[1:], comparison.ALPHA, False)
        except (DutperfError, Incomparable) as error:
            raise Refused(without_directories(error), 409) from None
        except ValidationError as error:
            raise _of_another_version(error, 409) from None
        tables = [table for one in found.compared for table in comparison.tables_of(one, found.alpha)]
        return (
            first,
            second,
            tables,
            [text for one in found.compared for text in (*one.states, *comparison.bounds(one))],
        )

    def report(self, identifier: str) -> bytes:
        """The report of the run or the suite; made, if it is not there. Raises Refused: there is none, or its directory
        has gone."""
        return report_in(Path(self.measurement(identifier)[0].root))

    def _open(self) -> Store:
        try:
            return Store(self.file, create=False)
        except DutperfError as error:
            raise Refused(without_directories(error), 503 if error.is_temporary else 404) from None


def _first(figures: Sequence[Kept]) -> str:
    """``throughput_fps 53,113 (84 bytes); 2 more``; empty: there is none."""
    known = [one for one in figures if one.median is not None]
    if not known:
        return ""
    first, others = known[0], len(known) - 1
    where = " ".join(text for text in (first.at, first.load) if text)
    return f"{first.name} {first.median:,.6g}{f' ({where})' if where else ''}{f'; {others} more' if others else ''}"


def report_in(directory: Path) -> bytes:
    """The report in a directory with results. Raises Refused: it cannot be read."""
    try:
        if _has_report(directory):
            with own_files.opened(directory / REPORT) as report:
                return report.read()
        return html.page(results.read(directory).measured).encode()
    except (OSError, DutperfError) as error:
        raise Refused(without_directories(error), 404) from None
    except ValidationError as error:
        raise _of_another_version(error, 404) from None


def _has_report(directory: Path) -> bool:
    """Whether there is a report that no journal is newer than: the run may have been resumed since."""
    report = directory / REPORT
    written = [path.stat().st_mtime_ns for path in journals_of(directory)]
    return report.is_file() and report.lstat().st_mtime_ns >= max(written, default=0)


def _of_another_version(error: ValidationError, status: int) -> Refused:
    return Refused(f"this version cannot read its results ({without_directories(error).splitlines()[0]})", status)


def as_json(entry: Entry) -> dict[str, Any]:
    """JSON types; without the directories, which are nobody's business."""
    return {name: value for name, value in asdict(entry).items() if name not in ("directory", "root")}
