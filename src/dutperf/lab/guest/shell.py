# SPDX-License-Identifier: Apache-2.0
"""A root shell in the guest: scripts go over a serial port to :data:`AGENT`, their output and exit status come
back. Also a program of its own, ``python3 -I -S shell.py SOCKET SCRIPT SECONDS``, which imports nothing of this
package."""

from __future__ import annotations

import base64
import os
import re
import socket
import sys
import time
from pathlib import Path

AGENT = r"""#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what the host says, in each line a mark and a script in base64, and answers with the script's output and a line
# of the mark and the exit status.
printf '\001ready 0\n'
while read -r mark script; do
    echo "$script" | base64 -d > /tmp/script
    sh /tmp/script < /dev/null 2>&1
    printf '\001%s %s\n' "$mark" "$?"
done
"""
"""The guest's end. A host may leave before the answer, which then comes to the next one."""
_ENDS = re.compile(rb"\x01\w* \d+\n")


class Silent(Exception):
    """The guest did not answer in time; the message has what it said so far."""


class Failed(Exception):
    """A script ended with another exit status than 0; the message has its output."""


class Shell:
    """The host's end. The agent must not have said yet that it is ready."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._received = b""

    def await_ready(self, timeout_s: float) -> None:
        self._answer("ready", timeout_s)

    def run(self, script: str, timeout_s: float = 60) -> str:
        """Output of a script, standard error among it, without the last end of line. Raises Failed, Silent."""
        status, output = self.status(script, timeout_s)
        if status != 0:
            raise Failed(f"{script!r} ended with status {status}: {output}")
        return output

    def status(self, script: str, timeout_s: float = 60) -> tuple[int, str]:
        """Exit status and output of a script. Raises Silent."""
        mark = os.urandom(8).hex()
        self._socket.sendall(f"{mark} {base64.b64encode(script.encode()).decode()}\n".encode())
        return self._answer(mark, timeout_s)

    def close(self) -> None:
        """Leave; the guest does not notice."""
        self._socket.close()

    def _answer(self, mark: str, timeout_s: float) -> tuple[int, str]:
        """Without what came before: answers to others."""
        deadline_s, answered = time.monotonic() + timeout_s, re.compile(rf"\x01{mark} (\d+)\n".encode())
        while (end := answered.search(self._received)) is None:
            self._socket.settimeout(max(0.01, deadline_s - time.monotonic()))
            try:
                received = self._socket.recv(65536)
            except TimeoutError:
                raise Silent(f"the guest did not answer within {timeout_s:g} s; {self._said()}") from None
            except ConnectionResetError:
                received = b""
            if not received:
                raise Silent(f"the guest has ended; {self._said()}")
            self._received += received
        output, self._received = self._received[: end.start()], self._received[end.end() :]
        return int(end[1]), _ENDS.split(output)[-1].decode(errors="replace").rstrip("\n")

    def _said(self) -> str:
        return f"it said {self._received.decode(errors='replace')!r}"


def main(path: str, script: str, timeout_s: str) -> None:
    """Print what the script does; ends with its exit status."""
    shell = Shell(Path(path))
    try:
        status, output = shell.status(script, float(timeout_s))
    except Silent as error:
        sys.exit(f"shell: {error}")
    print(output)
    sys.exit(status)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except OSError as error:
        sys.exit(f"shell: {error.strerror or error}")
