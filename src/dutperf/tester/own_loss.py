# SPDX-License-Identifier: Apache-2.0
"""How many frames a DUT would have lost at least if no frame had left late: what a trial proves in
spite of late bursts.

Three lower bounds, of all directions together, because they may share what the DUT can do. Each
needs only what was counted. The arguments stand in
docs/decisions/0003-validity.md; in short:

* what was lost before the first late burst was not the burst's work;
* a frame that leaves late costs the DUT one lost frame more at most, so the loss beyond the
  number of late frames is the DUT's own;
* a DUT that can serve the rate loses nothing while frames come at that rate, however full its
  queue is. So what is lost at a steady rate far from all
  bursts shows by how much the rate is too high, and a burst has only made the queue full earlier:
  by no more frames than there are in one burst.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from dutperf.model import LOSS_BINS, PUNCTUAL_US, Direction, DirectionCounts, Trial

QUEUES_FACTOR = 2
"""A DUT with several queues may have the worst burst for each of them at another time: together no
more than this many times the longest burst."""
FEWEST_CLEAR_PARTS = 8
"""Of the sending time, without late frames in them or just before: of fewer nobody can say what is usual."""
HIGHEST_SHARE = 0.25
"""This share of the clear parts, those with most losses, is left out: a DUT that lost frames once
is not overloaded all the time."""


def own_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """Frames that the DUT lost at least, in all directions together, whatever late bursts did; 0
    where nothing is proven."""
    lost, late = _lost_and_late(counts)
    before = next((part for part, frames in enumerate(late) if frames), LOSS_BINS)
    return max(
        0, sum(lost[:before]), sum(lost) - sum(late) - _punctual(trial), _beyond_capacity(trial, counts, lost, late)
    )


def steady_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """The same, by what is lost at a steady rate alone: what befell the DUT once, or in a few parts
    of the sending time, is not in it."""
    lost, late = _lost_and_late(counts)
    return max(0, _beyond_capacity(trial, counts, lost, late))


def clear_parts(late: tuple[int, ...], max_lateness_us: float, duration_s: float) -> list[int]:
    """Parts of the sending time in which no frame left late, nor in one whole part before."""
    after = ceil(max_lateness_us / 1e6 / (duration_s / LOSS_BINS)) + 1
    around = {part + later for part, frames in enumerate(late) if frames for later in range(after + 1)}
    return [part for part in range(LOSS_BINS) if part not in around]


def _beyond_capacity(
    trial: Trial, counts: Mapping[Direction, DirectionCounts], lost: tuple[int, ...], late: tuple[int, ...]
) -> int:
    """By the loss at a steady rate: as much a part as there is in the clear parts, from the first
    loss on, less what a burst may have put in the queue."""
    if any(stream.then is not None or stream.pattern is not None for stream in trial.streams().values()) or not any(
        lost
    ):
        return 0
    first = next(part for part, frames in enumerate(lost) if frames)
    max_lateness_us = max(one.lateness_us.max for one in counts.values())
    clear = sorted(lost[part] for part in clear_parts(late, max_lateness_us, trial.duration_s) if part > first)
    if len(clear) < FEWEST_CLEAR_PARTS:
        return 0
    usual = clear[: ceil((1 - HIGHEST_SHARE) * len(clear))]
    in_queue = QUEUES_FACTOR * sum(one.late_bursts.at_once for one in counts.values() if one.late_bursts is not None)
    return floor(sum(usual) / len(usual) * (LOSS_BINS - 1 - first)) - in_queue - _punctual(trial)


def _punctual(trial: Trial) -> int:
    """Frames of a stall that is too short to count as one."""
    return ceil(sum(stream.rate_fps for stream in trial.streams().values()) * PUNCTUAL_US / 1e6)


def _lost_and_late(counts: Mapping[Direction, DirectionCounts]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Frames that were lost, and that left late, in each part of the sending time."""
    lost = [() if one.losses is None else one.losses.bins for one in counts.values()]
    late = [() if one.late_bursts is None else one.late_bursts.bins for one in counts.values()]
    return _sum_of_bins(lost), _sum_of_bins(late)


def _sum_of_bins(of_directions: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(bins[part] for bins in of_directions if bins) for part in range(LOSS_BINS))
