# SPDX-License-Identifier: Apache-2.0
"""Finds the processes at the other end of a port that connects to a switch or a virtual machine on
this machine by a UNIX socket: they are the DUT.

Their time on the DUT's core is the DUT's. Without their names it would count as taken by others.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PORT = re.compile(r"(virtio_user|vhost_user|memif):([^,]+)(,.*)?")
_LISTENS = {"virtio_user": ("server=1", True), "vhost_user": ("client=1", False), "memif": ("role=server", True)}
"""By kind of port: the argument that decides whether the tester creates the socket (True) or not."""
_PID = re.compile(r"pid=(\d+)")


@dataclass(frozen=True)
class Socket:
    """One line of ``ss``: a socket, and the processes that have it open."""

    path: str
    """``*`` where it has none: the connecting end."""
    inode: str
    peer: str
    """The inode of the other end."""
    pids: frozenset[int]


def pids(ports: Iterable[str], listed: str | None = None) -> tuple[int, ...]:
    """Processes at the other ends of ``ports`` (port specs), lowest first; ``listed`` is the output
    of ``ss`` for all UNIX sockets.

    None are found where ``ss`` is missing, or may not see the processes of other users.
    """
    ends = {match[2]: _tester_listens(match) for port in ports if (match := _PORT.fullmatch(port))}
    if not ends:
        return ()
    sockets = list(_parsed(_listed() if listed is None else listed))
    processes = frozenset[int]()
    for path, tester_listens in ends.items():
        named = [one for one in sockets if one.path == path]
        peers = {one.peer for one in named}
        owned = [one for one in sockets if one.inode in peers] if tester_listens else named
        processes = processes.union(*(one.pids for one in owned))
    return tuple(sorted(processes))


def _tester_listens(port: re.Match[str]) -> bool:
    argument, meaning = _LISTENS[port[1]]
    return meaning if argument in (port[3] or "").split(",") else not meaning


def _listed() -> str:
    try:
        return subprocess.run(["ss", "-xapnH"], capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _parsed(listed: str) -> Iterator[Socket]:
    for line in listed.splitlines():
        fields = line.split(maxsplit=8)
        if len(fields) >= 8:
            yield Socket(
                path=fields[4],
                inode=fields[5],
                peer=fields[7],
                pids=frozenset(map(int, _PID.findall("".join(fields[8:])))),
            )
