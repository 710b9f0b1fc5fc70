# SPDX-License-Identifier: Apache-2.0
"""Base of the procedures whose repetitions search for the highest load that passes: how a repetition
is searched and recorded, which repetition decides what limits a point, and what its upper bound
is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from dutperf.journal import RepetitionFinding, ResultEvent, WaitEvent
from dutperf.judge.setup_faults import limit_of
from dutperf.model import Case, Direction, LimitedBy, Load, Sparse, TrialResult, Unit, Verdict
from dutperf.procedures import evidence, searches
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, ConditionsT, Place, Plan
from dutperf.procedures.searches import SearchRange
from dutperf.results import points
from dutperf.results.points import Loss, Recorded
from dutperf.results.statistics import Missing, Repetitions, Statistics, statistics, without_number
from dutperf.search import Loss as OfferedLoss
from dutperf.search import Outcome
from dutperf.search.binary import TYPICAL_TRIALS, WIDENED_SHARE, Bounds, Search, SearchResult
from dutperf.search.restart import PriorResults
from dutperf.statistics import stopping
from dutperf.statistics.stopping import Stopped

UNMEASURED = (LimitedBy.TESTER, LimitedBy.SETUP, LimitedBy.CONNECTIONS)
PRECEDENCE = (*UNMEASURED, LimitedBy.DUT, LimitedBy.RANGE, LimitedBy.MEDIA)
"""What limits a point where its repetitions differ: the first of these that any repetition has.

``tester`` comes first: one repetition that shows the tester's own limit puts the median and the
percentiles in doubt, unless the DUT failed just above its lower bound in another one. So do ``setup`` and
``connections``. Then ``dut``, which is a result. ``range`` comes before
``media``, because the user can change a range that ended too early (or in which nothing passed).
"""


SearchT = TypeVar("SearchT", bound="SearchFinding")
SearchRangeT = TypeVar("SearchRangeT", bound=SearchRange, covariant=True)


class Limited(Protocol):
    """What a repetition found."""

    @property
    def limited_by(self) -> LimitedBy: ...


@dataclass(frozen=True)
class Offered:
    """A load that was offered in a repetition, and its result."""

    value: int
    outcome: Outcome
    result: TrialResult


class SearchFinding(RepetitionFinding):
    """The result of a repetition's search. Loads are in ``unit``."""

    event: Literal["search"] = "search"
    unit: Unit
    lower_bound: int | None
    """The highest load that passed below those that failed; None: none passed."""
    limited_by: LimitedBy
    upper_bound: int | None
    """The lowest load above it that did not pass; None: none was offered."""
    loads: tuple[tuple[int, Outcome], ...]
    """In the order in which they were offered."""


