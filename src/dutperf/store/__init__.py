# SPDX-License-Identifier: Apache-2.0
"""A store of results: a database of the measurements in result directories, by which they are found again, and their
figures over time.

The directories stay the truth: a store has nothing that is not in them, and can be made again. It has one row for each
journal, known by the journal's first line, so a directory may be added any number of times, moved, and added again when
its run is complete.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Self

from pydantic import ValidationError

from dutperf.api import results
from dutperf.errors import DutperfError, StoreBusy, StoreError
from dutperf.journal import JOURNAL, JournalError
from dutperf.results import comparability, comparison, environments
from dutperf.results.measured import Measured
from dutperf.results.statistics import Missing
from dutperf.run.suite import SUITE
from dutperf.user_directory import user_directory

VERSION = 2
PATIENCE_S = 30.0
"""For another process that writes to the store."""
SCHEMA = """
CREATE TABLE measurement (
  id TEXT PRIMARY KEY, directory TEXT NOT NULL, root TEXT NOT NULL, name TEXT NOT NULL, procedure TEXT NOT NULL,
  started TEXT NOT NULL, dut TEXT NOT NULL, dut_version TEXT NOT NULL, host TEXT NOT NULL, cpu TEXT NOT NULL,
  dutperf TEXT NOT NULL, complete INTEGER NOT NULL, series TEXT NOT NULL, conditions TEXT NOT NULL
);
CREATE INDEX by_time ON measurement (started);
CREATE INDEX by_series ON measurement (series, started);
CREATE TABLE figure (
  measurement TEXT NOT NULL REFERENCES measurement (id) ON DELETE CASCADE, at TEXT NOT NULL, load TEXT NOT NULL,
  name TEXT NOT NULL, median REAL, repetitions TEXT NOT NULL, limited_by TEXT, unusable TEXT NOT NULL,
  resolution REAL NOT NULL, missing TEXT NOT NULL, PRIMARY KEY (measurement, at, load, name)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Entry:
    """A measurement in the store."""

    id: str
    directory: str
    """Of its journal."""
    root: str
    """Directory that was added: of the run, or of its suite."""
    name: str
    procedure: str
    started: str
    """ISO 8601, UTC."""
    dut: str
    dut_version: str
    host: str
    cpu: str
    dutperf: str
    complete: bool
    series: str
    """Measurements of one series have the same DUT but for its version, the same conditions and the same host."""
    conditions: dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """A figure of a measurement in the store."""

    at: str
    """Its case, for a person."""
    load: str
    name: str
    median: float | None
    values: tuple[float | None, ...]
    """Of the repetitions."""
    limited_by: str | None
    unusable: str
    """Why it cannot be judged; empty: it can."""
    resolution: float
    missing: Missing = Missing.LOWEST
    """What a missing value says."""


_COLUMNS = ", ".join(Entry.__dataclass_fields__)


def usual_file() -> Path:
    """The store of this user. Raises NoHome."""
    return user_directory("XDG_DATA_HOME", ".local/share") / "store.sqlite"


class Store:
    """An open store. Raises StoreError: the file is no store of this version, or cannot be written."""

    def __init__(self, file: Path, *, create: bool = True) -> None:
        self.file = file
        if not create and not file.exists():
            raise StoreError(f"there is no store {file}: dutperf store add DIR… makes it")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(file, timeout=PATIENCE_S)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise _unusable(error, f"{file} cannot be used as a store: {error}") from None

    def _prepare(self) -> None:
        self._database.execute("PRAGMA foreign_keys = ON")
        if self._version() == 0:
            # at once or not at all, and by one process: tables without a version are no store
            self._database.executescript("BEGIN IMMEDIATE")
            with self._database:
                if self._version() == 0 and not self._tables():
                    for statement in (*SCHEMA.split(";"), f"PRAGMA user_version = {VERSION}"):
                        self._database.execute(statement)
        if self._version() != VERSION:
            if "measurement" not in self._tables():
                raise StoreError(f"{self.file} is the database of another program: give another file")
            raise StoreError(f"{self.file} is no store of this version: remove it, and add the directories again")

    def _tables(self) -> set[str]:
        return {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}

    def _version(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, directory: Path) -> tuple[list[Entry], list[str]]:
        """Add the results in a directory, which may have others below: a run, a suite, or a folder of several. What is
        there already is read again. Returns what was added, and a sentence on each directory that could not be read.
        Raises StoreError: there are no results."""
        found = list(result_directories(directory))
        if not found:
            raise StoreError(f"there are no results in {directory}")
        added, unreadable = list[Entry](), list[str]()
        for root in found:
            measured, faults = _read(root)  # which takes long: others may write meanwhile
            with self._usable(), self._database:
                added += [self._put(one, path, root) for one, path in measured]
            unreadable += faults
        return added, unreadable

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise _unusable(error, f"{self.file}: {error}") from None

    def _put(self, one: Measured, path: Path, root: Path) -> Entry:
        entry = _entry(one, path, root)
        members = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
        members |= {"complete": int(entry.complete), "conditions": json.dumps(entry.conditions)}
        names = ", ".join(members)
        marks = ", ".join(f":{name}" for name in members)
        with closing(self._database.cursor()) as cursor:
            cursor.execute("DELETE FROM measurement WHERE id = ?", (entry.id,))
            cursor.execute(f"INSERT INTO measurement ({names}) VALUES ({marks})", members)
            cursor.executemany(
                "INSERT OR REPLACE INTO figure VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        *(entry.id, kept.at, kept.load, kept.name, kept.median, json.dumps(kept.values)),
                        *(kept.limited_by, kept.unusable, kept.resolution, kept.missing),
                    )
                    for kept in _figures(one)
                ],
            )
        return entry

    def rebuild(self) -> tuple[int, list[str], list[str]]:
        """Read every directory again. Returns how many measurements there are, the directories that are gone, whose
        measurements are removed, and a sentence on each that cannot be read: its measurements stay.

        Each directory is replaced as a whole, and what others add meanwhile is left alone.
        """
        with self._usable():
            known = dict[str, list[str]]()
            for root, measurement in self._database.execute("SELECT root, id FROM measurement ORDER BY root"):
                known.setdefault(root, []).append(measurement)
            gone, unreadable = list[str](), list[str]()
            for root, before in known.items():
                read = [_read(place) for place in result_directories(Path(root))]
                faults = [fault for _, each in read for fault in each]
                unreadable += faults
                gone += [] if read else [root]
                with self._database:
                    if not faults:
                        self._database.executemany("DELETE FROM measurement WHERE id = ?", [(one,) for one in before])
                    for one, path in (placed for each, _ in read for placed in each):
                        self._put(one, path, Path(root))
            return self._database.execute("SELECT count(*) FROM measurement").fetchone()[0], gone, unreadable

    def find(
        self,
        dut: str | None = None,
        procedure: str | None = None,
        since: str | None = None,
        series: str | None = None,
        *,
        newest: int | None = None,
        before: int = 0,
    ) -> list[Entry]:
        """Measurements in the order of their time. ``dut``: a part of its name or version; ``since``: a time in ISO
        8601, or its beginning; ``series``: the beginning of its name. ``newest``: so many, of those ``before`` the
        newest. Raises StoreError: ``since`` is no time."""
        clauses, values = _clauses(dut, procedure, since, series)
        with self._usable():
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM measurement WHERE {clauses} ORDER BY started DESC, id DESC LIMIT ? OFFSET ?",
                [*values, -1 if newest is None else newest, before],
            ).fetchall()
        return [_of_row(row) for row in reversed(rows)]

    def count(
        self, dut: str | None = None, procedure: str | None = None, since: str | None = None, series: str | None = None
    ) -> int:
        """How many :meth:`find` finds."""
        clauses, values = _clauses(dut, procedure, since, series)
        with self._usable():
            found = self._database.execute(f"SELECT count(*) FROM measurement WHERE {clauses}", values).fetchone()
        return int(found[0])

    def get(self, measurement: str) -> Entry | None:
        with self._usable():
            row = self._database.execute(f"SELECT {_COLUMNS} FROM measurement WHERE id = ?", [measurement]).fetchone()
        return None if row is None else _of_row(row)

    def figures(self, measurement: str) -> list[Kept]:
        """The figures of a measurement, by its id."""
        with self._usable():
            rows = self._database.execute(
                "SELECT at, load, name, median, repetitions, limited_by, unusable, resolution, missing FROM figure"
                " WHERE measurement = ? ORDER BY at, load, name",
                (measurement,),
            ).fetchall()
        return [
            Kept(
                at,
                load,
                name,
                median,
                tuple(json.loads(repetitions)),
                limited_by,
                unusable,
                resolution,
                Missing(missing),
            )
            for at, load, name, median, repetitions, limited_by, unusable, resolution, missing in rows
        ]


