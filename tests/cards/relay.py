# SPDX-License-Identifier: Apache-2.0
"""A DUT that treats any frame badly, whatever it is: ``relay.py LEFT RIGHT`` passes frames on between two interfaces
after a delay. It loses 5 %, sends 1 % twice, and delays 2 % so much longer that later ones overtake them. It imports
nothing of this package."""

from __future__ import annotations

import heapq
import itertools
import random
import select
import socket
import sys
import time

DELAY_S = 0.02
_LOST, _TWICE, _REORDERED = 0.05, 0.01, 0.02
_LONGER_S = 0.01
_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_IGNORE_OUTGOING, _SO_RCVBUFFORCE = 263, 23, 33


def _open(interface: str) -> socket.socket:
    """For what arrives at it."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 24)
    opened.bind((interface, _ETH_P_ALL))
    return opened


def main(left: str, right: str) -> None:
    """For ever."""
    chances = random.Random(1)
    ends = (_open(left), _open(right))
    others = dict(zip(ends, reversed(ends), strict=True))
    held: list[tuple[float, int, socket.socket, bytes]] = []
    numbers = itertools.count()
    while True:
        wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
        for end in select.select(ends, [], [], wait_s)[0]:
            frame = end.recv(65536)
            due_s = time.monotonic() + DELAY_S
            chance = chances.random()
            if chance < _LOST:
                continue
            times = 2 if chance < _LOST + _TWICE else 1
            due_s += _LONGER_S if chance > 1 - _REORDERED else 0
            for _ in range(times):
                heapq.heappush(held, (due_s, next(numbers), others[end], frame))
        while held and held[0][0] <= time.monotonic():
            _, _, other, frame = heapq.heappop(held)
            other.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:3])