class RepeatedSearches(Procedure[ConditionsT]):
    """A procedure in which each repetition is a search."""

    has_single_figure = True
    unit: ClassVar[Unit] = Unit.FRAMES_PER_SECOND
    """Of the loads."""
    failed_at: ClassVar[str] = "at"
    """Preposition before a failed load, for messages."""
    nothing_passed: ClassVar[str] = "nothing passed"

    def __init__(self, plan: Plan[ConditionsT]) -> None:
        super().__init__(plan)
        self._search: Search | None = None
        self._lengths: dict[bool, list[int]] = {True: [], False: []}
        """Trials of the searches so far: of each case's first search (True), and of the others."""

    @abstractmethod
    def new_search(self, place: Place, prior: Prior) -> Search:
        """The search of the next repetition."""

    @abstractmethod
    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        """The message where the highest load of the search passed."""

    def offer(self, bench: Bench, load: Load, place: Place) -> tuple[TrialResult, Outcome]:
        result = self.measure(bench, load, place)
        return result, self.outcome(result)

    def trials_of(self, *, first: bool) -> float:
        return TYPICAL_TRIALS

    def outcome(self, result: TrialResult) -> Outcome:
        return evidence.outcome_of(result, self.conditions)

    def shortcoming(self, result: TrialResult) -> str:
        """What the DUT failed to do in a trial that did not pass, for messages."""
        return evidence.losses(result, self.conditions.every.frame_timeout_ms)

    def nothing_came(self, result: TrialResult) -> str:
        """What a trial shows of a DUT that forwards nothing."""
        return self.no_forwarding(result)

    def why_unmeasurable(self, case: Case, result: TrialResult) -> str:
        """Why the load of ``result`` could not be measured."""
        return evidence.invalidity(result)

    def finding(
        self, members: dict[str, Any], case: Case, result: SearchResult, offered: Sequence[Offered]
    ) -> SearchFinding:
        """The search's finding: these ``members``, and those that the procedure adds."""
        return SearchFinding(**members)

    def stopped(self, prior: Prior) -> Stopped | None:
        return stopping.stopped(self.conditions.every.repetitions, *self.series(prior))

    def series(self, prior: Prior) -> list[list[int | None]]:
        """The values of the repetitions, for each figure that ``auto`` repetitions look at."""
        return [[search.lower_bound for search in prior]]

    def prior_results(self, prior: Prior) -> PriorResults | None:
        """Results of the finished repetitions; None without any, or where the last has no bound."""
        expected = next((search.lower_bound or search.upper_bound for search in prior[-1:]), None)
        return None if expected is None else PriorResults(expected, self.series(prior)[0])

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> SearchFinding:
        self._search = search = self.new_search(place, prior)
        offered: list[Offered] = []
        while (value := search.next_load()) is not None:
            result, outcome = self.offer(bench, Load(value, self.unit), self._now(search, place))
            offered.append(Offered(value, outcome, result))
            search.record_outcome(outcome, self._loss_of(result))
            if self._ended(offered) is not None:
                break  # the rate has no part in it
        search_result = search.result()
        self._lengths[not prior].append(len(search_result.loads))
        members = {
            "unit": self.unit,
            "not_forwarding": search_result.not_forwarding,
            **self.result_members(place.case, search_result, offered),
        }
        return self.finding(members, place.case, search_result, offered)

    def _loss_of(self, result: TrialResult) -> OfferedLoss:
        """What a trial lost. Connections and frames of a burst are lost in episodes for reasons of their own: those
        that a full table or buffer has no room for were sent in a row. But it is never full for all of them."""
        lost = searches.loss_of(result)
        is_episode = lost.one_episode and (self.unit is Unit.FRAMES_PER_SECOND or lost.lost == lost.sent)
        return replace(lost, one_episode=is_episode)

    def result_members(self, case: Case, search_result: SearchResult, offered: Sequence[Offered]) -> dict[str, Any]:
        """The result of a search for one goal, as members of a finding."""
        return {
            "lower_bound": search_result.lower_bound,
            "limited_by": self._limit(search_result, offered),
            "upper_bound": search_result.upper_bound,
            "loads": tuple(search_result.loads),
            "message": self._reason(case, search_result, offered),
        }

    def _limit(self, search_result: SearchResult, offered: Sequence[Offered]) -> LimitedBy:
        """What limits a search. It takes each load that could not be measured for a limit of the tester."""
        if (end := self._ended(offered)) is not None:
            return limit_of(end.result)
        if search_result.limited_by is not LimitedBy.TESTER or search_result.upper_bound is None:
            return search_result.limited_by
        return limit_of(_not_passed(search_result.upper_bound, offered))

    def _ended(self, offered: Sequence[Offered]) -> Offered | None:
        """The last load, if another one would have the same result: its connections were not opened, or no trial can
        be valid with this test setup."""
        last = offered[-1] if offered else None
        return last if last is not None and (last.result.not_opened or self.is_hopeless) else None

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        assert self._search is not None, "a repetition has been searched"
        last, rule, passing = done[-1], self.conditions.every.repetitions, self.conditions.passing()
        value = "no lower bound" if last.lower_bound is None else str(Load(last.lower_bound, self.unit))
        stopped = None if isinstance(rule, int) else self.stopped(done)
        limit = "" if last.message.startswith("limited by") else f", limited by {points.LIMITS[last.limited_by]}"
        note = f"repetition {place.repetition}: {value}{f' ({passing})' if passing else ''}{limit}; {last.message}"
        bench.say(
            note + (f"; no further repetition: {stopped}" if stopped is not None else ""),
            self._now(self._search, place),
        )

    def _now(self, search: Search, place: Place) -> Place:
        lower, upper = (None if one is None else Load(one, self.unit) for one in (search.lower, search.upper))
        return place.within(search.trials_left(), lower=lower, upper=upper, duration_s=search.next_duration_s())

    def _reason(self, case: Case, search_result: SearchResult, offered: Sequence[Offered]) -> str:
        """Why the search ended at this lower bound, in a sentence."""
        if (end := self._ended(offered)) is not None:
            return f"at {Load(end.value, self.unit)}: {evidence.invalidity(end.result)}"
        if search_result.upper_bound is None:
            return self.all_passed(case, search_result.limited_by)
        load = Load(search_result.upper_bound, self.unit)
        result = _not_passed(search_result.upper_bound, offered)
        if search_result.not_forwarding:
            forwarded = [one.value for one in offered if one.outcome is Outcome.PASSED]
            before = f"; it forwarded {Load(forwarded[-1], self.unit)} before" if forwarded else ""
            return self.nothing_came(result) + before
        if search_result.limited_by is LimitedBy.TESTER:
            who = "limited by the tester " if limit_of(result) is LimitedBy.TESTER else ""
            return f"{who}at {load}: {self.why_unmeasurable(case, result)}"
        failed = f"{self.failed_at} {load} {self.shortcoming(result)}"
        failed += self._episode(result, [one for one in offered if one.value == search_result.upper_bound])
        if result.proven_failed is not None:
            failed += f"; the tester was disturbed, and {result.proven_failed}"
        if search_result.unmeasurable:
            unknown = ", ".join(str(Load(load, self.unit)) for load in search_result.unmeasurable)
            failed += f"; {unknown} between could not be measured"
        return failed if search_result.lower_bound is not None else f"{self.nothing_passed}: {failed}"

    def _episode(self, result: TrialResult, of_load: Sequence[Offered]) -> str:
        """What to know of a trial that failed by one episode, as the end of a clause."""
        episode = searches.episode_of(result)
        if episode is None or not self._loss_of(result).one_episode:
            return ""
        times = sum(one.outcome is Outcome.FAILED for one in of_load)
        again = f"; each of {times} trials at this rate failed" if times > 1 else ""
        return f": {episode}{again}"


