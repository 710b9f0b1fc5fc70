# SPDX-License-Identifier: Apache-2.0
"""Termination signals: none must leave a DUT or a lab behind, nor interrupt its take-down."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

TERMINATION = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP raise SystemExit instead of killing the process. The program's own
    handlers stay."""
    with _handled({number for number in TERMINATION if signal.getsignal(number) == signal.SIG_DFL}, _exit):
        yield


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Within, termination signals are held back; they are raised afterwards."""
    deferred: list[int] = []
    try:
        with _handled(set(TERMINATION), lambda number, _frame: deferred.append(number)):
            yield
    finally:
        for number in deferred:
            signal.raise_signal(number)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _handled(numbers: set[signal.Signals], handler: signal._HANDLER) -> Iterator[None]:
    """Within, ``handler`` for ``numbers``. Only the main thread may set handlers; other threads leave
    them unchanged."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
