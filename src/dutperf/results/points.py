# SPDX-License-Identifier: Apache-2.0
"""Base of the points in every procedure's summary, and the journal's data of one case from which a
point is made.

Repetitions are summarised as RFC 8219 section 12 asks: median, 1st and 99th percentile. Rates are
in frames/s per direction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import Field

from dutperf.journal import Event, Finding, RepetitionFinding, ResultEvent, WaitEvent, end_of, of_kind
from dutperf.journal.events import LocatedT
from dutperf.judge.setup_faults import limit_of
from dutperf.model import Case, Direction, DirectionCounts, LimitedBy, Load, TrialResult, Value, Verdict
from dutperf.results import beside, charts, loss
from dutperf.results.charts import Chart, Mark
from dutperf.results.statistics import Missing, Repetitions, Statistics, statistics, without_number
from dutperf.spelling import with_and
from dutperf.statistics.stopping import Stopped

Row = tuple[str, ...]
"""Cells of a table for a person."""
LIMITS = {
    LimitedBy.DUT: "the DUT",
    LimitedBy.TESTER: "the tester, not the DUT",
    LimitedBy.SETUP: "the test setup, which does not fit",
    LimitedBy.CONNECTIONS: "connections that the DUT did not open",
    LimitedBy.RANGE: "the search range",
    LimitedBy.MEDIA: "the media",
}
"""What a figure is ``limited by``, for a person."""


@dataclass(frozen=True)
class MainFigure:
    """The figure of a point that a reader looks for first."""

    text: str
    """With its unit: ``53,113 frames/s per direction``."""
    spread: str = ""
    """Lowest and highest value of the repetitions: ``46,250–53,788``; empty: they are not told."""

    @classmethod
    def of(cls, figures: Statistics, unit: str, form: str = ",.0f") -> MainFigure:
        """The median, in the format ``form``."""
        return cls(f"{cell(figures.median, form)} {unit}", spread(figures.values, lambda value: format(value, form)))


class Loss(Value):
    """Loss of a direction in a trial."""

    lost: int
    loss_ratio: float
    dut_input_drops: int
    """Of the lost frames, those that the link could not hand to the DUT."""
    late: int
    """Of the lost frames, those that arrived after the frame timeout."""
    when: str | None = None
    """In words; None where all frames arrived, even if late."""
    where: dict[str, int] = Field(default_factory=dict)
    """See :func:`dutperf.results.loss.where`."""
    kinds: dict[str, int] = Field(default_factory=dict)
    """Lost frames of each kind, where there are several: stream and size."""
    dut: dict[str, int] | None = None
    """Frames that the DUT itself counted as lost, by cause; None: it has no loss counters, or see ``dut_unknown``."""
    dut_unknown: str | None = None
    """Why they are not known of this trial, or not of all DUTs in a row."""
    asked: tuple[str, ...] = ()
    """What ARP and Neighbour Discovery at the ports say, in words."""
    beside: str = ""
    """See :func:`dutperf.results.beside.of_counts`."""

    def sentence(self) -> str:
        """When and where, for a person; empty where nothing was lost."""
        places = {name: count for name, count in self.where.items() if name != loss.ELSEWHERE}
        return "; ".join(
            text
            for text in (
                self.when,
                ", ".join(f"{count:,} of {name}" for name, count in self.kinds.items() if count),
                loss.where_in_words(places, valid=True),
                loss.counted_in_words(self.lost, self.dut, self.dut_unknown),
                "; ".join(self.asked) if self.lost else "",
                self.beside and f"also arrived: {self.beside}",
            )
            if text
        )


class Trials(Value):
    """Number of trials by verdict."""

    valid: int
    invalid: int
    aborted: int


class Point(Value, ABC):
    """A case and its results. A member ``limited_by`` states what limits the whole point,
    ``repetitions`` how many were finished."""

    title: ClassVar[str]
    """Title of the table of these points."""
    columns: ClassVar[Row]
    """The table's heads after those of the case; a column that ends in "by" has words, the others
    have figures."""

    marks: ClassVar[Sequence[Mark]] = ()
    """Named quantiles of a trial's delays, by their share of the frames."""
    series: ClassVar[str | None] = None
    """The member whose entries are separate records in an export; None: the point is one record."""
    implied: ClassVar[Sequence[str]] = ()
    """Patterns of the names of figures that follow from others; runs are not compared by these."""
    less_is_better: ClassVar[Sequence[str]] = ()
    """Patterns of the names of figures that are times or losses; of the others, more is better."""
    missing: ClassVar[Mapping[str, Missing]] = {}
    """By patterns of the names of figures, what a repetition without a value says; of the others, that nothing
    passed."""

    case: Case
    pass_criterion: str = ""
    """What a passed trial may have lost, or counted as lost, where it differs from RFC 2544 26.1; it
    applies to every figure of the point."""
    message: str
    """The evidence for the figures, or why there are none."""

    @property
    def repeated(self) -> int:
        """Finished repetitions, as they are told."""
        done: Repetitions | int = getattr(self, "repetitions", 0)
        return done if isinstance(done, int) else done.finished

    @property
    def finished(self) -> int:
        """Finished repetitions, as the RFCs ask for them."""
        return self.repeated

    @property
    def has_number(self) -> bool:
        """Whether there is a result; where not, ``message`` says why."""
        return any(isinstance(of, Statistics) and of.median is not None for _, of in self)

    @property
    def limit(self) -> LimitedBy | None:
        """What limits the whole point; None: nothing does, or it is not known."""
        return getattr(self, "limited_by", None)

    @property
    def limited_in_words(self) -> str:
        """``limited by the DUT``; empty where there is no limit."""
        return "" if self.limit is None else f"limited by {LIMITS[self.limit]}"

    @property
    def without_connections(self) -> bool:
        """Whether nothing was measured because the DUT did not open the connections."""
        return self.limit is LimitedBy.CONNECTIONS

    @property
    def limited_by_tester(self) -> bool:
        """Whether the point shows the tester's limit, not the DUT's."""
        return self.limit is LimitedBy.TESTER

    @property
    def limited_by_setup(self) -> bool:
        """Whether DUT and test setup do not fit."""
        return self.limit is LimitedBy.SETUP

    @property
    def needs_warning(self) -> bool:
        """Whether the reader has to know that the limit is not the DUT's."""
        return self.limited_by_tester or self.limited_by_setup or self.without_connections

    @abstractmethod
    def main_figure(self) -> MainFigure:
        """The figure that a reader looks for first, for a headline; asked for only where ``has_number``."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """The table's cells under ``columns``."""

    def remarks(self) -> Iterable[str]:
        """Further sentences for a person, each in a line of its own that begins with the case; none
        by default."""
        return ()

    def loads_by_stream(self) -> Collection[Load] | None:
        """The loads at which streams have results of their own (:mod:`dutperf.results.streams`); None:
        all that were offered."""
        return None

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        """Largest difference of two equal results because a search ends on a grid, in the unit of
        its values; 0: there is no search.

        ``conditions`` are the summary's.
        """
        return 0.0

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """Plots of a run's points, the main one first; none by default. ``limits`` are those of the
        plan, one for each point."""
        return ()


