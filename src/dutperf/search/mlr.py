# SPDX-License-Identifier: Apache-2.0
"""MLRsearch (RFC 9971): one search for several loss goals, with short trials far from the goal and
full-length ones near it.

The algorithm is CSIT's library of that name; it calls a measurer and returns when it has found
every goal's bounds. Here it is asked and told instead: it is a deterministic function of what was
measured, so it is run again from its beginning with all results so far, until it wants one more.

The goals are those that RFC 9971 gives for RFC 2544: a load is a lower bound of a goal where one
full-length trial lost no more than the goal's share (duration sum = final trial duration, exceed
ratio 0). A shorter trial can show that a load is too high, never that it is not. Of loads that
contradict each other the lowest that failed counts, and the highest that passed below it.

A trial that is not valid never gets there: its load is offered once more; if it still cannot be
measured, the search ends, limited by the tester. Only where that is the very first load, the
range's upper end, the range is halved instead until the tester can measure it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Protocol

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from dutperf.model import LimitedBy
from dutperf.search import NO_LOSS, Loss, Outcome
from dutperf.search.binary import SECOND_CHANCES, Bounds, BoundsError, Found, FoundGoal

INITIAL_TRIAL_S = 1.0
"""The shortest trials, where the conditions' own are longer."""
PRECEDING_TARGETS = 2
"""Steps from the shortest trials to the full length."""
NARROWEST_STEP = 2
"""Widths are shares of the load. Where a width is less than this, loads would be fractions of a
frame/s apart."""
TYPICAL_TRIALS = 12
"""Estimate for the first goal."""
TYPICAL_TRIALS_OF_A_GOAL = 5
"""... for each further one."""


class _Stat(Protocol):
    """What is used of the library's load statistics."""

    def __float__(self) -> float: ...


@dataclass(frozen=True)
class _Trial:
    """A load that was offered. ``exact`` is the library's own figure, ``load`` the whole one
    that was sent."""

    exact: float
    duration_s: float
    outcome: Outcome = Outcome.UNMEASURABLE
    loss: Loss = NO_LOSS

    @property
    def load(self) -> int:
        return round(self.exact)

    def outcome_for(self, goal: float) -> Outcome:
        """Whether the load passed for a goal."""
        if self.outcome is Outcome.UNMEASURABLE:
            return self.outcome
        return Outcome.PASSED if self.loss.ratio <= goal else Outcome.FAILED


