# SPDX-License-Identifier: Apache-2.0
"""``dutperf trend``: figures over time, where they changed, and a gate for the newest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Annotated

import typer

from dutperf.cli import options
from dutperf.cli.commands.compare import JUnit
from dutperf.cli.commands.store import Dut, Procedure, Series, Since, StoreFile, opened
from dutperf.cli.errors import reported
from dutperf.cli.output import console, terminal
from dutperf.exit_status import CONDITION_FAILED, INVALID
from dutperf.report import junit
from dutperf.results.comparison import ALPHA, digits
from dutperf.results.gate import Condition, GateError
from dutperf.results.measured import moment
from dutperf.results.tables import Table
from dutperf.setup.configuration import ConfigError
from dutperf.store import Entry, Store
from dutperf.store import trend as trends
from dutperf.store.trend import Group, Judged, Trend

Figure = Annotated[
    str | None,
    typer.Option("--figure", metavar="NAME", help="One figure, by its name in exports: throughput_fps, forward.TL."),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Status 1 if the newest show this change: 'throughput_fps < -3%'; repeatable.",
    ),
]
Newest = Annotated[
    int,
    typer.Option(
        "--newest",
        metavar="COUNT",
        min=1,
        max=1000,
        help="Newest measurements of each series that are tested.",
    ),
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", metavar="RATE", min=1e-9, max=0.5, help="Error rate of each condition on each figure."),
]


def trend(
    store: StoreFile = None,
    dut: Dut = None,
    procedure: Procedure = None,
    since: Since = None,
    series: Series = None,
    figure: Figure = None,
    fail_if: Conditions = None,
    newest: Newest = 3,
    alpha: Alpha = ALPHA,
    junit_file: JUnit = None,
    as_json: options.Json = False,
) -> None:
    """Show figures over time, and where they changed; check conditions.

    Changes are found by jumpavg. Conditions are checked on the newest figures.

    Exit status: 0 no condition failed, 1 a condition failed, 3 a condition cannot be judged (too short a
    history).
    """
    with reported(), opened(store) as kept:
        found = _found(kept, kept.find(dut, procedure, since, series), figure)
        judged = trends.check(found, _conditions(fail_if, found), newest, alpha)
        if junit_file is not None:
            cases = [junit.Checked(one.condition, one.trend.where(), one.outcome, one.text) for one in judged]
            junit.write(junit_file, "dutperf trend", cases)
        if as_json:
            members = [{"where": one.trend.where(), **asdict(one)} for one in judged]
            for member in members:
                del member["trend"]
            typer.echo(json.dumps({"trends": [trends.as_json(one) for one in found], "conditions": members}))
        else:
            _print(found, judged)
        raise typer.Exit(_status(judged))


def _found(store: Store, entries: Sequence[Entry], figure: str | None) -> list[Trend]:
    found = trends.trends(store, entries, figure)
    if not found:
        what = "there are no such measurements" if not entries else f"none of these measurements has a figure {figure}"
        raise ConfigError(f"{what} in {store.file}", "--figure" if entries else "")
    return found


def _conditions(texts: Sequence[str] | None, found: Sequence[Trend]) -> list[Condition]:
    names = sorted({one.key[3] for one in found})
    try:
        conditions = [Condition.parse(text) for text in texts or ()]
    except GateError as error:
        raise ConfigError(str(error), "--fail-if") from None
    for one in conditions:
        if one.figure not in names:
            raise ConfigError(f"there is no figure {one.figure}: there are {', '.join(names)}", "--fail-if")
    return conditions


def _print(found: Sequence[Trend], judged: Sequence[Judged]) -> None:
    for one in found:
        if one.groups:
            terminal.output().print(console.table(_table(one)))
        else:
            terminal.line(f"{one.where()}: no measurement has a usable value")
        if one.left_out:
            terminal.line(f"left out: {one.left_out} that are not complete, or have no usable value")
    for each in judged:
        terminal.line(each.sentence())


def _table(one: Trend) -> Table:
    changes = ["", *(_change(before, after) for before, after in pairwise(one.groups))]
    rows = tuple(
        (
            *(_day(group.moments[0].entry.started), _day(group.moments[-1].entry.started), str(len(group.moments))),
            *(digits(group.mean), digits(group.deviation), change, _versions(group)),
        )
        for group, change in zip(one.groups, changes, strict=True)
    )
    heads = ("from", "to", "measurements", "mean", "deviation", "change", "DUT versions")
    return Table(f"{one.where()} (series {one.key[0]})", heads, rows)


def _change(before: Group, after: Group) -> str:
    return "-" if not before.mean else f"{100 * (after.mean / before.mean - 1):+.3g} %"


def _day(started: str) -> str:
    return moment(started).rpartition(":")[0]


def _versions(group: Group) -> str:
    names = list(dict.fromkeys(one.entry.dut_version for one in group.moments))
    return ", ".join(names if len(names) <= 3 else [names[0], "…", names[-1]])


def _status(judged: Sequence[Judged]) -> int:
    outcomes = {one.outcome for one in judged}
    return CONDITION_FAILED if "failed" in outcomes else INVALID if "not judged" in outcomes else 0
