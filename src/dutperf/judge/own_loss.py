# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of the DUT's own loss: how many frames it would have lost without late bursts.

There are four bounds, each from the counts alone. They are for all directions together, because
the directions may share the DUT's capacity. docs/decisions/0003-validity.md gives the arguments; in
short:

* No late frame caused the losses before the first one.
* A frame that leaves late causes at most one additional lost frame. The loss beyond the number of
  late frames is the DUT's own.
* A DUT that can serve the rate loses nothing at that rate, however full its queue is. The loss at a
  steady rate far from all bursts, less the frames that leave late there, therefore shows by how much
  the rate is too high. A burst only fills the queue earlier, at most by its own frames.
* A DUT whose queue is full still forwards. While nothing at all comes through, for longer than any frame is late,
  the loss is an outage of the DUT.

Streams beside those that are measured take capacity and leave bursts in queues too, but what is lost of them counts
for nothing.

Late are frames by more than 0.2 ms, or than half the time between two frames
(:class:`dutperf.model.LateFrames`): what leaves more evenly, a queue for a few frames takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import ceil, floor, sqrt
from typing import TypeVar

from dutperf.model import LOSS_BINS, PUNCTUAL_US, Direction, DirectionCounts, Trial
from dutperf.watch.dut_waits import Disturbance

_Counts = TypeVar("_Counts")

QUEUES = 8
"""So many queues of a DUT, among which flows are spread at random, are allowed for."""
DEVIATIONS = 3.0
"""The worst burst differs from queue to queue: each gets its share of the frames of the longest one and
at most so many standard deviations more, and all together no more than twice the longest burst."""
LONGEST_WAITS = 2
"""Margin of the number of frames that a DUT lost by itself, in times of the frames that were sent
while it waited longest for its core."""
GROUP = 3
"""Clear parts of the sending time, those without late frames or disturbances in them or just before,
whose losses are added: one part has so few that most have none where others have one."""
FEWEST_GROUPS = 8
"""Fewer do not show the usual loss."""
FEWEST_WAITS = 8
"""Fewer disturbances do not show what one of them costs."""
COST_FACTOR = 4
"""Margin of that cost: of a DUT's queues only one may be full, and a wait costs nothing in the others."""
HIGHEST_SHARE = 0.25
"""Share of the groups that is left out, those with most losses: a DUT that lost frames once is not
overloaded all the time."""
HIGHEST_SHARE_DISTURBED = 0.75
"""The same for a DUT that lacked its core now and then. If it spreads flows at random over queues, one of
them gets more than its share now and then, and loses some if the last disturbance has filled it."""
AFTERWARDS_S = 0.01
"""Time after a burst or a disturbance that is not clear. What it needs is small: a frame that finds the
queue full then was due then. It covers what is known less exactly, such as when the burst ended."""
_NONE = (0,) * LOSS_BINS


def loss_matters(trial: Trial, counts: DirectionCounts) -> bool:
    """Whether more frames were lost than are tolerated, and not only corrupted. Disturbances only add losses, so a
    disturbed trial that passes is a pass; and no frame is corrupted because it left late, or because a loop or the DUT
    had to wait."""
    return counts.loss_ratio > trial.question.tolerated_loss and counts.lost > counts.corrupted


def measured(counts: Mapping[Direction, _Counts]) -> dict[Direction, _Counts]:
    """Without those of streams beside them; where nothing but streams with rates of their own is sent, these."""
    return {direction: one for direction, one in counts.items() if not direction.stream} or dict(counts)


def own_loss(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> int:
    """Frames that the DUT lost at least without the effect of late bursts, in all directions together;
    0: nothing is proven."""
    lost, late = _lost(counts), _late(counts)
    before = next((part for part, frames in enumerate(late) if frames), LOSS_BINS)
    bounds = (sum(lost[:before]), sum(lost) - sum(late) - _punctual(trial), _beyond_capacity(trial, counts))
    return max(0, *bounds, sum(_in_outages(trial, one) for one in measured(counts).values()))


def _in_outages(trial: Trial, counts: DirectionCounts) -> int:
    """The bound by parts of the sending time in a row of which every frame was lost. The first and the last of a row
    do not count, nor does a row whose others last no longer than twice the largest lateness."""
    if counts.losses is None or not all(stream.is_steady for stream in trial.streams().values()):
        return 0
    lost, due = counts.losses.bins, counts.intended / LOSS_BINS
    rows = groupby(range(LOSS_BINS), key=lambda part: lost[part] >= max(1, floor(due)))
    inner = [tuple(parts)[1:-1] for is_lost, parts in rows if is_lost]
    fewest = 2 * counts.lateness_us.max / 1e6 / (trial.duration_s / LOSS_BINS)
    outages = [(len(parts), sum(lost[part] for part in parts)) for parts in inner if len(parts) > fewest]
    return sum(frames for length, frames in outages if frames + 1 >= length * due)  # one of a part may be in the next


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
    in_bursts: tuple[int, ...], max_lateness_us: float, duration_s: float, afterwards_s: float = AFTERWARDS_S
) -> list[int]:
    """Parts of the sending time in which no frame left in a late burst, nor for ``afterwards_s`` seconds before."""
    after = ceil((max_lateness_us / 1e6 + afterwards_s) / (duration_s / LOSS_BINS))
    around = {part + later for part, frames in enumerate(in_bursts) if frames for later in range(after + 1)}
    return [part for part in range(LOSS_BINS) if part not in around]


