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

from collections.abc import Mapping, Sequence
from math import ceil, floor

from dutperf.model import LOSS_BINS, PUNCTUAL_US, Direction, DirectionCounts, Trial
from dutperf.tester.dut_waits import Disturbance

QUEUES_FACTOR = 2
"""The worst burst of a DUT's queues may differ from queue to queue. Together they hold at most this
many times the longest burst."""
LONGEST_WAITS = 2
"""Margin of the number of frames that a DUT lost by itself, in times of the frames that were sent
while it waited longest for its core."""
GROUP = 3
"""Clear parts of the sending time, those without late frames or disturbances in them or just before,
whose losses are added: one part has so few that most have none where others have one."""
FEWEST_GROUPS = 8
"""Fewer do not show the usual loss."""
HIGHEST_SHARE = 0.25
"""Share of the groups that is left out, those with most losses: a DUT that lost frames once is not
overloaded all the time."""
AFTERWARDS_S = 0.01
"""Time after a burst or a disturbance that is not clear. What it needs is small: a frame that finds the
queue full then was due then. It covers what is known less exactly, such as when the burst ended."""


def own_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """Frames that the DUT lost at least without the effect of late bursts, in all directions together;
    0: nothing is proven."""
    lost, late = _lost_and_late(counts)
    before = next((part for part, frames in enumerate(late) if frames), LOSS_BINS)
    return max(0, sum(lost[:before]), sum(lost) - sum(late) - _punctual(trial), _beyond_capacity(trial, counts))


def steady_loss(
    trial: Trial, counts: Mapping[Direction, DirectionCounts], disturbances: Sequence[Disturbance] = ()
) -> int:
    """The same, from the loss at a steady rate alone: without losses that happened once, or in a few
    parts of the sending time.

    ``disturbances``: when the DUT had no core, in seconds since the first frame was due.
    """
    return max(0, _beyond_capacity(trial, counts, disturbances, LONGEST_WAITS))


def loses_steadily(
    trial: Trial,
    counts: Mapping[Direction, DirectionCounts],
    disturbances: Sequence[Disturbance] = (),
) -> bool:
    """Whether the DUT would have lost frames undisturbed, by the loss at a steady rate. Their number
    (:func:`steady_loss`) takes a margin for the longest disturbance."""
    return _beyond_capacity(trial, counts, disturbances) > 0


def clear_parts(
    late: tuple[int, ...], max_lateness_us: float, duration_s: float, afterwards_s: float = AFTERWARDS_S
) -> list[int]:
    """Parts of the sending time in which no frame left late, nor for ``afterwards_s`` seconds before."""
    after = ceil((max_lateness_us / 1e6 + afterwards_s) / (duration_s / LOSS_BINS))
    around = {part + later for part, frames in enumerate(late) if frames for later in range(after + 1)}
    return [part for part in range(LOSS_BINS) if part not in around]


def _beyond_capacity(
    trial: Trial,
    counts: Mapping[Direction, DirectionCounts],
    disturbances: Sequence[Disturbance] = (),
    longest_waits: int = 0,
) -> int:
    """The bound by the loss at a steady rate: the mean loss of the clear parts for every part after the
    first loss, minus the frames that bursts or disturbances may have left in the queue: those of all
    disturbances until it was full, and ``longest_waits`` times those of the longest."""
    lost, late = _lost_and_late(counts)
    if any(stream.then is not None or stream.pattern is not None for stream in trial.streams().values()) or not any(
        lost
    ):
        return 0
    first = next(part for part, frames in enumerate(lost) if frames)
    max_lateness_us = max(one.lateness_us.max for one in counts.values())
    disturbed = _disturbed_parts(disturbances, trial.duration_s)
    clear = [
        lost[part]
        for part in clear_parts(late, max_lateness_us, trial.duration_s)
        if part > first and part not in disturbed
    ]
    groups = sorted(sum(clear[at : at + GROUP]) for at in range(0, len(clear) - GROUP + 1, GROUP))
    if len(groups) < FEWEST_GROUPS:
        return 0
    usual = groups[: ceil((1 - HIGHEST_SHARE) * len(groups))]
    in_queue = QUEUES_FACTOR * sum(one.late_bursts.at_once for one in counts.values() if one.late_bursts is not None)
    full_s = (first + 1) * trial.duration_s / LOSS_BINS
    waited_s = sum(one.waited_s for one in disturbances if one.began_s < full_s)
    waited_s += longest_waits * max((one.waited_s for one in disturbances), default=0.0)
    in_queue += ceil(waited_s * sum(stream.rate_fps for stream in trial.streams().values()))
    return floor(sum(usual) / (GROUP * len(usual)) * (LOSS_BINS - 1 - first)) - in_queue - _punctual(trial)


def _disturbed_parts(disturbances: Sequence[Disturbance], duration_s: float) -> set[int]:
    """Parts of the sending time with a disturbance in them, or just before."""
    part_s = duration_s / LOSS_BINS
    return {
        part
        for one in disturbances
        for part in range(floor(one.began_s / part_s), floor((one.ended_s + AFTERWARDS_S) / part_s) + 1)
    }


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
