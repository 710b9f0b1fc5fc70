# SPDX-License-Identifier: Apache-2.0
"""How the tester spaces the test frames: each is handed over when it is due (``software``), or the line is
filled without a gap, so that a frame's place on it is its time (``fill``)."""

from __future__ import annotations

from dutperf.model import Fill
from dutperf.setup.configuration import unicast_mac

SOFTWARE, FILL = "software", "fill"
NOBODY = "02:00:00:00:88:b5"
"""The fillers' address: a locally administered one (IEEE 802), which no NIC is delivered with."""


def fill_of(pacing: str) -> Fill | None:
    """What the trial has for ``software``, ``fill`` or ``fill:MAC``; None for software. Raises ValueError: the text is
    none of them."""
    kind, colon, address = pacing.partition(":")
    if kind not in (SOFTWARE, FILL) or (kind == SOFTWARE and colon):
        raise ValueError(f"should be {SOFTWARE}, {FILL}, or {FILL}:MAC with the fillers' address")
    if kind == SOFTWARE:
        return None
    if not colon:
        return Fill(destination=NOBODY)
    try:
        return Fill(destination=unicast_mac(address))
    except ValueError as error:
        raise ValueError(f"'{address}' {error}") from None
