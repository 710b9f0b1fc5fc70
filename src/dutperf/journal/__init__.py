# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, ``DIR/journal.jsonl``: one line of JSON for each event
(:mod:`dutperf.journal.events`). An event is on the disk before the run continues."""

from __future__ import annotations

from dutperf.journal.events import FORMAT as FORMAT
from dutperf.journal.events import DutStateEvent as DutStateEvent
from dutperf.journal.events import EndEvent as EndEvent
from dutperf.journal.events import Environment as Environment
from dutperf.journal.events import EnvironmentEvent as EnvironmentEvent
from dutperf.journal.events import Event as Event
from dutperf.journal.events import Finding as Finding
from dutperf.journal.events import PlanEvent as PlanEvent
from dutperf.journal.events import RepetitionFinding as RepetitionFinding
from dutperf.journal.events import ResultEvent as ResultEvent
from dutperf.journal.events import ResumedEvent as ResumedEvent
from dutperf.journal.events import TrialEvent as TrialEvent
from dutperf.journal.events import WaitEvent as WaitEvent
from dutperf.journal.files import JOURNAL as JOURNAL
from dutperf.journal.files import TRIAL_FILE as TRIAL_FILE
from dutperf.journal.files import JournalError as JournalError
from dutperf.journal.files import WriteError as WriteError
from dutperf.journal.files import check_free as check_free
from dutperf.journal.files import claim as claim
from dutperf.journal.files import held as held
from dutperf.journal.files import is_being_written as is_being_written
from dutperf.journal.files import journals_of as journals_of
from dutperf.journal.files import new_and_held as new_and_held
from dutperf.journal.files import not_written as not_written
from dutperf.journal.files import write_new as write_new
from dutperf.journal.files import write_whole as write_whole
from dutperf.journal.reader import as_read as as_read
from dutperf.journal.reader import end_of as end_of
from dutperf.journal.reader import is_complete as is_complete
from dutperf.journal.reader import next_trial as next_trial
from dutperf.journal.reader import of_kind as of_kind
from dutperf.journal.reader import plan_of as plan_of
from dutperf.journal.reader import read as read
from dutperf.journal.resumed import ResumedJournal as ResumedJournal
from dutperf.journal.writer import JournalWriter as JournalWriter
