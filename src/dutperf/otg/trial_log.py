# SPDX-License-Identifier: Apache-2.0
"""What clients had a server do: its configurations and trials. The verdicts that clients ask for are made of the same
results as the journal of the run, where there is one.

Only configurations and trials are events: a client that asks for metrics makes nothing grow.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from dutperf.journal import (
    EndEvent,
    EnvironmentEvent,
    Event,
    JournalWriter,
    PlanEvent,
    ResultEvent,
    TrialEvent,
    WriteError,
)
from dutperf.machine import host
from dutperf.model import Cause, Direction, Load, Trial, TrialResult, axes_as_json
from dutperf.otg.flows import Flow
from dutperf.otg.model import Message, Rejected, as_members
from dutperf.results.by_clients import CASE, READER, ConfigurationFinding, PortsFinding
from dutperf.results.summary import write_summary
from dutperf.run import progress, suite
from dutperf.run.campaign import Observer, Status, Summary
from dutperf.setup.conditions import Conditions
from dutperf.spelling import count_of
from dutperf.tester import Progress
from dutperf.version import __version__

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Who asks, as the transport knows it."""
MOST_TRIALS = 1000
"""Of which the verdicts are kept for clients."""
MOST_COUNTS = 5000
"""Counts of a flow in a trial that are kept with them: of many flows fewer trials are."""
SHOWN_S = 0.5
"""Between two notes of the progress."""


class TrialLog:
    """The configurations and trials of a server. One thread at a time may call its methods.

    ``journal``: gets them as events; None: nothing is kept on the disk. ``observer``: is shown what runs now.
    """

    def __init__(self, journal: JournalWriter | None = None, observer: Observer | None = None) -> None:
        self._journal, self._observer = journal, observer
        self.summary: Summary | None = None
        """Of the whole run, once it has ended."""
        self._verdicts: deque[dict[str, Any]] = deque(maxlen=MOST_TRIALS)
        self._names: dict[Direction, str] = {}
        """Of the flows of the present configuration, by those in trials."""
        self._internal = re.compile("(?!)")
        """Any of the latter."""
        self._configurations = self._trials = 0
        self._text = ""
        """Of the present configuration."""
        self._tester: Mapping[str, Any] | None = None
        """The environment that was noted last."""
        self._trying: Load | None = None
        self._last: TrialResult | None = None
        self._shown_s, self._has_news = 0.0, True

    # --- what happens ---------------------------------------------------------------------------------

    def configured(self, configuration: Message, flows: Sequence[Flow]) -> None:
        """A client has set or changed a configuration."""
        self._names = {one.direction: one.name for one in flows}
        longest_first = sorted(self._names, key=len, reverse=True)  # flow-10 before flow-1
        self._internal = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._configurations += 1
        if self._journal is None:
            return  # a large configuration takes a while to write
        members = as_members(configuration)
        before, self._text = self._text, json.dumps(members)
        self._write_if_possible(
            ConfigurationFinding(
                case=CASE.key(),
                number=self._configurations,
                client=CLIENT.get(),
                flows=self._names,
                configuration=None if self._text == before else members,
            )
        )

    def forget(self) -> None:
        """What is sent from now on is of another configuration: it has no verdicts yet."""
        self._verdicts.clear()

    def opened(self, tester: Mapping[str, Any]) -> None:
        """The tester has opened ports; ``tester`` is its environment."""
        if self._journal is None or tester == self._tester:
            return
        is_first, self._tester = self._tester is None, tester
        self._write_if_possible(
            EnvironmentEvent(host=host.environment(), tester=dict(tester))
            if is_first
            else PortsFinding(case=CASE.key(), tester=dict(tester))
        )

    def begins(self, trial: Trial) -> None:
        """Flows are about to be sent. Raises Rejected: the journal cannot be written, and no trial is run that it does
        not have."""
        self._trials += 1
        self._trying = Load.fps(max(stream.rate_fps for stream in trial.streams().values()))
        try:
            self._write(TrialEvent(**self._where(), trial=trial))
        except WriteError as error:
            self._trying = None
            raise Rejected(error.sentence, code=500, kind="internal") from None

    def ended(self, trial: Trial, result: TrialResult) -> None:
        """They have been sent."""
        result = result.model_copy(
            update={"causes": tuple(one.model_copy(update={"text": self._said(one.text)}) for one in result.causes)}
        )
        self._last = result
        self._verdicts.append(verdict_of(trial, result, self._names))
        while len(self._verdicts) > 1 and sum(len(one["counts"]) for one in self._verdicts) > MOST_COUNTS:
            self._verdicts.popleft()
        event = ResultEvent(**self._where(), trial=trial.trial, result=result)
        self._trying = None
        self._write_if_possible(event)

    def verdicts(self) -> list[dict[str, Any]]:
        """Of each trial since the configuration was set, oldest first: flows, verdict, causes and all counts."""
        return list(self._verdicts)

    def doubts(self) -> list[str]:
        """Why the last trial says nothing about the DUT. What is true of several flows is told of the worst one."""
        if self._last is None:
            return []
        alike: dict[tuple[str, bool], list[Cause]] = {}
        for one in self._last.causes:
            alike.setdefault((one.code, one.direction is not None), []).append(one)
        return [text for (_, of_flows), each in alike.items() for text in self._told(each, of_flows)]

    def _told(self, alike: Sequence[Cause], of_flows: bool) -> Iterator[str]:
        flows = {one.direction for one in alike}
        if not of_flows or len(flows) == 1:
            yield from (f"not valid: {one.text}" for one in alike)
        else:
            yield f"not valid: {max(alike, key=self._severity).text}; the worst of {len(flows):,} flows"

    def _severity(self, cause: Cause) -> tuple[int, float]:
        """Frames that were not sent, and the lateness of the latest one; of a trial without counts 0."""
        counts = self._last and (self._last.other_streams or {}).get(cause.direction or Direction.FORWARD)
        return (counts.intended - counts.sent, counts.lateness_us.max) if counts else (0, 0.0)

    def end(self, outcome: Literal["completed", "error"], message: str | None) -> None:
        """Write how the run ended, and its summary. Raises WriteError: the journal could not be written, now or
        before."""
        if self._journal is not None:
            self._journal.write(EndEvent(outcome=outcome, message=message))
            self.summary = write_summary(self._journal.directory, READER)

    # --- what it does now -----------------------------------------------------------------------------

    def show(self, now: Progress | None) -> None:
        """Show the observer what runs now; None: no trial."""
        at_s = time.monotonic()
        if self._observer is None or at_s < self._shown_s + SHOWN_S or (now is None and not self._has_news):
            return
        self._shown_s, self._has_news = at_s, False
        self._observer.update(
            Status(
                procedure=READER.name,
                case=CASE,
                cases=(CASE,),
                repetition=self._trials,
                repetitions=self._trials,
                trying=self._trying,
                lower=None,
                upper=None,
                trials_done=self._trials - (self._trying is not None),
                trials_left=0,
                remaining_s=0.0,
                progress=now,
                last=self._last,
                note=self._note(),
            )
        )

    def _note(self) -> str:
        if not self._configurations:
            return "no configuration has been set"
        sent = f"{count_of(len(self._names), 'flow')}, {'a trial runs' if self._trying else 'no trial runs'}"
        last = ""
        if self._last is not None:
            last = "; ".join([f"; the last trial was {self._last.verdict}", *(one.text for one in self._last.causes)])
        return f"configuration {self._configurations}: {sent}{last}"

    # --- parts ----------------------------------------------------------------------------------------

    def _where(self) -> dict[str, Any]:
        return {"case": CASE.key(), "repetition": self._trials, "load": self._trying, "attempt": 1}

    def _said(self, text: str) -> str:
        """A cause with the flows' names of the configuration."""
        return self._internal.sub(lambda found: self._names[Direction(found[0])], text)

    def _write(self, event: Event) -> None:
        self._has_news = True
        if self._journal is not None:
            self._journal.write(event)

    def _write_if_possible(self, event: Event) -> None:
        """A journal that could not be written takes no later event either: the next trial is refused."""
        with suppress(WriteError):
            self._write(event)


