# SPDX-License-Identifier: Apache-2.0
"""``dutperf script``: a Python file of the user's that sends traffic, reads counts and decides."""

from __future__ import annotations

import runpy
import sys
import traceback
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf import api
from dutperf.cli import options
from dutperf.cli.commands.measure import split_source
from dutperf.cli.errors import reported
from dutperf.errors import DutperfError
from dutperf.exit_status import WRONG_USAGE
from dutperf.run.testbench import USUAL_FRAME_SIZE, bench
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError

MAIN = "main"


def script(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file with a function main(bench, …).")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENT]…", help="Given to it, as texts.")] = None,
    lab: options.LabName = None,
    lab_option: options.LabOptions = None,
    config_file: options.ConfigFile = None,
) -> None:
    """Run a Python file that sends traffic of its choice on a test setup."""
    with reported():
        main = _main_of(file)
        given = {"lab": lab, "lab_option": lab_option, "config_file": config_file, "queues": None, "offloads": None}
        source, _ = split_source(given)
        with bench(source, SingleTrial(), longest=USUAL_FRAME_SIZE) as ready, closing(api.Bench(ready)) as made:
            status = _called(main, made, list(arguments or ()), file)
    raise typer.Exit(status if isinstance(status, int) else 0)


def _called(main: Any, made: api.Bench, arguments: list[str], file: Path) -> Any:
    """What the function returns; an error in it is shown from the user's file on."""
    try:
        return main(made, *arguments)
    except DutperfError:
        raise
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename) != file:
            trace = trace.tb_next
        traceback.print_exception(error.with_traceback(trace or error.__traceback__))
        raise typer.Exit(WRONG_USAGE) from None


def _main_of(file: Path) -> Any:
    """The function of the file. Modules beside it can be imported.

    Raises:
        ConfigError: there is no such file or function.
    """
    if not file.is_file():
        raise ConfigError(f"{file} is not a file", "FILE")
    sys.path.insert(0, str(file.parent.absolute()))
    main = runpy.run_path(str(file)).get(MAIN)
    if not callable(main):
        raise ConfigError(f"{file} has no function {MAIN}(bench, *arguments)", "FILE")
    return main
