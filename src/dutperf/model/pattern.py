# SPDX-License-Identifier: Apache-2.0
"""Due times of a direction's frames: at a constant rate or one that changes once, as Poisson
arrivals, in bursts (RFC 2544 section 21), at the rates of a profile, of flows that begin one after the other (RFC 8219
10.2.2), or at listed times.

The integer arithmetic is the engine's (``engine/pace``, ``engine/trial/trial.cpp``), so both give
each frame the same due time. A trial has the same number of frames with every pattern but a profile and flows that
begin one after the other.
Times are ns from the start, rounded down; rates are frames/s.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import isqrt
from typing import Protocol

NS_PER_S = 1_000_000_000
FEW = 32
"""A part of the sending time with at most this many frames is not halved further."""
MOST_TOSSES = 1 << 14
_MASK = (1 << 64) - 1


class Times(Protocol):
    """Due times of a direction's frames, in the order of their numbers."""

    def frames_before(self, after_ns: int) -> int:
        """Frames that are due before ``after_ns``."""
        ...

    def due_ns(self, frame: int) -> int:
        """Due time of the frame with this number, from 0."""
        ...


@dataclass(frozen=True)
class LaterTimes:
    """Times that begin later than the trial, and end after ``sends_ns``."""

    times: Times
    begin_ns: int
    sends_ns: int

    def frames_before(self, after_ns: int) -> int:
        return self.times.frames_before(min(max(0, after_ns - self.begin_ns), self.sends_ns))

    def due_ns(self, frame: int) -> int:
        return self.begin_ns + self.times.due_ns(frame)


@dataclass(frozen=True)
class SteadyTimes:
    """Frame k is due at k / rate."""

    rate_fps: int
    then: tuple[int, int] | None = None
    """A second rate, and after how many ns it begins."""

    def frames_before(self, after_ns: int) -> int:
        if self.then is None or after_ns <= self.then[1]:
            return _frames_in(after_ns, self.rate_fps)
        then_fps, change_ns = self.then
        return _frames_in(change_ns, self.rate_fps) + _frames_in(after_ns - change_ns, then_fps)

    def due_ns(self, frame: int) -> int:
        before = frame + 1 if self.then is None else _frames_in(self.then[1], self.rate_fps)
        if self.then is None or frame < before:
            return frame * NS_PER_S // self.rate_fps
        then_fps, change_ns = self.then
        return change_ns + (frame - before) * NS_PER_S // then_fps