class RateSearches(RepeatedSearches[SearchRangeT]):
    """A procedure in which each repetition searches for the highest rate that passes. Raises PlanError: rates that
    contradict each other, or percentages of an unknown maximum."""

    nothing_passed = "nothing passed, down to the minimum rate"
    begins_near_the_last: ClassVar[bool] = True
    """Whether a repetition begins its search near the result of the one before."""

    def __init__(self, plan: Plan[SearchRangeT]) -> None:
        super().__init__(plan)
        self._bounds = {case: self.bounds_of(case) for case in self.cases}
        for limits in self._bounds.values():
            searches.make(self.conditions, limits)  # raises PlanError before anything is sent

    def bounds_of(self, case: Case) -> Bounds:
        """The range of the search. Raises PlanError."""
        found = searches.bounds(self.conditions, self.maximum_fps(case))
        return replace(found, unit=self.unit)

    def first_load(self, case: Case) -> Load:
        return Load(self._bounds[case].first, self.unit)

    def algorithm(self) -> dict[str, Any]:
        described = searches.description(self.conditions)
        return described if self.begins_near_the_last else described | {"start": "none"}

    def limits(self, case: Case) -> dict[str, Any]:
        return searches.limits(self._bounds[case], self.unit)

    def trials_of(self, *, first: bool) -> float:
        is_whole = first or not self.begins_near_the_last
        return TYPICAL_TRIALS if is_whole else searches.typical_later_trials(self.conditions)

    def new_search(self, place: Place, prior: Prior) -> Search:
        known = self.prior_results(prior) if self.begins_near_the_last else None
        seed = f"{self.conditions.seed} {place.case.slug} {place.repetition}"
        return searches.make(self.conditions, self._bounds[place.case], known, seed)

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        highest = Load(self._bounds[case].highest, self.unit)
        if limited_by is LimitedBy.MEDIA:
            return f"the media's maximum of {highest} passed"
        return f"the maximum rate of the search, {highest}, passed"


