# SPDX-License-Identifier: Apache-2.0
"""``dutperf resume``: goes on with a run that was killed, interrupted, or stopped by an error, from the last trial that it finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from dutperf import campaign
from dutperf.campaign import Summary
from dutperf.cli import live, options, show
from dutperf.cli.bench import Source, bench
from dutperf.cli.errors import kept, reported, say
from dutperf.cli.measure import exit_status
from dutperf.conditions import Conditions
from dutperf.journal import Event, JournalError, ResumedJournal
from dutperf.report.summary import write_summary

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Where the run has its journal.")]


def resume(directory: Directory, as_json: options.Json = False) -> None:
    """Go on with a run from the last trial that it finished; ends as the run would have."""
    with reported(), ResumedJournal.open(directory) as journal:
        summary = _complete(journal) if journal.is_complete else _go_on(journal)
        typer.echo(json.dumps(summary.model_dump(mode="json"))) if as_json else show.summary(summary, directory)
        raise typer.Exit(exit_status(summary))


def _complete(journal: ResumedJournal) -> Summary:
    """The run may have been killed between its end and its summary."""
    say(f"the run in {journal.directory} is complete")
    return write_summary(journal.directory, campaign.definition_of(journal).point)


def _go_on(journal: ResumedJournal) -> Summary:
    """Measure what is left, on a set-up as the run had it."""
    source, conditions = Source.of_plan(journal.plan), _conditions(journal.plan)
    with bench(source, conditions) as ready, kept(journal.directory), live.observer() as observer:
        return campaign.resume(ready.tester, ready.plan(), journal, observer)


def _conditions(plan: Event) -> Conditions:
    try:
        return Conditions.model_validate(plan["conditions"])
    except (ValidationError, KeyError) as error:
        raise JournalError(f"the run cannot go on: this version does not know its conditions ({str(error).splitlines()[0]})") from None
