# SPDX-License-Identifier: Apache-2.0
"""``dutperf overload``: procedures with one flow and with many (RFC 8219 section 10), as one suite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf import procedures
from dutperf.cli import condition_options
from dutperf.cli.commands.measure import measure_all, show_result
from dutperf.cli.errors import say
from dutperf.cli.output.watch import Watchers, watched
from dutperf.cli.source_options import MEASURED, SOURCE, split_source
from dutperf.model import MOST_FLOWS
from dutperf.run.earlier_runs import fresh_directory
from dutperf.run.testbench import bench
from dutperf.setup.conditions import Steady
from dutperf.setup.configuration import ConfigError
from dutperf.setup.option import offered
from dutperf.spelling import with_and

NAMES = tuple(one.name for one in procedures.every() if issubclass(one.conditions, Steady))
"""The procedures whose frames may belong to flows."""
Named = Annotated[
    list[str],
    typer.Argument(metavar="PROCEDURE...", help="Procedures to measure: throughput, latency and others."),
]


def _many(text: str) -> int:
    """The number of flows. Elsewhere --flows takes a list."""
    number = int(text) if re.fullmatch("[0-9]+", text) else 0
    if not 2 <= number <= MOST_FLOWS:
        raise typer.BadParameter(
            f"give one number from 2 to {MOST_FLOWS:,}, not {text}: it is compared with one flow; --intermediate adds"
            " numbers between"
        )
    return number


Many = Annotated[
    int,
    typer.Option("--flows", metavar="N", parser=_many, help="The larger number of flows in each direction."),
]
Intermediate = Annotated[
    bool, typer.Option("--intermediate", help="Measure a quarter, a half and three quarters of the flows too.")
]


def flow_numbers(most: int, *, intermediate: bool) -> tuple[int, ...]:
    """One flow, with ``intermediate`` those of RFC 8219 10.2.2 between, and all."""
    between = (most // 4, most // 2, 3 * most // 4) if intermediate else ()
    return tuple(dict.fromkeys((1, *(number for number in between if number > 1), most)))


def _overload(
    procedure: Sequence[str],
    *,
    flows: int,
    intermediate: bool,
    out: Path | None,
    as_json: bool,
    verbose: bool,
    watchers: Watchers,
    **given: Any,
) -> None:
    """Compare figures with one flow and with many (RFC 8219 10).

    Each procedure is measured with one flow and with many. The flows begin together, or one after the other with
    --flows-apart. Options without a default have that of each procedure: see its own help.
    """
    source, options = split_source(given)
    numbers = ",".join(map(str, flow_numbers(flows, intermediate=intermediate)))
    wanted = list(_wanted(procedure, {**_given(options), "flows": numbers}))
    directory = out or fresh_directory("overload")
    with bench(source, *(conditions for _, conditions in wanted), say=say) as ready:
        status = show_result(measure_all(wanted, ready, directory, watchers), directory, as_json, verbose)
    raise typer.Exit(status)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, (), [])}


def _wanted(names: Sequence[str], options: Mapping[str, Any]) -> Iterator[Any]:
    if unknown := [name for name in names if name not in NAMES]:
        raise ConfigError(f"{unknown[0]} is none of overload's procedures: {', '.join(NAMES)}", "PROCEDURE")
    definitions = [procedures.find(name) for name in dict.fromkeys(names)]
    taken = {one.name: {each.name for each in offered(one.conditions)} for one in definitions}
    for name in options:
        if not any(name in of_one for of_one in taken.values()):
            raise ConfigError(f"has no effect on {with_and(taken)}", condition_options.option_of(name))
    for one in definitions:
        chosen = {name: value for name, value in options.items() if name in taken[one.name]}
        yield from ((one, conditions) for conditions in condition_options.chosen(one.conditions, chosen))


def _conditions() -> dict[str, tuple[Any, Any]]:
    """The options of all these procedures. None of them has a default here: it is each procedure's own."""
    every: dict[str, tuple[Any, Any]] = {}
    for name in reversed(NAMES):
        every |= condition_options.declared(procedures.find(name).conditions)
    return {name: (kind, None) for name, (kind, _) in every.items() if name != "flows"}


def _signature() -> Signature:
    named = Parameter("procedure", Parameter.POSITIONAL_OR_KEYWORD, annotation=Named)
    most, between = {"flows": (Many, "1000")}, {"intermediate": (Intermediate, False)}
    return Signature([named, *condition_options.parameters({**most, **SOURCE, **between, **_conditions(), **MEASURED})])


_overload.__signature__ = _signature()  # type: ignore[attr-defined]
overload = watched(_overload)