def _unusable(error: Exception, text: str) -> StoreError:
    return (StoreBusy if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY") else StoreError)(text)


def _clauses(dut: str | None, procedure: str | None, since: str | None, series: str | None) -> tuple[str, list[str]]:
    clauses, values = ["1"], list[str]()
    for clause, value in (
        ("(instr(lower(dut || ' ' || dut_version), lower(?)) > 0)", dut),
        ("procedure = ?", procedure),
        ("started >= ?", None if since is None else _moment(since)),
        ("instr(series, ?) = 1", series),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(value)
    return " AND ".join(clauses), values


_BEGINNING = re.compile(r"\d{4}(-\d\d){0,2}")


def _moment(text: str) -> str:
    """A time in ISO 8601 or the beginning of one, of UTC where it does not say, as a store has it. Raises StoreError:
    it is none."""
    whole = text + "2000-01-01"[len(text) :] if _BEGINNING.fullmatch(text) else text
    try:
        time = datetime.fromisoformat(whole)
        return f"{time if time.tzinfo is None else time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError):
        raise StoreError(f"{text!r} is no time: give 2026-11, 2026-11-30 or 2026-11-30T19:05+01:00") from None


def _of_row(row: Sequence[Any]) -> Entry:
    """From the columns :data:`_COLUMNS`."""
    members = dict(zip(Entry.__dataclass_fields__, row, strict=True))
    return Entry(**{**members, "complete": bool(members["complete"]), "conditions": json.loads(members["conditions"])})


def result_directories(directory: Path) -> Iterator[Path]:
    """Directories of runs and suites, in ``directory`` or below, or itself; not the parts of a suite. One
    that may not be read is among them: whoever reads it learns why."""
    try:
        if not S_ISDIR(directory.stat().st_mode):
            return
        is_one = (directory / JOURNAL).exists() or (directory / SUITE).exists()
        below = [] if is_one else sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        is_one, below = True, []
    if is_one:
        yield directory.resolve()
    for one in below:
        if not one.is_symlink():
            yield from result_directories(one)


def _read(root: Path) -> tuple[list[tuple[Measured, Path]], list[str]]:
    """The measurements with results in the directory of a run or a suite, each with the directory of its journal; and a
    sentence on each journal that cannot be read: it is of another version, is corrupted, or may not be read."""
    try:
        several = (root / SUITE).exists()
        placed = [(one, root / one.name if several else root) for one in results.read(root).measured]
        missing = [(one, path) for one, path in placed if one.summary is None and (path / JOURNAL).exists()]
    except (DutperfError, ValidationError, OSError) as error:  # the second: of another version's procedure
        return [], [f"{root} cannot be read: {str(error).splitlines()[0]}"]
    faults = [f"{path} cannot be read: {one.note or 'it has no results'}" for one, path in missing]
    return [(one, path) for one, path in placed if one.summary is not None], faults


def _version(duts: Sequence[Mapping[str, Any]]) -> str:
    """The DUT's; of several each with its name, so that a series knows which of them has changed."""
    if len(duts) < 2:
        return "".join(str(one.get("version") or "") for one in duts)
    return ", ".join(f"{one['name']} {one['version']}" for one in duts if one.get("version"))


def _entry(one: Measured, path: Path, root: Path) -> Entry:
    assert one.summary is not None
    summary, host = one.summary, one.summary.environment.get("host", {})
    meaning = json.dumps(comparability.meaning(one), sort_keys=True, default=str)
    try:
        with (path / JOURNAL).open("rb") as journal:
            first = journal.readline()
    except OSError as error:
        raise JournalError(f"{path / JOURNAL} cannot be read: {error.strerror}") from None
    return Entry(
        id=hashlib.sha256(first).hexdigest()[:16],
        directory=str(path),
        root=str(root),
        name=one.name,
        procedure=summary.procedure,
        started=str(summary.environment.get("started") or one.plan.time),
        dut=str(summary.dut.get("name") or "unknown"),
        dut_version=_version(environments.duts(summary.dut)),
        host=str(host.get("name", "")),
        cpu=str(host.get("cpu", "")),
        dutperf=one.plan.dutperf,
        complete=one.is_complete,
        series=hashlib.sha256(meaning.encode()).hexdigest()[:12],
        conditions=dict(summary.conditions),
    )


def _figures(one: Measured) -> Iterator[Kept]:
    assert one.summary is not None
    for point in one.summary.points:
        resolution = point.resolution(one.summary.conditions)
        for name, figure in comparison.figures_of(point):
            yield Kept(
                at=str(point.case),
                load=figure.at,
                name=name,
                median=figure.median,
                values=figure.values,
                limited_by=None if figure.limited_by is None else figure.limited_by.value,
                unusable=figure.unusable,
                resolution=resolution,
                missing=figure.missing,
            )
