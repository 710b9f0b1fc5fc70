# SPDX-License-Identifier: Apache-2.0
"""A DUT frame by frame, before a sender that is held up now and then: what a trial would show, and
what an undisturbed one would have shown.

The DUT is a server of constant capacity with a queue that drops at its tail, or several of them
among which each frame is spread at random; or a token
bucket, which is the same in other words.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from dutperf.model import LOSS_BINS, Direction, DirectionCounts, LateBursts, LateFrames, Losses, Quantiles, Trial
from plans import counts, trial

PUNCTUAL_S, CAUGHT_UP_S = 1e-3, 1e-4
EVEN_S = 2e-4
"""A frame that is later than this, or than half the time between two, is a late frame, and those after it until one
is less than half as late."""
CALL_S = 2e-6
"""Between two frames of one that catches up."""


@dataclass(frozen=True)
class Server:
    """All cores together forward ``capacity_fps``."""

    capacity_fps: float
    queue: int
    cores: int = 1
    random_loss: float = 0.0


@dataclass(frozen=True)
class Stall:
    """The sender is away from one time to another, in seconds from the start."""

    start_s: float
    end_s: float


class Frame(NamedTuple):
    """Of a direction: its number, when it was due and when it left."""

    direction: Direction
    number: int
    due_s: float
    left_s: float
    core: int


def a_trial(rate_fps: int, duration_s: float = 1.0, **members: Any) -> Trial:
    """Both ways."""
    return trial(rate_fps, duration_ns=round(duration_s * 1e9), **members)


def sent(of: Trial, stalls: Sequence[Stall], seed: int) -> list[Frame]:
    """In the order in which they leave."""
    random = Random(seed)
    in_order = sorted(stalls, key=lambda stall: stall.start_s)
    frames = []
    for direction in of.streams():
        times, left_s, back_s, coming = of.times(direction), 0.0, 0.0, deque(in_order)
        for number in range(of.intended(direction)):
            due_s = times.due_ns(number) / 1e9
            while coming and coming[0].start_s <= due_s:
                back_s = max(back_s, coming.popleft().end_s)
            left_s = max(due_s, back_s, left_s + CALL_S)
            frames.append(Frame(direction, number, due_s, left_s, random.randrange(2**16)))
    return sorted(frames, key=lambda frame: (frame.left_s, frame.due_s))


def lost(frames: Sequence[Frame], dut: Server, seed: int = 0, without_core: Sequence[Stall] = ()) -> list[Frame]:
    """Those that find the queue full, or are lost at random. The DUT serves none ``without_core``."""
    unlucky = _unlucky(frames, dut.random_loss, Random(seed)) if dut.random_loss else set()
    service_s = dut.cores / dut.capacity_fps
    ends_s: list[deque[float]] = [deque() for _ in range(dut.cores)]
    gone = []
    for frame in frames:
        queue = ends_s[frame.core % dut.cores]
        while queue and queue[0] <= frame.left_s:
            queue.popleft()
        if len(queue) > dut.queue:
            gone.append(frame)
            continue
        begins_s = max(queue[-1], frame.left_s) if queue else frame.left_s
        queue.append(_served(begins_s, service_s, without_core) if without_core else begins_s + service_s)
        if unlucky and frame in unlucky:
            gone.append(frame)
    return gone


def _unlucky(frames: Sequence[Frame], ratio: float, random: Random) -> set[Frame]:
    """The same ones in whichever order they leave."""
    in_order = sorted(frames, key=lambda frame: (frame.direction, frame.number))
    return {frame for frame in in_order if random.random() < ratio}


def _served(begins_s: float, service_s: float, without_core: Sequence[Stall]) -> float:
    """When a service ends that begins at ``begins_s`` and is interrupted while the DUT is ``without_core``."""
    for stall in without_core:
        if stall.end_s > begins_s and stall.start_s < begins_s + service_s:
            service_s += stall.end_s - max(begins_s, stall.start_s)
    return begins_s + service_s


def counted(of: Trial, frames: Sequence[Frame], gone: Sequence[Frame]) -> dict[Direction, DirectionCounts]:
    """What the engine would report."""
    return {direction: _counted(of, direction, frames, gone) for direction in of.streams()}


def _counted(of: Trial, direction: Direction, frames: Sequence[Frame], gone: Sequence[Frame]) -> DirectionCounts:
    own, missing = ([frame for frame in each if frame.direction is direction] for each in (frames, gone))
    late_us = max(frame.left_s - frame.due_s for frame in own) * 1e6
    members: dict[str, Any] = {
        "lateness_us": Quantiles(p50=0, p99=0, p999=0, max=late_us),
        "late_bursts": _catching_up(of, own),
        "late_frames": _late(of, direction, own),
    }
    if missing:
        due_s = sorted(frame.due_s for frame in missing)
        bins = _bins(of, [frame.due_s for frame in missing])
        members["losses"] = Losses(first_s=due_s[0], last_s=due_s[-1], longest_run=1, bins=bins)
    whole = len(own)
    return counts(sent=whole, intended=whole, received=whole - len(missing), send_time_s=of.duration_s, **members)


def _catching_up(of: Trial, frames: Sequence[Frame]) -> LateBursts | None:
    late_s: list[float] = []
    limit_s, longest, running = PUNCTUAL_S, 0, 0
    for frame in frames:
        if frame.left_s - frame.due_s > limit_s:
            late_s.append(frame.due_s)
            limit_s, running = CAUGHT_UP_S, running + 1
            longest = max(longest, running)
        else:
            limit_s, running = PUNCTUAL_S, 0
    return LateBursts(frames=len(late_s), longest=longest, bins=_bins(of, late_s)) if late_s else None


def _late(of: Trial, direction: Direction, frames: Sequence[Frame]) -> LateFrames | None:
    even_s = min(PUNCTUAL_S, max(EVEN_S, 0.5 / of.streams()[direction].rate_fps))
    late_s: list[float] = []
    limit_s = even_s
    for frame in frames:
        limit_s = even_s / 2 if frame.left_s - frame.due_s > limit_s else even_s
        if limit_s < even_s:
            late_s.append(frame.due_s)
    return LateFrames(frames=len(late_s), bins=_bins(of, late_s)) if late_s else None


def _bins(of: Trial, due_s: Sequence[float]) -> tuple[int, ...]:
    parts = Counter(min(LOSS_BINS - 1, int(at_s / of.duration_s * LOSS_BINS)) for at_s in due_s)
    return tuple(parts[part] for part in range(LOSS_BINS))
