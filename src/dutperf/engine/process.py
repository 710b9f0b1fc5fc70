# SPDX-License-Identifier: Apache-2.0
"""The engine's process: it is started, exchanges one JSON object a line in each direction
(protocol/README.md), and is reliably ended.

The engine never outlives this process: it exits at the end of its standard input, and the kernel
sends it SIGTERM when this process ends (:mod:`dutperf.machine.child`). In both cases, and also while it
opens its ports, it takes back what it changed on them; only SIGKILL leaves that to the next engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO, Any

from dutperf.machine import child

KEPT_LINES = 50
"""Last lines of the engine's standard error, kept to report why it died."""
CLOSE_S = 3.0
"""Time for the engine to exit after the end of its input, and again after SIGTERM, before SIGKILL."""
KILLED_S = 60.0
"""Time for a killed engine to be gone: the kernel closes its sockets first, which waits for whatever else takes
network devices away at that moment."""
SUDO = ("sudo", "-n")
"""Prefix to end a process of root as another user; it fails where sudo is not permitted."""


class EngineDied(Exception):
    """The process or its output ended; the message says how, with the last line that it wrote."""


class EngineTimeout(Exception):
    """No event came within the time limit."""


class EngineProcess:
    """A running engine. Events come through a queue, so that a timeout or a signal can end the
    wait."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start ``command``. Raises OSError: it cannot be started."""
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        # A process group of its own: we handle Ctrl-C at the terminal, ask the engine to stop, and
        # it reports its counts.
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self._process = child.start(command, signal.SIGTERM, start_new_session=True, **pipes)
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_events, self._read_errors)]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Process id of the engine, or of its prefix command."""
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        """Send one request. Raises EngineDied: the engine reads no more."""
        self.send_line(json.dumps(request, separators=(",", ":")))

    def send_line(self, line: str) -> None:
        """Send one line unchanged; see :meth:`send`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise EngineDied(self.last_words()) from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises EngineTimeout: none came within ``timeout_s`` seconds. Raises EngineDied: none will
        come."""
        try:
            event = self._events.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise EngineTimeout(f"the engine sent nothing for {timeout_s:.1f} s") from None
        if event is None:
            self._events.put(None)
            raise EngineDied(self.last_words())
        return event

    def last_words(self) -> str:
        """How the process ended, and its last line on standard error, as one sentence."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(self._process, 1)
        self._readers[1].join(timeout=1)
        last = next((line for line in reversed(self._lines) if line.strip()), None)
        return f"the engine {_exit_text(self._process.returncode)}; " + (
            f"its last output: {last.strip()}" if last else "it wrote nothing"
        )

    def errors(self) -> list[str]:
        """The last lines that the engine wrote to standard error."""
        return list(self._lines)

    def close(self) -> int:
        """End the process: end of input first, then SIGTERM, then SIGKILL. Returns its exit status. Raises
        EngineTimeout: it does not end, and this user may not end it."""
        self._close_input()
        return self._end_by(signal.SIGTERM, signal.SIGKILL)

    def stop(self) -> int:
        """End the process, whatever it does: SIGTERM at once, so that it can take back what it changed on its ports,
        then SIGKILL. Returns its exit status. Raises EngineTimeout: it does not end, and this user may not end it."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
        self._close_input()
        return self._end_by(signal.SIGKILL)

    def _close_input(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _end_by(self, *numbers: signal.Signals) -> int:
        """Wait for the end, each time before the next one of these signals."""
        for number in numbers:
            try:
                return child.wait(self._process, CLOSE_S)
            except subprocess.TimeoutExpired:
                self._signal(number)
        try:
            return child.wait(self._process, KILLED_S)
        except subprocess.TimeoutExpired:
            raise EngineTimeout(f"the engine (process {self._process.pid}) does not end: kill it by hand") from None

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:  # it belongs to another user, as under sudo: end it by sudo too
            command = [*SUDO, "kill", f"-{number.value}", "--", f"-{self._process.pid}"]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLOSE_S, check=False)

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        for line in _lines(self._process.stdout):
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if isinstance(event, dict):
                self._events.put(event)
            else:
                self._lines.append(f"not an event: {line}")
        self._events.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._lines.extend(_lines(self._process.stderr))


def _lines(stream: IO[bytes]) -> Iterator[str]:
    with stream:
        for line in stream:
            yield line.decode(errors="replace").rstrip("\r\n")


def _exit_text(status: int | None) -> str:
    if status is None:
        return "closed its output"
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
