# SPDX-License-Identifier: Apache-2.0
"""Binary search for the highest rate that passes, as RFC 2544 26.1 leaves it to the tester.

It first looks for a rate that passes and a higher one that does not: upwards by doubling, downwards
by halving; or, with a place to begin, by steps from there that double. Then it bisects. Every load
after the first lies strictly between the highest rate that passed and the lowest that did not, so
the search ends whatever the outcomes are, and its value is the highest rate that passed at all.

A DUT may be inconsistent: fail a rate and pass a higher one. This search never offers a rate above
one that failed, so of such a DUT it finds the highest rate that passed below the lowest that
failed, as searched; two searches may differ.

One load may be offered again: where a rate that could not be measured is all that stands above the
value, that may have been bad luck. It is offered once more before the tester is blamed.

A load is a number. It is named for what it mostly is, a rate in frames/s per direction;
:mod:`dutperf.search.burst` searches lengths of bursts with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Literal, Protocol

from dutperf.model import LimitedBy
from dutperf.search import NO_LOSS, Loss, Outcome

START_FPS = 1_000
"""First rate where neither an initial nor a minimum rate nor the media's maximum is known."""
DEFAULT_MINIMUM_FPS = 10
"""Nothing is offered below it unless the user asks for it: even a trial of a second then has frames
enough to show that something gets through."""
HIGHEST_FPS = 1_000_000_000
"""The engine's own limit (protocol/request.schema.json)."""
SECOND_CHANCES = 3
"""How many loads of a search may be offered again; a bound for a tester that is in trouble all the
time."""
TYPICAL_TRIALS = 14
"""Estimate for a search that knows nothing yet."""


@dataclass(frozen=True)
class Resolution:
    """How far apart the highest passed and the lowest failed rate may be at the end: ``fps``, or a
    ``share`` of the latter where that is 0."""

    fps: int = 0
    share: float = 0.0

    def at(self, upper_fps: int) -> int:
        """In frames/s, at least 1, for a search whose upper end is ``upper_fps``."""
        return max(1, self.fps or int(self.share * upper_fps))


class BoundsError(ValueError):
    """The bounds contradict each other; ``bound`` is the one to change."""

    def __init__(self, message: str, bound: Literal["minimum", "initial", "resolution"]) -> None:
        super().__init__(message)
        self.bound = bound


@dataclass(frozen=True)
class Bounds:
    """The range of a search.

    Raises:
        BoundsError: no rate lies in the range, or the initial one does not.
    """

    resolution: Resolution
    minimum_fps: int | None = None
    """As the user set it."""
    maximum_fps: int | None = None
    initial_fps: int | None = None
    maximum_is_media: bool = False
    """``maximum_fps`` is the media's, not a lower one of the user's."""

    def __post_init__(self) -> None:
        if self.lowest_fps > self.highest_fps:
            raise BoundsError(
                f"the minimum rate ({self.lowest_fps:,} frames/s) is above the maximum rate ({self.highest_fps:,}"
                " frames/s)",
                "minimum",
            )
        if self.initial_fps is not None and not self.lowest_fps <= self.initial_fps <= self.highest_fps:
            message = (
                f"the initial rate ({self.initial_fps:,} frames/s) is not within {self.lowest_fps:,} to"
                f" {self.highest_fps:,} frames/s"
            )
            raise BoundsError(message, "initial")

    @property
    def lowest_fps(self) -> int:
        """The lowest rate to try."""
        if self.minimum_fps is not None:
            return self.minimum_fps
        return min(DEFAULT_MINIMUM_FPS, self.highest_fps, self.initial_fps or DEFAULT_MINIMUM_FPS)

    @property
    def highest_fps(self) -> int:
        """The highest rate to try."""
        return HIGHEST_FPS if self.maximum_fps is None else self.maximum_fps

    @property
    def first_fps(self) -> int:
        """The rate to begin with: the initial one; else the maximum, which ends the search if it
        passes; else a modest one to double from."""
        return self.initial_fps or self.maximum_fps or max(self.lowest_fps, START_FPS)

    def clamp(self, rate_fps: int) -> int:
        """The rate of the range that is nearest to ``rate_fps``."""
        return min(max(rate_fps, self.lowest_fps), self.highest_fps)


