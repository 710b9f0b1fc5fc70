# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a DUT (``dut.commands`` of the configuration).

They run on this machine, each in a session of its own; ``ssh router show version`` is an ordinary command. They do not
concern the test traffic.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from dutperf.dut import printed
from dutperf.setup.configuration import Command, ConfigError

GRACE_S = 2.0
"""Time for a command to end itself, in seconds."""


class Running(Protocol):
    """An action on the DUT that was started."""

    def finish(self) -> None:
        """Wait for its end. Raises the starter's error where the action failed."""
        ...

    def kill(self) -> None: ...


class RunningCommand:
    """A command that has been started, with normal priority. The caller waits for it or kills it. ``key``: of the
    command in the configuration, for errors. Raises ConfigError: it could not be started."""

    def __init__(
        self, command: Command, key: str, time_limit_s: float, variables: Mapping[str, str] | None = None
    ) -> None:
        self._key = key
        self._time_limit_s = time_limit_s
        self._deadline_s = time.monotonic() + time_limit_s
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        """A file, not a pipe: a pipe that nobody reads would block the command."""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=None if variables is None else {**os.environ, **variables},
            )
        except OSError as error:
            self._output.close()
            raise ConfigError(f"cannot run {argv[0]}: {error.strerror}", self._key) from None
        with suppress(OSError):  # a command that resets the DUT must not inherit the low priority of this process
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 0)

    def finish(self) -> None:
        """Wait for its end. Raises ConfigError: it ended with another status than 0, or took too long. It names
        ``key``."""
        self.output()

    def output(self) -> str:
        """Wait for its end; returns its output. Raises ConfigError: it ended with another status than 0, or took too
        long. It names ``key``."""
        self._await()
        self._output.seek(0)
        output = self._output.read().decode(errors="replace")
        self._output.close()
        if self._process.returncode:
            raise ConfigError(f"{_exit_text(self._process.returncode)}; {printed.last_line(output)}", self._key)
        return output

    def kill(self) -> None:
        """End it, and all that it started."""
        _kill(self._process)
        self._output.close()

    def _await(self) -> None:
        try:
            self._process.wait(timeout=max(0.0, self._deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise ConfigError(f"did not end within {self._time_limit_s:g} s", self._key) from None
        except BaseException:
            self.kill()
            raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """A reset may start the DUT again before it ends. Until it is waited for, nobody else has its number."""
    deadline_s = time.monotonic() + GRACE_S
    with suppress(ProcessLookupError, ChildProcessError):
        os.killpg(process.pid, signal.SIGTERM)
        while not _has_ended(process) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _exit_text(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    known = -status in {one.value for one in signal.Signals}
    return f"was ended by {signal.Signals(-status).name if known else f'signal {-status}'}"
