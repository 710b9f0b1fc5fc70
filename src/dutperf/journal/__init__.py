# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, ``DIR/journal.jsonl``: one JSON object a line for each event, on the disk
before anything else happens with it.

Every line has ``event`` and ``time`` (ISO 8601, UTC). The events of a run, in order:

* ``plan``: format, procedure, conditions, DUT, configuration, versions, search, what is measured:
  ``axes``, and each of the ``cases`` with its limits;
* ``environment``: this machine (``host``) and the tester;
* ``trial`` before and ``result`` after each trial, with case, repetition, load, attempt; the result
  has ``dut_losses`` where the DUT counts them;
* ``search``: how the search of a repetition ended, its value and the load above it in ``unit``;
  with loss goals for each of them (``goals``; throughput);
* ``rate``: what a load's trial showed, ``series``: how the series of a repetition ended (frame
  loss);
* ``delays``: a repetition's delays (latency, delay variation); ``recovery``, ``reset``: what a
  repetition of these showed;
* ``dut_state``: what the DUT's command ``state`` said, before and after each search;
* ``wait``: a DUT that answered nothing was waited for;
* ``end``: outcome completed | ended | interrupted | error, with a message. It is missing where the
  run was killed;
* ``resumed``: from here on another process went on, with its environment. A trial without a result
  before it is run again after it.

A procedure is a function of its trials' results. So a run goes on by telling it the results that
stand here: :class:`ResumedJournal` makes sure that it then says again what it said the first time,
and writes only what is new.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dutperf.errors import DutperfError
from dutperf.model import TrialResult

JOURNAL = "journal.jsonl"
FORMAT = 2
"""Version of the journal's form; stands in the plan."""

Event = dict[str, Any]

_REPEATED = ("plan", "environment", "resumed", "end")
"""Events that a run which goes on does not come past again."""
_FINAL = ("completed", "ended")


class JournalError(DutperfError):
    """A journal cannot be written or read; the message names the file."""


class WriteError(JournalError):
    """What was measured cannot be kept: the disk is full, or fails. What was written before it is
    whole, and the run can go on from there."""


class JournalWriter:
    """Writes events; made by :meth:`create`, a context manager. No second process writes to the
    same journal meanwhile."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._failure: str | None = None

    @classmethod
    def create(cls, directory: Path) -> Self:
        """A new journal in ``directory``, which is made where it is missing.

        Raises:
            JournalError: there is a journal already, or the directory cannot be written.
        """
        path = directory / JOURNAL
        _make_directory(path)
        descriptor = _open_alone(path, os.O_CREAT)
        if os.fstat(descriptor).st_size:
            os.close(descriptor)
            raise JournalError(
                f"{path} holds the journal of another run: choose another directory or remove it, or go on with:"
                f" dutperf resume {directory}"
            )
        _sync_directory(directory)
        return cls(descriptor, path)

    @property
    def directory(self) -> Path:
        """Where the journal is."""
        return self._path.parent

    @property
    def repeats(self) -> bool:
        """Whether what happens next stands in the journal already."""
        return False

    def recall(self, event: str) -> Event | None:
        """The next event, where it stands in the journal already and is an ``event``; what it says
        need not be found out again."""
        del event
        return None

    def write(self, event: str, **members: Any) -> None:
        """Append an event; it is on the disk when this returns. ``members`` are JSON types.

        Raises:
            WriteError: the file cannot be written (disk full). Nothing of the event stays in it,
                and nothing is written to it any more.
        """
        if self._failure is not None:
            raise WriteError(self._failure)
        line = (
            json.dumps(
                {"event": event, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **members},
                allow_nan=False,
            )
            + "\n"
        )
        whole = os.fstat(self._descriptor).st_size
        try:
            _write_all(self._descriptor, line.encode())
            os.fsync(self._descriptor)
        except OSError as error:
            self._failure = f"cannot write {self._path}: {error.strerror}"
            with suppress(OSError):
                os.ftruncate(self._descriptor, whole)
            raise WriteError(self._failure) from error

    def close(self) -> None:
        """May be called more than once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class ResumedJournal(JournalWriter):
    """Goes on with the journal of a run that ended before its time; made by :meth:`open`.

    Until all that was recorded has come again, :meth:`write` compares and writes nothing. Then a
    torn last line is cut, and ``resumed`` is written.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, path)
        self.events = read(path.parent)
        """All that stands in it."""
        self.preface: Mapping[str, Any] = {}
        """Members of the event ``resumed``."""
        self._recorded = deque(_to_repeat(self.events))
        self._goes_on = False

    @classmethod
    def open(cls, directory: Path) -> Self:
        """The journal in ``directory``, which is not changed before there is something new to
        write.

        Raises:
            JournalError: there is none, it cannot be read or written, it has no plan or is of
                another format, or its run has not ended.
        """
        path = directory / JOURNAL
        if not path.exists():
            raise JournalError(f"{directory} holds no journal ({JOURNAL}): there is no run to go on with")
        descriptor = _open_alone(path)
        try:
            journal = cls(descriptor, path)
            plan_of(journal.events, path)
        except BaseException:
            os.close(descriptor)
            raise
        return journal

    @property
    def plan(self) -> Event:
        """What was to be measured."""
        return self.events[0]

    @property
    def is_complete(self) -> bool:
        """Whether the procedure came to its end."""
        return is_complete(self.events)

    @property
    def repeats(self) -> bool:
        """See :meth:`JournalWriter.repeats`."""
        return bool(self._recorded)

    def recall(self, event: str) -> Event | None:
        """See :meth:`JournalWriter.recall`."""
        return self._recorded.popleft() if self._recorded and self._recorded[0]["event"] == event else None

    def write(self, event: str, **members: Any) -> None:
        """See :meth:`JournalWriter.write`.

        Raises:
            JournalError: what comes is not what was recorded.
        """
        if self._recorded:
            self._compare({"event": event, **members})
            return
        if not self._goes_on:
            self._cut()
            self._goes_on = True
            super().write("resumed", **self.preface)
        super().write(event, **members)

    def _compare(self, said: Event) -> None:
        recorded = {name: value for name, value in self._recorded[0].items() if name != "time"}
        if json.loads(json.dumps(said)) != recorded:
            was = self._recorded[0]
            raise JournalError(
                f"{self._path} cannot be gone on with: at {was['time']} the run came to another {was['event']} than it"
                " comes to now"
            )
        self._recorded.popleft()

    def _cut(self) -> None:
        """Remove what follows the last line feed."""
        try:
            os.ftruncate(self._descriptor, self._path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise WriteError(f"cannot write {self._path}: {error.strerror}") from error


def plan_of(events: list[Event], path: Path | None = None) -> Event:
    """The plan of a journal, its first event.

    Raises:
        JournalError: there is none, or it is of another format.
    """
    name = "the journal" if path is None else str(path)
    if not events or events[0]["event"] != "plan":
        raise JournalError(f"{name} does not begin with a plan: its run was killed before it began")
    if events[0].get("format") != FORMAT:
        raise JournalError(f"{name} has format {events[0].get('format')}, this version reads {FORMAT}")
    return events[0]


def ending(events: list[Event]) -> Event:
    """The event ``end`` of a journal; empty where the run was killed, or goes on."""
    last = next((event for event in reversed(events) if event["event"] in ("end", "resumed")), None)
    return last if last is not None and last["event"] == "end" else {}


def is_complete(events: list[Event]) -> bool:
    """Whether the procedure came to its end."""
    return ending(events).get("outcome") in _FINAL


def next_trial(events: list[Event]) -> int:
    """Number of the trial that follows the last one of a journal; the probes of a DUT that did not
    answer are trials too."""
    number = plan_of(events).get("first_trial", 0)
    for event in events:
        if event["event"] == "trial":
            number = event["trial"]["trial"] + 1
        elif event["event"] == "wait":
            number += event["probes"]
    return int(number)


def read(directory: Path) -> list[Event]:
    """The events of the journal in ``directory``. A last line that is not whole (the run was killed
    while writing it) is left out.

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


