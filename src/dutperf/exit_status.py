# SPDX-License-Identifier: Apache-2.0
"""Exit statuses of the commands, what a scheduler does at each, and how signals end the commands."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

VALID = 0
NO_NUMBER = 1
CONDITION_FAILED = 1
WRONG_USAGE = 2
INVALID = 3
ABORTED = 4
FAULT = 70
"""A defect of dutperf; sysexits.h calls it EX_SOFTWARE. It says nothing about the DUT."""
NOT_NOW = 75
"""The same command may succeed later: a testbed or a run that another process holds, a port, link or DUT that is away.
sysexits.h calls it EX_TEMPFAIL."""
INTERRUPTED = 130
READER_GONE = 141
"""Nobody reads the output any more: that of a program that SIGPIPE ends."""

DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What fails where the disk does not take more, neither data nor files."""
SCARCE = frozenset({errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What fails because of what else runs on this machine."""

DONE = (VALID, NO_NUMBER, INVALID)
"""The job is done: no number from the DUT is a result, and an invalid trial was repeated already."""
GIVEN_UP = (WRONG_USAGE, FAULT)
"""The same command would end in the same way. A job that ends in any other way is started again."""


def status_of_system(error: OSError) -> int | None:
    """Of an error that the system reports; None: it names no file, so it is a defect here."""
    if error.errno in DISK | {errno.EROFS}:
        return ABORTED
    if error.errno in SCARCE:
        return NOT_NOW
    return None if error.filename is None else WRONG_USAGE


def let_go_of_output() -> None:
    """Nobody reads it any more: what is left in the buffers goes nowhere, else Python complains at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Within, SIGINT, SIGTERM and SIGHUP act as Ctrl-C, so that labs, engine and journal are closed properly.

    A shell starts the background processes of a script with SIGINT ignored, and they pass that on; whoever stops a run
    sends it all the same. SIGHUP stays ignored where it is: that is what nohup is for.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted.append(signal.SIGHUP)
    former = {number: signal.signal(number, _interrupt) for number in wanted}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def end_at_signals() -> None:
    """From now on SIGINT and SIGTERM end the program with the status of an interruption, wherever
    :func:`signals_interrupt` does not hold: an exception would come out of whichever module is being imported or
    closed, as anything. No lab, engine or journal may be open."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    with suppress(Exception):  # closed, or just being written
        sys.stdout.flush()
    with suppress(OSError):
        os.write(2, b"dutperf: interrupted\n")
    os._exit(INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
