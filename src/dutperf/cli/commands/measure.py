# SPDX-License-Identifier: Apache-2.0
"""``dutperf throughput``, ``dutperf frame-loss``, …: a command for each procedure, generated from its
definition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import Signature
from pathlib import Path
from typing import Any

import typer

from dutperf.api import results
from dutperf.cli import calling, condition_options
from dutperf.cli.errors import say
from dutperf.cli.output import console, terminal, watch
from dutperf.cli.output.watch import Watchers, watched
from dutperf.cli.source_options import MEASURED, SOURCE, split_source
from dutperf.exit_status import INVALID, NO_NUMBER
from dutperf.journal import JOURNAL, WriteError
from dutperf.procedures.definition import Definition
from dutperf.report.html import REPORT
from dutperf.run import suite
from dutperf.run.campaign import Summary
from dutperf.run.earlier_runs import fresh_directory, newest_beside
from dutperf.run.suite import SUITE, SuiteSummary
from dutperf.run.testbench import Bench, bench
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError
from dutperf.tester import TesterError

Wanted = Sequence[tuple[Definition, Conditions]]


def command(definition: Definition) -> Callable[..., None]:
    """The procedure's command, with the options of every trial and the procedure's own."""

    def measured(**given: Any) -> None:
        _command(definition, **given)

    measured.__doc__ = definition.summary
    measured.__signature__ = _signature(definition)  # type: ignore[attr-defined]
    return watched(measured)


def measure_all(wanted: Wanted, ready: Bench, directory: Path, watchers: Watchers) -> Summary | SuiteSummary:
    """Measure and show the progress: one measurement into ``directory``, several as a suite into its
    folders.

    An interrupted run stays there.
    """
    measurements = suite.arrange([(definition, ready.sized(conditions)) for definition, conditions in wanted])
    with resume_hint(directory), watch.observers(measurements, directory, watchers) as watching:
        return suite.measure(measurements, ready, directory, watching)


@contextmanager
def resume_hint(directory: Path) -> Iterator[None]:
    """If measuring stops early, say how to resume the run in ``directory``."""
    try:
        yield
    except (KeyboardInterrupt, WriteError, TesterError, ConfigError):
        if any(path.exists() and path.stat().st_size for path in (directory / JOURNAL, directory / SUITE)):
            say(
                f"the run so far is in {directory} (dutperf show, dutperf report); resume with:"
                f" {calling.command('resume', directory)}"
            )
        raise


def show_result(result: Summary | SuiteSummary, directory: Path, as_json: bool, verbose: bool) -> int:
    """Show the result and write the report; returns the exit status. It is called before the test bench is taken
    down: what was measured is told also where that fails. ``verbose``: each deviation.
    """
    has_report = _report(directory)  # first: it is written even where nothing can be shown
    if as_json:
        typer.echo(json.dumps(result.model_dump(mode="json")))
    else:
        console.result(result, verbose=verbose)
        what = "summaries" if isinstance(result, SuiteSummary) else "journal, summary"
        terminal.line(f"{what} and {REPORT} are in {directory}" if has_report else f"the results are in {directory}")
        terminal.line("\n  ".join(["next:", *calling.after_measuring(directory, newest_beside(directory))]))
    return exit_status(result)


def _report(directory: Path) -> bool:
    """Write the report; returns whether that succeeded. A failure does not change the exit status: the
    results are on the disk."""
    try:
        results.write_report(directory)
    except Exception as error:
        say(
            f"cannot write the report: {str(error) or type(error).__name__}; try again with:"
            f" {calling.command('report', directory)}"
        )
        return False
    return True


def exit_status(result: Summary | SuiteSummary) -> int:
    """0 if every point has a result; INVALID if only tester or test setup limited points without one; else
    NO_NUMBER. What could not be measured for want of a throughput has the status of its search."""
    if isinstance(result, SuiteSummary):
        statuses = {exit_status(part.summary) for part in result.measurements if part.summary is not None}
        whole = all(part.summary is not None and part.note is None for part in result.measurements)
        return next((status for status in (NO_NUMBER, INVALID) if status in statuses), 0 if whole else NO_NUMBER)
    missing = result.without_number()
    if not missing:
        return 0
    return INVALID if all(point.limited_by_tester or point.limited_by_setup for point in missing) else NO_NUMBER


def _command(
    definition: Definition,
    /,
    *,
    out: Path | None,
    as_json: bool,
    verbose: bool,
    watchers: Watchers,
    **given: Any,
) -> None:
    source, chosen = split_source(given)
    mixes = condition_options.chosen(definition.conditions, chosen)
    directory = out or fresh_directory(definition.name)
    with watchers.told(directory), bench(source, *mixes, say=say) as ready:
        result = measure_all([(definition, conditions) for conditions in mixes], ready, directory, watchers)
        status = show_result(result, directory, as_json, verbose)
    raise typer.Exit(status)


def _signature(definition: Definition) -> Signature:
    """For Typer: each option's declaration and default."""
    return condition_options.signature(SOURCE, definition.conditions, MEASURED)
