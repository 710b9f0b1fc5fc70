# SPDX-License-Identifier: Apache-2.0
"""``dutperf selftest``: this tester's own limit and floor on this machine, and each procedure against
the reference DUT, whose behaviour is known.

Exit status: 0 every figure is within its stated error, 1 a figure is not, 3 the tester was too
disturbed to tell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf.cli import options, source_options
from dutperf.cli.errors import reported, say
from dutperf.cli.output import console, live, terminal
from dutperf.exit_status import INVALID
from dutperf.journal import claim, write_whole
from dutperf.lab.refdut import RefDut
from dutperf.machine import host
from dutperf.results.tables import Table
from dutperf.run.campaign import Observer
from dutperf.run.earlier_runs import fresh_directory
from dutperf.run.testbench import Source, bench
from dutperf.selftest import checks, floors
from dutperf.selftest.checks import Check
from dutperf.selftest.findings import Finding, Judgement, exit_status
from dutperf.selftest.floors import DisturbedError
from dutperf.selftest.outcome import (
    COLUMNS,
    FLOOR_COLUMNS,
    STAMPS_COLUMNS,
    Outcome,
    floor_rows,
    markdown,
    notes,
    row,
    stamps_rows,
    stamps_title,
)
from dutperf.selftest.progress import SelfTest
from dutperf.setup.configuration import ConfigError, Offloads, Setup
from dutperf.tester import calibration

CALIBRATION = "calibration"
OUTCOME = "selftest.json"
NAMES = (CALIBRATION, *(check.name for check in checks.ALL))
_STYLE: dict[str, str] = {Judgement.OK: "green", Judgement.OFF: "bold red", Judgement.INVALID: "yellow"}

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Calibrate these ports, connected by a cable, instead of lab loopback.",
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="About a minute: shorter trials, fewer repetitions, one frame size."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        autocompletion=lambda incomplete: [name for name in NAMES if name.startswith(incomplete)],
        help="Only this part: calibration, or a procedure's name; repeatable.",
    ),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the tables to this file.")
]


def selftest(
    config_file: ConfigFile = None,
    queues: source_options.Queues = None,
    offloads: source_options.OffloadsText = None,
    quick: Quick = False,
    only: Only = None,
    out: options.Out = None,
    markdown_file: Markdown = None,
    as_json: options.Json = False,
) -> None:
    """Test the tester: calibrate it, and measure a reference DUT.

    It is calibrated without a DUT. The reference DUT is measured by every procedure. --config, --queues and
    --offloads are for the ports to calibrate; the reference DUT has the ports of its lab.
    """
    with reported():
        parts = _parts(only)
        source = _ports_to_calibrate(config_file, queues, source_options.offloads(offloads), parts)
        directory = out or fresh_directory("selftest")
        claim(directory, (OUTCOME,), "the results of another self-test")
        start: dict[str, Any] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": host.environment(),
            "load": os.getloadavg()[0],
        }
        calibrated = _calibrate(source, directory / CALIBRATION, quick=quick) if CALIBRATION in parts else {}
        outcome = Outcome(**start, **calibrated, findings=tuple(_check(parts, directory, quick=quick)))
        write_whole(directory / OUTCOME, json.dumps(outcome.model_dump(mode="json"), indent=2) + "\n")
        if markdown_file is not None:
            write_whole(markdown_file, markdown(outcome))
    _tell(outcome, directory, as_json=as_json)
    raise typer.Exit(_exit_status(outcome, parts))


def _parts(only: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [name for name in only or () if name not in NAMES]
    if unknown:
        raise ConfigError(f"'{unknown[0]}' is not a part of the self-test; there are {', '.join(NAMES)}", "--only")
    return tuple(name for name in NAMES if not only or name in only)


def _exit_status(outcome: Outcome, parts: Sequence[str]) -> int:
    """A calibration that failed counts as invalid."""
    of_findings = exit_status(outcome.findings) if parts != (CALIBRATION,) else 0
    return of_findings or (INVALID if CALIBRATION in parts and outcome.calibration is None else 0)


def _ports_to_calibrate(
    config_file: Path | None, queues: int | None, offloads: Offloads | None, parts: Sequence[str]
) -> Source:
    """The source of the ports. Options without an effect are errors: the reference DUT has its own
    ports."""
    if CALIBRATION not in parts:
        for given, option in ((config_file, "--config"), (queues, "--queues"), (offloads, "--offloads")):
            if given is not None:
                raise ConfigError(f"is for the calibration, which --only {parts[0]} leaves out", option)
    return Source("loopback" if config_file is None else None, {}, config_file, queues=queues, offloads=offloads)


def _calibrate(source: Source, directory: Path, *, quick: bool) -> dict[str, Any]:
    """As members of the outcome, without those that the machine is too busy for."""
    made: dict[str, Any] = {}
    try:
        with bench(source, floors.search_conditions(quick=quick)) as ready:
            _check_cable(ready.setup)
            loops = made["calibration"] = floors.calibrate(ready, directory, _watch, quick=quick)
        say(f"the calibration is in {calibration.keep(loops)}")
        with bench(source, floors.stamped_conditions(quick=quick)) as ready:
            stamped, made["without_stamps"] = floors.by_stamps(ready, loops, directory, _watch, quick=quick)
        calibration.keep_floors(stamped)
        made["by_stamps"] = stamped
    except DisturbedError as error:
        say(str(error))
    return made


def _check_cable(setup: Setup) -> None:
    """Raises ConfigError: it is not of two ports that a cable connects."""
    if setup.ports is not None:
        raise ConfigError("cannot be calibrated: a calibration is of two ports without names, and a cable", "ports")
    gateways = [name for name, side in setup.sides().items() if side.gateway4 or side.gateway6]
    if gateways:
        raise ConfigError(
            "cannot be calibrated with a gateway: connect the ports by a cable and remove the gateways",
            f"{gateways[0]}.gateway",
        )


def _check(parts: Sequence[str], directory: Path, *, quick: bool) -> Iterator[Finding]:
    chosen = [check for check in checks.ALL if check.name in parts]
    for lab in dict.fromkeys(check.lab for check in chosen):
        yield from _check_on(lab, [check for check in chosen if check.lab == lab], directory, quick=quick)


def _check_on(lab: str, chosen: Sequence[Check], directory: Path, *, quick: bool) -> Iterator[Finding]:
    conditions = [check.definition.conditions(**check.chosen(quick=quick)) for check in chosen]
    with bench(Source(lab, {}, None), *conditions) as ready:
        [described] = ready.setup.duts()
        dut = RefDut(Path(str(described.control)))
        self_test = SelfTest(ready, dut, directory, _watch, quick)
        for check in chosen:
            yield from self_test.findings(check)


@contextmanager
def _watch(name: str) -> Iterator[Observer]:
    say(f"self-test: {name}")
    with live.observer() as observer:
        yield observer


def _tell(outcome: Outcome, directory: Path, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(outcome.model_dump(mode="json")))
        return
    out = terminal.output()
    if outcome.calibration is not None:
        out.print(
            console.table(Table("this tester without a DUT", FLOOR_COLUMNS, tuple(floor_rows(outcome.calibration))))
        )
    if outcome.by_stamps is not None:
        rows = tuple(stamps_rows(outcome))
        out.print(console.table(Table(stamps_title(outcome.by_stamps), STAMPS_COLUMNS, rows)))
    if outcome.findings:
        rows = tuple(map(row, outcome.findings))
        out.print(console.table(Table("measured and true values", COLUMNS, rows), _STYLE))
    for note in notes(outcome):
        out.print(note, markup=False, highlight=False)
    out.print(f"journals and {OUTCOME} are in {directory}", markup=False, highlight=False, soft_wrap=True)
