# SPDX-License-Identifier: Apache-2.0
"""Who can time-stamp the frames of an interface (``ethtool -T``): the kernel, or the card's own clock."""

from __future__ import annotations

import re

from dutperf.machine.access import Machine

KERNEL = "kernel"


def stamps_of(machine: Machine, interface: str) -> str | None:
    """In words: ``kernel``, ``kernel, card``, ``kernel, card (PTP only)``; ``-`` where nobody can. None: it is not
    known.

    A card that stamps every frame it receives has the filter ``all``; others only stamp messages of PTP.
    """
    told = machine.run(["ethtool", "-T", interface])
    if told.status != 0:
        return None
    text = told.output.lower()
    words = set(re.findall(r"[a-z0-9-]+", text))
    ways = {KERNEL: "software", "card": "hardware"}
    by = [who for who, name in ways.items() if words >= {f"{name}-transmit", f"{name}-receive"}]
    stamps_all = re.search(r"receive filter modes:.*^\s+all\b", text, re.DOTALL | re.MULTILINE)
    return ", ".join(f"{who} (PTP only)" if who == "card" and not stamps_all else who for who in by) or "-"
