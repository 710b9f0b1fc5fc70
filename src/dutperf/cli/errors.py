# SPDX-License-Identifier: Apache-2.0
"""Errors as one sentence on standard error, with their exit status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from dutperf.cli.output import log
from dutperf.errors import DutperfError
from dutperf.exit_status import ABORTED, DISK, FAULT, INTERRUPTED, NOT_NOW, READER_GONE, WRONG_USAGE, signals_interrupt
from dutperf.fault import sentence_of_fault

SCARCE = frozenset({errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What fails because of what else runs on this machine."""


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
        _let_go_of_output()
        raise typer.Exit(READER_GONE) from None
    except OSError as error:
        if (status := _status_of_system(error)) is None:
            raise
        raise _exit(f"{error.filename or 'the output'}: {error.strerror}", status) from None
    except (KeyboardInterrupt, typer.Abort):
        raise _exit("interrupted", INTERRUPTED) from None


def _status_of_system(error: OSError) -> int | None:
    """Of an error that the system reports; None: it names no file, so it is a defect here."""
    if error.errno in DISK | {errno.EROFS}:
        return ABORTED
    if error.errno in SCARCE:
        return NOT_NOW
    return None if error.filename is None else WRONG_USAGE


def _let_go_of_output() -> None:
    """What is left in the buffers goes nowhere: else Python complains at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


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
