# SPDX-License-Identifier: Apache-2.0
"""MLRsearch (RFC 9971): one search for several loss goals, with short trials far from the goal and
full-length ones near it.

The algorithm is CSIT's library of that name. The library calls a measurer and returns when it has
every goal's bounds. Its requests are a deterministic function of the results. So here it is run
again from the beginning, with all results so far, until it requests a trial that has none.

The goals are by default those that RFC 9971 gives for RFC 2544: a load is a lower bound of a goal where one
full-length trial lost no more than the goal's share (duration sum = final trial duration, exceed
ratio 0). A shorter trial can show that a load is too high, never that it is not. Where loads
contradict each other, the lowest that failed counts, and the highest that passed below it.

Other goals need several full-length trials at a load, up to their duration sum, of which the exceed ratio may lose
more than the goal's share.

A trial that lost all its frames within one episode and fails a goal may have failed by that episode and
not by its load, also where it lost every frame. The library sees it if the load, offered once more, fails as
well (``MAX_RETRIES`` times at most); else it sees the second trial. With an exceed ratio the goal
itself allows for such trials.

The library never sees an invalid trial: its load is offered once more. If it still cannot be
measured, the search ends, limited by the tester. Only where this is the first load, the upper end
of the range, the range is halved until the tester can measure it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Protocol

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch import GoalResult as LibraryGoalResult

from dutperf.model import LimitedBy
from dutperf.search import MAX_RETRIES, NO_LOSS, Loss, Outcome, Probes
from dutperf.search.binary import Bounds, BoundsError, GoalResult, SearchResult
from dutperf.search.lengths import Lengths

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
    """The part of the library's load statistics that is used."""

    def __float__(self) -> float: ...


