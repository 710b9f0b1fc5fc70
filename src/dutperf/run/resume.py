# SPDX-License-Identifier: Apache-2.0
"""Resumes a run or a suite that was killed, interrupted, or stopped by an error: on the same test
setup, after its last finished trial.

docs/decisions/0006-resume.md explains how a campaign replays its journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from dutperf import journal
from dutperf.journal import JOURNAL, JournalError, PlanEvent, ResumedJournal
from dutperf.results.summary import write_summary
from dutperf.run import campaign, suite
from dutperf.run.campaign import Summary
from dutperf.run.suite import SUITE, Measurement, SuiteSummary, Watch
from dutperf.run.testbench import Source, bench
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import Setup

Watching = Callable[[Sequence[Measurement]], AbstractContextManager[Watch]]
"""A context that shows the progress of these measurements."""


def is_complete(directory: Path) -> bool:
    """Whether the run or suite in ``directory`` is complete. Raises JournalError: the directory cannot be read."""
    if (directory / SUITE).exists():
        return suite.is_complete(suite.read(directory)[1], directory)
    return (directory / JOURNAL).exists() and journal.is_complete(journal.read(directory))


def resume(directory: Path, watching: Watching, current: Path | Setup | None = None) -> Summary | SuiteSummary:
    """Measure the rest of the run or suite in ``directory``. If it is complete, only write its
    summary again. ``current``: the configuration, if it is no longer in the file that the run was
    started with.

    Raises:
        JournalError: there is nothing to resume, or this version would run other trials.
        WriteError: the disk is full, for example; all results so far are kept.
        ConfigError, LabError, PlanError, TesterError: the test setup cannot be restored, or cannot
            be measured.
    """
    resumed = _suite if (directory / SUITE).exists() else _run
    return resumed(directory, watching, current)


def _run(directory: Path, watching: Watching, current: Path | Setup | None) -> Summary:
    with ResumedJournal.open(directory) as recorded:
        definition = campaign.definition_of(recorded.plan)
        if recorded.is_complete:  # it may have been killed after its end, before its summary
            return write_summary(directory, definition)
        plan = recorded.plan
        source, conditions = Source.of_plan(plan.source, plan.config, current), _conditions(plan)
        only = Measurement(definition.name, definition, conditions)
        with (
            bench(source, conditions) as on,
            on.modified(conditions) as ready,
            watching([only]) as watch,
            watch(only, 1) as observer,
        ):
            return campaign.resume(ready.tester, ready.plan(conditions), recorded, observer)


def _suite(directory: Path, watching: Watching, current: Path | Setup | None) -> SuiteSummary:
    with suite.held(directory):  # before the DUT is set up: a tear-down here would end a run that is still alive
        return _rest_of_suite(directory, watching, current)


def _rest_of_suite(directory: Path, watching: Watching, current: Path | Setup | None) -> SuiteSummary:
    document, measurements = suite.read(directory)
    if suite.is_complete(measurements, directory):
        return suite.summarise(measurements, directory)
    with (
        bench(
            Source.of_plan(document.get("source", {}), document.get("config", {}), current),
            *(one.conditions for one in measurements),
        ) as ready,
        watching(measurements) as watch,
    ):
        return suite.resume(measurements, ready, directory, watch)


def _conditions(plan: PlanEvent) -> Conditions:
    try:
        return campaign.definition_of(plan).conditions.recorded(plan.conditions)
    except ValidationError as error:
        raise JournalError(
            f"the run cannot be resumed: this version cannot read its conditions ({str(error).splitlines()[0]})"
        ) from None
