# SPDX-License-Identifier: Apache-2.0
"""Throughput: the highest rate at which the DUT forwards every frame (RFC 2544 26.1, RFC 8219 7.1).

For each frame size the search is repeated. A trial passes where in each active direction no more
than the tolerated share of the frames is lost (RFC 2544: none). The value of a repetition is the
highest rate that passed in a valid trial of its own.

A repetition begins its search around the value of the one before, which saves most of its trials,
at a place that is random and with a step that is wider than the values scatter: so it finds what a
search of the whole range would have found, independent of the one before
(:mod:`dutperf.search.restart`). It has to see a rate pass and a higher one fail itself (RFC 2544
26.1 leaves it to the tester how the rate is found).

A value's error is its distance from the lowest rate that failed, at most the resolution (with
MLRsearch a share of the rate), and a fifth of that where the tester was disturbed
(:mod:`dutperf.tester.validity`). A trial also takes what fits into the DUT's buffer: b frames of it
make the value of trials of T seconds b / T frames/s higher than what the DUT could forward for
ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from statistics import fmean
from typing import Any, ClassVar, Self

from dutperf import journal
from dutperf.journal import Event
from dutperf.model import LimitedBy, TrialResult, Value, Verdict
from dutperf.procedures import evidence, repeated_searches, searches
from dutperf.procedures.bench import Bench, Place, Plan, frame_limits
from dutperf.procedures.definition import Definition
from dutperf.procedures.evidence import outcome_of
from dutperf.procedures.searches import Searched
from dutperf.results import charts, deviations, inconsistency, points
from dutperf.results.charts import Chart, Curve
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.inconsistency import Contradiction, contradictions
from dutperf.results.points import Loss, Recorded, Row, Trials, cell
from dutperf.results.statistics import Repetitions, Statistics, statistics, without_number
from dutperf.search import Outcome
from dutperf.search.binary import TYPICAL_TRIALS, Bounds, Found, Search
from dutperf.search.restart import Known
from dutperf.setup.conditions import WithTimeout
from dutperf.statistics import stopping as repetition
from dutperf.statistics.stopping import Rule

ABOVE = "above_fps"
"""The member of a ``search`` event that holds the rate which did not pass."""


@dataclass
class _Point:
    """A frame size in the course of its measurement."""

    frame_size: int
    bounds: Bounds
    frame_timeout_ms: float | None = None
    near_fps: int | None = None
    repetition: int = 1
    repetitions: int = 1
    """As many as there will be at least."""
    values: tuple[list[int | None], ...] = ()
    """Of the finished repetitions, for each loss goal."""
    results: dict[int, TrialResult] = field(default_factory=dict)
    """Of this repetition: rate to what its trial showed."""

    def begin(self, rule: Rule) -> None:
        """Another repetition."""
        done = len(self.values[0])
        self.repetition, self.repetitions = done + 1, repetition.next_look(rule, done)
        self.results.clear()

    def known(self) -> Known | None:
        """What the finished repetitions found."""
        return None if self.near_fps is None else Known(self.near_fps, self.values[0])

    def learn(self, found: Found) -> None:
        """What the repetition found."""
        for values, one in zip(self.values, _by_goal(found), strict=True):
            values.append(one.value_fps)
        self.near_fps = found.value_fps or found.above_fps


class ThroughputConditions(WithTimeout, Searched):
    """What a throughput is measured for."""


class Throughput:
    """The procedure (:class:`dutperf.procedures.bench.Procedure`).

    Raises:
        PlanError: rates that contradict each other, or percentages of an unknown maximum.
    """

    def __init__(self, plan: Plan[ThroughputConditions]) -> None:
        self._plan = plan
        self._conditions = plan.conditions
        self._bounds = {
            size: searches.bounds(plan.conditions, plan.maximum_fps(size)) for size in plan.conditions.frame_sizes
        }
        for limits in self._bounds.values():
            searches.make(self._conditions, limits)  # what cannot be is said before anything is sent
        self._trials_of_later_searches: list[int] = []

    def description(self) -> dict[str, Any]:
        """See :meth:`dutperf.procedures.bench.Procedure.description`."""
        return {
            "search": searches.description(self._conditions),
            "frames": [self._frame(size) for size in self._bounds],
        }

    def run(self, bench: Bench) -> str | None:
        """See :meth:`dutperf.procedures.bench.Procedure.run`. Ends before its time where the DUT
        forwards nothing."""
        for index, (size, limits) in enumerate(self._bounds.items()):
            message = self._measure(
                bench, _Point(size, limits, self._conditions.frame_timeout_ms), len(self._bounds) - index - 1
            )
            if message is not None:
                return message
        return None

    def _measure(self, bench: Bench, point: _Point, sizes_left: int) -> str | None:
        rule = self._conditions.repetitions
        point.values = tuple([] for _ in self._conditions.loss_goals())
        while repetition.stopped(rule, *point.values) is None:
            point.begin(rule)
            seed = f"{self._conditions.seed} {point.frame_size} {point.repetition}"
            search = searches.make(self._conditions, point.bounds, point.known(), seed)
            self._search(bench, point, search, sizes_left)
            found = search.found()
            message = _explanation(found, point)
            bench.record("search", **_ended(found, point))
            point.learn(found)
            value = _number(found.value_fps, self._conditions.passing())
            note = f"repetition {point.repetition}: {value}; {message}{_ending(rule, point)}"
            bench.say(note, self._place(point, search, sizes_left))
            if found.silent:
                return message
        return None

    def _search(self, bench: Bench, point: _Point, search: Search, sizes_left: int) -> None:
        while (rate_fps := search.next_fps()) is not None:
            asked = {"question": searches.question(self._conditions, point.bounds, rate_fps)}
            result = bench.measure(
                rate_fps, self._place(point, search, sizes_left), methodcaller("model_copy", update=asked)
            )
            outcome = outcome_of(result, self._conditions)
            if outcome is not Outcome.PASSED or rate_fps not in point.results:
                point.results[rate_fps] = result
            search.tell(outcome, searches.loss_of(result))
        if point.near_fps is not None:
            self._trials_of_later_searches.append(len(search.found().loads))

    def _place(self, point: _Point, search: Search, sizes_left: int) -> Place:
        later = self._later_trials(point.repetitions - point.repetition, sizes_left)
        return Place(
            frame_size=point.frame_size,
            repetition=point.repetition,
            repetitions=point.repetitions,
            lower_fps=search.lower_fps,
            upper_fps=search.upper_fps,
            trials_left=0 if search.found().silent else search.trials_left() + later,
            duration_s=search.next_duration_s(),
        )

    def _later_trials(self, repetitions_left: int, sizes_left: int) -> int:
        """Estimate of the trials of all searches after the running one."""
        later = (
            fmean(self._trials_of_later_searches)
            if self._trials_of_later_searches
            else searches.typical_later_trials(self._conditions)
        )
        return round(
            later * repetitions_left
            + sizes_left * (TYPICAL_TRIALS + later * (repetition.next_look(self._conditions.repetitions, 0) - 1))
        )

    def _frame(self, frame_size: int) -> dict[str, Any]:
        limits = self._bounds[frame_size]
        resolution = (
            {"resolution_fps": limits.resolution.fps}
            if limits.resolution.fps
            else {"resolution_percent": limits.resolution.share * 100}
        )
        return {
            **frame_limits(self._plan, frame_size, limits.first_fps),
            "minimum_fps": searches.lowest_fps(self._conditions, limits),
            "maximum_fps": limits.maximum_fps,
            "initial_fps": limits.initial_fps,
            **resolution,
        }


def _ended(found: Found, point: _Point) -> dict[str, Any]:
    """The members of a ``search`` event; with loss goals, the first one's and then ``goals``, those
    of each."""
    goals = [
        {"loss_ratio": goal.loss_ratio, "conditional_fps": goal.conditional_fps, **_finding(goal.found, point)}
        for goal in found.goals
    ]
    where = {"frame_size": point.frame_size, "repetition": point.repetition}
    return {**where, "silent": found.silent, **_finding(found, point), **({"goals": goals} if goals else {})}


def _finding(found: Found, point: _Point) -> dict[str, Any]:
    return {
        "value_fps": found.value_fps,
        "limited_by": found.limited_by,
        "above_fps": found.above_fps,
        "loads": [[rate_fps, outcome] for rate_fps, outcome in found.loads],
        "message": _explanation(found, point),
    }


def _by_goal(found: Found) -> list[Found]:
    """What was found for each loss goal; for the only one, what was found."""
    return [goal.found for goal in found.goals] or [found]


def _ending(rule: Rule, point: _Point) -> str:
    """What is to be said of a rule that has decided."""
    stopped = repetition.stopped(rule, *point.values)
    return f"; no further repetition: {stopped}" if stopped is not None and not isinstance(rule, int) else ""


def _explanation(found: Found, point: _Point) -> str:
    """Why the value is what it is, in a sentence."""
    above_fps = found.above_fps
    if above_fps is None:
        highest = f"{point.bounds.highest_fps:,} frames/s"
        return (
            f"the media's maximum of {highest} passed"
            if found.limited_by is LimitedBy.MEDIA
            else f"the maximum rate of the search, {highest}, passed"
        )
    result = point.results[above_fps]
    if found.silent:
        return evidence.silence(result)
    if found.limited_by is LimitedBy.TESTER:
        return f"limited by the tester at {above_fps:,} frames/s: {evidence.invalidity(result)}"
    failed = f"at {above_fps:,} frames/s {evidence.losses(result, point.frame_timeout_ms)}"
    if result.proven_failed is not None:
        failed += f"; the tester was disturbed, and {result.proven_failed}"
    return failed if found.value_fps is not None else f"nothing passed, down to the minimum rate: {failed}"


def _number(value_fps: int | None, passing: str) -> str:
    number = "no value" if value_fps is None else f"{value_fps:,} frames/s"
    return f"{number} ({passing})" if passing else number


class Above(Value):
    """The lowest trial that failed right above a value: what happens when the DUT has too much."""

    rate_fps: int
    forward: Loss | None = None
    reverse: Loss | None = None

    def sentence(self) -> str:
        """When and where frames were lost; empty where none was."""
        told = [
            f"{name} lost {one.sentence()}"
            for name, one in (("forward", self.forward), ("reverse", self.reverse))
            if one is not None and one.sentence()
        ]
        return f"what happened just above it, at {self.rate_fps:,} frames/s: {'. '.join(told)}" if told else ""


class Goal(Value):
    """What was found for one loss goal of a search for several (RFC 9971)."""

    loss_ratio: float
    """Share of a direction's frames that a trial may lose."""
    throughput_fps: Statistics
    conditional_throughput_fps: Statistics
    """What was forwarded at the values."""
    limited_by: LimitedBy
    message: str
    above: Above | None
    inconsistent: tuple[Contradiction, ...]


