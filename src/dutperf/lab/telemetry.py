# SPDX-License-Identifier: Apache-2.0
"""Frames that a DPDK program with two ports received and did not forward, by its telemetry.

A program of its own, run as ``python3 -I -S telemetry.py DIRECTORY``: the runtime directory of the DPDK program.
It imports nothing of this package, so it starts fast. The protocol: DPDK's guide, Telemetry library.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOCKET = "dpdk_telemetry.v2"
DIRECTIONS = {"forward": (0, 1), "reverse": (1, 0)}
"""Ports of the way in and of the way out."""


def connect(directory: Path) -> Callable[[str], Any]:
    """A function that asks the program, and returns what it answers. Raises OSError: it does not listen or answer."""
    path = next(directory.rglob(SOCKET), None)
    if path is None:
        raise OSError(f"there is no {SOCKET} in {directory}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(10)
    connection.connect(str(path))
    longest = json.loads(connection.recv(1024))["max_output_len"]

    def ask(request: str) -> Any:
        connection.send(request.encode())
        return json.loads(connection.recv(longest))[request.partition(",")[0]]

    return ask


def not_forwarded(counters: list[dict[str, int]]) -> dict[str, int]:
    """By direction, from the statistics of both ports."""
    return {
        direction: max(0, counters[way_in]["ipackets"] - counters[way_out]["opackets"])
        for direction, (way_in, way_out) in DIRECTIONS.items()
    }


def main(directory: str) -> None:
    ask = connect(Path(directory))
    lost = not_forwarded([ask(f"/ethdev/stats,{port}") for port in (0, 1)])
    print("".join(f"{direction} not_forwarded {count}\n" for direction, count in lost.items()), end="")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"telemetry: {error.strerror or error}")
