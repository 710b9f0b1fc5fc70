# SPDX-License-Identifier: Apache-2.0
"""Who can time-stamp the frames of an interface: the kernel, or its card by a clock of its own (a PTP hardware clock,
/dev/ptpN). It is what the driver claims; only a trial shows whether the stamps come."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dutperf.machine.access import Machine
from dutperf.machine.open_files import openers

UNKNOWN = "unknown"


@dataclass(frozen=True)
class OfferedStamps:
    """What the driver of an interface claims (``ethtool -T``)."""

    by_kernel: bool
    by_card: str | None
    """``card`` stamps every frame, ``card (PTP only)`` messages of PTP alone; None: it stamps none."""
    clock: str | None
    """That of the card: ``/dev/ptp0``."""

    def __str__(self) -> str:
        """``kernel, card``; ``-`` where nobody can."""
        return ", ".join(filter(None, ("kernel" if self.by_kernel else None, self.by_card))) or "-"


def stamps_of(machine: Machine, interface: str) -> OfferedStamps | None:
    """None: it is not known, most often because ethtool is not installed."""
    told = machine.run(["ethtool", "-T", interface])
    if told.status != 0:
        return None
    text = told.output.lower()
    words = set(re.findall(r"[a-z0-9-]+", text))
    by_kernel, by_hardware = (words >= {f"{by}-transmit", f"{by}-receive"} for by in ("software", "hardware"))
    stamps_all = re.search(r"receive filter modes:.*^\s+all\b", text, re.DOTALL | re.MULTILINE)
    clock = re.search(r"(?:hardware clock|provider index): (\d+)", text)
    return OfferedStamps(
        by_kernel=by_kernel,
        by_card=("card" if stamps_all else "card (PTP only)") if by_hardware else None,
        clock=f"/dev/ptp{clock[1]}" if by_hardware and clock else None,
    )


def hindrance(machine: Machine, clock: str) -> str | None:
    """Why this user cannot use a card's clock as it is, as the end of a sentence. None: nothing is in the way; of
    another user's processes only root sees which clocks they may set."""
    if not machine.exists(clock.lstrip("/")):
        return "which is not there: load the driver's PTP support, or give the container the device"
    if not machine.is_readable(clock.lstrip("/")):
        return "which this user cannot read: run as root"
    setters = ", ".join(openers(machine, {clock}, for_writing=True))
    return f"which process {setters} may set: end it before --stamps card" if setters else None
