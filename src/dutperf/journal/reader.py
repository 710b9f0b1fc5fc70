# SPDX-License-Identifier: Apache-2.0
"""Reads a journal and tells the state of its run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dutperf.journal.events import (
    FINAL,
    FORMAT,
    EndEvent,
    Event,
    EventT,
    PlanEvent,
    ResumedEvent,
    TrialEvent,
    WaitEvent,
    event_of_json,
    line_of,
)
from dutperf.journal.files import JOURNAL, TRIAL_FILE, JournalError


def read(directory: Path) -> list[Event]:
    """The events of the journal in ``directory``, without an incomplete last line (the run was killed while writing
    it). Raises JournalError: there is no journal, it has another format, or it is corrupt before its last line."""
    path = directory / JOURNAL
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        if (directory / TRIAL_FILE).is_file():
            raise JournalError(
                f"{directory} holds a single trial, not a run: dutperf show {shlex.quote(str(directory))}"
            ) from None
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise JournalError(f"there is no run in {directory}: it has no {JOURNAL}") from None
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    # A line is complete only with its line feed: what follows the last one is empty or torn.
    return [_event(path, number, line) for number, line in enumerate(lines[:-1], start=1)]


def as_read(event: Event) -> Event:
    """The event as a reader has it. Raises JournalError, ValueError: no reader could read it."""
    return _event(Path(JOURNAL), 1, line_of(event).encode())


def plan_of(events: Sequence[Event], path: Path | None = None) -> PlanEvent:
    """The plan, which is the first event of a journal. Raises JournalError: there is no plan."""
    if not events or not isinstance(events[0], PlanEvent):
        name = "the journal" if path is None else str(path)
        raise JournalError(f"{name} has no first line, the plan: it was cut, or its run was killed before it began")
    return events[0]


def of_kind(events: Iterable[Event], kind: type[EventT]) -> Iterator[EventT]:
    return (event for event in events if isinstance(event, kind))


def end_of(events: Sequence[Event]) -> EndEvent | None:
    """The last end of a run; None: it was killed, or is running."""
    last = next((event for event in reversed(events) if isinstance(event, EndEvent | ResumedEvent)), None)
    return last if isinstance(last, EndEvent) else None


def is_complete(events: Sequence[Event]) -> bool:
    end = end_of(events)
    return end is not None and end.outcome in FINAL


def next_trial(events: Sequence[Event]) -> int:
    """Number of the next trial after those of a journal. Probes of a DUT that did not answer count as
    trials."""
    number = plan_of(events).first_trial
    for event in events:
        if isinstance(event, TrialEvent):
            number = event.trial.trial + 1 + (event.trial.connections is not None)  # asked for those that are left
        elif isinstance(event, WaitEvent):
            number += event.probes
    return number


def _event(path: Path, number: int, line: bytes) -> Event:
    try:
        members: Any = json.loads(line)
    except ValueError as error:
        raise JournalError(f"{path}, line {number}: not JSON") from error
    if not isinstance(members, dict) or not isinstance(members.get("event"), str):
        raise JournalError(f"{path}, line {number}: not an event")
    if members["event"] == "plan" and members.get("format") != FORMAT:
        raise JournalError(
            f"{path} has format {members.get('format')}, this version reads format {FORMAT}: read it with the version"
            " that wrote it, or measure again"
        )
    try:
        return event_of_json(members)
    except ValueError as error:
        raise JournalError(f"{path}, line {number}: {error}") from None
