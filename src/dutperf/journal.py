# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, ``DIR/journal.jsonl``: one JSON object a line for each event, on the disk before anything else happens with it.

Every line has ``event`` and ``time`` (ISO 8601, UTC). The events of a run, in order:

* ``plan``: format, procedure, conditions, DUT, configuration, versions, search, each frame size's limits (``frames``);
* ``environment``: this machine (``host``) and the tester;
* ``trial`` before and ``result`` after each trial, with frame_size, repetition, rate_fps, attempt;
* ``search``: how the search of a repetition ended, with loss goals for each of them (``goals``; throughput);
* ``rate``: what a rate's trial showed, ``series``: how the series of a repetition ended (frame loss);
* ``end``: outcome completed | ended | interrupted | error, with a message. It is missing where the run was killed.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dutperf.model import TrialResult

JOURNAL = "journal.jsonl"
FORMAT = 1
"""Version of the journal's form; stands in the plan."""

Event = dict[str, Any]


class JournalError(Exception):
    """A journal cannot be written or read; the message names the file."""


class JournalWriter:
    """Writes events; made by :meth:`create`, a context manager."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def create(cls, directory: Path) -> Self:
        """A new journal in ``directory``, which is made where it is missing.

        Raises:
            JournalError: there is a journal already, or the directory cannot be written.
        """
        path = directory / JOURNAL
        try:
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}") from error
        if os.fstat(descriptor).st_size:
            os.close(descriptor)
            raise JournalError(f"{path} holds the journal of another run: choose another directory or remove it")
        _sync_directory(directory)
        return cls(descriptor, path)

    def write(self, event: str, **members: Any) -> None:
        """Append an event; it is on the disk when this returns. ``members`` are JSON types.

        Raises:
            JournalError: the file cannot be written (disk full).
        """
        line = json.dumps({"event": event, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **members}, allow_nan=False) + "\n"
        try:
            _write_all(self._descriptor, line.encode())
            os.fsync(self._descriptor)
        except OSError as error:
            raise JournalError(f"cannot write {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """May be called more than once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def read(directory: Path) -> list[Event]:
    """The events of the journal in ``directory``. A last line that is not whole (the run was killed while writing it) is left out.

    Raises:
        JournalError: no journal, or it is damaged elsewhere than at its end.
    """
    path = directory / JOURNAL
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    # What follows the last line feed is empty, or torn: a line is whole only with its end.
    return [_event(path, number, line) for number, line in enumerate(lines[:-1], start=1)]


def recorded_result(data: dict[str, Any]) -> TrialResult:
    """The result of a ``result`` event's member of that name."""
    directions = {name: {key: value for key, value in data[name].items() if key != "lost"} for name in ("forward", "reverse") if data.get(name)}
    return TrialResult.model_validate({**data, **directions})


def _event(path: Path, number: int, line: bytes) -> Event:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise JournalError(f"{path}, line {number}: not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise JournalError(f"{path}, line {number}: no event")
    return event


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_directory(directory: Path) -> None:
    """A file is found again after a crash only if its directory is on the disk as well."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
