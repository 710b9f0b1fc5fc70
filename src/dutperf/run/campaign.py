# SPDX-License-Identifier: Apache-2.0
"""Runs a measurement: runs a procedure's trials on a tester, repeats trials that are not valid,
writes the journal, derives the summary.

A trial that is not valid says nothing about the DUT, so it is repeated. If repeating does
not help, the load counts as not measurable. Each event is on the disk before the run continues, so
an interrupted run can be resumed (:func:`resume`).
"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from dutperf import procedures
from dutperf.errors import first
from dutperf.journal import (
    DutStateEvent,
    EndEvent,
    EnvironmentEvent,
    Event,
    Finding,
    JournalError,
    JournalWriter,
    PlanEvent,
    ResultEvent,
    ResumedEvent,
    ResumedJournal,
    TrialEvent,
    WaitEvent,
    as_read,
    of_kind,
    plan_of,
)
from dutperf.judge.setup_faults import OF_NEIGHBOURS
from dutperf.machine import host
from dutperf.model import TRIAL_NUMBERS, Case, Cause, Load, Trial, TrialResult, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.base import Procedure
from dutperf.procedures.bench import (
    FindingT,
    MakeTrial,
    Observer,
    Place,
    Plan,
    PlanError,
    Status,
    T,
)
from dutperf.procedures.definition import Definition
from dutperf.procedures.request import Request
from dutperf.procedures.trial_action import ActionRunner, TrialAction
from dutperf.results import by_clients
from dutperf.results.summary import Reader, Summary, summarise, write_summary
from dutperf.run import attempts, tester_needs
from dutperf.run.requests import Requests
from dutperf.run.waiting import announcement, is_dut_down, probe, probe_fps, wait_for_dut
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError
from dutperf.tester import EndTrial, Progress, ProgressCallback, Tester, TesterError, phases
from dutperf.tester.continued import ContinuedTester
from dutperf.tester.replayed import ReplayedTester
from dutperf.traffic.names_in_turn import NamesInTurn
from dutperf.version import __version__

__all__ = ["Observer", "Plan", "PlanError", "Status", "Summary", "definition_of", "measure", "reader_of", "resume"]

_ACTION_MISSED = Cause(
    code="action_missed", text="the trial had ended when its progress was seen: the action on the DUT was not started"
)
QUIET_AFTER = 2
"""After this many inconclusive trials of a load, wait until the machine is quiet: at most for the
time of one trial."""
WAITS = 3
"""How often the DUT may stop forwarding at one load. After that, the outage counts as the effect of
that load."""


def rest(duration_s: float) -> None:
    time.sleep(duration_s)


def measure(
    definition: Definition, tester: Tester, plan: Plan, out: Path, observer: Observer, first_trial: int = 0
) -> Summary:
    """Measure every case by one procedure. Writes ``out/journal.jsonl`` and ``out/summary.json``.

    ``first_trial``: number of the first trial. Different numbers reveal late frames of another run
    on the same test bench.

    A DUT that forwards nothing ends its case, whose point has a message instead of a result, see
    :meth:`Summary.without_number`. An interrupted or failed run still writes a summary of its
    results so far; the exception reaches the caller.

    Raises:
        PlanError: rates contradict each other, or are percentages of an unknown maximum; nothing
            has been written.
        ConfigError: the tester cannot measure by this procedure; nothing has been written.
        JournalError: ``out`` already holds a journal, or cannot be written, or nobody could read what would be in it.
        TesterError: the tester does not work.
    """
    procedure = definition.make(plan)
    event = _plan_event(definition, procedure, plan, first_trial)
    environment = EnvironmentEvent(**_environment(tester, plan))
    _check_readable(definition, plan, event, environment)
    with JournalWriter.create(out) as journal, _ending(journal, definition) as ending:
        journal.write(event)
        journal.write(environment)
        ending["message"] = _run(
            procedure, Campaign(definition.name, procedure.cases, tester, plan, journal, observer, first_trial)
        )
    return write_summary(out, definition)


def check(definition: Definition, plan: Plan) -> None:
    """Check what :func:`measure` checks before it sends anything, as far as it needs no tester."""
    _check_readable(definition, plan, _plan_event(definition, definition.make(plan), plan))


def _plan_event(definition: Definition, procedure: Procedure[Any], plan: Plan, first_trial: int = 0) -> PlanEvent:
    tester_needs.check(definition, plan.config)
    return PlanEvent(
        dutperf=__version__,
        invocation=tuple(plan.invocation),
        source=dict(plan.source),
        first_trial=first_trial,
        **_described(definition, procedure, plan),
    )


def _check_readable(definition: Definition, plan: Plan, *events: Event) -> None:
    """Read the first events of a journal by the rules of its readers (show, resume), before hours are measured for a
    journal that only its writer could read. Raises JournalError: they could not be read, or would say other
    conditions."""
    try:
        read = [as_read(event) for event in events]
        summarise(read, definition)
        again = definition.conditions.recorded(plan_of(read).conditions).stated()
        if other := [name for name, value in plan.conditions.stated().items() if again.get(name, value) != value]:
            raise ValueError(f"they would be read with other values of {', '.join(other)}")
        if plan.config:
            configuration.parse(dict(plan.config), origin="the journal's configuration")
    except (JournalError, ConfigError, ValueError, KeyError, TypeError) as error:
        said = first(error)["msg"] if isinstance(error, ValidationError) else str(error)
        raise JournalError(f"nothing was sent, because nobody could read the results: {said}") from None


def reader_of(plan: PlanEvent) -> Reader:
    """How to read the journal with this plan. Raises JournalError: this version does not have its procedure."""
    return by_clients.READER if plan.procedure == by_clients.READER.name else definition_of(plan)


def definition_of(plan: PlanEvent) -> Definition:
    """The procedure of a journal's plan: that of a run that can be resumed. Raises JournalError: this version does not
    have it, or none chose the trials."""
    if plan.procedure == by_clients.READER.name:
        raise JournalError("the run cannot be resumed: clients of dutperf otg chose its trials; what they got is kept")
    try:
        return procedures.find(plan.procedure)
    except KeyError:
        raise JournalError(f"this version has no procedure {plan.procedure}") from None


def resume(tester: Tester, plan: Plan, journal: ResumedJournal, observer: Observer) -> Summary:
    """Resume the run of ``journal`` on the same test setup. Finished trials are not run again. The
    result is that of an uninterrupted run.

    Raises:
        PlanError, TesterError: see :func:`measure`.
        JournalError: ``plan`` differs from that of the journal, or the procedure now runs other
            trials; nothing is changed.
        WriteError: the journal or the summary cannot be written.
    """
    definition = definition_of(journal.plan)
    procedure = definition.make(plan)
    _check_same(journal.plan, _described(definition, procedure, plan))
    environment = _environment(tester, plan)
    journal.on_resume = lambda: ResumedEvent(dutperf=__version__, invocation=tuple(plan.invocation), **environment)
    continued = ContinuedTester(ReplayedTester(journal.events), tester)
    with _ending(journal, definition) as ending:
        if not any(of_kind(journal.events, EnvironmentEvent)):
            journal.write(EnvironmentEvent(**environment))
        ending["message"] = _run(
            procedure,
            Campaign(
                definition.name,
                procedure.cases,
                continued,
                plan,
                journal,
                observer,
                journal.plan.first_trial,
            ),
        )
    return write_summary(journal.directory, definition)


def _run(procedure: Procedure[Any], campaign: Campaign) -> str | None:
    message = procedure.run(campaign)
    campaign.leave()
    return message


def _environment(tester: Tester, plan: Plan) -> dict[str, Any]:
    """The machine and the tester, as JSON types; with the tester's own delay and rate if measured."""
    calibration = {} if plan.calibration is None else {"calibration": plan.calibration.stated()}
    return {"host": host.environment(), "tester": tester.environment(), **calibration}