class MlrSearch:
    """A search (:class:`dutperf.search.Search`) for the highest loads whose loss ratio is at most
    that of each of ``goals``.

    Raises:
        BoundsError: the range is of one load, or reaches so low that loads would be fractions of a
            frame/s apart.
    """

    def __init__(self, bounds: Bounds, goals: Sequence[float], duration_s: float) -> None:
        """``duration_s``: full length of a trial."""
        self._bounds = bounds
        self._goals = tuple(goals)
        self._duration_s = duration_s
        self._width = _width(bounds)
        self._lowest = lowest(bounds)
        self._highest = bounds.highest
        self._known: list[_Trial] = []
        self._offered: list[_Trial] = []
        self._second_chances = 0
        self._tester_limit: int | None = None
        self._silent_at: _Trial | None = None
        self._silent = False
        self._reached: dict[float, GoalResult] | None = None
        self._next = self._ask()

    @property
    def lower(self) -> int | None:
        """Highest load that passed for the first goal, below the lowest that failed."""
        return self._value(self._goals[0])

    @property
    def upper(self) -> int | None:
        """Lowest load that did not pass for the first goal."""
        return min(
            (load for load, outcome in self._loads(self._goals[0]) if outcome is not Outcome.PASSED),
            default=None,
        )

    def next_load(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        return None if self._next is None else self._next.load

    def next_duration_s(self) -> float | None:
        """How long the trial of that load is to send."""
        return None if self._next is None else self._next.duration_s

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """What came of the load that :meth:`next_load` asked for.

        Raises:
            ValueError: the search has ended.
        """
        if self._next is None:
            raise ValueError("the search has ended")
        told = replace(self._next, outcome=outcome, loss=loss)
        self._offered.append(told)
        if self._silent_at is not None:
            self._next = self._probed(self._silent_at, told)
        elif outcome is Outcome.SILENT:
            self._silent_at = told
            self._next = _Trial(float(self._lowest), told.duration_s)
        elif outcome is Outcome.UNMEASURABLE:
            self._next = self._again_or_lower(told)
        else:
            self._next = self._learn(told)

    def found(self) -> Found:
        """What was found for the first goal, with every goal's findings; final when
        :meth:`next_load` is None."""
        by_goal = tuple(FoundGoal(goal, self._found(goal), self._conditional(goal)) for goal in self._goals)
        return replace(by_goal[0].found, goals=by_goal)

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        typical = TYPICAL_TRIALS + TYPICAL_TRIALS_OF_A_GOAL * (len(self._goals) - 1)
        return 0 if self._next is None else max(1, typical - len(self._offered))

    def _learn(self, told: _Trial) -> _Trial | None:
        self._known.append(told)
        return self._ask()

    def _probed(self, silent: _Trial, told: _Trial) -> _Trial | None:
        """The DUT was asked for a sign of life at the lowest load after it had been silent: without
        one, the search ends."""
        self._silent_at = None
        self._silent = told.outcome is Outcome.SILENT
        return None if self._silent else self._learn(silent)

    def _again_or_lower(self, told: _Trial) -> _Trial | None:
        is_second = any(
            (one.exact, one.duration_s, one.outcome) == (told.exact, told.duration_s, told.outcome)
            for one in self._offered[-2:-1]
        )
        if not is_second and self._second_chances < SECOND_CHANCES:
            self._second_chances += 1
            return _Trial(told.exact, told.duration_s)
        self._tester_limit = told.load
        if self._known or told.load // 2 <= self._lowest:
            return None
        self._highest = told.load // 2
        return self._ask()

    def _ask(self) -> _Trial | None:
        """The load that the algorithm wants next; None where it has reached its goals."""
        goals = {goal: self._search_goal(goal) for goal in self._goals}
        config = Config(
            goals=tuple(goals.values()),
            min_load=self._lowest,
            max_load=self._highest,
            search_duration_max=inf,  # nothing may depend on the clock
            warmup_duration=None,
        )
        try:
            results = MultipleLossRatioSearch(config).search(_Replay(self._known), debug=_silently)
        except _Wanted as wanted:
            return wanted.trial
        self._reached = {goal: results[searched] for goal, searched in goals.items()}
        return None

    def _search_goal(self, goal: float) -> SearchGoal:
        initial_s = min(INITIAL_TRIAL_S, self._duration_s)
        return SearchGoal(
            loss_ratio=goal,
            exceed_ratio=0.0,
            relative_width=self._width,
            initial_trial_duration=initial_s,
            final_trial_duration=self._duration_s,
            duration_sum=self._duration_s,
            preceding_targets=PRECEDING_TARGETS if initial_s < self._duration_s else 0,
            fail_fast=False,
        )

    def _found(self, goal: float) -> Found:
        above = self._offered[-1].load if self._silent else self._above(goal)
        value = None if self._silent else self._value(goal)
        return Found(value, self._limited_by(value, above), above, self._silent, self._loads(goal))

    def _loads(self, goal: float) -> tuple[tuple[int, Outcome], ...]:
        """Every load offered, in order, but for shorter trials that lost no more than the goal
        allows: they show nothing."""
        told = [(one, one.outcome_for(goal)) for one in self._offered]
        return tuple(
            (one.load, outcome)
            for one, outcome in told
            if outcome is not Outcome.PASSED or one.duration_s >= self._duration_s
        )

    def _value(self, goal: float) -> int | None:
        """The library's lower bound; where it was not heard out, the highest load that passed below
        all that did not."""
        if self._reached is not None:
            return _load(self._reached[goal].relevant_lower_bound)
        loads = self._loads(goal)
        barrier = min((load for load, outcome in loads if outcome is not Outcome.PASSED), default=inf)
        return max(
            (load for load, outcome in loads if outcome is Outcome.PASSED and load < barrier),
            default=None,
        )

    def _above(self, goal: float) -> int | None:
        if self._reached is not None:
            upper = _load(self._reached[goal].relevant_upper_bound)
            return self._tester_limit if upper is None else upper
        value = self._value(goal) or 0
        return min(
            (load for load, outcome in self._loads(goal) if outcome is not Outcome.PASSED and load > value),
            default=None,
        )

    def _conditional(self, goal: float) -> float | None:
        """Conditional throughput (RFC 9971): what was forwarded at the lower bound."""
        if self._reached is None or (reached := self._reached[goal].conditional_throughput) is None:
            return None
        return float(reached)

    def _limited_by(self, value: int | None, above: int | None) -> LimitedBy:
        if self._silent:
            return LimitedBy.DUT
        if above is None:
            return LimitedBy.MEDIA if self._bounds.maximum_is_media else LimitedBy.RANGE
        if above == self._tester_limit:
            return LimitedBy.TESTER
        below_the_users_range = value is None and self._bounds.minimum is not None
        return LimitedBy.RANGE if below_the_users_range else LimitedBy.DUT


class _Wanted(Exception):
    """The algorithm asks for a trial whose result is not known yet."""

    def __init__(self, trial: _Trial) -> None:
        super().__init__()
        self.trial = trial


class _Replay(AbstractMeasurer):  # type: ignore[misc]  # the library has no types
    """Answers with what was measured, in the order of the questions, which is always the same."""

    def __init__(self, known: Sequence[_Trial]) -> None:
        self._known = iter(known)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """See the library's class."""
        told = next(self._known, None)
        if told is None:
            raise _Wanted(_Trial(intended_load, intended_duration))
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=told.loss.sent,
            loss_count=told.loss.lost,
        )


def _silently(_: str) -> None:
    """The library's debug output is not wanted."""


def _load(bound: _Stat | None) -> int | None:
    return None if bound is None else round(float(bound))


def lowest(bounds: Bounds) -> int:
    """The lowest load: the user's; else the lowest at which the resolution still is a step of whole
    frames/s.

    Raises:
        BoundsError: no range of loads is left above it, or it lies too low.
    """
    width = _width(bounds)
    possible = ceil(NARROWEST_STEP / width)
    lowest = bounds.lowest if bounds.minimum is not None else max(bounds.lowest, min(possible, bounds.highest // 2))
    if lowest >= bounds.highest:
        raise BoundsError(f"MLRsearch needs a range of rates, not {bounds.highest:,} frames/s alone", "minimum")
    if lowest < possible:
        message = (
            f"MLRsearch's resolution is a share of the load, {width * 100:.2g} % here: below {possible:,} frames/s"
            " less than a frame"
        )
        raise BoundsError(message, "minimum" if bounds.minimum is not None else "resolution")
    return lowest


def _width(bounds: Bounds) -> float:
    """The resolution as the library has it: a share of the load."""
    return min(0.5, bounds.resolution.at(bounds.highest) / bounds.highest)
