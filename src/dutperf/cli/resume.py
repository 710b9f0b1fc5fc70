# SPDX-License-Identifier: Apache-2.0
"""``dutperf resume``: goes on with what was killed, interrupted, or stopped by an error, from the last trial that it finished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from dutperf import campaign, suite
from dutperf.campaign import Summary
from dutperf.cli import live, options
from dutperf.cli.bench import Source, bench
from dutperf.cli.errors import kept, reported, say
from dutperf.cli.measure import tell, watching
from dutperf.conditions import Conditions
from dutperf.journal import Event, JournalError, ResumedJournal
from dutperf.report.summary import write_summary
from dutperf.suite import SUITE, SuiteSummary

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Where the run has its journal.")]


def resume(directory: Directory, as_json: options.Json = False) -> None:
    """Go on with a run, or a suite of them, from the last trial that it finished; ends as it would have."""
    with reported():
        result = _suite(directory) if (directory / SUITE).exists() else _run(directory)
        tell(result, directory, as_json)


def _run(directory: Path) -> Summary:
    with ResumedJournal.open(directory) as journal:
        if not journal.is_complete:
            return _go_on(journal)
        say(f"the run in {directory} is complete")  # it may have been killed between its end and its summary
        return write_summary(directory, campaign.definition_of(journal.plan).point)


def _go_on(journal: ResumedJournal) -> Summary:
    """Measure what is left, on a set-up as the run had it."""
    source, conditions = Source.of_plan(journal.plan), _conditions(journal.plan)
    with bench(source, conditions) as ready, kept(journal.directory), live.observer() as observer:
        return campaign.resume(ready.tester, ready.plan(conditions), journal, observer)


def _suite(directory: Path) -> SuiteSummary:
    document, measurements = suite.read(directory)
    if suite.is_complete(measurements, directory):
        say(f"the measurements in {directory} are complete")
        return suite.summarise(measurements, directory)
    with bench(Source.of_plan(document), *(one.conditions for one in measurements)) as ready, kept(directory):
        return suite.go_on(measurements, ready, directory, watching(len(measurements)))


def _conditions(plan: Event) -> Conditions:
    try:
        return Conditions.model_validate(plan["conditions"])
    except (ValidationError, KeyError) as error:
        raise JournalError(f"the run cannot go on: this version does not know its conditions ({str(error).splitlines()[0]})") from None
