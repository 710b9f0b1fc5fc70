# SPDX-License-Identifier: Apache-2.0
"""Resumes a journal whose run ended early.

A procedure is a function of its trials' results. To resume a run, the procedure gets the recorded
results and so repeats the recorded events. These are compared with the journal; only new events are
written.
"""

from __future__ import annotations

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
"""Events that a resumed run does not repeat (``resumed`` is an environment too)."""


class ResumedJournal(JournalWriter):
    """The journal of a run that ended early; opened by :meth:`open`.

    While recorded events are repeated, :meth:`write` only compares. At the first new event it cuts
    a torn last line and writes ``resumed``.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, path)
        self.events = read(path.parent)
        self.plan = plan_of(self.events, path)
        self.on_resume: Callable[[], ResumedEvent] | None = None
        self._recorded = deque(_to_repeat(self.events))
        self._resumed = False

    @classmethod
    def open(cls, directory: Path) -> Self:
        """The journal in ``directory``. It is not changed before the first new event. Raises JournalError: there is no
        journal, it cannot be read or written, it has no plan, or it has another format."""
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
        return is_complete(self.events)

    @property
    def repeats(self) -> bool:
        return bool(self._recorded)

    def recall(self, kind: type[EventT]) -> EventT | None:
        if not self._recorded or not isinstance(event := self._recorded[0], kind):
            return None
        self._recorded.popleft()
        return event

    def upcoming(self) -> Event | None:
        return self._recorded[0] if self._recorded else None

    def write(self, event: Event) -> None:
        """See :meth:`JournalWriter.write`. Raises JournalError: ``event`` differs from the recorded one."""
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
        if event.as_json() != was.as_json():
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
    """The events that a procedure repeats, in order; without trials that have no result."""
    repeated = [event for event in events if not isinstance(event, _NOT_REPEATED)]
    return [
        event
        for event, follower in zip_longest(repeated, repeated[1:])
        if not isinstance(event, TrialEvent) or isinstance(follower, ResultEvent)
    ]
