# SPDX-License-Identifier: Apache-2.0
"""Child processes that end with this process, whatever ends it: the engine, the daemons of a lab."""

from __future__ import annotations

import ctypes
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def start(command: Sequence[str], ends_by: signal.Signals, **options: Any) -> subprocess.Popen[bytes]:
    """Start ``command``, to which the kernel sends ``ends_by`` when this process ends; ``options``: those of Popen.

    The kernel sends it when the thread ends that started the process (prctl(2), PR_SET_PDEATHSIG). So a thread of its
    own starts it and lives as long as it: a program may start it in one thread and use it in another. Raises OSError:
    it cannot be started."""
    started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception] = queue.SimpleQueue()
    threading.Thread(target=_start_and_stay, args=(command, ends_by, options, started), daemon=True).start()
    outcome = started.get()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def wait(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Its exit status, as soon as there is one; Popen.wait() sleeps for up to 50 ms at a time. Raises
    subprocess.TimeoutExpired: it did not end within ``timeout_s`` seconds."""
    if process.poll() is not None:  # its number may be another process's by now
        return process.returncode
    before_s = time.monotonic()
    with suppress(OSError, AttributeError):  # the kernel is older than 5.3, or Python was built for such a one
        ended = os.pidfd_open(process.pid)
        watch = select.poll()
        watch.register(ended, select.POLLIN)
        try:
            watch.poll(timeout_s * 1000)
        finally:
            os.close(ended)
    return process.wait(timeout=max(0.0, timeout_s - (time.monotonic() - before_s)))


def _start_and_stay(
    command: Sequence[str],
    ends_by: signal.Signals,
    options: dict[str, Any],
    started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception],
) -> None:
    number = int(ends_by)

    def die_with_this_thread() -> None:
        """Runs in the new process before the command. Between fork and exec it may only make system calls."""
        _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)

    try:
        process = subprocess.Popen(command, preexec_fn=die_with_this_thread, **options)
    except Exception as error:  # it is raised where the process was asked for
        started.put(error)
        return
    started.put(process)
    with suppress(ChildProcessError):  # who asked for it may have seen its end first
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