class FigurePoint(Point):
    """A point about one figure, over its repetitions."""

    figure: ClassVar[str]
    """The member that has it, as :class:`Statistics`."""
    in_headline: ClassVar[str]
    """Its unit and what it is: ``s until an address ages``."""
    form: ClassVar[str] = ",.0f"
    """Its format in a headline."""
    what: ClassVar[str]
    """The quantity, as at the beginning of a plot's title."""
    label: ClassVar[str]
    """Of the axis of its plots."""
    drawn_over_cases: ClassVar[bool] = False
    """Whether it has a plot over the cases, beside that of each repetition's value."""

    @property
    def figures(self) -> Statistics:
        found: Statistics = getattr(self, self.figure)
        return found

    def main_figure(self) -> MainFigure:
        return MainFigure.of(self.figures, self.in_headline, self.form)

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The figure over the cases, with error bars, and each repetition's value."""
        each = [(point.case, point.figures) for point in points]
        drawn = [("measured", case, (of.median, of.p1, of.p99)) for case, of in each if cls.drawn_over_cases]
        return (
            *charts.over_cases(cls.what, cls.label, drawn, caption=charts.bars()),
            charts.repetitions(cls.what, cls.label, [(case, of.values) for case, of in each]),
        )


class RepeatedPoint(FigurePoint):
    """A point whose repetitions have events with a member ``valid`` (:meth:`Recorded.repeated`)."""

    repetitions: int
    """Finished ones."""
    limited_by: LimitedBy | None
    """``tester`` where it could not measure."""


class Figures(Protocol):
    """Figures with cells in a table."""

    @property
    def typical(self) -> float: ...

    @property
    def values(self) -> tuple[float, ...]:
        """One for each repetition."""
        ...

    def cells(self) -> Row:
        """The cells, without the name and the limit."""
        ...


FiguresT = TypeVar("FiguresT", bound=Figures)


