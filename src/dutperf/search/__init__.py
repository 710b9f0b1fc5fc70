# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest load that passes. They know loads and outcomes only: no packets, no
files, no clock.

A search names the next load and takes its outcome, until it needs no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Result of offering one load."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_FORWARDING = "not_forwarding"
    """Failed, and in some direction no frame came through."""
    UNMEASURABLE = "unmeasurable"
    """No trial of this load was valid, so nothing is known of the DUT."""


@dataclass(frozen=True)
class Loss:
    """Lost frames of a trial, in the direction that lost the greater share."""

    lost: int
    sent: int
    one_episode: bool = False
    """All lost frames of the trial were due within one episode, which may not be the rate's."""

    @property
    def ratio(self) -> float:
        """Lost frames as a share of those sent (0 where nothing was sent)."""
        return self.lost / self.sent if self.sent else 0.0


NO_LOSS = Loss(lost=0, sent=0)
