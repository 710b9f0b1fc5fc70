# SPDX-License-Identifier: Apache-2.0
"""Resumes a journal whose run ended early.

A procedure is a function of its trials' results. So a run is resumed by giving it the results that
the journal holds: it then comes to the same events again, which are compared, and writes only new
ones.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Self

from dutperf.journal import files
from dutperf.journal.events import (
    EndEvent,
    Environment,
    Event,
    EventT,
    PlanEvent,
    ResultEvent,
    ResumedEvent,
    TrialEvent,
)
from dutperf.journal.files import JOURNAL, JournalError, WriteError
from dutperf.journal.reader import is_complete, plan_of, read
from dutperf.journal.writer import JournalWriter

_NOT_REPEATED = (PlanEvent, Environment, EndEvent)
"""A resumed run does not come to these again (``resumed`` is an environment too)."""


class ResumedJournal(JournalWriter):
    """The journal of a run that ended early; made by :meth:`open`.

    Until all recorded events have come again, :meth:`write` compares and writes nothing. Then a
    torn last line is cut, and ``resumed`` is written.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, path)
        self.events = read(path.parent)
        """All recorded ones."""
        self.plan = plan_of(self.events, path)
        self.on_resume: Callable[[], ResumedEvent] | None = None
        """Makes the event ``resumed``."""
        self._recorded = deque(_to_repeat(self.events))
        self._resumed = False

    @classmethod
    def open(cls, directory: Path) -> Self:
        """The journal in ``directory``, which is not changed before there is something new to
        write.

        Raises:
            JournalError: there is none, it cannot be read or written, it has no plan or is of
                another format.
        """
        path = directory / JOURNAL
        if not path.exists():
            raise JournalError(f"{directory} holds no journal ({JOURNAL}): there is no run to resume")
        descriptor = files.open_alone(path)
        try:
            return cls(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def is_complete(self) -> bool:
        """Whether the procedure came to its end."""
        return is_complete(self.events)

    @property
    def repeats(self) -> bool:
        """See :meth:`JournalWriter.repeats`."""
        return bool(self._recorded)

    def recall(self, kind: type[EventT]) -> EventT | None:
        """See :meth:`JournalWriter.recall`."""
        if not self._recorded or not isinstance(event := self._recorded[0], kind):
            return None
        self._recorded.popleft()
        return event

    def write(self, event: Event) -> None:
        """See :meth:`JournalWriter.write`.

        Raises:
            JournalError: ``event`` is not the one that was recorded.
        """
        if self._recorded:
            self._compare(event)
            return
        if not self._resumed:
            self._cut()
            self._resumed = True
            if self.on_resume is not None:
                super().write(self.on_resume())
        super().write(event)

    def _compare(self, event: Event) -> None:
        was = self._recorded[0]
        if json.loads(json.dumps(event.as_json())) != was.as_json():
            raise JournalError(
                f"{self._path} cannot be resumed: at {was.time} the run came to another {was.event} event than it does"
                " now"
            )
        self._recorded.popleft()

    def _cut(self) -> None:
        """Remove the torn line after the last line feed."""
        try:
            os.ftruncate(self._descriptor, self._path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise WriteError(f"cannot write {self._path}: {error.strerror}") from error


def _to_repeat(events: Sequence[Event]) -> list[Event]:
    """The events that a procedure comes to again, in order; without trials that have no result."""
    repeated = [event for event in events if not isinstance(event, _NOT_REPEATED)]
    return [
        event
        for event, follower in zip_longest(repeated, repeated[1:])
        if not isinstance(event, TrialEvent) or isinstance(follower, ResultEvent)
    ]
