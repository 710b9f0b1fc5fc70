# SPDX-License-Identifier: Apache-2.0
"""Errors as one sentence on standard error, with their exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dutperf.cli.output import log
from dutperf.errors import DutperfError
from dutperf.exit_status import (
    FAULT,
    INTERRUPTED,
    READER_GONE,
    let_go_of_output,
    signals_interrupt,
    status_of_system,
)
from dutperf.fault import sentence_of_fault


@contextmanager
def reported() -> Iterator[None]:
    """Errors that a user can correct, and interruptions, end the command with one sentence. Within, whatever is open
    is closed first."""
    try:
        with signals_interrupt():
            yield
    except DutperfError as error:
        from dutperf.cli.sentences import sentence, status_of  # they know every kind of error, so most of the package

        raise _exit(sentence(error), status_of(error)) from None
    except BrokenPipeError:
        let_go_of_output()
        raise typer.Exit(READER_GONE) from None
    except OSError as error:
        if (status := status_of_system(error)) is None:
            raise
        raise _exit(f"{error.filename or 'the output'}: {error.strerror}", status) from None
    except (KeyboardInterrupt, typer.Abort):
        raise _exit("interrupted", INTERRUPTED) from None


def fault(error: BaseException) -> int:
    """Say where the traceback of a defect is; returns the exit status."""
    say(sentence_of_fault(error))
    return FAULT


def say(text: str) -> None:
    """One line for a person, on standard error; an event with ``--log-format json``."""
    log.message(text)


def _exit(text: str, status: int) -> typer.Exit:
    say(text)
    return typer.Exit(status)