def verdict_of(trial: Trial, result: TrialResult, names: Mapping[Direction, str]) -> dict[str, Any]:
    """The verdict of a trial for clients, who know its flows by ``names``: JSON types."""
    return {
        "flows": [names[direction] for direction in trial.streams()],
        "verdict": str(result.verdict),
        "causes": [one.text for one in result.causes],
        "counts": {
            names[direction]: counts.model_dump(mode="json", exclude_none=True)
            for direction, counts in (result.other_streams or {}).items()
        },
    }


@contextmanager
def in_directory(out: Path, plan: PlanEvent) -> Iterator[TrialLog]:
    """A log with a journal in ``out``, and ``progress.json`` as long as it lasts; at the end a summary. Raises
    JournalError: ``out`` has other results, or cannot be written."""
    suite.check_free(out)
    with JournalWriter.create(out) as journal, progress.observed(READER.name, out) as observer:
        journal.write(plan)
        log = TrialLog(journal, observer)
        outcome: Literal["completed", "error"] = "completed"
        message = None
        try:
            yield log
        except Exception as error:
            outcome, message = "error", str(error) or type(error).__name__
            raise
        finally:
            log.end(outcome, message)


def plan_event(drain_s: float, **members: Any) -> PlanEvent:
    """The plan of a server's run; ``members``: ``invocation``, ``source``, ``config`` and ``dut`` of it."""
    return PlanEvent(
        dutperf=__version__,
        procedure=READER.name,
        conditions=Conditions(drain_s=drain_s).stated(),
        attempts={},
        search={"algorithm": "by clients of the Open Traffic Generator API"},
        axes=axes_as_json(CASE),
        cases=[{"case": CASE.as_json()}],
        **members,
    )