def _beyond_capacity(
    trial: Trial,
    counts: Mapping[Direction, DirectionCounts],
    disturbances: Sequence[Disturbance] = (),
    longest_waits: int = 0,
) -> int:
    """The bound by the loss at a steady rate: the usual loss of the clear parts for every part after the
    first loss, or all frames that were lost where these are fewer, minus the frames that bursts or disturbances may
    have left in the queue. Of disturbances these are those of all until it was full, and ``longest_waits`` times
    those of the longest.

    The usual loss is that of the earlier or the later half of the clear parts, whichever is smaller: a
    DUT that loses a frame now and then anyway may have a queue that disturbances fill later.
    """
    lost, late = _lost(counts), _late(counts)
    if not all(stream.is_steady for stream in trial.all_streams().values()) or not any(lost):
        return 0
    first = next(part for part, frames in enumerate(lost) if frames)
    max_lateness_us = max(one.lateness_us.max for one in counts.values())
    disturbed = _disturbed_parts(disturbances, trial.duration_s)
    clear = [
        part
        for part in clear_parts(_in_bursts(counts), max_lateness_us, trial.duration_s)
        if part > first and part not in disturbed
    ]
    groups = [
        sum(lost[part] - late[part] for part in clear[at : at + GROUP])
        for at in range(0, len(clear) - GROUP + 1, GROUP)
    ]
    if len(groups) < FEWEST_GROUPS:
        return 0
    half = len(groups) // 2
    highest_share = HIGHEST_SHARE_DISTURBED if disturbances else HIGHEST_SHARE
    usual_loss = min(_usual_loss(some, highest_share) for some in (groups[:half], groups[half:]))
    in_queue = _left_by_bursts(sum(one.late_bursts.at_once for one in counts.values() if one.late_bursts is not None))
    full_s = (first + 1) * trial.duration_s / LOSS_BINS
    others = set(range(first + 1, LOSS_BINS)) - set(clear)
    in_queue += _left_by_waits(
        [one.waited_s for one in disturbances if one.began_s < full_s],
        [one.waited_s for one in disturbances if one.began_s >= full_s],
        sum(lost[part] for part in others) - usual_loss * len(others),
        _rate_fps(trial),
    )
    in_queue += ceil(longest_waits * max((one.waited_s for one in disturbances), default=0.0) * _rate_fps(trial))
    return min(sum(lost), floor(usual_loss * (LOSS_BINS - 1 - first))) - in_queue - _punctual(trial)


def _usual_loss(groups: Sequence[int], highest_share: float) -> float:
    """Frames that are usually lost in a part of the sending time, by the losses of groups of them, of
    which those with most losses are left out."""
    usual = sorted(groups)[: ceil((1 - highest_share) * len(groups))]
    return sum(usual) / (GROUP * len(usual))


def _left_by_bursts(longest: int) -> int:
    """Frames that the sender's bursts may have left in the queues before the first loss; ``longest``: of
    the longest burst. Of a number of frames spread at random the variance is its mean."""
    return longest + min(longest, ceil(DEVIATIONS * sqrt(QUEUES * longest)))


def _left_by_waits(before_s: Sequence[float], after_s: Sequence[float], excess: float, rate_fps: float) -> int:
    """Frames that the waits before the first loss may have left in the queue.

    At most all that were sent meanwhile. But many a DUT catches up, for instance one that a shaper
    limits and not its core. The waits after the first loss show it: as the queue is full, each costs at
    least what it would have left in the queue. Together they cost ``excess``, the frames lost beyond
    the usual loss. The time by which a wait is longer than the longest of those counts in full.
    """
    all_frames = sum(before_s) * rate_fps
    if len(after_s) < FEWEST_WAITS:
        return ceil(all_frames)
    like_after_s = sum(min(waited_s, max(after_s)) for waited_s in before_s)
    cost_fps = min(rate_fps, COST_FACTOR * max(0.0, excess) / sum(after_s))
    return ceil(all_frames - (rate_fps - cost_fps) * like_after_s)


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
    return ceil(_rate_fps(trial) * PUNCTUAL_US / 1e6)


def _rate_fps(trial: Trial) -> float:
    """Frames of all directions together, per second."""
    return sum(stream.rate_fps for stream in trial.all_streams().values())


def late_frames(counts: DirectionCounts) -> tuple[int, ...]:
    """Frames of a direction that left late in each part of the sending time, in late bursts or not."""
    bursts = _NONE if counts.late_bursts is None else counts.late_bursts.bins
    alone = _NONE if counts.late_frames is None else counts.late_frames.bins
    return tuple(map(max, bursts, alone))


def _lost(counts: Mapping[Direction, DirectionCounts]) -> tuple[int, ...]:
    return _sum_of_bins(_NONE if one.losses is None else one.losses.bins for one in measured(counts).values())


def _late(counts: Mapping[Direction, DirectionCounts]) -> tuple[int, ...]:
    return _sum_of_bins(map(late_frames, counts.values()))


def _in_bursts(counts: Mapping[Direction, DirectionCounts]) -> tuple[int, ...]:
    return _sum_of_bins(_NONE if one.late_bursts is None else one.late_bursts.bins for one in counts.values())


def _sum_of_bins(of_directions: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Of all directions, in each part of the sending time."""
    return tuple(map(sum, zip(*of_directions, strict=True)))
