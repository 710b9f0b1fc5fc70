# SPDX-License-Identifier: Apache-2.0
"""Connection tracking of the Linux kernel in a network namespace: count, delete, losses.

A program of its own, run inside the namespace as ``python3 -I -S conntrack.py count``. It imports nothing
of this package, so it starts fast. It does what ``conntrack -C`` and
``conntrack -F`` do, by ctnetlink (linux/netfilter/nfnetlink_conntrack.h): that program need not be
installed.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from pathlib import Path

COUNT = Path("/proc/sys/net/netfilter/nf_conntrack_count")
MAXIMUM = Path("/proc/sys/net/netfilter/nf_conntrack_max")
STATISTICS = Path("/proc/net/stat/nf_conntrack")
"""One line for each core, in hexadecimal. This kernel file is per namespace."""
LOST = {"drop": "conntrack_drop", "chainlength": "conntrack_chain_too_long"}
"""Statistics that count lost frames, by the cause that is told: no connection could be made (the table is
full and nothing in it could be evicted, or no port was free), or too many had the same hash."""
EMPTY_WITHIN_S = 2.0

_NETLINK_NETFILTER, _SUBSYSTEM_CONNTRACK, _DELETE = 12, 1, 2
_REQUEST, _ACKNOWLEDGE, _ERROR = 1, 4, 2


def count() -> int:
    return int(COUNT.read_text())


def delete_all() -> None:
    """Delete all connections, as ``conntrack -F``. Raises OSError: the kernel refuses."""
    body = struct.pack("BBH", socket.AF_UNSPEC, 0, 0)
    kind = _SUBSYSTEM_CONNTRACK << 8 | _DELETE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as kernel:
        kernel.bind((0, 0))
        kernel.sendto(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | _ACKNOWLEDGE, 1, 0) + body, (0, 0))
        answer = kernel.recv(4096)
    _, answered, _, _, _ = struct.unpack_from("=IHHII", answer)
    (error,) = struct.unpack_from("=i", answer, 16)
    if answered == _ERROR and error:
        raise OSError(-error, os.strerror(-error))


def clear() -> float:
    """Delete all connections, and wait until the kernel counts none; returns how long it took, in seconds. Raises
    OSError: the kernel refuses, or connections are left."""
    began_s = time.monotonic()
    delete_all()
    deadline_s = time.monotonic() + EMPTY_WITHIN_S
    while left := count():
        if time.monotonic() > deadline_s:
            raise OSError(f"{left} connections are left after all were deleted: is there still traffic?")
        time.sleep(0.0001)
    return time.monotonic() - began_s


def statistics(text: str) -> dict[str, int]:
    """The sums over all cores of the kernel's file ``text``, without the count of entries."""
    names, *cores = (line.split() for line in text.splitlines() if line.strip())
    return {name: sum(int(core[column], 16) for core in cores) for column, name in enumerate(names) if column}


def main(task: str) -> None:
    """``count``: prints the count; ``clear``: deletes all connections, and prints how long it took; ``losses``: prints
    lost frames by cause. A NAT makes connections for frames from the left only."""
    if task == "clear":
        print(f"deletion_s {clear():.6f}")
    elif task == "losses":
        numbers = statistics(STATISTICS.read_text())
        print("".join(f"forward {cause} {numbers.get(name, 0)}\n" for name, cause in LOST.items()), end="")
    else:
        print(f"connections {count()}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"conntrack: {error.strerror or error}")
