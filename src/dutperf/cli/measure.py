# SPDX-License-Identifier: Apache-2.0
"""``dutperf throughput``, ``dutperf frame-loss``, …: a command for each procedure, made from its definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import typer

from dutperf import campaign
from dutperf.campaign import Summary
from dutperf.cli import live, options, show
from dutperf.cli.bench import Bench, Source, bench
from dutperf.cli.errors import INVALID, NO_NUMBER, kept, reported
from dutperf.procedure.definition import Definition

SOURCE = {"lab": options.LabName, "lab_option": options.LabOptions, "config_file": options.ConfigFile}
RESULT = {"out": (options.Out, None), "as_json": (options.Json, False)}


def command(definition: Definition) -> Callable[..., None]:
    """The procedure's command: the options of every trial and the procedure's own."""

    def measured(**given: Any) -> None:
        with reported():
            _command(definition, **given)

    measured.__doc__ = definition.summary
    measured.__signature__ = _signature(definition)  # type: ignore[attr-defined]
    return measured


def measure(definition: Definition, ready: Bench, directory: Path) -> Summary:
    """Measure on a bench that is ready, with progress for a person to see; what was interrupted is left in ``directory``."""
    with kept(directory), live.observer() as observer:
        return campaign.measure(definition, ready.tester, ready.plan(), directory, observer)


def exit_status(summary: Summary) -> int:
    """0 where every point has a result; else whether the DUT is to blame, or the tester could not make one valid trial."""
    lacking = summary.without_number()
    if not lacking:
        return 0
    return INVALID if all(point.limited_by_tester for point in lacking) else NO_NUMBER


def fresh_directory(procedure: str) -> Path:
    """``results/DATE-TIME-PROCEDURE`` under the current directory."""
    return Path("results") / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{procedure}"


def _command(
    definition: Definition, *, lab: str | None, lab_option: list[str] | None, config_file: Path | None, out: Path | None, as_json: bool, **chosen: Any
) -> None:
    source = Source.of(lab, lab_option, config_file)
    conditions = options.conditions(**chosen)
    directory = out or fresh_directory(definition.name)
    with bench(source, conditions) as ready:
        summary = measure(definition, ready, directory)
    typer.echo(json.dumps(summary.model_dump(mode="json"))) if as_json else show.summary(summary, directory)
    raise typer.Exit(exit_status(summary))


def _signature(definition: Definition) -> Signature:
    """What Typer reads: each option's declaration and its default."""
    defaults = options.DEFAULT.model_copy(update=dict(definition.defaults))
    chosen = {name: (declared, options.default(name, defaults)) for name, declared in (options.EVERY_TRIAL | _own(definition)).items()}
    declared = {name: (kind, None) for name, kind in SOURCE.items()} | chosen | RESULT
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default) for name, (kind, default) in declared.items()])


def _own(definition: Definition) -> dict[str, Any]:
    return {name: options.OF_PROCEDURES[name] for name in definition.options}
