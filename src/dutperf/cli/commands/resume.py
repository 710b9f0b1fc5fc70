# SPDX-License-Identifier: Apache-2.0
"""``dutperf resume``: resumes a run that was killed, interrupted or stopped by an error, after its last
finished trial."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer

from dutperf.cli import options
from dutperf.cli.commands.measure import resume_hint, show_result
from dutperf.cli.errors import say
from dutperf.cli.output import watch
from dutperf.cli.output.watch import Watchers, watched
from dutperf.run import resume as resumption


@watched
def resume(
    directory: options.Directory,
    config_file: options.ConfigNow = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    *,
    watchers: Watchers,
) -> None:
    """Resume a run or a suite after its last finished trial.

    The result is that of an uninterrupted one.
    """
    resume_and_show(directory, config_file, as_json, verbose, watchers)


def resume_and_show(
    directory: Path, config_file: Path | None, as_json: bool, verbose: bool, watchers: Watchers
) -> NoReturn:
    """Resume, show the result, and exit with its status."""
    if resumption.is_complete(directory):
        say(f"the measurement in {directory} is complete")
    with resume_hint(directory), watchers.told(directory):
        result = resumption.resume(
            directory, lambda measurements: watch.observers(measurements, directory, watchers), config_file
        )
    raise typer.Exit(show_result(result, directory, as_json, verbose))
