# SPDX-License-Identifier: Apache-2.0
"""``dutperf show DIR``: the results as a table, of a run that is finished, was interrupted or is under
way."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from dutperf.api import results
from dutperf.cli import calling, options
from dutperf.cli.errors import reported
from dutperf.cli.options import Directory
from dutperf.cli.output import console, terminal
from dutperf.journal import JOURNAL, TRIAL_FILE


def show(directory: Directory, as_json: options.Json = False, verbose: options.Verbose = False) -> None:
    """Show the results of a run, a suite or a trial, and their state.

    Changes nothing.
    """
    with reported():
        if (directory / TRIAL_FILE).exists() and not (directory / JOURNAL).exists():
            _show_trial(directory, as_json)
            return
        found = results.read(directory)
        if as_json:
            typer.echo(json.dumps(found.summary.model_dump(mode="json")))
            return
        console.result(found.summary, verbose=verbose)
        for one in found.measured:
            if (state := one.state()) is not None:
                terminal.line(f"{one.name} is {state}")
        if found.can_be_resumed:
            terminal.line(f"resume with: {calling.command('resume', directory)}")


def _show_trial(directory: Path, as_json: bool) -> None:
    from dutperf.cli.commands import trial  # and with it all that measures

    report, result = trial.recorded(directory)
    if as_json:
        typer.echo(json.dumps(report))
    else:
        (console.replay if "replay" in report else console.trial)(report, result)
