# SPDX-License-Identifier: Apache-2.0
"""Binary search for the highest load that passes, as RFC 2544 26.1 leaves it to the tester.

It first looks for a load that passes and a higher one that does not: upwards by doubling, downwards
by halving; or, with a place to begin, by steps from there that double. Then it bisects. Every load
after the first lies strictly between the highest load that passed and the lowest that did not, so
the search ends whatever the outcomes are, and its value is the highest load that passed at all.

A DUT may be inconsistent: fail a load and pass a higher one. This search never offers a load above
one that failed, so of such a DUT it finds the highest load that passed below the lowest that
failed, as searched; two searches may differ.

One load may be offered again: where a load that could not be measured is all that stands above the
value, that may have been bad luck. It is offered once more before the tester is blamed.

A load is a number here; what it counts is for whoever asks (:class:`dutperf.model.Load`).
:mod:`dutperf.search.burst` searches lengths of bursts with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Literal, Protocol

from dutperf.model import LimitedBy, Load, Unit
from dutperf.search import NO_LOSS, Loss, Outcome

START = 1_000
"""First load where neither an initial nor a minimum load nor the media's maximum is known."""
DEFAULT_MINIMUM = 10
"""Nothing is offered below it unless the user asks for it: even a trial of a second then has frames
enough to show that something gets through."""
HIGHEST = 1_000_000_000
"""The engine's own limit (protocol/request.schema.json)."""
SECOND_CHANCES = 3
"""How many loads of a search may be offered again; a bound for a tester that is in trouble all the
time."""
TYPICAL_TRIALS = 14
"""Estimate for a search that knows nothing yet."""


@dataclass(frozen=True)
class Resolution:
    """How far apart the highest passed and the lowest failed load may be at the end: ``step``, or a
    ``share`` of the latter where that is 0."""

    step: int = 0
    share: float = 0.0

    def at(self, upper: int) -> int:
        """At least 1, for a search whose upper end is ``upper``."""
        return max(1, self.step or int(self.share * upper))


class BoundsError(ValueError):
    """The bounds contradict each other; ``bound`` is the one to change."""

    def __init__(self, message: str, bound: Literal["minimum", "initial", "resolution"]) -> None:
        super().__init__(message)
        self.bound = bound


@dataclass(frozen=True)
class Bounds:
    """The range of a search.

    Raises:
        BoundsError: no load lies in the range, or the initial one does not.
    """

    resolution: Resolution
    minimum: int | None = None
    """As the user set it."""
    maximum: int | None = None
    initial: int | None = None
    maximum_is_media: bool = False
    """``maximum`` is the media's, not a lower one of the user's."""
    unit: Unit = Unit.FRAMES_PER_SECOND
    """Of the loads, for messages."""

    def __post_init__(self) -> None:
        if self.lowest > self.highest:
            raise BoundsError(
                f"the minimum rate ({self._said(self.lowest)}) is above the maximum rate ({self._said(self.highest)})",
                "minimum",
            )
        if self.initial is not None and not self.lowest <= self.initial <= self.highest:
            message = (
                f"the initial rate ({self._said(self.initial)}) is not within {self.lowest:,} to"
                f" {self._said(self.highest)}"
            )
            raise BoundsError(message, "initial")

    @property
    def lowest(self) -> int:
        """The lowest load to try."""
        if self.minimum is not None:
            return self.minimum
        return min(DEFAULT_MINIMUM, self.highest, self.initial or DEFAULT_MINIMUM)

    @property
    def highest(self) -> int:
        """The highest load to try."""
        return HIGHEST if self.maximum is None else self.maximum

    @property
    def first(self) -> int:
        """The load to begin with: the initial one; else the maximum, which ends the search if it
        passes; else a modest one to double from."""
        return self.initial or self.maximum or max(self.lowest, START)

    def clamp(self, load: int) -> int:
        """That of the range which is nearest to ``load``."""
        return min(max(load, self.lowest), self.highest)

    def _said(self, load: int) -> str:
        return str(Load(load, self.unit))


@dataclass(frozen=True)
class Near:
    """Where a search begins: a load of the range, and the first step away from it; 0: as wide as
    the load itself."""

    start: int
    step: int = 0


