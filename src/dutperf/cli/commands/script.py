# SPDX-License-Identifier: Apache-2.0
"""``dutperf script``: a Python file of the user's that sends traffic, reads counts and decides."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf import api
from dutperf.cli import options
from dutperf.cli.errors import reported, say
from dutperf.cli.sentences import status_of
from dutperf.cli.source_options import split_source
from dutperf.errors import DutperfError
from dutperf.exit_status import INVALID, WRONG_USAGE
from dutperf.run.testbench import USUAL_FRAME_SIZE, bench
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError
from dutperf.spelling import count_of

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
        given = arguments or []
        _check_arguments(file, main, given)
        chosen = {"lab": lab, "lab_option": lab_option, "config_file": config_file, "queues": None, "offloads": None}
        source, _ = split_source(chosen)
        opened = bench(source, SingleTrial(), longest=USUAL_FRAME_SIZE)
        with opened as ready, closing(api.Bench(ready)) as made, _errors_of(file):
            status = _status_of(main(made, *given))
    raise typer.Exit(status)


def _status_of(returned: object) -> int:
    """The exit status for what ``main`` returned: a truth value says whether all is well."""
    if isinstance(returned, bool):
        return 0 if returned else INVALID
    if isinstance(returned, int) and not 0 <= returned <= 255:
        raise ConfigError(f"returned {returned}, but an exit status is 0 to 255", MAIN)
    return returned if isinstance(returned, int) else 0


@contextmanager
def _errors_of(file: Path) -> Iterator[None]:
    """Within, the user's code runs. What it raises is shown from its file on; an error of dutperf in one sentence, by
    the parameters that the file gave."""
    try:
        yield
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename) != file:
            trace = trace.tb_next
        if not isinstance(error, DutperfError):
            traceback.print_exception(error.with_traceback(trace))
            raise typer.Exit(WRONG_USAGE) from None
        say(f"{file}, line {trace.tb_lineno}: {error.sentence}" if trace is not None else error.sentence)
        raise typer.Exit(status_of(error)) from None


def _main_of(file: Path) -> Callable[..., Any]:
    """The function of the file. Modules beside it can be imported. Raises ConfigError: there is no such file or
    function."""
    if not file.is_file():
        raise ConfigError(f"{file} is not a file", "FILE")
    sys.path.insert(0, str(file.parent.absolute()))
    with _errors_of(file):
        main: Callable[..., Any] | None = runpy.run_path(str(file)).get(MAIN)
    if not callable(main):
        raise ConfigError(f"{file} has no function {MAIN}(bench, *arguments)", "FILE")
    return main


def _check_arguments(file: Path, main: Callable[..., Any], arguments: list[str]) -> None:
    """Raises ConfigError where the function does not take so many."""
    with suppress(ValueError):  # a function that is not Python's does not say what it takes
        parameters = signature(main)
        try:
            parameters.bind(None, *arguments)
        except TypeError as error:
            text = f"{MAIN}{parameters} of {file}, with a bench and {count_of(len(arguments), 'argument')}: {error}"
            raise ConfigError(text, "ARGUMENT") from None
