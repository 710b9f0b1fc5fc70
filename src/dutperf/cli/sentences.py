# SPDX-License-Identifier: Apache-2.0
"""What a command says of an error that a user can correct, and its exit status."""

from __future__ import annotations

from dutperf import fault
from dutperf.cli import condition_options
from dutperf.errors import DutperfError
from dutperf.exit_status import ABORTED
from dutperf.journal import JournalError, WriteError
from dutperf.run.campaign import PlanError
from dutperf.setup.configuration import ConfigError, ParameterError


def status_of(error: DutperfError) -> int:
    return ABORTED if isinstance(error, WriteError) else fault.status_of(error)


def sentence(error: DutperfError) -> str:
    """With options in place of the parameters of the Python interface."""
    if isinstance(error, ParameterError | PlanError):
        return str(condition_options.as_typed(error))
    if isinstance(error, ConfigError | JournalError) and not isinstance(error, WriteError):
        return condition_options.spelled(str(error))
    return error.sentence