@dataclass(frozen=True)
class BurstTimes:
    """Bursts of ``burst`` frames. The first frame of a burst is due as at a constant rate, the others
    follow at ``within_fps`` (None: all at once)."""

    rate_fps: int
    burst: int
    within_fps: int | None
    frames: int
    """Number of all frames."""

    def frames_before(self, after_ns: int) -> int:
        steady = _frames_in(after_ns, self.rate_fps)
        if steady == 0:
            return 0
        first = (steady - 1) // self.burst * self.burst
        within = (
            self.burst
            if self.within_fps is None
            else min(self.burst, _frames_in(after_ns - first * NS_PER_S // self.rate_fps, self.within_fps))
        )
        return min(first + within, self.frames)

    def due_ns(self, frame: int) -> int:
        after = frame % self.burst
        return (frame - after) * NS_PER_S // self.rate_fps + (
            0 if self.within_fps is None else after * NS_PER_S // self.within_fps
        )


@dataclass(frozen=True)
class ProfileTimes:
    """Rates that change: segments of a duration in ns, with a linear change from one rate to another.
    After the last segment the first one follows again.

    Frame k is due in the last ns up to which the integral of the rate is at most k. Integrals are in
    1 / ``ONE_FRAME`` frames: so they are integers.
    """

    segments: tuple[tuple[int, int, int], ...]

    ONE_FRAME = 2 * NS_PER_S

    @cached_property
    def _begins_ns(self) -> list[int]:
        """Of the segments, and the end of the last one."""
        return list(accumulate((duration_ns for duration_ns, _, _ in self.segments), initial=0))

    @cached_property
    def _begins(self) -> list[int]:
        """The same as integrals."""
        return list(accumulate(((first + last) * duration_ns for duration_ns, first, last in self.segments), initial=0))

    def frames_before(self, after_ns: int) -> int:
        rounds, rest_ns = divmod(after_ns, self._begins_ns[-1])
        at = bisect_right(self._begins_ns, rest_ns) - 1
        duration_ns, first, last = self.segments[at]
        time_ns = rest_ns - self._begins_ns[at]
        within = 2 * first * time_ns - ((first - last) * time_ns**2 // duration_ns)
        return -(-(rounds * self._begins[-1] + self._begins[at] + within) // self.ONE_FRAME)

    def due_ns(self, frame: int) -> int:
        rounds, rest = divmod(frame * self.ONE_FRAME, self._begins[-1])
        at = bisect_right(self._begins, rest) - 1
        return rounds * self._begins_ns[-1] + self._begins_ns[at] + _last_ns(self.segments[at], rest - self._begins[at])

    def rate_fps(self, time_ns: int) -> float:
        """The rate at a time; where it jumps, the rate after the jump."""
        rest_ns = time_ns % self._begins_ns[-1]
        at = bisect_right(self._begins_ns, rest_ns) - 1
        duration_ns, first, last = self.segments[at]
        return first + (last - first) * (rest_ns - self._begins_ns[at]) / duration_ns

    @property
    def mean_fps(self) -> int:
        """Mean rate of all segments, rounded, at least 1."""
        return max(1, (self._begins[-1] + self._begins_ns[-1]) // (2 * self._begins_ns[-1]))


@dataclass(frozen=True)
class JoiningTimes:
    """``flows`` flows, each with an equal part of the rate, of which one more begins every ``apart_ns``: so the rate of
    all grows in stages. Stage s, from (s - 1) * ``apart_ns`` on, has s flows; the last one does not end.

    Frame k is due in the last ns up to which the integral of the rate is at most k. Integrals are in 1 / ``_one_frame``
    frames: so they are integers.
    """

    rate_fps: int
    flows: int
    apart_ns: int

    @property
    def _one_frame(self) -> int:
        return 2 * NS_PER_S * self.flows

    def _begin(self, stage: int) -> int:
        """The integral at the beginning of a stage."""
        return self.rate_fps * self.apart_ns * stage * (stage - 1)

    def frames_before(self, after_ns: int) -> int:
        stage = min(after_ns // self.apart_ns + 1, self.flows)
        within = 2 * stage * self.rate_fps * (after_ns - (stage - 1) * self.apart_ns)
        return -(-(self._begin(stage) + within) // self._one_frame)

    def due_ns(self, frame: int) -> int:
        integral = frame * self._one_frame
        # the last stage s with s (s - 1) rate apart <= integral
        stage = min((isqrt(4 * (integral // (self.rate_fps * self.apart_ns)) + 1) + 1) // 2, self.flows)
        return (stage - 1) * self.apart_ns + (integral - self._begin(stage)) // (2 * stage * self.rate_fps)


@dataclass(frozen=True)
class RecordedTimes:
    """Times that are listed one by one; after ``period_ns`` the list begins again."""

    times_ns: Sequence[int]
    period_ns: int

    def frames_before(self, after_ns: int) -> int:
        rounds, rest_ns = divmod(after_ns, self.period_ns)
        return rounds * len(self.times_ns) + bisect_left(self.times_ns, rest_ns)

    def due_ns(self, frame: int) -> int:
        rounds, place = divmod(frame, len(self.times_ns))
        return rounds * self.period_ns + self.times_ns[place]


def _last_ns(segment: tuple[int, int, int], limit: int) -> int:
    """The last ns t of a segment up to which the integral is at most ``limit``:
    (last - first) t^2 + 2 first duration t <= limit duration."""
    duration_ns, first, last = segment
    change, half = last - first, first * duration_ns
    if change == 0:
        return limit // (2 * first)
    square = half**2 + change * limit * duration_ns
    if change > 0:
        return (isqrt(square) - half) // change
    return (half - _ceil_sqrt(square)) // -change


def _ceil_sqrt(square: int) -> int:
    return isqrt(square - 1) + 1 if square > 0 else 0


@dataclass(frozen=True)
class PoissonTimes:
    """Independent times, uniform over ``duration_ns``, sorted: Poisson arrivals with a given number of
    frames, so the mean rate is exact.

    The sending time is halved repeatedly (``engine/pace/uniform_times.hpp``). Coin tosses decide how
    many frames of a part are in its earlier half.
    """

    frames: int
    duration_ns: int
    seed: int

    def frames_before(self, after_ns: int) -> int:
        if after_ns >= self.duration_ns:
            return self.frames
        time = -(-(after_ns << 64) // self.duration_ns)
        part = _Part(1, 0, 0, self.frames)
        while part.count > FEW:
            earlier, later = _halves(part, self.seed)
            part = earlier if time <= later.begin else later
        return part.first + bisect_left(_drawn(part, self.seed), time)

    def due_ns(self, frame: int) -> int:
        part = _Part(1, 0, 0, self.frames)
        while part.count > FEW:
            earlier, later = _halves(part, self.seed)
            part = earlier if frame < later.first else later
        return _drawn(part, self.seed)[frame - part.first] * self.duration_ns >> 64


@dataclass(frozen=True)
class _Part:
    """A part of the sending time. ``id`` 1 is the whole; the halves of a part are 2 id and 2 id + 1.
    ``begin`` is in 2^-64 of the sending time."""

    id: int
    begin: int
    first: int
    count: int

    @property
    def level(self) -> int:
        return self.id.bit_length() - 1


@lru_cache(maxsize=4096)
def _halves(part: _Part, seed: int) -> tuple[_Part, _Part]:
    earlier = _earlier_of(part.count, random_bits(seed, part.id))
    middle = part.begin + (1 << (63 - part.level))
    return _Part(2 * part.id, part.begin, part.first, earlier), _Part(
        2 * part.id + 1, middle, part.first + earlier, part.count - earlier
    )


@lru_cache(maxsize=4096)
def _drawn(part: _Part, seed: int) -> list[int]:
    own = random_bits(seed, part.id)
    return sorted(part.begin + (random_bits(own, index) >> part.level) for index in range(part.count))


def _earlier_of(count: int, seed: int) -> int:
    """How many of ``count`` frames are in the earlier half, with one coin toss a frame. Of many frames
    only a 4^j-th is tossed, and the deviation from the mean counts 2^j times."""
    j = 0
    while count >> (2 * j) > MOST_TOSSES:
        j += 1
    tosses = count >> (2 * j)
    heads = sum(random_bits(seed, index).bit_count() for index in range(tosses // 64))
    if tosses % 64:
        heads += (random_bits(seed, tosses // 64) >> (64 - tosses % 64)).bit_count()
    return (count + (2 * heads << j) - (tosses << j)) // 2


def random_bits(seed: int, number: int) -> int:
    """64 bits for ``number`` of the generator ``seed``: SplitMix64 (Steele, Lea, Flood, 2014), as
    in ``engine/frame/random_bits.hpp``."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _frames_in(time_ns: int, rate_fps: int) -> int:
    return -(-rate_fps * time_ns // NS_PER_S)