@dataclass(frozen=True)
class Found:
    """What a search found. ``value`` is None where no load passed, or the DUT forwards nothing
    (``silent``)."""

    value: int | None
    limited_by: LimitedBy
    above: int | None
    """The load directly above the value that did not pass; the lowest one tried where there is no
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
    conditional: float | None
    """Conditional throughput: what of the value was forwarded."""


class Search(Protocol):
    """Ask :meth:`next_load`, tell :meth:`tell`, until the former is None; then :meth:`found`."""

    @property
    def lower(self) -> int | None:
        """Highest load that passed so far."""
        ...

    @property
    def upper(self) -> int | None:
        """Lowest load that did not pass, above the highest that did."""
        ...

    def next_load(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        ...

    def next_duration_s(self) -> float | None:
        """How long the trial of that load is to send; None: as long as the conditions say."""
        ...

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """What came of the load that :meth:`next_load` asked for.

        Raises:
            ValueError: the search has ended.
        """
        ...

    def found(self) -> Found:
        """What was found so far; final when :meth:`next_load` is None."""
        ...

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        ...


class BinarySearch:
    """A :class:`Search`. It knows one goal, which the outcomes already hold.

    A load that is silent (nothing came through in some direction) raises the question whether the
    DUT works at all. The lowest load is tried once then: if it is silent too, the search ends
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
        self._silent_at: int | None = None
        self._silent = False
        self._lower: int | None = None

    @property
    def lower(self) -> int | None:
        """Highest load that passed."""
        return self._lower

    @property
    def upper(self) -> int | None:
        """Lowest load that did not pass, above the highest that did."""
        return min(self._barriers, default=None)

    def next_load(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        if self._silent:
            return None
        if self._silent_at is not None:
            return self._bounds.lowest
        load = self._unknown()
        return self.upper if load is None and self._in_doubt() else load

    def next_duration_s(self) -> None:
        """Every trial is as long as the conditions say."""

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:  # noqa: ARG002
        """``outcome`` of the load that :meth:`next_load` asked for.

        Raises:
            ValueError: the search has ended.
        """
        load = self.next_load()
        if load is None:
            raise ValueError("the search has ended")
        self._loads.append((load, outcome))
        if self._silent_at is not None:
            self._probed(load, self._silent_at, outcome)
        elif outcome is Outcome.SILENT:
            self._silent_at = load
        else:
            self._learn(load, outcome)

    def found(self) -> Found:
        """What was found so far; final when :meth:`next_load` is None."""
        value = None if self._silent else self.lower
        above = self._loads[-1][0] if self._silent else self.upper
        return Found(
            value=value,
            limited_by=self._limited_by(),
            above=above,
            silent=self._silent,
            loads=tuple(self._loads),
        )

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        if self.next_load() is None:
            return 0
        if self.upper is not None and self.lower is not None:
            return max(1, self._bisections(self.upper, self.upper - self.lower))
        if self._near is not None and self._near.step:
            return max(2, 2 + self._bisections(self._near.start, self._near.step) - len(self._loads))
        return max(2, TYPICAL_TRIALS - len(self._loads))

    def _bisections(self, upper: int, gap: int) -> int:
        """So many until a gap below ``upper`` is narrow enough."""
        return max(0, ceil(log2(gap / self._bounds.resolution.at(upper))))

    def _unknown(self) -> int | None:
        """The next load that narrows the search; None where it is narrow enough."""
        if self.lower is None:
            return self._first() if self.upper is None else self._down(self.upper)
        return self._up(self.lower) if self.upper is None else self._between(self.lower, self.upper)

    def _in_doubt(self) -> bool:
        """Whether the tester is about to be blamed for a load that it was given one chance to
        measure."""
        return (
            self._upper_outcome() is Outcome.UNMEASURABLE
            and not self._confirmed
            and self._second_chances < SECOND_CHANCES
        )

    def _upper_outcome(self) -> Outcome | None:
        return None if self.upper is None else self._barriers[self.upper]

    def _first(self) -> int:
        return self._bounds.first if self._near is None else self._near.start

    def _up(self, lower: int) -> int | None:
        return None if lower >= self._bounds.highest else self._bounds.clamp(lower + (self._step() or lower))

    def _down(self, upper: int) -> int | None:
        return None if upper <= self._bounds.lowest else self._bounds.clamp(upper - (self._step() or (upper + 1) // 2))

    def _step(self) -> int:
        """The next step away from the place to begin; 0 where there is none."""
        return 0 if self._near is None else self._near.step << (self._learned - 1)

    def _between(self, lower: int, upper: int) -> int | None:
        gap = upper - lower
        return None if gap <= self._bounds.resolution.at(upper) else lower + gap // 2

    def _learn(self, load: int, outcome: Outcome) -> None:
        self._learned += 1
        again = load in self._barriers
        self._second_chances += again
        self._confirmed = again and outcome is Outcome.UNMEASURABLE
        if outcome is Outcome.PASSED:
            self._lower = load
            self._barriers.pop(load, None)
        else:
            self._barriers[load] = outcome

    def _probed(self, lowest: int, silent_at: int, outcome: Outcome) -> None:
        """The DUT was asked for a sign of life at the lowest load after it had been silent at
        ``silent_at``."""
        self._silent_at = None
        self._silent = outcome is Outcome.SILENT
        if self._silent:
            return
        self._learn(silent_at, Outcome.FAILED)
        if self.lower is None and lowest < silent_at and outcome is not Outcome.UNMEASURABLE:
            self._learn(lowest, outcome)

    def _limited_by(self) -> LimitedBy:
        if self._silent:
            return LimitedBy.DUT
        if self.upper is None:
            return LimitedBy.MEDIA if self._bounds.maximum_is_media else LimitedBy.RANGE
        if self._upper_outcome() is Outcome.UNMEASURABLE:
            return LimitedBy.TESTER
        below_the_users_range = self.lower is None and self._bounds.minimum is not None
        return LimitedBy.RANGE if below_the_users_range else LimitedBy.DUT
