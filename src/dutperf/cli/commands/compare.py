# SPDX-License-Identifier: Apache-2.0
"""``dutperf compare A B``: compares two results or more, tells which differences are significant, and checks
conditions on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from dutperf.api import results
from dutperf.cli import completion
from dutperf.cli.errors import reported
from dutperf.cli.output import console, terminal
from dutperf.exit_status import CONDITION_FAILED, INVALID
from dutperf.report import export, junit
from dutperf.results import comparison, gate
from dutperf.results.comparability import Mismatch, Weight
from dutperf.results.comparison import Comparison, Incomparable, Results
from dutperf.results.gate import Checked, Condition, GateError, Outcome
from dutperf.setup.configuration import ConfigError

Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="BASE OTHER…",
        autocompletion=completion.results_directories,
        help="Directories of runs or suites; all others are compared with the first.",
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Status 1 if figures show such a change: 'throughput_fps < -3%'; repeatable.",
    ),
]
ByMedian = Annotated[
    bool, typer.Option("--by-median", help="Test conditions on the medians alone, however uncertain they are.")
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        metavar="RATE",
        min=1e-9,
        max=0.5,
        help="Probability that any difference is reported although there is none.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse to compare if any condition differs.",
    ),
]
Form = Annotated[
    Literal["text", "markdown", "json"],
    typer.Option("--format", help="markdown: for the summary of a CI pipeline; json: everything."),
]

JUnit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write the conditions as JUnit XML, which CI systems show as tests."),
]


def compare(
    directories: Directories,
    fail_if: Conditions = None,
    by_median: ByMedian = False,
    alpha: Alpha = comparison.ALPHA,
    strict: Strict = False,
    form: Form = "text",
    junit_file: JUnit = None,
) -> None:
    """Compare results: the differences, and whether they are significant.

    Every figure is compared, at a stated error rate.

    Exit status: 0 no condition failed, 1 a condition failed, 2 not comparable, 3 a condition cannot
    be judged (incomplete results, limited by the tester).
    """
    with reported():
        found = _compared(directories, alpha, strict)
        checked = _checked(fail_if, found, by_median)
        if junit_file is not None:
            cases = [
                junit.Checked(one.condition, f"{one.other}: {one.where}", one.outcome, one.text) for one in checked
            ]
            junit.write(junit_file, "dutperf compare", cases)
        _FORMS[form](found, checked)
        raise typer.Exit(_status(checked))


def _compared(directories: Sequence[Path], alpha: float, strict: bool) -> Comparison:
    if len(directories) < 2:
        raise ConfigError("give at least two directories: the base, and one to compare with it", "")
    base, *others = (Results(str(directory), results.read(directory).measured) for directory in directories)
    try:
        return comparison.compare(base, others, alpha, strict)
    except Incomparable as error:
        raise ConfigError(str(error), "") from None


def _checked(texts: Sequence[str] | None, found: Comparison, by_median: bool) -> tuple[Checked, ...]:
    if by_median and not texts:
        raise ConfigError("has no effect without --fail-if", "--by-median")
    try:
        return gate.check([Condition.parse(text) for text in texts or ()], found, by_median)
    except GateError as error:
        raise ConfigError(str(error), "--fail-if") from None


def _status(checked: Sequence[Checked]) -> int:
    outcomes = {one.outcome for one in checked}
    return CONDITION_FAILED if Outcome.FAILED in outcomes else INVALID if Outcome.NOT_JUDGED in outcomes else 0


def _text(found: Comparison, checked: Sequence[Checked]) -> None:
    for one in found.compared:
        for table in comparison.tables_of(one, found.alpha):
            terminal.output().print(console.table(table))
        for line in _remarks(one):
            terminal.line(line)
    terminal.line(_errors(found))
    for result in checked:
        terminal.line(result.sentence())


def _markdown(found: Comparison, checked: Sequence[Checked]) -> None:
    for one in found.compared:
        for table in comparison.tables_of(one, found.alpha):
            typer.echo(export.TABLES[export.Format.MARKDOWN](table).decode())
        typer.echo("\n".join(f"* {line}" for line in _remarks(one)))
    typer.echo(f"\n{_errors(found)}\n")
    typer.echo(
        "\n".join(f"* {'❌ ' if result.outcome is Outcome.FAILED else ''}{result.sentence()}" for result in checked)
    )


def _json(found: Comparison, checked: Sequence[Checked]) -> None:
    typer.echo(
        json.dumps({**found.model_dump(mode="json"), "conditions": [one.model_dump(mode="json") for one in checked]})
    )


def _remarks(one: comparison.Compared) -> list[str]:
    """Incomplete runs, limits, and differing conditions: each condition once, with the names of its
    measurements."""
    owners: dict[Mismatch, list[str]] = {}
    for name, each in one.mismatches.items():
        for mismatch in each:
            owners.setdefault(mismatch, []).append(name)
    differing = (
        _remark(mismatch, [] if len(names) == len(one.mismatches) else names) for mismatch, names in owners.items()
    )
    return [*one.states, *comparison.unjudged(one), *comparison.bounds(one), *differing]


def _remark(mismatch: Mismatch, names: Sequence[str]) -> str:
    """``names``: the measurements that differ so; empty: all."""
    warning = "warning: different conditions: " if mismatch.weight is Weight.WARNED else ""
    return f"{warning}{mismatch.sentence()}" + (f" ({', '.join(names)})" if names else "")


def _errors(found: Comparison) -> str:
    rate = f"error rate {found.alpha:g} ({found.correction}), by the ranks of the repetitions (Mann and Whitney)"
    return f"{rate}; each interval is for its row alone"


_FORMS = {"text": _text, "markdown": _markdown, "json": _json}
