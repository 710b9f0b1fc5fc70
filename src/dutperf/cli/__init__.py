# SPDX-License-Identifier: Apache-2.0
"""The command ``dutperf``: one file for each command in ``commands``, ``measure`` for all procedures.
They share ``options``, ``errors`` and ``output``.

Results go to standard output, with ``--json`` as one JSON object and nothing else. Progress, notes
and errors go to standard error. Exit status: 0 valid result, 1 no number from the DUT (``compare``: a
condition failed), 2 wrong usage or configuration, 3 invalid, 4 aborted (also: disk full), 70 a fault
of dutperf, 75 not now, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dutperf import __version__, procedures
from dutperf.cli.commands import (
    capture,
    compare,
    convert,
    doctor,
    export,
    fleet,
    lab,
    measure,
    plan,
    plot,
    ports,
    replay,
    report,
    resume,
    run,
    script,
    selftest,
    serve,
    set_rate,
    show,
    store,
    testbeds,
    trend,
    trial,
)
from dutperf.cli.errors import fault
from dutperf.cli.examples import epilog
from dutperf.exit_status import signals_interrupt
from dutperf.tester import TesterError
from dutperf.tester.engine import EngineCommand, engine_version

EXIT_STATUS = (
    "Exit status: 0 valid, 1 no number (the DUT forwards nothing), 2 wrong usage or configuration, 3 invalid, 4 aborted"
    " (also: disk full), 70 a fault of dutperf, 75 not now (what it needs is in use or away), 130 interrupted."
)
app = typer.Typer(name="dutperf", no_args_is_help=True, epilog=EXIT_STATUS, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dutperf {__version__}\n{_engine_version()}")
        raise typer.Exit


def _engine_version() -> str:
    try:
        program = EngineCommand.find().program
        return f"engine {engine_version(program)}: {program}"
    except TesterError as error:
        return f"no engine: {error}"


@app.callback()
def _dutperf(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Measures network devices by RFC 8219, 2544 and 4814, and proves that each measurement is
    valid."""


app.command("trial", epilog=epilog("trial"))(trial.trial)
for definition in procedures.ALL:
    app.command(definition.name, epilog=epilog(definition.name))(measure.command(definition))
app.command("set-rate", epilog=epilog("set-rate"))(set_rate.set_rate)
app.command("capture", epilog=epilog("capture"))(capture.capture)
app.command("replay", epilog=epilog("replay"))(replay.replay)
app.command("script", epilog=epilog("script"))(script.script)
app.command("run", epilog=epilog("run"))(run.run)
app.add_typer(plan.app, name="plan")
app.command("resume", epilog=epilog("resume"))(resume.resume)
app.command("show", epilog=epilog("show"))(show.show)
app.command("report", epilog=epilog("report"))(report.report)
app.command("plot", epilog=epilog("plot"))(plot.plot)
app.command("export", epilog=epilog("export"))(export.export)
app.command("compare", epilog=epilog("compare"))(compare.compare)
app.add_typer(store.app, name="store")
app.command("trend", epilog=epilog("trend"))(trend.show)
app.add_typer(fleet.app, name="fleet")
app.command("serve", epilog=epilog("serve"))(serve.serve)
app.command("testbeds", epilog=epilog("testbeds"))(testbeds.show)
app.add_typer(lab.app, name="lab")
app.command("convert", epilog=epilog("convert"))(convert.convert)
app.add_typer(ports.app, name="ports")
app.command("doctor", epilog=epilog("doctor"))(doctor.doctor)
app.command("selftest", epilog=epilog("selftest"))(selftest.selftest)


def main() -> None:
    """Entry point of the command. A defect has an exit status of its own: that of an uncaught exception, 1, would say
    that the DUT forwards nothing."""
    with signals_interrupt():
        try:
            app(prog_name="dutperf")
        except Exception as error:
            sys.exit(fault(error))
