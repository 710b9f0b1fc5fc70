# SPDX-License-Identifier: Apache-2.0
"""``dutperf show DIR``: the results as a table, of a run that is finished, was interrupted or is under
way."""

from __future__ import annotations

import json

import typer

from dutperf.api import results
from dutperf.cli import options
from dutperf.cli.errors import reported
from dutperf.cli.options import Directory
from dutperf.cli.output import console, terminal


def show(directory: Directory, as_json: options.Json = False) -> None:
    """Show the results of a run or a suite, and its state; changes nothing."""
    with reported():
        found = results.read(directory)
        if as_json:
            typer.echo(json.dumps(found.summary.model_dump(mode="json")))
            return
        console.result(found.summary)
        for one in found.measured:
            if (state := one.state()) is not None:
                terminal.line(f"{one.name} is {state}")
        if not (found.is_complete or found.is_under_way):
            terminal.line(f"resume with: dutperf resume {directory}")