def _described(definition: Definition, procedure: Procedure[Any], plan: Plan) -> dict[str, Any]:
    """Everything that determines the trials of a run, as JSON types."""
    return {
        "procedure": definition.name,
        "conditions": plan.conditions.stated(),
        "dut": plan.dut.identity(),
        "config": dict(plan.config),
        "attempts": attempts.stated(),
        **procedure.description(),
    }


def _check_same(recorded: PlanEvent, described: dict[str, Any]) -> None:
    """Raises JournalError if the conditions are not those that the run was started with. ``config``
    may differ: a lab's namespace has another name each time."""
    now, before = json.loads(json.dumps(described)), recorded.as_json()
    differing = [name for name, value in now.items() if name != "config" and value != before[name]]
    if differing:
        raise JournalError(
            f"the run cannot be resumed: the journal has other values of {', '.join(differing)} than this test"
            " setup and this version"
        )


@contextmanager
def _ending(journal: JournalWriter, definition: Definition) -> Iterator[dict[str, str | None]]:
    """Writes how the run ended. After an error it also writes a summary of the results so far."""
    ending: dict[str, str | None] = {"message": None}
    try:
        yield ending
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        message = "interrupted" if interrupted else str(error) or type(error).__name__
        with suppress(JournalError, OSError):  # the caller needs the first error
            journal.write(EndEvent(outcome="interrupted" if interrupted else "error", message=message))
            write_summary(journal.directory, definition)
        raise
    journal.write(EndEvent(outcome="completed" if ending["message"] is None else "ended", message=ending["message"]))


