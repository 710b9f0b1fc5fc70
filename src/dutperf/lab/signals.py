# SPDX-License-Identifier: Apache-2.0
"""Signals and labs: a signal that asks the process to end must not leave a lab behind, nor cut its
take-down short."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def endings_unwind() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP raise SystemExit where they would kill the process outright.
    Handlers of the program's own stay."""
    with _handled({number for number in ASKS_TO_END if signal.getsignal(number) == signal.SIG_DFL}, _exit):
        yield


@contextlib.contextmanager
def endings_wait() -> Iterator[None]:
    """Within, signals that ask to end are kept; they are raised afterwards."""
    kept: list[int] = []
    with _handled(set(ASKS_TO_END), lambda number, _frame: kept.append(number)):
        yield
    for number in kept:
        signal.raise_signal(number)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _handled(numbers: set[signal.Signals], handler: signal._HANDLER) -> Iterator[None]:
    """``handler`` for ``numbers`` within; only the main thread may set handlers, others leave them
    be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
