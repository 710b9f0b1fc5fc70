# SPDX-License-Identifier: Apache-2.0
"""Throughput: the highest rate at which the DUT forwards every frame (RFC 2544 26.1, RFC 8219 7.1).

For each frame size the search is repeated. A trial passes where no active direction loses more than
the tolerated share of its frames (RFC 2544: none). The value of a repetition is the highest rate
that passed in a valid trial of its own.

A repetition begins its search around the result of the one before, which saves most of its trials.
The start is random, and the first step is wider than the results scatter. So the result is the same
as of a search of the whole range, independent of the one before (:mod:`dutperf.search.restart`).
Each repetition has to see a rate pass and a higher one fail itself (RFC 2544 26.1 leaves the search
to the tester).

A value's error is its distance from the lowest rate that failed, at most the resolution (with
MLRsearch a share of the rate), and a fifth of that where the tester was disturbed
(:mod:`dutperf.judge.validity`). The DUT's buffer also takes frames during a trial: b buffered
frames make the value of trials of T seconds b / T frames/s higher than the DUT's sustained rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, ClassVar, Self

from dutperf.journal import ResultEvent, TrialEvent, WaitEvent
from dutperf.lab.refdut import Properties
from dutperf.model import Case, Direction, LimitedBy, Load, Sparse, Trial, Unit, Value, Verdict
from dutperf.model.digits import lost_share
from dutperf.procedures import repeated_searches, searches
from dutperf.procedures.base import Prior
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import ONE_WAY, QUEUE_FRAMES, SEARCH_S, KnownTruth, fps, highest_rate
from dutperf.procedures.repeated_searches import (
    Offered,
    RateSearches,
    SearchFinding,
    SearchPoint,
    UpperBound,
    statistics_of,
)
from dutperf.procedures.searches import Searched
from dutperf.results import charts, deviations, inconsistency, points
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.inconsistency import Contradiction, contradictions
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import SearchResult
from dutperf.setup.conditions import Usual, WithConnections, WithTimeout
from dutperf.statistics.stopping import Rule


class Throughput(WithTimeout, WithConnections, Searched, Usual):
    """Conditions of a throughput measurement."""


class GoalFinding(SearchFinding):
    """The result of a search for one loss goal (RFC 9971)."""

    loss_ratio: float
    conditional: float | None
    """Forwarding rate at the lower bound."""


class ThroughputFinding(SearchFinding):
    """The result of a search; with loss goals that of the first one."""

    goals: tuple[GoalFinding, ...] = ()


class ThroughputProcedure(RateSearches[Throughput]):
    def limits(self, case: Case) -> dict[str, Any]:
        bounds = self._bounds[case]
        return searches.limits(bounds, self.unit, searches.lowest(self.conditions, bounds))

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        question = searches.question(self.conditions, self._bounds[case], load.value)
        return super().trial(case, load, number, duration_s).model_copy(update={"question": question})

    def trials_of(self, *, first: bool) -> float:
        later = self._lengths[False]
        return fmean(later) if later and not first else super().trials_of(first=first)

    def finding(
        self, members: dict[str, Any], case: Case, result: SearchResult, offered: Sequence[Offered]
    ) -> ThroughputFinding:
        goals = tuple(
            GoalFinding(
                **{**members, **self.result_members(case, goal.result, offered)},
                loss_ratio=goal.loss_ratio,
                conditional=goal.conditional,
            )
            for goal in result.goals
        )
        return ThroughputFinding(**members, goals=goals)

    def series(self, prior: Prior) -> list[list[int | None]]:
        """One for each loss
        goal."""
        goals = len(self.conditions.loss_goals())
        return [[(search.goals or (search,))[number].lower_bound for search in prior] for number in range(goals)]


class Goal(Value):
    """Result for one loss goal of a search for several (RFC 9971)."""

    loss_ratio: float
    """Share of a direction's frames that a trial may lose."""
    throughput_fps: Statistics
    conditional_throughput_fps: Statistics
    """Forwarding rate at the throughput values."""
    limited_by: LimitedBy
    message: str
    upper_bound: UpperBound | None
    inconsistent: tuple[Contradiction, ...]


class PathRate(Value):
    """What the DUT forwarded on one path at the throughput: the median over the repetitions."""

    forwarded_fps: float
    loss_ratio: float


MOST_COARSE = 0.1
"""A throughput may be known within this share of it without a word."""


