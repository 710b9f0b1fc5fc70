# SPDX-License-Identifier: Apache-2.0
"""The DUT's own commands (``dut.commands`` of the configuration): set it up, take it down, ask it for its state.

They run on this machine, each in a session of its own; ``ssh router show version`` is a command like any other. Traffic is none of their business.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dutperf.config import Command, ConfigError, Dut
from dutperf.lab.signals import endings_wait

KEPT_CHARACTERS = 1_000_000
"""Of what a command says, from its beginning."""


@contextmanager
def in_place(dut: Dut) -> Iterator[None]:
    """Within, ``dut`` is set up. It is taken down on every way out, and where setting it up failed half-way.

    Raises:
        ConfigError: a command failed, or took too long. What went wrong within comes first.
    """
    try:
        _run_if_any(dut, "set_up")
        yield
    except BaseException:
        with suppress(ConfigError):
            _tear_down(dut)
        raise
    _tear_down(dut)


def state_of(dut: Dut) -> Callable[[], str] | None:
    """Asks for the DUT's state; None where the configuration does not say how."""
    return None if dut.commands is None or dut.commands.state is None else lambda: _run_if_any(dut, "state")


def run(command: Command, name: str, time_limit_s: float) -> str:
    """Run a command to its end: what it said, errors included.

    Raises:
        ConfigError: it could not be started, ended with another status than 0, or did not end in ``time_limit_s`` seconds. It names ``dut.commands.NAME``.
    """
    key = f"dut.commands.{name}"
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        raise ConfigError(f"cannot run {argv[0]}: {error.strerror}", key) from None
    said = _said(process, key, time_limit_s)
    if process.returncode:
        raise ConfigError(f"{_ending(process.returncode)}; {_last_line(said)}", key)
    return said[:KEPT_CHARACTERS]


def _said(process: subprocess.Popen[bytes], key: str, time_limit_s: float) -> str:
    try:
        output, _ = process.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise ConfigError(f"did not end within {time_limit_s:g} s; a process that is to stay needs its output sent elsewhere", key) from None
    except BaseException:
        _kill(process)
        raise
    return output.decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _run_if_any(dut: Dut, name: str) -> str:
    command: Command | None = getattr(dut.commands, name, None)
    return "" if dut.commands is None or command is None else run(command, name, dut.commands.time_limit_s)


def _tear_down(dut: Dut) -> None:
    """A Ctrl-C waits for its end."""
    with endings_wait():
        _run_if_any(dut, "tear_down")


def _ending(status: int) -> str:
    return f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"the last it said: {lines[-1]}" if lines else "it said nothing"