class DirectionsPoint(Point, Generic[FiguresT]):
    """A point with named figures for each direction. ``columns`` begins with the name and ends with
    the limit."""

    in_headline: ClassVar[Mapping[str, str]]
    """The figures of a headline, the main one first, with their unit and what they are: ``ms typical``."""

    # Each kind of point declares these itself: the order of the members is that in files.
    if TYPE_CHECKING:
        limited_by: LimitedBy | None
        forward: dict[str, FiguresT] | None
        reverse: dict[str, FiguresT] | None
        paths: dict[Direction, dict[str, FiguresT]] | None

    @property
    def has_number(self) -> bool:
        return bool(self.directions())

    def rows(self) -> list[Row]:
        return [(name, *figures.cells(), "") for name, figures in self.named().items()] or [
            (*("-" for _ in self.columns[1:]), self.limited_by or "-")
        ]

    def main_figure(self) -> MainFigure:
        """Each figure of the direction in which it is the largest."""
        each = self.directions()
        slowest = {name: max(each, key=lambda way: each[way][name].typical) for name in self.in_headline}
        largest = {name: each[way][name] for name, way in slowest.items()}
        texts = [f"{measured(figures.typical)} {self.in_headline[name]}" for name, figures in largest.items()]
        several = " on the slowest path" if self.paths else " in the slower direction"
        whose = "" if len(each) == 1 else several if len(set(slowest.values())) == 1 else f", each{several}"
        return MainFigure(", ".join(texts) + whose, spread(next(iter(largest.values())).values, measured))

    def directions(self) -> dict[Direction, dict[str, FiguresT]]:
        if self.paths is not None:
            return {path: figures for path, figures in self.paths.items() if figures}
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        return {direction: figures for direction, figures in both.items() if figures}

    def of_all_paths(self) -> dict[str, FiguresT] | None:
        """The figures over the frames of all paths of named ports together, if there are any."""
        return None

    def named(self) -> dict[str, FiguresT]:
        """The figures of all directions, and in sum of all paths, by direction and name together."""
        each = {direction.value: figures for direction, figures in self.directions().items()}
        if (in_sum := self.of_all_paths()) is not None:
            each |= {f"{len(each)} paths in sum": in_sum}
        return {
            f"{direction} {name.replace('_', ' ')}": figures
            for direction, named in each.items()
            for name, figures in named.items()
        }


class LossAndDelays(Value):
    """What a load did to the frames, by direction."""

    # Each kind declares these itself: the order of the members is that in files.
    if TYPE_CHECKING:
        loss_ratio: dict[Direction, Statistics]
        delay_us: dict[Direction, dict[str, Statistics]]

    def worst_us(self, name: str) -> float | None:
        """The median of a figure of the slower direction."""
        return max((delays[name].median or 0.0 for delays in self.delay_us.values()), default=None)

    @property
    def worst_loss_ratio(self) -> float | None:
        """The median of the worse direction."""
        return max((ratio.median or 0.0 for ratio in self.loss_ratio.values()), default=None)


def unmeasured_by(results: Sequence[ResultEvent]) -> LimitedBy:
    """Why some of these trials are not valid, by the last of them."""
    invalid = [event.result for event in results if event.result.verdict is not Verdict.VALID]
    return limit_of(invalid[-1]) if invalid else LimitedBy.TESTER


def without_figures(limits: Sequence[tuple[Load, LimitedBy | None]]) -> list[str]:
    """Sentences on the loads of a series, in frames/s, that could not be measured; ``limits``: each with its limit."""
    whys = {
        LimitedBy.TESTER: "the tester, not the DUT, is the limit",
        LimitedBy.SETUP: "DUT and test setup do not fit",
        LimitedBy.CONNECTIONS: "the DUT did not open the connections",
    }
    return [
        f"{why} at {with_and(beyond)} frames/s: no figures there"
        for limit, why in whys.items()
        if (beyond := [f"{load.value:,}" for load, of_load in limits if of_load is limit])
    ]


