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

MAX_RETRIES = 3
"""How many loads of a search may be offered again; it bounds the search on a tester that is
disturbed all the time."""


class Probes:
    """Trials at a low load after one in which nothing came through: whether the DUT forwards at all.

    One shows it. A DUT that forwarded before may be down for a while (it restarts, its table is flushed): it is
    probed ``MAX_RETRIES`` times more.
    """

    def __init__(self, *, has_forwarded: bool = False) -> None:
        self._has_forwarded = has_forwarded
        self._in_vain = 0
        self.not_forwarding = False
        """Whether the DUT forwards nothing at all."""

    def see(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """Take the outcome of a load."""
        some_came = outcome is Outcome.FAILED and loss.lost < loss.sent
        self._has_forwarded |= some_came or outcome is Outcome.PASSED

    def another(self, outcome: Outcome) -> bool:
        """Take the outcome of a probe. Returns whether it is to be sent again."""
        self._in_vain = self._in_vain + 1 if outcome is Outcome.NOT_FORWARDING else 0
        most = 1 + MAX_RETRIES if self._has_forwarded else 1
        self.not_forwarding = self._in_vain >= most
        return 0 < self._in_vain < most
