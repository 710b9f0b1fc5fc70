# SPDX-License-Identifier: Apache-2.0
"""Sets of cores in the kernel's two notations: lists (``0-3,8``; cpuset(7), List format) and masks
(``ff,00000001``; Mask format)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from pathlib import Path

Cores = frozenset[int]


def from_list(text: str) -> Cores:
    """The cores of ``0-3,8``; none for an empty text. Raises ValueError: the text is not such a list."""
    cores: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        cores |= set(range(int(first), int(last if dash else first) + 1))
    return frozenset(cores)


def from_mask(text: str) -> Cores:
    """The cores of ``ff,00000001``: hexadecimal words of 32 bits, the highest first. Raises ValueError: the text is not
    such a mask."""
    bits = 0
    for word in text.strip().split(","):
        bits = bits << 32 | int(word, 16)
    return frozenset(core for core in range(bits.bit_length()) if bits >> core & 1)


def siblings(core: int, cpus: Path = Path("/sys/devices/system/cpu")) -> Cores:
    """The other hardware threads of the core's physical one; none where the kernel does not tell."""
    try:
        return from_list((cpus / f"cpu{core}/topology/thread_siblings_list").read_text()) - {core}
    except (OSError, ValueError):
        return frozenset()


def as_list(cores: Collection[int]) -> str:
    """The shortest list: ``0-3,8``."""
    runs = [
        [core for _, core in run] for _, run in groupby(enumerate(sorted(cores)), lambda place: place[1] - place[0])
    ]
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