class Campaign:
    """The bench of a procedure (:class:`dutperf.procedures.bench.Bench`)."""

    def __init__(
        self,
        procedure: str,
        cases: Sequence[Case],
        tester: Tester,
        plan: Plan,
        journal: JournalWriter,
        observer: Observer,
        first_trial: int = 0,
    ) -> None:
        self._procedure = procedure
        self._cases = cases
        self._tester = tester
        self._plan = plan
        self._journal = journal
        self._observer = observer
        self._number = first_trial
        self._names = NamesInTurn()
        self._trials = 0
        self._timed_trials = 0
        self._timed_s = 0.0
        self._planned_s = 0.0
        """Of the trial that is run."""
        self._ended_s = -math.inf
        self._attempts = attempts.Attempts()
        self._status: Status | None = None
        self._search: Place | None = None
        self._given_up = False
        self._has_forwarded = False
        self._action: TrialAction | None = None
        self._ended_by: Callable[[], bool] | None = None
        self._told_how = False
        self._requests = Requests(journal.directory)
        self._requests.forget()
        self._hope = 1.0

    def measure(
        self,
        load: Load,
        place: Place,
        make: MakeTrial,
        action: TrialAction | None = None,
        ended_by: Callable[[], bool] | None = None,
    ) -> TrialResult:
        self._action, self._ended_by = action, ended_by
        self._enter(place)
        result = self._until_valid(load, place, make)
        for _ in range(WAITS):
            if not self._should_wait(result) or not self._recovers(place, result):
                break
            result = self._until_valid(load, place, make)
        return result

    def _note(self, result: TrialResult) -> None:
        """What every attempt says of the DUT, in a replay too: a resumed run has to wait where the first one did."""
        if not is_dut_down(result):
            self._given_up = False
            self._has_forwarded |= result.verdict is Verdict.VALID

    def _should_wait(self, result: TrialResult) -> bool:
        """Whether to wait for a DUT that forwards nothing: only if the conditions ask for it, and not again after
        a wait in vain, until a trial does not show that it is down."""
        return is_dut_down(result) and bool(self._plan.conditions.every.dut_patience_s) and not self._given_up

    def requested(self, accept: Callable[[Request], T]) -> T | None:
        return self._requests.take(accept)

    def recorded(self, kind: type[FindingT]) -> FindingT | None:
        event = self._journal.upcoming()
        return kind.of(event) if isinstance(event, Finding) and event.event == kind.name() else None

    def record(self, finding: Finding, place: Place) -> None:
        self._journal.write(finding.model_copy(update=_where(place)))

    def say(self, note: str, place: Place) -> None:
        trying = self._status.trying if self._status is not None else None
        self._show(self._status_of(trying, place, note))

    def leave(self) -> None:
        """The last trial of a search has ended: record the DUT's state."""
        if self._search is not None:
            self._record_state("after", self._search)
            self._search = None

    def _enter(self, place: Place) -> None:
        """Record the state before the first trial of a search, and after the last one of the previous
        search."""
        if self._search is None or _where(place) != _where(self._search):
            self.leave()
            self._search = place
            self._record_state("before", place)

    def _record_state(self, when: Literal["before", "after"], place: Place) -> None:
        if not self._plan.dut.can("state") or self._journal.recall(DutStateEvent) is not None:
            return
        output = self._plan.dut.state()
        digest = sha256(output.encode()).hexdigest()
        self._journal.write(DutStateEvent(**_where(place), when=when, sha256=digest, output=output))

    def _until_valid(self, load: Load, place: Place, make: MakeTrial) -> TrialResult:
        settled = self._attempts.settled(load, place)
        if settled is not None:
            return settled
        note = None
        visit = self._attempts.visit(load, place)
        for attempt in count(1):
            trial = self._may_end_early(self._numbered(make))
            where = {**_where(place), "load": load, "attempt": attempt}
            if attempt > QUIET_AFTER and not self._journal.repeats:
                self._await_quiet(trial.whole_s)
            is_new = not self._journal.repeats
            result = self._run(trial, load, where, place, note)
            self._note(result)
            if is_new and not self._should_wait(result):
                _check_setup(result)
            most = visit.goes_on_after(trial, result)
            if most is None:
                break
            note = f"trial {self._trials} says nothing about the DUT, attempt {attempt} of at most {most}"
        return result

    def _await_quiet(self, longest_s: float) -> None:
        """Wait until nothing disturbs the tester. After a wait in vain the next one is shorter."""
        limit_s = longest_s * self._hope
        self._hope = self._hope / 2 if self._tester.wait_until_quiet(limit_s) >= limit_s else 1.0

    def _may_end_early(self, trial: Trial) -> Trial:
        """``trial``, permitted to end early if that loses nothing: no action on the DUT belongs to it, no one
        else ends it, and its load does not change to bring the DUT into a state."""
        whole = (
            self._action is not None
            or self._ended_by is not None
            or trial.question.links_may_fall
            or any(stream.then is not None for stream in trial.streams().values())
        )
        return (
            trial
            if whole
            else trial.model_copy(update={"question": trial.question.model_copy(update={"may_end_early": True})})
        )

    def _recovers(self, place: Place, result: TrialResult) -> bool:
        """Wait for a DUT that is down; whether it forwards again."""
        recorded = self._journal.recall(WaitEvent)
        if recorded is None:
            answered = self._wait(place, result)
        else:
            for _ in range(recorded.probes):
                self._probing_trial(place.case)
            answered = recorded.answered
        self._given_up = not answered
        return answered

    def _wait(self, place: Place, result: TrialResult) -> bool:
        patience_s = self._plan.conditions.every.dut_patience_s
        self.say(announcement(result, self._plan.traffic.setup, patience_s), place)
        waited = wait_for_dut(self._tester, lambda: self._probing_trial(place.case), patience_s)
        self._journal.write(
            WaitEvent(
                **_where(place),
                trial=result.trial,
                answered=waited.answered,
                waited_s=round(waited.waited_s, 3),
                probes=waited.probes,
            )
        )
        forwards = "forwards again" if self._has_forwarded else "forwards now"
        self.say(
            f"the DUT {forwards if waited.answered else 'still forwards nothing'} after {waited.waited_s:.0f} s", place
        )
        self._has_forwarded |= waited.answered
        return waited.answered

    def _run(self, trial: Trial, load: Load, where: dict[str, Any], place: Place, note: str | None) -> TrialResult:
        """Run one trial of ``load``; ``where``: its place in the journal."""
        self._planned_s = trial.whole_s
        self._show(self._status_of(load, place, note))
        if self._ended_by is not None and not self._journal.repeats and not self._told_how:
            self._told_how = True
            directory = shlex.quote(str(self._journal.directory))
            self.say(
                f"to change the rate: dutperf set-rate {directory} RATE; to end: dutperf set-rate {directory} --end",
                place,
            )
        run = self._tester.run if self._journal.repeats else self._settled_run
        self._journal.write(TrialEvent(**where, trial=trial))
        result = run(trial, self._progressed)
        self._trials += 1
        _check_directions(trial, result)
        self._journal.write(ResultEvent(**where, trial=trial.trial, result=result))
        self._show(
            replace(self._status_of(load, replace(place, trials_left=max(0, place.trials_left - 1)), note), last=result)
        )
        return result

    def _numbered(self, make: MakeTrial) -> Trial:
        """The next trial. Each of its phases takes a number, and names that no trial before it had."""
        trial = self._names.given_to(make(self._number % TRIAL_NUMBERS))
        self._number += trial.numbers
        return trial

    def _probing_trial(self, case: Case) -> Trial:
        load = Load.fps(probe_fps(self._plan.conditions))
        return self._numbered(lambda number: probe(self._plan.traffic.trial(case, load, number)))

    def _settled_run(self, trial: Trial, on_progress: ProgressCallback) -> TrialResult:
        """Run ``trial`` after the DUT's rest since the previous one (RFC 2544 section 23 (e)), and time
        it."""
        rest_s = self._ended_s + self._plan.conditions.every.settle_s - time.monotonic()
        if rest_s > 0:
            rest(rest_s)
        if trial.question.clear_addresses:
            self._plan.dut.clear_addresses()
        began_s = time.monotonic()
        runner = ActionRunner(self._action, partial(self._progressed_or_ended, on_progress))
        with runner.around_trial():
            result = phases.run(
                self._tester,
                trial,
                runner.progressed,
                on_preliminary=self._progressed,
                dut=self._plan.dut,
                timeout_s=self._plan.traffic.setup.stateful.timeout_s,
            )
        if runner.missed and result.verdict is Verdict.VALID:
            result = result.model_copy(update={"verdict": Verdict.INVALID, "causes": (_ACTION_MISSED,)})
        self._ended_s = time.monotonic()
        self._timed_trials += 1
        self._timed_s += self._ended_s - began_s
        return result

    def _progressed(self, progress: Progress) -> None:
        if self._status is not None and not self._journal.repeats:
            self._observer.update(replace(self._status, progress=progress))

    def _progressed_or_ended(self, on_progress: ProgressCallback, progress: Progress) -> None:
        on_progress(progress)
        if self._ended_by is not None and self._ended_by():
            raise EndTrial

    def _show(self, status: Status) -> None:
        """Update the observer, except while the journal is replayed."""
        self._status = status
        if not self._journal.repeats:
            self._observer.update(status)

    def _status_of(self, trying: Load | None, place: Place, note: str | None) -> Status:
        return Status(
            procedure=self._procedure,
            case=place.case,
            cases=self._cases,
            repetition=place.repetition,
            repetitions=place.repetitions,
            trying=trying,
            lower=place.lower,
            upper=place.upper,
            trials_done=self._trials,
            trials_left=place.trials_left,
            remaining_s=place.trials_left * self._trial_s(),
            last=self._last(),
            note=note,
        )

    def _trial_s(self) -> float:
        """How long a trial takes, with the rest after it: the mean so far; before the first trial, or if
        others may end it, the planned time."""
        is_planned = not self._timed_trials or self._ended_by is not None
        mean_s = self._planned_s if is_planned else self._timed_s / self._timed_trials
        return self._plan.conditions.every.settle_s + mean_s

    def _last(self) -> TrialResult | None:
        return None if self._status is None else self._status.last


def _where(place: Place) -> dict[str, Any]:
    return {"case": place.case.key(), "repetition": place.repetition}


def _check_setup(result: TrialResult) -> None:
    """Raises TesterError if no further trial can be valid, of whichever case: its addresses are those of all."""
    lasting = next((cause.code for cause in result.causes if cause.lasts and cause.code in OF_NEIGHBOURS), None)
    if lasting is not None:
        raise TesterError(evidence.lasting(result), code=lasting)


def _check_directions(trial: Trial, result: TrialResult) -> None:
    if result.ended_in is not None:
        return
    if result.verdict is Verdict.VALID and result.directions().keys() != trial.streams().keys():
        raise TesterError(
            f"the tester counted {', '.join(result.directions()) or 'nothing'}, but the trial sends"
            f" {', '.join(trial.streams())}"
        )
