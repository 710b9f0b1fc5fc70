# SPDX-License-Identifier: Apache-2.0
"""A trial that the user ended."""

from __future__ import annotations

from dutperf.model import Direction, DirectionCounts, Trial


class _EndedTrial(Trial):
    """One that sent for a shorter time: as many frames as were sent. How many were due by then, of each direction,
    depends on when each of its senders got to know."""

    counts: dict[Direction, DirectionCounts]

    def intended(self, direction: Direction) -> int:
        return self.counts[direction].sent

    def additional(self, direction: Direction) -> tuple[int, ...]:
        return tuple(one.sent for one in self.counts[direction].additional or ())


def until_its_end(
    trial: Trial, counts: dict[Direction, DirectionCounts]
) -> tuple[Trial, dict[Direction, DirectionCounts]]:
    """A trial that the user ended, as one of the time in which it sent. Frames that were not due by then
    are not missing; those that were late are seen as such."""
    sent = {direction: one.model_copy(update={"intended": one.sent}) for direction, one in counts.items()}
    lasted_s = max((one.send_time_s for one in counts.values()), default=0.0)
    lasted = {"duration_ns": max(1, round(lasted_s * 1e9)), "counts": sent}
    return _EndedTrial.model_construct(**dict(trial) | lasted), sent