@dataclass(frozen=True)
class Recorded:
    """The journal's data of one case: ``limits`` is its entry in the plan."""

    case: Case
    limits: Mapping[str, Any]
    events: Sequence[Event]
    conditions: Any
    """Of the procedure's own model."""

    @property
    def too_long(self) -> str | None:
        """Why the case was not measured whose frames are too long for the tester's ports; None where they fit."""
        return self.limits.get("too_long")

    def of(self, kind: type[LocatedT]) -> list[LocatedT]:
        key = self.case.key()
        if issubclass(kind, Finding):
            recorded = (event for event in of_kind(self.events, Finding) if event.event == kind.name())
            return [kind.of(event) for event in recorded if event.case == key]
        return [event for event in of_kind(self.events, kind) if event.case == key]

    def repeated(self, kind: type[RepetitionFinding]) -> dict[str, Any]:
        """The members of a :class:`RepeatedPoint` whose repetitions' events are of that kind."""
        events = self.of(kind)
        valid = all(event.valid for event in events)
        return {
            "case": self.case,
            "message": ("measured" if events else "not measured") + self.shortfall(len(events)),
            "repetitions": len(events),
            "limited_by": None if valid else unmeasured_by(self.of(ResultEvent)),
        }

    def statistics(self, kind: type[Finding], member: str) -> Statistics:
        """Statistics of a member of those events; without a number where one of them has none."""
        values = [getattr(event, member) for event in self.of(kind)]
        number = values and None not in values
        return statistics(values, self.conditions.every.repetitions) if number else without_number(values)

    def shortfall(self, finished: int, stopped: Stopped | None = None) -> str:
        """The end of a message where not all repetitions were finished; ``stopped``: why a rule
        needed no more."""
        if self.too_long is not None:
            return f": {self.too_long}"
        rule = self.conditions.every.repetitions
        if stopped is not None or finished == rule:
            return ""
        wanted = f"{rule}" if isinstance(rule, int) else f"at most {rule.maximum}"
        return f" ({finished} of {wanted} repetitions; {self.early_end()})"

    def early_end(self) -> str:
        """Why the case has fewer repetitions than were wanted, in a clause."""
        key = self.case.key()
        found = (event for event in of_kind(self.events, Finding) if event.case == key)
        if any(getattr(one, "not_forwarding", False) for one in found):
            return "it ended early because the DUT forwards nothing"
        results = [event.result for event in self.of(ResultEvent)]
        if (
            results
            and any(cause.lasts for cause in results[-1].causes)
            and not any(one.verdict is Verdict.VALID for one in results)
        ):
            return "it ended early because another trial would not be valid either"
        return f"the run ended early because {self._end_of_run()}"

    def _end_of_run(self) -> str:
        end = end_of(self.events)
        if end is None:
            return "it was killed or could not write"
        reasons = {
            "interrupted": "it was interrupted",
            "error": f"of an error: {end.message}",
            "ended": "the DUT forwards nothing",
        }
        return reasons.get(end.outcome, "it was stopped")


PointBuilder = Callable[[Recorded], Point]
"""Makes a procedure's point from the journal alone."""


def limits_of(point: Point, conditions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The limits of a point's case, from the conditions of its summary."""
    key = point.case.as_json()
    limits: Mapping[str, Any] = next(one for one in conditions["ranges"] if one["case"] == key)
    return limits


def losses(result: TrialResult) -> dict[str, Loss]:
    asked = tuple(loss.asked_in_words(result))
    return {
        direction.value: _loss(counts, asked).model_copy(
            update={"dut": (result.dut_losses or {}).get(direction), "dut_unknown": result.dut_losses_unknown}
        )
        for direction, counts in result.directions().items()
    }


def without_waits(results: Sequence[ResultEvent], waits: Sequence[WaitEvent]) -> list[ResultEvent]:
    """The ``result`` events without those of trials during which the DUT was down and after which
    it recovered. Those trials were repeated and show nothing about a load."""
    repeated = {(wait.repetition, wait.trial) for wait in waits if wait.answered}
    return [event for event in results if (event.repetition, event.trial) not in repeated]


def trials(results: Iterable[ResultEvent]) -> Trials:
    verdicts = Counter(event.result.verdict for event in results)
    return Trials(**{verdict.value: verdicts[verdict] for verdict in Verdict})


def measured(figure: float) -> str:
    """A measured time in a table: about five digits, which is more than its precision."""
    return f"{figure:.{4 if abs(figure) < 10 else 3 if abs(figure) < 100 else 1}f}"


def spread(values: Sequence[float | None], form: Callable[[float], str]) -> str:
    """The lowest and the highest of the repetitions' values, None being below all; empty where there are no two."""
    if len(values) < 2:
        return ""
    known = [value for value in values if value is not None]
    low, high = ("nothing" if None in values else form(min(known)), form(max(known)) if known else "nothing")
    if low == high:
        return f"each {low}"
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"


def cell(figure: float | None, form: str) -> str:
    """``figure`` in the format ``form``; ``-`` where there is none."""
    return "-" if figure is None else format(figure, form)


def _by_kind(counts: DirectionCounts) -> dict[str, int]:
    kinds = counts.kinds or ()
    return {kind.name or str(number): kind.lost for number, kind in enumerate(kinds)} if len(kinds) > 1 else {}


def _loss(counts: DirectionCounts, asked: tuple[str, ...]) -> Loss:
    return Loss(
        lost=counts.lost,
        loss_ratio=counts.loss_ratio,
        dut_input_drops=counts.dut_input_drops,
        late=counts.late,
        when=loss.when(counts),
        where=loss.where(counts),
        kinds=_by_kind(counts),
        asked=asked,
        beside=beside.of_counts([counts]),
    )
