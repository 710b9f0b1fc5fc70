# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, ``DIR/journal.jsonl``: one line of JSON for each event
(:mod:`dutperf.journal.events`). An event is on the disk before the run continues."""

from __future__ import annotations

from dutperf.journal.events import (
    FORMAT,
    DutStateEvent,
    EndEvent,
    Environment,
    EnvironmentEvent,
    Event,
    Finding,
    PlanEvent,
    RepetitionFinding,
    ResultEvent,
    ResumedEvent,
    TrialEvent,
    WaitEvent,
)
from dutperf.journal.files import (
    JOURNAL,
    TRIAL_FILE,
    JournalError,
    WriteError,
    check_free,
    claim,
    held,
    is_being_written,
    journals_of,
    new_and_held,
    not_written,
    write_new,
    write_whole,
)
from dutperf.journal.reader import as_read, end_of, is_complete, next_trial, of_kind, plan_of, read
from dutperf.journal.resumed import ResumedJournal
from dutperf.journal.writer import JournalWriter

__all__ = [
    "FORMAT",
    "JOURNAL",
    "TRIAL_FILE",
    "DutStateEvent",
    "EndEvent",
    "Environment",
    "EnvironmentEvent",
    "Event",
    "Finding",
    "JournalError",
    "JournalWriter",
    "PlanEvent",
    "RepetitionFinding",
    "ResultEvent",
    "ResumedEvent",
    "ResumedJournal",
    "TrialEvent",
    "WaitEvent",
    "WriteError",
    "as_read",
    "check_free",
    "claim",
    "end_of",
    "held",
    "is_being_written",
    "is_complete",
    "journals_of",
    "new_and_held",
    "next_trial",
    "not_written",
    "of_kind",
    "plan_of",
    "read",
    "write_new",
    "write_whole",
]