class ThroughputPoint(Sparse, SearchPoint):
    sparse: ClassVar[Sequence[str]] = ("paths", "in_sum_fps")
    figure: ClassVar[str] = "throughput_fps"
    in_headline: ClassVar[str] = Unit.FRAMES_PER_SECOND.label
    title: ClassVar[str] = "throughput, frames/s per direction"
    columns: ClassVar[Row] = ("median", "p1", "p99", "dispersion", "Mbit/s on the wire", "limited by")
    implied: ClassVar[Sequence[str]] = ("*conditional_throughput_fps", "goals.0.*", "widest_fps", "wire_mbps")

    throughput_fps: Statistics
    wire_mbps: float | None
    """The median with preambles and gaps (RFC 8219 appendix A), of the direction with more bits; None without a
    median."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    inconsistent: tuple[Contradiction, ...]
    """Loads that passed above one that failed, or failed below one that passed, over all
    repetitions."""
    widest_fps: int
    """Largest distance between a repetition's bounds where it is limited by the DUT: more than the
    resolution, where loads between could not be measured."""
    repetitions: Repetitions
    goals: tuple[Goal, ...]
    """Where the search had loss goals: each goal's figures; ``throughput_fps`` and the others are
    the first goal's."""
    trials: Trials
    paths: dict[Direction, PathRate] | None = None
    """Of each path of named ports."""
    in_sum_fps: float | None = None
    """Frames/s that the DUT forwarded on all paths of named ports together, at the throughput."""

    def rows(self) -> list[Row]:
        figures = self.throughput_fps
        dispersion = "-" if figures.dispersion_percent is None else f"{figures.dispersion_percent:.2f} %"
        mbps = "-" if self.wire_mbps is None else f"{self.wire_mbps:,.2f}"
        return [(*figures.cells(",.0f"), dispersion, mbps, self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        """The losses at the upper bound, the median's interval, each loss goal's result, and
        inconsistencies of the DUT."""
        upper_bound = "" if self.upper_bound is None else self.upper_bound.sentence()
        yield from (
            f": {text}"
            for text in (
                upper_bound,
                self._coarseness(),
                self.repetitions.certainty(self.throughput_fps),
                inconsistency.sentence(self.inconsistent),
            )
            if text
        )
        if self.paths:
            yield f": {self.in_sum_fps:,.0f} frames/s forwarded in sum of {len(self.paths)} paths"
            for path, rate in self.paths.items():
                lost = f"{lost_share(rate.loss_ratio)} lost" if rate.loss_ratio else "nothing lost"
                yield f", {path}: {rate.forwarded_fps:,.0f} frames/s forwarded, {lost}"
        for goal in self.goals:
            figures, of = goal.throughput_fps, f", at most {goal.loss_ratio * 100:g} % lost: "
            median = "no throughput" if figures.median is None else f"{figures.median:,.0f} frames/s{figures.within()}"
            yield f"{of}{median}, limited by {goal.limited_by}: {goal.message}"
            if goal.inconsistent:
                yield of + inconsistency.sentence(goal.inconsistent)

    def _coarseness(self) -> str:
        """Where the throughput is small against the resolution, which is mostly a share of the maximum."""
        median_fps = self.throughput_fps.median or 0
        if self.widest_fps <= MOST_COARSE * median_fps or not median_fps:
            return ""
        return (
            f"the lowest rate that failed is up to {self.widest_fps:,} frames/s above it"
            f" ({self.widest_fps / median_fps:.0%}): a finer --resolution or a lower --max-rate reads it closer"
        )

    def loads_by_stream(self) -> set[Load]:
        """Those of the lower bounds and the upper bound."""
        bounds = (
            (self.throughput_fps, self.upper_bound),
            *((one.throughput_fps, one.upper_bound) for one in self.goals),
        )
        return {
            load
            for figures, upper in bounds
            for load in repeated_searches.bounds(figures, upper, Unit.FRAMES_PER_SECOND)
        }

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return max(super().resolution(conditions), float(self.widest_fps))

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The rates over the cases with the media's theoretical line (RFC 2544 26.1), and each
        repetition's value."""
        y_label = f"throughput, {Unit.FRAMES_PER_SECOND.label}"
        theory = [(point.case, one.get("media_maximum_fps")) for point, one in zip(points, limits, strict=True)]
        beyond = [(point.case, point.throughput_fps.median or 0.0) for point in points if point.needs_warning]
        known = any(fps for _, fps in theory)
        over = charts.over_cases(
            "Throughput",
            y_label,
            _figures(points),
            caption=charts.bars()
            + ("" if known else " The media's theoretical maximum is not known (virtual links have none)."),
            rings=("not limited by the DUT", beyond),
            reference=("theoretical maximum of the media", theory),
        )
        values = [(point.case, point.throughput_fps.values) for point in points]
        return (*over, charts.repetitions("Throughput", y_label, values))


def _figures(points: Sequence[ThroughputPoint]) -> list[tuple[str, Case, charts.Figure]]:
    """One curve for each loss goal; without goals, one."""
    goals = [
        (f"at most {goal.loss_ratio * 100:g} % lost", point.case, goal.throughput_fps)
        for point in points
        for goal in point.goals
    ]
    series = goals or [("measured", point.case, point.throughput_fps) for point in points]
    return [(label, case, (of.median, of.p1, of.p99)) for label, case, of in series]


def point(recorded: Recorded) -> ThroughputPoint:
    found, rule = recorded.of(ThroughputFinding), recorded.conditions.every.repetitions
    goals, results = _goals(found), recorded.of(ResultEvent)
    steady = points.without_waits(results, recorded.of(WaitEvent))
    throughput_fps, members = repeated_searches.found(recorded, ThroughputFinding, goals)
    return ThroughputPoint(
        **members,
        throughput_fps=throughput_fps,
        wire_mbps=_wire_mbps(throughput_fps.median, recorded.of(TrialEvent)),
        pass_criterion=recorded.conditions.passing(),
        inconsistent=_inconsistent(found),
        widest_fps=max(map(_width, found), default=0),
        goals=tuple(_goal(one, steady, rule) for one in goals),
        **_paths(found, results),
    )


def _paths(found: Sequence[SearchFinding], results: Sequence[ResultEvent]) -> dict[str, Any]:
    """Members of the point for named ports: what each path forwarded in the last valid trial at each
    repetition's throughput."""
    at_throughput = {
        (event.repetition, event.load.value): event.result.paths
        for event in results
        if event.result.paths is not None and event.result.verdict is Verdict.VALID
    }
    counted = [
        (one.lower_bound, paths)
        for one in found
        if one.lower_bound is not None and (paths := at_throughput.get((one.repetition, one.lower_bound)))
    ]
    if not counted:
        return {}

    def rates(path: Direction) -> PathRate:
        ratios = [(offered_fps, paths[path].loss_ratio) for offered_fps, paths in counted]
        return PathRate(
            forwarded_fps=median(offered_fps * (1 - ratio) for offered_fps, ratio in ratios),
            loss_ratio=median(ratio for _, ratio in ratios),
        )

    rated = {path: rates(path) for path in counted[0][1]}
    return {"paths": rated, "in_sum_fps": sum(rate.forwarded_fps for rate in rated.values())}


def _wire_mbps(median_fps: float | None, trials: Sequence[TrialEvent]) -> float | None:
    if median_fps is None or not trials:
        return None
    streams = trials[0].trial.streams().values()
    fastest_fps = max(stream.rate_fps for stream in streams)
    return median_fps * max(stream.wire_bits * stream.rate_fps / fastest_fps for stream in streams) / 1e6


def _width(search: SearchFinding) -> int:
    if search.limited_by is not LimitedBy.DUT or search.lower_bound is None or search.upper_bound is None:
        return 0
    return search.upper_bound - search.lower_bound


def _goals(found: Sequence[ThroughputFinding]) -> list[list[GoalFinding]]:
    """Of each loss goal the findings of all repetitions."""
    located = [
        [goal.model_copy(update={"case": search.case, "repetition": search.repetition}) for goal in search.goals]
        for search in found
    ]
    return [list(goals) for goals in zip(*located, strict=True)]


def _goal(found: Sequence[GoalFinding], results: Sequence[ResultEvent], rule: Rule) -> Goal:
    decisive = repeated_searches.decisive(found)
    assert decisive is not None, "a goal belongs to a search"
    return Goal(
        loss_ratio=decisive.loss_ratio,
        throughput_fps=statistics_of(found, [search.lower_bound for search in found], rule),
        conditional_throughput_fps=statistics_of(found, [search.conditional for search in found], rule),
        limited_by=decisive.limited_by,
        message=repeated_searches.message(found),
        upper_bound=repeated_searches.upper_bound(found, results),
        inconsistent=_inconsistent(found),
    )


def _inconsistent(found: Sequence[SearchFinding]) -> tuple[Contradiction, ...]:
    return contradictions((Load.fps(value), outcome) for search in found for value, outcome in search.loads)


def _usual_repetitions(facts: Facts) -> str | None:
    """RFC 2544 26.1 asks for no repetitions, RFC 8219 for several; published throughputs usually
    have as many as the delays."""
    few = deviations.few_repetitions(facts)
    return few and f"{few}, which are usual; several are recommended"


RULES = deviations.rules(
    Clause("RFC 2544 section 26.1", deviations.loss),
    Clause("RFC 2544 section 26.1", deviations.exceed_ratio),
    Clause("RFC 2544 section 26.1", deviations.frame_timeout),
    Clause("RFC 8219 section 12", _usual_repetitions),
)


# --- a DUT whose truth is known ------------------------------------------------------------------

CAPACITY_FPS = 20_050
LOWEST_FPS, HIGHEST_FPS, RESOLUTION_FPS = 20_000, 24_000, 200
"""The steps of the first search avoid the true value: next to it a trial loses one frame or none."""


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(capacity_fps=CAPACITY_FPS, queue=QUEUE_FRAMES),
        {
            **ONE_WAY,
            "min_rate": fps(LOWEST_FPS),
            "max_rate": fps(HIGHEST_FPS),
            "resolution": fps(RESOLUTION_FPS),
            "duration_s": SEARCH_S,
        },
        (highest_rate("throughput", "frames/s", CAPACITY_FPS, QUEUE_FRAMES, lambda point: point.throughput_fps),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="throughput",
    summary="Search for the highest rate without loss (RFC 2544 26.1).",
    chapter=Chapter.RATES,
    example="--lab kernel-ipv4 --max-rate 100k --duration 0.5 --drain 0.2 --repetitions 3 --out results/gateway",
    known_truth=_known_truth,
    conditions=Throughput,
    make=ThroughputProcedure,
    point=point,
    rules=RULES,
)