def is_being_written(directory: Path) -> bool:
    """Whether a process writes the journal in ``directory``; where there is none, no."""
    try:
        descriptor = os.open(directory / JOURNAL, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def claim(directory: Path, files: Sequence[str], holds: str, or_else: str = "") -> None:
    """Make ``directory``, where it is missing, for results of which the first of ``files`` is
    written first.

    Raises:
        JournalError: it has one of ``files`` already, and so what ``holds`` says (``or_else``: what
            else can be done about it); or it cannot be made.
    """
    for name in files:
        if (directory / name).exists():
            raise JournalError(f"{directory} holds {holds} ({name}): choose another directory or remove it{or_else}")
    _make_directory(directory / files[0])


@contextmanager
def held(path: Path) -> Iterator[None]:
    """No second process holds the file meanwhile: it says what a run, or a suite of them, is for.

    Raises:
        JournalError: it cannot be opened, or another process holds it.
    """
    descriptor = _open_alone(path)
    try:
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that is derived from journals, or says what they are for; a reader never sees
    half of it, and a crash leaves the old one or the new.

    Raises:
        WriteError: it cannot be written.
    """
    fresh = path.with_suffix(".tmp")
    try:
        with fresh.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def recorded_result(data: dict[str, Any]) -> TrialResult:
    """The result of a ``result`` event's member of that name."""
    return TrialResult.model_validate(data)


def _to_repeat(events: list[Event]) -> list[Event]:
    """What a procedure comes past again, in order; without trials that came to no result."""
    course = [event for event in events if event["event"] not in _REPEATED]
    after: list[str | None] = [event["event"] for event in course[1:]]
    return [
        event
        for event, follower in zip(course, [*after, None], strict=False)
        if event["event"] != "trial" or follower == "result"
    ]


def _make_directory(path: Path) -> None:
    """That of a file that is to be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def _open_alone(path: Path, flags: int = 0) -> int:
    """``path`` for appending. The lock is the process's: the kernel frees it however the process
    ends.

    Raises:
        JournalError: it cannot be opened, or another process writes to it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o644)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise JournalError(f"{path} is being written: its run goes on in another process") from error
    return descriptor


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
