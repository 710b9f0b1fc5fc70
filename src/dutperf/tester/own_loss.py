# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of the DUT's own loss: how many frames it would have lost without late bursts.

There are three bounds, each from the counts alone. They are for all directions together, because
the directions may share the DUT's capacity. docs/decisions/0003-validity.md gives the arguments; in
short:

* No burst caused the losses before the first late burst.
* A frame that leaves late causes at most one additional lost frame. The loss beyond the number of
  late frames is the DUT's own.
* A DUT that can serve the rate loses nothing at that rate, however full its queue is. The loss at a
  steady rate far from all bursts therefore shows by how much the rate is too high. A burst only
  fills the queue earlier, at most by its own frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from dutperf.model import LOSS_BINS, PUNCTUAL_US, Direction, DirectionCounts, Trial

QUEUES_FACTOR = 2
"""The worst burst of a DUT's queues may differ from queue to queue. Together they hold at most this
many times the longest burst."""
FEWEST_CLEAR_PARTS = 8
"""Parts of the sending time without late frames in them or just before; fewer do not show the usual
loss."""
HIGHEST_SHARE = 0.25
"""Share of the clear parts that is left out, those with most losses: a DUT that lost frames once is
not overloaded all the time."""


def own_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """Frames that the DUT lost at least without the effect of late bursts, in all directions together;
    0: nothing is proven."""
    lost, late = _lost_and_late(counts)
    before = next((part for part, frames in enumerate(late) if frames), LOSS_BINS)
    return max(
        0, sum(lost[:before]), sum(lost) - sum(late) - _punctual(trial), _beyond_capacity(trial, counts, lost, late)
    )


def steady_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """The same, from the loss at a steady rate alone: without losses that happened once, or in a few
    parts of the sending time."""
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
    """The bound by the loss at a steady rate: the mean loss of the clear parts for every part after the
    first loss, minus the frames that a burst may have left in the queue."""
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
    """Frames that are due during the longest stall that does not count as one."""
    return ceil(sum(stream.rate_fps for stream in trial.streams().values()) * PUNCTUAL_US / 1e6)


def _lost_and_late(counts: Mapping[Direction, DirectionCounts]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lost frames and late frames in each part of the sending time."""
    lost = [() if one.losses is None else one.losses.bins for one in counts.values()]
    late = [() if one.late_bursts is None else one.late_bursts.bins for one in counts.values()]
    return _sum_of_bins(lost), _sum_of_bins(late)


def _sum_of_bins(of_directions: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(bins[part] for bins in of_directions if bins) for part in range(LOSS_BINS))