class ThroughputPoint(points.LimitedPoint):
    """A frame size and its throughput."""

    title: ClassVar[str] = "throughput, frames/s per direction"
    columns: ClassVar[Row] = ("median", "p1", "p99", "dispersion", "limited by")
    implied: ClassVar[Sequence[str]] = ("*conditional_throughput_fps", "goals.0.*")

    throughput_fps: Statistics
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    above: Above | None
    inconsistent: tuple[Contradiction, ...]
    """Loads that passed above one that failed, or the other way round, over all repetitions."""
    repetitions: Repetitions
    goals: tuple[Goal, ...]
    """Where the search had loss goals: each one's figures; ``throughput_fps`` and the like are the
    first one's."""
    trials: Trials

    @property
    def finished(self) -> int:
        """See :class:`dutperf.results.points.Point`."""
        return len(self.throughput_fps.values)

    @property
    def has_number(self) -> bool:
        """See :class:`dutperf.results.points.Point`."""
        return self.throughput_fps.median is not None

    def rows(self) -> list[Row]:
        """See :class:`dutperf.results.points.Point`."""
        figures = self.throughput_fps
        dispersion = "-" if figures.dispersion_percent is None else f"{figures.dispersion_percent:.2f} %"
        return [
            (
                *(cell(rate, ",.0f") for rate in (figures.median, figures.p1, figures.p99)),
                dispersion,
                self.limited_by or "-",
            )
        ]

    def remarks(self) -> Iterator[str]:
        """What happened above it, how sure the median is, what was found for each loss goal, and
        where the DUT contradicted itself."""
        above = "" if self.above is None else self.above.sentence()
        yield from (
            f": {text}"
            for text in (
                above,
                self.repetitions.certainty(self.throughput_fps),
                inconsistency.sentence(self.inconsistent),
            )
            if text
        )
        for goal in self.goals:
            figures, of = goal.throughput_fps, f", at most {goal.loss_ratio * 100:g} % lost: "
            median = "no throughput" if figures.median is None else f"{figures.median:,.0f} frames/s{figures.within()}"
            yield f"{of}{median}, limited by {goal.limited_by}: {goal.message}"
            if goal.inconsistent:
                yield of + inconsistency.sentence(goal.inconsistent)

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        """See :class:`dutperf.results.points.Point`."""
        frame = next(frame for frame in conditions["ranges"] if frame["frame_size"] == self.frame_size)
        above_fps = (self.throughput_fps.p99 or 0.0) if self.above is None else self.above.rate_fps
        return max(1.0, float(frame.get("resolution_fps") or frame["resolution_percent"] / 100 * above_fps))

    @classmethod
    def charts(cls, points: Sequence[Self], frames: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The rates over the frame size with the media's theoretical line (RFC 2544 26.1), and each
        repetition's value."""
        theory = charts.theoretical(frames)
        beyond = [
            (float(point.frame_size), point.throughput_fps.median or 0.0) for point in points if point.limited_by_tester
        ]
        doubtful = Curve(
            "limited by the tester, not the DUT",
            tuple(size for size, _ in beyond),
            tuple(fps for _, fps in beyond),
            kind="rings",
        )
        curves = (*_curves(points), *([doubtful] if doubtful.x else []), *([theory] if theory else []))
        scale = charts.scale_of(y for curve in curves for y in curve.y)
        over_sizes = Chart(
            name="",
            title="Throughput over frame size",
            x_label="frame size, bytes",
            y_label="throughput, frames/s per direction",
            curves=curves,
            caption=charts.bars()
            + ("" if theory else " The media's theoretical maximum is not known (virtual links have none)."),
            x_scale="octaves",
            y_scale=scale,
            y_range=(0 if scale == "linear" else None, None),
        )
        return (
            over_sizes,
            charts.repetitions(
                "Throughput", over_sizes.y_label, [(point.frame_size, point.throughput_fps.values) for point in points]
            ),
        )


def _curves(points: Sequence[ThroughputPoint]) -> list[Curve]:
    """One for each loss goal; without goals, one."""
    goals = [
        [(point.frame_size, f"at most {goal.loss_ratio * 100:g} % lost", goal.throughput_fps) for goal in point.goals]
        for point in points
    ]
    found = [one for each in goals for one in each] or [
        (point.frame_size, "measured", point.throughput_fps) for point in points
    ]
    labels = dict.fromkeys(label for _, label, _ in found)
    return [
        charts.with_bars(label, [(size, (of.median, of.p1, of.p99)) for size, named, of in found if named == label])
        for label in labels
    ]


def point(recorded: Recorded) -> ThroughputPoint:
    """The point that the journal holds (:data:`dutperf.results.points.PointBuilder`)."""
    found, results, rule = recorded.of("search"), recorded.of("result"), recorded.conditions.repetitions
    decisive = repeated_searches.decisive(found, ABOVE)
    repetitions = _repetitions(found, rule)
    steady = repeated_searches.without_waits(results, recorded.of("wait"))
    return ThroughputPoint(
        frame_size=recorded.frame["frame_size"],
        frame_size_ipv4=recorded.frame["frame_size_ipv4"],
        throughput_fps=_statistics(found, "value_fps", rule),
        limited_by=None if decisive is None else decisive["limited_by"],
        passing=recorded.conditions.passing(),
        message=repeated_searches.message(found, ABOVE) + recorded.shortfall(len(found), repetitions.stopped),
        above=_above(found, steady),
        inconsistent=_inconsistent(found),
        repetitions=repetitions,
        goals=tuple(_goal(one, steady, rule) for one in _goals(found)),
        trials=points.trials(results),
    )


def _statistics(found: list[Event], member: str, rule: Rule) -> Statistics:
    values = tuple(search[member] for search in found)
    if not values or any(
        search["silent"] for search in found
    ):  # a DUT that has died has no throughput, whatever it did before
        return without_number(values)
    return statistics(values, rule)


def _repetitions(found: list[Event], rule: Rule) -> Repetitions:
    series = [[one["value_fps"] for one in goal] for goal in _goals(found)] or [
        [search["value_fps"] for search in found]
    ]
    alive = not any(search["silent"] for search in found)
    return Repetitions(finished=len(found), stopped=repetition.stopped(rule, *series) if alive else None)


def _goals(found: list[Event]) -> list[list[Event]]:
    """The findings of all repetitions for each loss goal, in the form of ``search`` events."""
    return [
        [{**search, **goal} for search, goal in zip(found, goals, strict=True)]
        for goals in zip(*(search.get("goals", []) for search in found), strict=True)
    ]


def _goal(findings: list[Event], results: list[Event], rule: Rule) -> Goal:
    decisive = repeated_searches.decisive(findings, ABOVE)
    assert decisive is not None, "a goal stands in a search event"
    return Goal(
        loss_ratio=decisive["loss_ratio"],
        throughput_fps=_statistics(findings, "value_fps", rule),
        conditional_throughput_fps=_statistics(findings, "conditional_fps", rule),
        limited_by=decisive["limited_by"],
        message=repeated_searches.message(findings, ABOVE),
        above=_above(findings, results),
        inconsistent=_inconsistent(findings),
    )


def _inconsistent(found: list[Event]) -> tuple[Contradiction, ...]:
    return contradictions((rate_fps, outcome) for search in found for rate_fps, outcome in search["loads"])


def _above(searches: list[Event], results: list[Event]) -> Above | None:
    """The lowest of the failed trials that stand right above a repetition's value; of several at
    that rate, the one that lost most."""
    wanted = {(search["repetition"], search["above_fps"]) for search in searches}
    failed = [
        (event["rate_fps"], result)
        for event in results
        if (event["repetition"], event["rate_fps"]) in wanted
        and (result := journal.recorded_result(event["result"])).verdict is Verdict.VALID
    ]
    if not failed:
        return None
    rate_fps, result = min(failed, key=lambda trial: (trial[0], -trial[1].worst_loss_ratio))
    return Above(rate_fps=rate_fps, **points.losses(result))


def _usual_repetitions(facts: Facts) -> str | None:
    """RFC 2544 26.1 asks for none, RFC 8219 for several; who publishes throughput takes as many as
    for the delays."""
    few = deviations.few_repetitions(facts)
    return few and f"{few}, which are usual; several are recommended"


RULES = deviations.rules(
    Clause("RFC 2544 section 26.1", deviations.loss),
    Clause("RFC 2544 section 26.1", deviations.frame_timeout),
    Clause("RFC 8219 section 12", _usual_repetitions),
)


PROCEDURE = Definition(
    name="throughput",
    summary=(
        "Search for the highest rate at which the DUT loses nothing (RFC 2544 26.1), and say why the number can be"
        " believed."
    ),
    conditions=ThroughputConditions,
    make=Throughput,
    point=point,
    rules=RULES,
)
