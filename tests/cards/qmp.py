# SPDX-License-Identifier: Apache-2.0
"""A client of QEMU's monitor: one JSON object a line each way (QEMU Machine Protocol)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any


class Refused(Exception):
    """QEMU does not do it; the message is its own."""


class Monitor:
    """A connection to the monitor. Events are passed over."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._next()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:
        """What the command returns.

        Raises:
            Refused: QEMU's answer is an error.
        """
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._next()
            if "error" in answer:
                raise Refused(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]

    def close(self) -> None:
        """Leave."""
        self._lines.close()
        self._socket.close()

    def _next(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer
