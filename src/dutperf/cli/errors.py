# SPDX-License-Identifier: Apache-2.0
"""Errors as one sentence on standard error, with their exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from dutperf.cli import options
from dutperf.cli.output import log
from dutperf.errors import MissingLibrary, StoreError
from dutperf.exit_status import ABORTED, INTERRUPTED, WRONG_USAGE
from dutperf.fleet import FleetError
from dutperf.journal import JOURNAL, JournalError, WriteError
from dutperf.lab import LabError
from dutperf.machine.access import MachineError
from dutperf.run.campaign import PlanError
from dutperf.run.lease import LeaseError
from dutperf.run.requests import RequestError
from dutperf.run.suite import SUITE
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.tester import TesterError


@contextmanager
def reported() -> Iterator[None]:
    """Errors that a user can correct, and interruptions, end the command with one sentence."""
    try:
        yield
    except WriteError as error:
        raise _exit(str(error), ABORTED) from None
    except (ParameterError, PlanError) as error:
        raise _exit(str(options.as_typed(error)), WRONG_USAGE) from None
    except (ConfigError, JournalError) as error:
        raise _exit(options.spelled(str(error)), WRONG_USAGE) from None
    except (FleetError, LabError, LeaseError, MachineError, MissingLibrary, RequestError, StoreError) as error:
        raise _exit(str(error), WRONG_USAGE) from None
    except TesterError as error:
        raise _exit(f"{error.field}: {error}" if error.field else str(error), WRONG_USAGE) from None
    except KeyboardInterrupt:
        raise _exit("interrupted", INTERRUPTED) from None


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