class UpperBound(Sparse):
    """The lowest load above the lower bound that failed, and the losses there."""

    sparse: ClassVar[Sequence[str]] = ("paths",)

    load: Load
    forward: Loss | None = None
    reverse: Loss | None = None
    paths: dict[Direction, Loss] | None = None
    """Of each path of named ports."""

    def sentence(self) -> str:
        """When and where frames were lost; empty where none was."""
        by_path = [("forward", self.forward), ("reverse", self.reverse), *(self.paths or {}).items()]
        texts = [f"{name} lost {one.sentence()}" for name, one in by_path if one is not None and one.sentence()]
        return f"at the upper bound, {self.load}: {'. '.join(texts)}" if texts else ""


class SearchPoint(points.FigurePoint):
    """A case, and the figure that its searches found."""

    # Each kind of point declares these itself: the order of the members is that in files.
    if TYPE_CHECKING:
        limited_by: LimitedBy | None
        upper_bound: UpperBound | None
        repetitions: Repetitions

    def remarks(self) -> Iterator[str]:
        if certainty := self.repetitions.certainty(self.figures, self.form):
            yield f": {certainty}"

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        """Of a search for a rate: the step that was asked for, or its share of the upper bound; at least 1."""
        limits, unit = points.limits_of(self, conditions), self.figure.rpartition("_")[2]
        upper = (self.figures.p99 or 0.0) if self.upper_bound is None else self.upper_bound.load.value
        return max(1.0, float(limits.get(f"resolution_{unit}") or (limits["resolution_percent"] or 0) / 100 * upper))


def decisive(searches: Sequence[SearchT]) -> SearchT | None:
    """The repetition that decides what limits the point: one whose DUT forwarded nothing, else the
    lowest of the first kind in ``PRECEDENCE``; None: there is no repetition."""
    return min(
        (search for search in searches if not _fails_just_above(search, searches)),
        key=lambda search: (
            not search.not_forwarding,
            PRECEDENCE.index(search.limited_by),
            search.upper_bound or 0,
        ),
        default=None,
    )


def _fails_just_above(search: SearchFinding, searches: Sequence[SearchFinding]) -> bool:
    """Whether the DUT failed so little above the lower bound of a repetition that the tester limited, in another one,
    that a search ends there: by no more than that one's own distance between its bounds, or than what hardly matters
    (:data:`dutperf.search.binary.WIDENED_SHARE`)."""
    lower = search.lower_bound
    if search.limited_by is not LimitedBy.TESTER or lower is None:
        return False
    failed = [
        (other.upper_bound, other.upper_bound - other.lower_bound)
        for other in searches
        if other.limited_by is LimitedBy.DUT and other.lower_bound is not None and other.upper_bound is not None
    ]
    return any(0 < upper - lower <= max(width, int(WIDENED_SHARE * upper)) for upper, width in failed)


