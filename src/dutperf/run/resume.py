# SPDX-License-Identifier: Apache-2.0
"""Goes on with a run, or a suite of them, that was killed, interrupted, or stopped by an error: on
a set-up as it was, from the last trial that it finished.

How a campaign repeats what its journal already holds: docs/decisions/0006-resume.md.
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
"""Shows the course of these measurements while it is entered."""


def is_complete(directory: Path) -> bool:
    """Whether nothing is left to be measured in ``directory``. Raises JournalError where that
    cannot be read."""
    if (directory / SUITE).exists():
        return suite.is_complete(suite.read(directory)[1], directory)
    return (directory / JOURNAL).exists() and journal.is_complete(journal.read(directory))


def go_on(directory: Path, watching: Watching, current: Path | Setup | None = None) -> Summary | SuiteSummary:
    """Measure what is left in ``directory``; of what is complete, only the summary is made again.
    ``current``: the configuration, where it is not in the file that the run was begun with.

    Raises:
        JournalError: there is nothing that could go on, or this version would take another course.
        WriteError: the disk is full, for example; what was measured is kept.
        ConfigError, LabError, PlanError, TesterError: the set-up cannot be had as it was, or cannot
            be measured.
    """
    go = _suite if (directory / SUITE).exists() else _run
    return go(directory, watching, current)


def _run(directory: Path, watching: Watching, current: Path | Setup | None) -> Summary:
    with ResumedJournal.open(directory) as recorded:
        definition = campaign.definition_of(recorded.plan)
        if recorded.is_complete:  # it may have been killed between its end and its summary
            return write_summary(directory, definition)
        plan = recorded.plan
        source, conditions = Source.of_plan(plan.source, plan.config, current), _conditions(plan)
        only = Measurement(definition.name, definition, conditions)
        with bench(source, conditions) as ready, watching([only]) as watch, watch(only, 1) as observer:
            return campaign.resume(ready.tester, ready.plan(conditions), recorded, observer)


def _suite(directory: Path, watching: Watching, current: Path | Setup | None) -> SuiteSummary:
    with suite.held(directory):  # before the DUT's set-up: a live run has it already, and a tear-down would end it
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
            f"the run cannot be resumed: this version does not know its conditions ({str(error).splitlines()[0]})"
        ) from None
