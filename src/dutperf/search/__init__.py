# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest load that passes. They know loads and outcomes only: no packets, no
files, no clock.

A search is asked for the next load and told its outcome, until it asks for no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What came of offering one load."""

    PASSED = "passed"
    FAILED = "failed"
    SILENT = "silent"
    """Failed, and in some direction nothing at all came through."""
    UNMEASURABLE = "unmeasurable"
    """No trial of this load was valid: it says nothing about the DUT."""


@dataclass(frozen=True)
class Loss:
    """What a trial lost, in the direction that lost the greater share."""

    lost: int
    sent: int

    @property
    def ratio(self) -> float:
        """Lost frames as a share of those sent (0 where nothing was sent)."""
        return self.lost / self.sent if self.sent else 0.0


NO_LOSS = Loss(lost=0, sent=0)