def message(searches: Sequence[SearchFinding]) -> str:
    """The decisive repetition's message, and in how many repetitions the limit was the same."""
    one = decisive(searches)
    if one is None:
        return "not measured"
    return f"{'' if one.not_forwarding else share_of(one.limited_by, searches)}{one.message}"


def share_of(limit: LimitedBy, repetitions: Sequence[Limited]) -> str:
    """In how many repetitions the limit was the same, to begin a message with; empty if in all."""
    same = sum(one.limited_by is limit for one in repetitions)
    return "" if same == len(repetitions) else f"in {same} of {len(repetitions)} repetitions "


def stopped(searches: Sequence[SearchFinding], rule: stopping.Rule, *series: Sequence[int | None]) -> Stopped | None:
    """Why no further search was needed, by the values of ``series``; None where one was, or where
    the DUT forwarded nothing."""
    return None if any(search.not_forwarding for search in searches) else stopping.stopped(rule, *series)


def statistics_of(
    searches: Sequence[SearchFinding],
    values: Sequence[float | None],
    rule: stopping.Rule,
    missing: Missing = Missing.LOWEST,
) -> Statistics:
    """A DUT that forwards nothing has no figure, whatever it did before."""
    nothing = not values or any(search.not_forwarding for search in searches)
    return without_number(values) if nothing else statistics(values, rule, missing.number)


def found(
    recorded: Recorded, kind: type[SearchFinding] = SearchFinding, goals: Sequence[Sequence[SearchFinding]] = ()
) -> tuple[Statistics, dict[str, Any]]:
    """The statistics of the lower bounds of the searches that the journal holds, and the members that each of
    their points has: ``case``, ``limited_by``, ``upper_bound``, ``message``, ``repetitions``, ``trials``.
    ``goals``: the findings of several goals, each of which decides whether another repetition was needed."""
    events, rule = recorded.of(kind), recorded.conditions.every.repetitions
    one = decisive(events)
    ended = stopped(events, rule, *([search.lower_bound for search in each] for each in goals or [events]))
    results = recorded.of(ResultEvent)
    return statistics_of(events, [search.lower_bound for search in events], rule), {
        "case": recorded.case,
        "limited_by": None if one is None else one.limited_by,
        "upper_bound": upper_bound(events, points.without_waits(results, recorded.of(WaitEvent))),
        "message": message(events) + recorded.shortfall(len(events), ended),
        "repetitions": Repetitions(finished=len(events), stopped=ended),
        "trials": points.trials(results),
    }


def bounds(figures: Statistics, upper: UpperBound | None, unit: Unit) -> set[Load]:
    """The loads of the repetitions' lower bounds, and that of the upper bound."""
    lower = {Load(int(value), unit) for value in figures.values if value is not None}
    return lower if upper is None else lower | {upper.load}


def upper_bound(searches: Sequence[SearchFinding], results: Sequence[ResultEvent]) -> UpperBound | None:
    """The lowest upper bound of the repetitions that is a failed trial; of several trials at that
    load, the one that lost most."""
    wanted = {(search.repetition, search.upper_bound) for search in searches if search.limited_by not in UNMEASURED}
    failed = [
        (event.load, event.result)
        for event in results
        if (event.repetition, event.load.value) in wanted and event.result.verdict is Verdict.VALID
    ]
    if not failed:
        return None
    load, result = min(failed, key=lambda trial: (trial[0], -trial[1].worst_loss_ratio))
    lost = points.losses(result)
    return UpperBound(load=load, **(lost if result.paths is None else {"paths": lost}))


def _not_passed(value: int, offered: Sequence[Offered]) -> TrialResult:
    """The load's last trial that failed; else the last that could not be measured; where all passed, the last one."""
    of_load = [one for one in reversed(offered) if one.value == value]
    failed = [one for one in of_load if one.outcome in (Outcome.FAILED, Outcome.NOT_FORWARDING)]
    others = [one for one in of_load if one.outcome is not Outcome.PASSED]
    return (failed or others or of_load)[0].result
