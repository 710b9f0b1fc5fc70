# SPDX-License-Identifier: Apache-2.0
"""The frames that a simulated DUT loses: stretches of a direction's frames, each with a number of
losses spread evenly over it.

So a trial of many millions of frames takes no time, but its losses and arrivals still have times.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from dutperf.model import LOSS_BINS, PUNCTUAL_US, Arrivals, Direction, LateBursts, Losses, Stream, Trial
from dutperf.model.pattern import Times

NO_LIMIT = float("inf")
RECOVERING_LOSS = 10
"""While it recovers from an overload, a DUT loses one in this many frames."""


@dataclass(frozen=True)
class Lost:
    """``count`` of the frames ``first`` to ``end`` - 1."""

    first: int
    end: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether all frames of the stretch are lost."""
        return self.count == self.end - self.first

    def before(self, frame: int) -> int:
        """Number of lost frames below ``frame``."""
        frames, length = min(max(0, frame - self.first), self.end - self.first), self.end - self.first
        return max(0, -(-(2 * self.count * frames - length) // (2 * length)))

    def place(self, index: int) -> int:
        """The frame number of a lost frame."""
        return self.first + (2 * index + 1) * (self.end - self.first) // (2 * self.count)

    def longest_run(self) -> int:
        return self.count if self.whole else ceil(self.count / (self.end - self.first - self.count))


def overloaded(trial: Trial, direction: Direction, sent: int, server: tuple[float, int]) -> list[Lost]:
    """Losses of a ``server`` (capacity in frames/s, room for waiting frames) among the first
    ``sent`` frames: those that find the queue full."""
    capacity_fps, room = server
    if capacity_fps == NO_LIMIT:
        return []
    stream, duration_ns, times = trial.all_streams()[direction], trial.duration_ns, trial.times(direction)
    if stream.pattern is not None or stream.is_partial:
        return _one_by_one(times, sent, capacity_fps, room)
    change_ns = duration_ns if stream.then is None else stream.then.after_ns
    change = min(sent, times.frames_before(change_ns))
    losses = []
    for first, end, time_ns, rate_fps in (
        (0, change, change_ns, stream.rate_fps),
        (change, sent, duration_ns - change_ns, _last_rate(stream)),
    ):
        frames = end - first
        served = min(frames, room_for(capacity_fps, time_ns / 1e9, frames - room) + min(room, frames))
        losses.append(
            Lost(min(first + _until_full(rate_fps, capacity_fps, room), end - frames + served), end, frames - served)
        )
        room -= min(room, max(0, ceil(served - capacity_fps * time_ns / 1e9)))
    return [one for one in losses if one.count]


def _one_by_one(times: Times, sent: int, capacity_fps: float, room: int) -> list[Lost]:
    """The same for frames that do not come at a constant rate."""
    lost: list[Lost] = []
    idle_ns = 0.0  # when all accepted frames will have been served
    for frame in range(sent):
        due_ns = times.due_ns(frame)
        if (idle_ns - due_ns) * capacity_fps <= room * 1e9:
            idle_ns = max(idle_ns, due_ns) + 1e9 / capacity_fps
        elif lost and lost[-1].end == frame:
            lost[-1] = Lost(lost[-1].first, frame + 1, lost[-1].count + 1)
        else:
            lost.append(Lost(frame, frame + 1, 1))
    return lost


def room_for(rate_fps: float, duration_s: float, frames: int) -> int:
    """Number of ``frames`` that are served at ``rate_fps``; the first needs no time."""
    return max(0, frames if rate_fps == NO_LIMIT else min(frames, ceil(rate_fps * duration_s)))


def recovering(trial: Trial, direction: Direction, recovery_s: float, sent: int) -> list[Lost]:
    """Losses of an overloaded DUT in the ``recovery_s`` seconds after the change to a lower rate."""
    stream, times = trial.all_streams()[direction], trial.times(direction)
    if stream.then is None:
        return []
    change_ns = stream.then.after_ns
    first, end = (
        min(sent, times.frames_before(time_ns)) for time_ns in (change_ns, change_ns + round(recovery_s * 1e9))
    )
    return [Lost(first, end, max(1, (end - first) // RECOVERING_LOSS))] if end > first else []


def out_of_service(times: Times, times_s: tuple[float, float], sent: int) -> list[Lost]:
    """Loss of all frames sent between two times after the start."""
    first, end = (min(sent, times.frames_before(round(time_s * 1e9))) for time_s in times_s)
    return [Lost(first, end, end - first)] if end > first else []


def losses_of(trial: Trial, direction: Direction, lost: Sequence[Lost]) -> Losses | None:
    """The losses by their due times; None where nothing was lost."""
    if not lost:
        return None
    times = trial.times(direction)
    return Losses(
        first_s=times.due_ns(min(one.place(0) for one in lost)) / 1e9,
        last_s=times.due_ns(max(one.place(one.count - 1) for one in lost)) / 1e9,
        longest_run=max(one.longest_run() for one in lost),
        bins=_in_bins(lost, [times.frames_before(end_ns) for end_ns in _ends_ns(trial)]),
    )


def _in_bins(lost: Sequence[Lost], bounds: Sequence[int]) -> tuple[int, ...]:
    """How many lost frames each bin has; ``bounds`` are the frame numbers at which bins begin, and the end of the
    last. Frames beyond it count in the last bin."""
    bins, last = [0] * (len(bounds) - 1), len(bounds) - 1
    for one in lost:
        begin = min(bisect_right(bounds, one.first), last) - 1
        end = max(begin + 1, min(bisect_left(bounds, one.end), last))
        below = [*map(one.before, bounds[begin:end]), one.count]
        for part, (before, after) in enumerate(pairwise(below), begin):
            bins[part] += after - before
    return tuple(bins)


def _ends_ns(trial: Trial) -> list[int]:
    """Ends of the bins of the sending time, with 0 as the first."""
    return [trial.duration_ns * part // LOSS_BINS for part in range(LOSS_BINS + 1)]


def late_bursts(trial: Trial, direction: Direction, stall_s: float) -> LateBursts | None:
    """The late burst of a sender that stalls for so long at the start."""
    if stall_s * 1e6 <= PUNCTUAL_US:
        return None
    times = trial.times(direction)
    bounds = [times.frames_before(min(round(stall_s * 1e9), end_ns)) for end_ns in _ends_ns(trial)]
    return (
        None
        if bounds[-1] == 0
        else LateBursts(frames=bounds[-1], bins=tuple(after - before for before, after in pairwise(bounds)))
    )


def arrivals_of(times: Times, sent: int, lost: Sequence[Lost], delay_s: float) -> Arrivals | None:
    """Arrivals of frames that all have the same delay; None where none arrives."""
    if sent - sum(one.count for one in lost) <= 0:
        return None
    gaps = sorted((one.first, one.end) for one in lost if one.whole)
    first = gaps[0][1] if gaps and gaps[0][0] == 0 else 0
    last = gaps[-1][0] - 1 if gaps and gaps[-1][1] == sent else sent - 1
    arrival_gaps = [(before - 1, after) for before, after in gaps if before > 0 and after < sent] or [
        (max(first, last - 1), last)
    ]
    due_s = [[times.due_ns(frame) / 1e9 + delay_s for frame in gap] for gap in (*arrival_gaps, (first, last))]
    longest = max(due_s[:-1], key=lambda gap: gap[1] - gap[0])
    return Arrivals(
        first_s=due_s[-1][0], last_s=due_s[-1][1], longest_gap_from_s=longest[0], longest_gap_to_s=longest[1]
    )


def _last_rate(stream: Stream) -> int:
    return stream.rate_fps if stream.then is None else stream.then.rate_fps


def _until_full(rate_fps: int, capacity_fps: float, room: int) -> int:
    """Number of frames that come before the queue is full."""
    return ceil(rate_fps * room / (rate_fps - capacity_fps)) if rate_fps > capacity_fps else 0
