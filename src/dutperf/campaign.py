# SPDX-License-Identifier: Apache-2.0
"""Conducts a measurement: runs a procedure's trials on a tester, repeats those that are not valid, keeps the journal, derives the summary.

A trial that is not valid says nothing about the DUT, so it is repeated; only when repeats do not help, the procedure is told that the load cannot
be measured. Everything is in the journal before anything else happens with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dutperf import __version__, host
from dutperf import procedure as procedures
from dutperf.journal import FORMAT, JournalError, JournalWriter
from dutperf.model import Trial, TrialResult, Verdict, to_json
from dutperf.procedure.bench import Amend, Observer, Place, Plan, PlanError, Status, TrialFactory
from dutperf.procedure.definition import Definition
from dutperf.report.summary import Summary, write_summary
from dutperf.tester import Progress, Tester, TesterError

__all__ = ["Observer", "Plan", "PlanError", "Status", "Summary", "TrialFactory", "measure"]

ATTEMPTS = 4
"""Trials of one load before it counts as beyond the tester's reach."""
ATTEMPTS_WITHIN_REACH = 10
"""... where the tester has already made a valid trial of this frame size at that load or a higher one: then it is disturbed, not too slow."""
TRIAL_NUMBERS = 65536
"""A test frame carries 16 bits of the trial's number; frames of a trial so many trials ago are long gone."""


def measure(definition: Definition, tester: Tester, plan: Plan, out: Path, observer: Observer) -> Summary:
    """Measure every frame size by one procedure; writes ``out/journal.jsonl`` and ``out/summary.json``.

    A DUT that forwards nothing ends the run: its point has a message instead of a result, see :meth:`Summary.without_number`.
    Interrupted or failed, the run still leaves a summary of what was measured, and the exception goes on to the caller.

    Raises:
        PlanError: rates that contradict each other, or percentages of an unknown maximum; nothing has been written then.
        JournalError: ``out`` already holds a journal, or cannot be written.
        TesterError: the tester cannot work at all.
    """
    procedure = definition.make(plan)
    description = procedure.description()
    with JournalWriter.create(out) as journal:
        attempts = {"beyond_reach": ATTEMPTS, "within_reach": ATTEMPTS_WITHIN_REACH}
        journal.write(
            "plan",
            format=FORMAT,
            procedure=definition.name,
            dutperf=__version__,
            conditions=procedures.conditions_of(definition, plan.conditions),
            dut=dict(plan.dut),
            config=dict(plan.config),
            invocation=list(plan.invocation),
            attempts=attempts,
            **description,
        )
        with _ending(journal, out, definition) as ending:
            journal.write("environment", host=host.environment(), tester=tester.environment())
            ending["message"] = procedure.run(Campaign(definition.name, tester, plan, journal, observer))
    return write_summary(out, definition.point)


@contextmanager
def _ending(journal: JournalWriter, out: Path, definition: Definition) -> Iterator[dict[str, str | None]]:
    """Writes how the run ended, also where it did not end well; a summary of what there is then."""
    ending: dict[str, str | None] = {"message": None}
    try:
        yield ending
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        message = "interrupted" if interrupted else str(error) or type(error).__name__
        with suppress(JournalError, OSError):  # what went wrong first is what the caller has to hear of
            journal.write("end", outcome="interrupted" if interrupted else "error", message=message)
            write_summary(out, definition.point)
        raise
    journal.write("end", outcome="completed" if ending["message"] is None else "ended", message=ending["message"])


class Campaign:
    """The bench of a procedure (:class:`dutperf.procedure.bench.Bench`)."""

    def __init__(self, procedure: str, tester: Tester, plan: Plan, journal: JournalWriter, observer: Observer) -> None:
        self._procedure = procedure
        self._tester = tester
        self._plan = plan
        self._journal = journal
        self._observer = observer
        self._trials = 0
        self._trials_s = 0.0
        self._reach_fps: dict[int, int] = {}
        self._status: Status | None = None

    def measure(self, rate_fps: int, place: Place, amend: Amend | None = None) -> TrialResult:
        """See :meth:`dutperf.procedure.bench.Bench.measure`."""
        note = None
        attempts = ATTEMPTS_WITHIN_REACH if rate_fps <= self._reach_fps.get(place.frame_size, 0) else ATTEMPTS
        for attempt in range(1, attempts + 1):
            trial = self._trial(rate_fps, place)
            where = {"frame_size": place.frame_size, "repetition": place.repetition, "rate_fps": rate_fps, "attempt": attempt}
            result = self._run(amend(trial) if amend else trial, where, place, note)
            if result.verdict is Verdict.VALID:
                self._reach_fps[place.frame_size] = max(rate_fps, self._reach_fps.get(place.frame_size, 0))
                break
            note = f"trial {self._trials} says nothing about the DUT, attempt {attempt} of {attempts}"
        return result

    def record(self, event: str, **members: Any) -> None:
        """See :meth:`dutperf.procedure.bench.Bench.record`."""
        self._journal.write(event, **members)

    def say(self, note: str, place: Place) -> None:
        """See :meth:`dutperf.procedure.bench.Bench.say`."""
        trying_fps = self._status.trying_fps if self._status is not None else 0
        self._show(self._status_of(trying_fps, place, note))

    def _run(self, trial: Trial, where: dict[str, int], place: Place, note: str | None) -> TrialResult:
        """One trial; ``where`` says in the journal what it is."""
        rate_fps = where["rate_fps"]
        self._show(self._status_of(rate_fps, place, note))
        self._journal.write("trial", **where, trial=to_json(trial))
        result = self._timed_run(trial)
        self._journal.write("result", **where, trial=trial.trial, result=to_json(result))
        self._show(replace(self._status_of(rate_fps, replace(place, trials_left=max(0, place.trials_left - 1)), note), last=result))
        return result

    def _trial(self, rate_fps: int, place: Place) -> Trial:
        trial = self._plan.make_trial(place.frame_size, rate_fps, self._trials % TRIAL_NUMBERS)
        return trial if place.duration_s is None else trial.lasting(place.duration_s)

    def _timed_run(self, trial: Trial) -> TrialResult:
        began_s = time.monotonic()
        result = self._tester.run(trial, self._progressed)
        self._trials += 1
        self._trials_s += time.monotonic() - began_s
        if result.verdict is Verdict.VALID and result.directions().keys() != trial.streams().keys():
            raise TesterError(f"the tester counted {', '.join(result.directions()) or 'nothing'}, but the trial sends {', '.join(trial.streams())}")
        return result

    def _progressed(self, progress: Progress) -> None:
        if self._status is not None:
            self._observer.update(replace(self._status, progress=progress))

    def _show(self, status: Status) -> None:
        self._status = status
        self._observer.update(status)

    def _status_of(self, rate_fps: int, place: Place, note: str | None) -> Status:
        return Status(
            procedure=self._procedure,
            frame_size=place.frame_size,
            repetition=place.repetition,
            repetitions=place.repetitions,
            trying_fps=rate_fps,
            lower_fps=place.lower_fps,
            upper_fps=place.upper_fps,
            trials_done=self._trials,
            trials_left=place.trials_left,
            remaining_s=place.trials_left * self._trial_s(),
            last=self._last(),
            note=note,
        )

    def _trial_s(self) -> float:
        """How long a trial takes: as those so far did, else as the conditions say."""
        conditions = self._plan.conditions
        return self._trials_s / self._trials if self._trials else conditions.duration_s + conditions.drain_s

    def _last(self) -> TrialResult | None:
        return None if self._status is None else self._status.last
