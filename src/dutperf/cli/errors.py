# SPDX-License-Identifier: Apache-2.0
"""What a user or the world did wrong, told in one sentence on standard error, with the exit status
for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from dutperf.cli import options
from dutperf.cli.output import log
from dutperf.exit_status import ABORTED, INTERRUPTED, WRONG_USAGE
from dutperf.journal import JOURNAL, JournalError, WriteError
from dutperf.lab import LabError
from dutperf.machine.access import MachineError
from dutperf.run.campaign import PlanError
from dutperf.run.suite import SUITE
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.tester import TesterError


@contextmanager
def reported() -> Iterator[None]:
    """Errors that a user can mend end the command with one sentence, an interruption without a word
    more than that."""
    try:
        yield
    except WriteError as error:
        raise _exit(str(error), ABORTED) from None
    except (ParameterError, PlanError) as error:
        raise _exit(str(options.as_typed(error)), WRONG_USAGE) from None
    except (ConfigError, JournalError) as error:
        raise _exit(options.spelled(str(error)), WRONG_USAGE) from None
    except (LabError, MachineError) as error:
        raise _exit(str(error), WRONG_USAGE) from None
    except TesterError as error:
        raise _exit(f"{error.field}: {error}" if error.field else str(error), WRONG_USAGE) from None
    except KeyboardInterrupt:
        raise _exit("interrupted", INTERRUPTED) from None


@contextmanager
def kept(directory: Path) -> Iterator[None]:
    """Where measuring breaks off, say how to go on with what is in ``directory``."""
    try:
        yield
    except (KeyboardInterrupt, WriteError, TesterError, ConfigError):
        if any(path.exists() and path.stat().st_size for path in (directory / JOURNAL, directory / SUITE)):
            say(
                f"what was measured so far is in {directory} (dutperf show, dutperf report); go on with: dutperf resume"
                f" {directory}"
            )
        raise


def say(text: str) -> None:
    """One line for a person, on standard error; an event where ``--log-format json`` was asked for."""
    log.message(text)


def _exit(text: str, status: int) -> typer.Exit:
    say(text)
    return typer.Exit(status)