@dataclass(frozen=True)
class Near:
    """Where a search begins: a rate of the range, and the first step away from it; 0: as wide as
    the rate itself."""

    start_fps: int
    step_fps: int = 0


@dataclass(frozen=True)
class Found:
    """What a search found. ``value_fps`` is None where no rate passed, or the DUT forwards nothing
    (``silent``)."""

    value_fps: int | None
    limited_by: LimitedBy
    above_fps: int | None
    """The rate directly above the value that did not pass; the lowest one tried where there is no
    value."""
    silent: bool
    loads: tuple[tuple[int, Outcome], ...]
    """Every load offered, in order."""
    goals: tuple[FoundGoal, ...] = ()
    """Where the search had loss goals: what was found for each, the first one's being this."""


@dataclass(frozen=True)
class FoundGoal:
    """What was found for one loss goal (RFC 9971)."""

    loss_ratio: float
    """Share of a direction's frames that may be lost."""
    found: Found
    conditional_fps: float | None
    """Conditional throughput: what of the value was forwarded."""


class Search(Protocol):
    """Ask :meth:`next_fps`, tell :meth:`tell`, until the former is None; then :meth:`found`. Rates
    are in frames/s per direction."""

    @property
    def lower_fps(self) -> int | None:
        """Highest rate that passed so far."""
        ...

    @property
    def upper_fps(self) -> int | None:
        """Lowest rate that did not pass, above the highest that did."""
        ...

    def next_fps(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        ...

    def next_duration_s(self) -> float | None:
        """How long the trial of that load is to send; None: as long as the conditions say."""
        ...

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """What came of the load that :meth:`next_fps` asked for.

        Raises:
            ValueError: the search has ended.
        """
        ...

    def found(self) -> Found:
        """What was found so far; final when :meth:`next_fps` is None."""
        ...

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        ...


class BinarySearch:
    """A :class:`Search`. It knows one goal, which the outcomes already hold.

    A load that is silent (nothing came through in some direction) raises the question whether the
    DUT works at all. The lowest rate is tried once then: if it is silent too, the search ends
    without a value.
    """

    def __init__(self, bounds: Bounds, near: Near | None = None) -> None:
        """``near``: only saves trials, what is found rests on this search's own trials."""
        self._bounds = bounds
        self._near = near
        self._learned = 0
        self._loads: list[tuple[int, Outcome]] = []
        self._barriers: dict[int, Outcome] = {}
        self._second_chances = 0
        self._confirmed = False
        self._silent_at_fps: int | None = None
        self._silent = False
        self._lower_fps: int | None = None

    @property
    def lower_fps(self) -> int | None:
        """Highest rate that passed."""
        return self._lower_fps

    @property
    def upper_fps(self) -> int | None:
        """Lowest rate that did not pass, above the highest that did."""
        return min(self._barriers, default=None)

    def next_fps(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        if self._silent:
            return None
        if self._silent_at_fps is not None:
            return self._bounds.lowest_fps
        rate_fps = self._unknown_fps()
        return self.upper_fps if rate_fps is None and self._in_doubt() else rate_fps

    def next_duration_s(self) -> None:
        """Every trial is as long as the conditions say."""

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:  # noqa: ARG002
        """``outcome`` of the load that :meth:`next_fps` asked for.

        Raises:
            ValueError: the search has ended.
        """
        rate_fps = self.next_fps()
        if rate_fps is None:
            raise ValueError("the search has ended")
        self._loads.append((rate_fps, outcome))
        if self._silent_at_fps is not None:
            self._probed(rate_fps, self._silent_at_fps, outcome)
        elif outcome is Outcome.SILENT:
            self._silent_at_fps = rate_fps
        else:
            self._learn(rate_fps, outcome)

    def found(self) -> Found:
        """What was found so far; final when :meth:`next_fps` is None."""
        value_fps = None if self._silent else self.lower_fps
        above_fps = self._loads[-1][0] if self._silent else self.upper_fps
        return Found(
            value_fps=value_fps,
            limited_by=self._limited_by(),
            above_fps=above_fps,
            silent=self._silent,
            loads=tuple(self._loads),
        )

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        if self.next_fps() is None:
            return 0
        if self.upper_fps is not None and self.lower_fps is not None:
            return max(1, self._bisections(self.upper_fps, self.upper_fps - self.lower_fps))
        if self._near is not None and self._near.step_fps:
            return max(2, 2 + self._bisections(self._near.start_fps, self._near.step_fps) - len(self._loads))
        return max(2, TYPICAL_TRIALS - len(self._loads))

    def _bisections(self, upper_fps: int, gap_fps: int) -> int:
        """So many until a gap below ``upper_fps`` is narrow enough."""
        return max(0, ceil(log2(gap_fps / self._bounds.resolution.at(upper_fps))))

    def _unknown_fps(self) -> int | None:
        """The next load that narrows the search; None where it is narrow enough."""
        if self.lower_fps is None:
            return self._first() if self.upper_fps is None else self._lower(self.upper_fps)
        return self._higher(self.lower_fps) if self.upper_fps is None else self._between(self.lower_fps, self.upper_fps)

    def _in_doubt(self) -> bool:
        """Whether the tester is about to be blamed for a load that it was given one chance to
        measure."""
        return (
            self._upper_outcome() is Outcome.UNMEASURABLE
            and not self._confirmed
            and self._second_chances < SECOND_CHANCES
        )

    def _upper_outcome(self) -> Outcome | None:
        return None if self.upper_fps is None else self._barriers[self.upper_fps]

    def _first(self) -> int:
        return self._bounds.first_fps if self._near is None else self._near.start_fps

    def _higher(self, lower_fps: int) -> int | None:
        return (
            None
            if lower_fps >= self._bounds.highest_fps
            else self._bounds.clamp(lower_fps + (self._step_fps() or lower_fps))
        )

    def _lower(self, upper_fps: int) -> int | None:
        return (
            None
            if upper_fps <= self._bounds.lowest_fps
            else self._bounds.clamp(upper_fps - (self._step_fps() or (upper_fps + 1) // 2))
        )

    def _step_fps(self) -> int:
        """The next step away from the place to begin; 0 where there is none."""
        return 0 if self._near is None else self._near.step_fps << (self._learned - 1)

    def _between(self, lower_fps: int, upper_fps: int) -> int | None:
        gap_fps = upper_fps - lower_fps
        return None if gap_fps <= self._bounds.resolution.at(upper_fps) else lower_fps + gap_fps // 2

    def _learn(self, rate_fps: int, outcome: Outcome) -> None:
        self._learned += 1
        again = rate_fps in self._barriers
        self._second_chances += again
        self._confirmed = again and outcome is Outcome.UNMEASURABLE
        if outcome is Outcome.PASSED:
            self._lower_fps = rate_fps
            self._barriers.pop(rate_fps, None)
        else:
            self._barriers[rate_fps] = outcome

    def _probed(self, lowest_fps: int, silent_at_fps: int, outcome: Outcome) -> None:
        """The DUT was asked for a sign of life at the lowest rate after it had been silent at
        ``silent_at_fps``."""
        self._silent_at_fps = None
        self._silent = outcome is Outcome.SILENT
        if self._silent:
            return
        self._learn(silent_at_fps, Outcome.FAILED)
        if self.lower_fps is None and lowest_fps < silent_at_fps and outcome is not Outcome.UNMEASURABLE:
            self._learn(lowest_fps, outcome)

    def _limited_by(self) -> LimitedBy:
        if self._silent:
            return LimitedBy.DUT
        if self.upper_fps is None:
            return LimitedBy.MEDIA if self._bounds.maximum_is_media else LimitedBy.RANGE
        if self._upper_outcome() is Outcome.UNMEASURABLE:
            return LimitedBy.TESTER
        below_the_users_range = self.lower_fps is None and self._bounds.minimum_fps is not None
        return LimitedBy.RANGE if below_the_users_range else LimitedBy.DUT
