# SPDX-License-Identifier: Apache-2.0
"""Writes a journal: each event is on the disk before the run continues."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Self

from dutperf.journal import files
from dutperf.journal.events import Event, EventT, line_of
from dutperf.journal.files import JOURNAL, JournalError, WriteError


class JournalWriter:
    """Writes events; opened by :meth:`create`. A context manager that holds the journal's lock."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._failure: str | None = None

    @classmethod
    def create(cls, directory: Path) -> Self:
        """A new journal in ``directory``, which is created if it is missing. One whose writer was killed before its
        first line was written is begun again: nothing was measured. Raises JournalError: there is already a journal, or
        the directory cannot be written."""
        path = directory / JOURNAL
        files.make_directory(path)
        descriptor = files.open_alone(path, os.O_CREAT)
        if b"\n" in path.read_bytes():
            os.close(descriptor)
            raise JournalError(
                f"{path} holds the journal of another run: choose another directory, remove it, or resume that run:"
                f" dutperf resume {shlex.quote(str(directory))}"
            )
        os.ftruncate(descriptor, 0)
        files.sync_directory(directory)
        return cls(descriptor, path)

    @property
    def directory(self) -> Path:
        return self._path.parent

    @property
    def repeats(self) -> bool:
        """Whether the next event is already in the journal (:class:`ResumedJournal`)."""
        return False

    def recall(self, kind: type[EventT]) -> EventT | None:
        """The next event, if it is already in the journal and of this ``kind``: its content need not
        be determined again. Else None."""
        return None

    def upcoming(self) -> Event | None:
        """The next event, if it is already in the journal; :meth:`write` still compares with it."""
        return None

    def write(self, event: Event) -> None:
        """Append an event; it is on the disk on return. Raises WriteError: the file cannot be written (disk full). The
        event is removed from it, and every later write fails."""
        if self._failure is not None:
            raise WriteError(self._failure)
        line = line_of(event) + "\n"
        whole = os.fstat(self._descriptor).st_size
        try:
            files.write_all(self._descriptor, line.encode())
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

    def __exit__(self, *_: object) -> None:
        self.close()
