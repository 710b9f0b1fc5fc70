# SPDX-License-Identifier: Apache-2.0
"""Errors as one sentence on standard error, with their exit status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from dutperf.cli import options
from dutperf.cli.output import log
from dutperf.errors import DutperfError
from dutperf.exit_status import ABORTED, FAULT, INTERRUPTED, NOT_NOW, READER_GONE, WRONG_USAGE
from dutperf.fault import sentence_of_fault
from dutperf.journal import JOURNAL, JournalError, WriteError
from dutperf.run.campaign import PlanError
from dutperf.run.suite import SUITE
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.tester import TesterError

DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""What a write fails with where the disk does not take more."""
SCARCE = frozenset({errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What fails because of what else runs on this machine."""


@contextmanager
def reported() -> Iterator[None]:
    """Errors that a user can correct, and interruptions, end the command with one sentence."""
    try:
        yield
    except DutperfError as error:
        raise _exit(_sentence(error), status_of(error)) from None
    except BrokenPipeError:
        _let_go_of_output()
        raise typer.Exit(READER_GONE) from None
    except OSError as error:
        if (status := _status_of_system(error)) is None:
            raise
        raise _exit(f"{error.filename or 'the output'}: {error.strerror}", status) from None
    except (KeyboardInterrupt, typer.Abort):
        raise _exit("interrupted", INTERRUPTED) from None


def status_of(error: DutperfError) -> int:
    """The exit status of a command that ``error`` ends."""
    if isinstance(error, WriteError):
        return ABORTED
    if error.is_temporary:
        return NOT_NOW
    return FAULT if isinstance(error, TesterError) and error.code == "internal" else WRONG_USAGE


def _sentence(error: DutperfError) -> str:
    if isinstance(error, ParameterError | PlanError):
        return str(options.as_typed(error))
    if isinstance(error, ConfigError | JournalError) and not isinstance(error, WriteError):
        return options.spelled(str(error))
    if isinstance(error, TesterError) and error.field:
        return f"{error.field}: {error}"
    return str(error)


def _status_of_system(error: OSError) -> int | None:
    """Of an error that the system reports; None: it names no file, so it is a defect here."""
    if error.errno in DISK:
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


@contextmanager
def resume_hint(directory: Path) -> Iterator[None]:
    """If measuring stops early, say how to resume the run in ``directory``."""
    try:
        yield
    except (KeyboardInterrupt, WriteError, TesterError, ConfigError):
        if any(path.exists() and path.stat().st_size for path in (directory / JOURNAL, directory / SUITE)):
            say(
                f"the finished trials are in {directory} (dutperf show, dutperf report); resume with: dutperf resume"
                f" {directory}"
            )
        raise


def say(text: str) -> None:
    """One line for a person, on standard error; an event with ``--log-format json``."""
    log.message(text)


def _exit(text: str, status: int) -> typer.Exit:
    say(text)
    return typer.Exit(status)
