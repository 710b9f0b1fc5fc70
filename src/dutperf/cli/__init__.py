# SPDX-License-Identifier: Apache-2.0
"""The command ``dutperf``: one file for each command in ``commands``, ``measure`` for all procedures.
They share ``options``, ``errors`` and ``output``.

Results go to standard output, with ``--json`` as one JSON object and nothing else. Progress, notes
and errors go to standard error. Exit status: 0 valid result, 1 no number from the DUT (``compare``: a
condition failed), 2 wrong usage or configuration, 3 invalid, 4 aborted (also: disk full), 70 a fault
of dutperf, 75 not now, 130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dutperf.cli.loading import Group
from dutperf.exit_status import end_at_signals
from dutperf.version import __version__

EXIT_STATUS = (
    "Exit status: 0 valid, 1 no number (the DUT forwards nothing), 2 wrong usage or configuration, 3 invalid, 4 aborted"
    " (also: disk full), 70 a fault of dutperf, 75 not now (what it needs is in use or missing), 130 interrupted, 141 a"
    " closed pipe."
)
app = typer.Typer(name="dutperf", cls=Group, no_args_is_help=True, epilog=EXIT_STATUS, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dutperf {__version__}\n{_engine_version()}")
        raise typer.Exit


def _engine_version() -> str:
    from dutperf.engine.client import EngineCommand, engine_version
    from dutperf.tester import TesterError

    try:
        program = EngineCommand.find().program
        return f"engine {engine_version(program)}: {program}"
    except TesterError as error:
        return f"no engine: {error.sentence}"


@app.callback()
def _dutperf(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Measures network devices by RFC 8219, 2544 and 4814, and proves that each measurement is
    valid."""


def main() -> None:
    """Entry point of the command. A defect has an exit status of its own: that of an uncaught exception, 1, would say
    that the DUT forwards nothing."""
    end_at_signals()  # commands are interrupted where they are reported
    try:
        app(prog_name="dutperf")
    except Exception as error:
        from dutperf.cli.errors import fault

        sys.exit(fault(error))