@dataclass(frozen=True)
class _Trial:
    """A load that was offered. ``exact`` is the library's figure, ``load`` the rounded one that was
    sent."""

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
    """A search (:class:`dutperf.search.Search`) for the highest loads whose loss ratio is at most that of each of
    ``goals``. Raises BoundsError: the range has one load only, or reaches so low that loads would be fractions of a
    frame/s apart."""

    def __init__(
        self, bounds: Bounds, goals: Sequence[float], lengths: Lengths, *, has_forwarded: bool = False
    ) -> None:
        """``has_forwarded``: the DUT did in an earlier search."""
        self._bounds = bounds
        self._goals = tuple(goals)
        self._lengths = lengths
        self._width = _width(bounds)
        self._lowest = lowest(bounds)
        self._highest = bounds.highest
        self._measured: list[_Trial] = []
        self._offered: list[_Trial] = []
        self._retries = 0
        self._tester_limit: int | None = None
        self._doubts = 0
        self._doubted: _Trial | None = None
        """The trial that failed by one episode, while its load is offered again."""
        self._probed_for: _Trial | None = None
        self._probes = Probes(has_forwarded=has_forwarded)
        self._results: dict[float, LibraryGoalResult] | None = None
        self._next = self._run()

    @property
    def lower(self) -> int | None:
        """Highest load that passed for the first goal, below the lowest that failed."""
        return self._lower_bound(self._goals[0])

    @property
    def upper(self) -> int | None:
        """Lowest load that did not pass for the first goal."""
        return min(
            (load for load, outcome in self._decided(self._goals[0]) if outcome is not Outcome.PASSED),
            default=None,
        )

    def next_load(self) -> int | None:
        return None if self._next is None else self._next.load

    def next_duration_s(self) -> float | None:
        return None if self._next is None else self._next.duration_s

    def record_outcome(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        if self._next is None:
            raise ValueError("the search has ended")
        trial = replace(self._next, outcome=outcome, loss=loss)
        self._offered.append(trial)
        self._probes.see(outcome, loss)
        if self._probed_for is not None:
            self._next = self._after_probe(self._probed_for, trial)
        elif outcome is Outcome.NOT_FORWARDING:
            self._probed_for = trial
            self._next = _Trial(float(self._lowest), trial.duration_s)
        elif self._doubted is not None:
            self._next = self._after_second_look(self._doubted, trial)
        elif outcome is Outcome.UNMEASURABLE:
            self._next = self._retry_or_lower(trial)
        else:
            self._next = self._doubt_or_add(trial)

    def result(self) -> SearchResult:
        """The first goal's result, with the results of all goals; final when :meth:`next_load` is
        None."""
        by_goal = tuple(GoalResult(goal, self._result_for(goal), self._conditional(goal)) for goal in self._goals)
        return replace(by_goal[0].result, goals=by_goal)

    def trials_left(self) -> int:
        of_bounds = 2 * (self._lengths.trials - 1)
        typical = TYPICAL_TRIALS + of_bounds + (TYPICAL_TRIALS_OF_A_GOAL + of_bounds) * (len(self._goals) - 1)
        return 0 if self._next is None else max(1, typical - len(self._offered))

    def _add(self, trial: _Trial) -> _Trial | None:
        self._measured.append(trial)
        return self._run()

    def _after_probe(self, probed_for: _Trial, probe: _Trial) -> _Trial | None:
        """The lowest load was probed after nothing came through: the search ends if nothing came
        through again."""
        if self._probes.another(probe.outcome):
            return probe
        self._probed_for = None
        if self._probes.not_forwarding:
            return None
        if self._doubted is not None:
            return self._after_second_look(self._doubted, probed_for)
        return self._doubt_or_add(probed_for)

    def _doubt_or_add(self, trial: _Trial) -> _Trial | None:
        if not self._is_doubtful(trial):
            return self._add(trial)
        self._doubts, self._doubted = self._doubts + 1, trial
        return _Trial(trial.exact, trial.duration_s)

    def _is_doubtful(self, trial: _Trial) -> bool:
        """Whether a trial fails a goal by one episode."""
        fails = any(trial.outcome_for(goal) is Outcome.FAILED for goal in self._goals)
        may_doubt = not self._lengths.exceed_ratio and self._doubts < MAX_RETRIES
        return fails and trial.loss.one_episode and may_doubt

    def _after_second_look(self, doubted: _Trial, again: _Trial) -> _Trial | None:
        """The load that failed by one episode was offered again: the second trial counts if it passes for
        the goals that the first one failed. If the DUT was down in it, the load is offered once more."""
        is_down = again.outcome is Outcome.NOT_FORWARDING and again.loss.one_episode
        if is_down and self._doubts < MAX_RETRIES:
            self._doubts += 1
            return _Trial(doubted.exact, doubted.duration_s)
        self._doubted = None
        failed = [goal for goal in self._goals if doubted.outcome_for(goal) is Outcome.FAILED]
        passed = all(again.outcome_for(goal) is Outcome.PASSED for goal in failed)
        return self._add(again if passed else doubted)

    def _retry_or_lower(self, trial: _Trial) -> _Trial | None:
        is_second = any(
            (one.exact, one.duration_s, one.outcome) == (trial.exact, trial.duration_s, trial.outcome)
            for one in self._offered[-2:-1]
        )
        if not is_second and self._retries < MAX_RETRIES:
            self._retries += 1
            return _Trial(trial.exact, trial.duration_s)
        self._tester_limit = trial.load
        if self._measured or trial.load // 2 <= self._lowest:
            return None
        self._highest = trial.load // 2
        return self._run()

    def _run(self) -> _Trial | None:
        """Run the algorithm over all results. Returns the trial that it requests next; None where
        it has reached its goals."""
        goals = {goal: self._search_goal(goal) for goal in self._goals}
        config = Config(
            goals=tuple(goals.values()),
            min_load=self._lowest,
            max_load=self._highest,
            search_duration_max=inf,  # nothing may depend on the clock
            warmup_duration=None,
        )
        try:
            results = MultipleLossRatioSearch(config).search(_Replay(self._measured), debug=_no_debug)
        except _NextTrial as request:
            return request.trial
        self._results = {goal: results[searched] for goal, searched in goals.items()}
        return None

    def _search_goal(self, goal: float) -> SearchGoal:
        lengths = self._lengths
        return SearchGoal(
            loss_ratio=goal,
            exceed_ratio=lengths.exceed_ratio,
            relative_width=self._width,
            initial_trial_duration=lengths.initial_trial_s,
            final_trial_duration=lengths.final_trial_s,
            duration_sum=lengths.duration_sum_s,
            preceding_targets=PRECEDING_TARGETS if lengths.initial_trial_s < lengths.duration_sum_s else 0,
            fail_fast=False,
        )

    def _result_for(self, goal: float) -> SearchResult:
        dead = self._probes.not_forwarding
        upper = self._offered[-1].load if dead else self._upper_bound(goal)
        lower = None if dead else self._lower_bound(goal)
        return SearchResult(lower, self._limited_by(lower, upper), upper, dead, self._loads(goal))

    def _loads(self, goal: float) -> tuple[tuple[int, Outcome], ...]:
        """Every load offered, in order, without the shorter trials that lost no more than the goal
        allows: they prove nothing. With an exceed ratio no single trial proves anything."""
        if self._lengths.exceed_ratio:
            return self._decided(goal)
        outcomes = [(one, one.outcome_for(goal)) for one in self._offered]
        return tuple(
            (one.load, one.outcome if one.outcome is Outcome.NOT_FORWARDING else outcome)
            for one, outcome in outcomes
            if outcome is not Outcome.PASSED or one.duration_s >= self._lengths.final_trial_s
        )

    def _decided(self, goal: float) -> tuple[tuple[int, Outcome], ...]:
        """The loads that all their trials decide, or that could not be measured, in the order in which they were
        first offered."""
        trials: dict[int, list[tuple[float, Outcome]]] = {}
        for one in self._offered:
            trials.setdefault(one.load, []).append((one.duration_s, one.outcome_for(goal)))
        outcomes = [(load, self._outcome_of(of_load)) for load, of_load in trials.items()]
        return tuple((load, outcome) for load, outcome in outcomes if outcome is not None)

    def _outcome_of(self, trials: Sequence[tuple[float, Outcome]]) -> Outcome | None:
        measured = [one for one in trials if one[1] is not Outcome.UNMEASURABLE]
        undecided = None if len(measured) == len(trials) else Outcome.UNMEASURABLE
        return self._lengths.outcome(measured) or undecided

    def _lower_bound(self, goal: float) -> int | None:
        """The library's lower bound; before the library returns, the highest load that passed below
        all that did not."""
        if self._results is not None:
            return _load(self._results[goal].relevant_lower_bound)
        loads = self._decided(goal)
        upper = min((load for load, outcome in loads if outcome is not Outcome.PASSED), default=inf)
        return max(
            (load for load, outcome in loads if outcome is Outcome.PASSED and load < upper),
            default=None,
        )

    def _upper_bound(self, goal: float) -> int | None:
        if self._results is not None:
            upper = _load(self._results[goal].relevant_upper_bound)
            return self._tester_limit if upper is None else upper
        lower = self._lower_bound(goal) or 0
        return min(
            (load for load, outcome in self._decided(goal) if outcome is not Outcome.PASSED and load > lower),
            default=None,
        )

    def _conditional(self, goal: float) -> float | None:
        """Conditional throughput (RFC 9971): the forwarding rate at the lower bound."""
        if self._results is None or (rate := self._results[goal].conditional_throughput) is None:
            return None
        return float(rate)

    def _limited_by(self, lower: int | None, upper: int | None) -> LimitedBy:
        if self._probes.not_forwarding:
            return LimitedBy.DUT
        if upper is None:
            return LimitedBy.MEDIA if self._bounds.maximum_is_media else LimitedBy.RANGE
        if upper == self._tester_limit:
            return LimitedBy.TESTER
        below_users_minimum = lower is None and self._bounds.minimum is not None
        return LimitedBy.RANGE if below_users_minimum else LimitedBy.DUT


class _NextTrial(Exception):
    """The algorithm requests a trial that was not measured yet."""

    def __init__(self, trial: _Trial) -> None:
        super().__init__()
        self.trial = trial


class _Replay(AbstractMeasurer):  # type: ignore[misc]  # the library has no types
    """Returns the measured results in their order; the algorithm always requests them in the same."""

    def __init__(self, measured: Sequence[_Trial]) -> None:
        self._measured = iter(measured)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        trial = next(self._measured, None)
        if trial is None:
            raise _NextTrial(_Trial(intended_load, intended_duration))
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=trial.loss.sent,
            loss_count=trial.loss.lost,
        )


def _no_debug(_: str) -> None:
    """Drops the library's debug output."""


def _load(bound: _Stat | None) -> int | None:
    return None if bound is None else round(float(bound))


def lowest(bounds: Bounds) -> int:
    """The lowest load: the user's; else the lowest where the resolution is at least ``NARROWEST_STEP``. Raises
    BoundsError: no range of loads is left above it, or it lies too low."""
    width = _width(bounds)
    possible = ceil(NARROWEST_STEP / width)
    lowest = bounds.lowest if bounds.minimum is not None else max(bounds.lowest, min(possible, bounds.highest // 2))
    if lowest >= bounds.highest:
        raise BoundsError(f"MLRsearch needs a range of rates, not {bounds.highest:,} frames/s alone", "minimum")
    if lowest < possible:
        message = (
            f"MLRsearch's resolution is a share of the load, {width * 100:.2g} % here: below {possible:,} frames/s it"
            " is less than a frame/s"
        )
        raise BoundsError(message, "minimum" if bounds.minimum is not None else "resolution")
    return lowest


def _width(bounds: Bounds) -> float:
    """The resolution in the library's form: a share of the load."""
    return min(0.5, bounds.resolution.at(bounds.highest) / bounds.highest)
