# SPDX-License-Identifier: Apache-2.0
"""Exit statuses of the commands, and how signals end them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NO_NUMBER = 1
CONDITION_FAILED = 1
WRONG_USAGE = 2
INVALID = 3
ABORTED = 4
INTERRUPTED = 130


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP act as Ctrl-C, so that labs, engine and journal are closed properly."""
    former = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
