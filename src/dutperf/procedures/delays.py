# SPDX-License-Identifier: Apache-2.0
"""Base of latency, packet delay variation and inter-packet delay variation (RFC 8219 7.2, 7.3):
trials with time stamps at a given rate.

The rate is the throughput measured before (RFC 8219 7.2), or the user's. Each repetition is one
valid trial with figures for each direction. Reported are median, 1st and 99th percentile over the
repetitions. A valid trial that lost frames still has figures: a lost frame counts as the largest
delay, so that losing frames cannot make a DUT look fast.

A figure's error: each delay is kept within 0.0125 %. Of n stamped frames the quantile of rank s is,
in 95 % of all trials, one of a rank within 2 * sqrt(s (1 - s) / n) of s: with 50,000 of them the
99.9th percentile is one between the 99.87th and the 99.93rd, the median between the 49.6th and
50.4th.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import copysign
from statistics import fmean, median
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dutperf.journal import RepetitionFinding, ResultEvent, TrialEvent
from dutperf.judge.validity import DUT_CORE_TAKEN_LIMIT
from dutperf.model import (
    LEFT_AND_RIGHT,
    Case,
    Clocks,
    DelayChanges,
    DelaysFiles,
    Direction,
    DirectionCounts,
    LimitedBy,
    Load,
    NicArrivals,
    Sparse,
    StampCounts,
    Trial,
    TrialResult,
    Value,
    Verdict,
    shown_directions,
    to_json,
)
from dutperf.model import Delays as DelaysOf
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.rates import rate_of, throughput_otherwise
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import MainFigure, Recorded, Row, Trials
from dutperf.results.statistics import MedianInterval, Repetitions, median_interval, percentiles
from dutperf.setup.conditions import (
    AtThroughput,
    Calibrated,
    Conditions,
    DelayFiles,
    Steady,
    WithConnections,
    WithDuration,
    WithFlowsApart,
    WithPattern,
    WithStamps,
    WithTolerance,
)
from dutperf.statistics import intervals
from dutperf.statistics import stopping as repetition
from dutperf.statistics.stopping import Rule, Stopped


@dataclass(frozen=True)
class Kind:
    """One way to evaluate delays."""

    name: str
    headline: str
    """The figure whose median, in each direction, decides whether another repetition is needed."""
    figures: Callable[[DirectionCounts], dict[str, float] | None]
    """A direction's figures of one trial, name to milliseconds; None where no frame had a delay."""
    stamp: Callable[[Trial, Any], Trial]
    """Adds the time stamps that this needs to the trial. Raises PlanError."""
    mean: bool = False
    """Whether the mean over the repetitions is the result (RFC 2544 26.2), not the median (RFC 8219
    section 12)."""
    latencies: frozenset[str] = frozenset()
    """The figures that contain the tester's own delay; it cancels out in a difference of delays."""


class DelaysFinding(Sparse, RepetitionFinding):
    sparse: ClassVar[Sequence[str]] = ("in_sum_ms",)

    event: Literal["delays"] = "delays"
    loss_ratio: float
    """Of the worse direction."""
    figures_ms: dict[Direction, dict[str, float] | None]
    """By direction and name; None: no frame of the direction had a delay."""
    stamped_lost: int
    by_tester_ms: dict[Direction, dict[str, float] | None] = Field(default_factory=dict)
    """How much of each figure the tester's own loops may have added; without a direction where an older engine does
    not say."""
    in_sum_ms: dict[str, float] | None = None
    """Over the delays of all paths of named ports together; None also where the figures are no delays."""


class DelayConditions(
    WithConnections,
    AtThroughput,
    DelayFiles,
    WithDuration,
    WithTolerance,
    WithPattern,
    WithStamps,
    WithFlowsApart,
    Steady,
):
    """Conditions of a measurement of delays at the throughput."""


class Delays(Procedure[DelayConditions]):
    """A procedure of delays (:class:`dutperf.procedures.base.Procedure`). Raises PlanError: no rate to measure at, or a
    trial that cannot carry the time stamps."""

    has_single_figure = True

    def __init__(self, kind: Kind, plan: Plan[Any]) -> None:
        super().__init__(plan)
        self.name = kind.name
        self._kind = kind
        self._rates = {case: rate_of(plan, case) for case in self.cases}
        for case in self.cases:  # raises PlanError before anything is sent
            self.first_trial(case)
            self._subtracted(case)

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._rates[case])

    def limits(self, case: Case) -> dict[str, Any]:
        return {"rate_fps": self._rates[case]} | self._subtracted(case)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        stamped = self._kind.stamp(super().trial(case, load, number, duration_s), self.conditions)
        if self.conditions.delays_to is None:
            return stamped
        stem = f"{self.conditions.delays_to}/{self.name}{self.conditions.mix}/trial-{stamped.trial:05}"
        files: dict[str, Any] = {
            direction.value: f"{stem}-{direction.replace('->', '-to-')}.npy" for direction in stamped.streams()
        }
        return stamped.model_copy(update={"delays_files": DelaysFiles(**files)})

    def stopped(self, prior: Prior) -> Stopped | None:
        return _stopped(self.conditions, self._kind, prior)

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> DelaysFinding:
        """Without figures where no trial was valid,
        or nothing came through."""
        result = self.measure(bench, self.first_load(place.case), place)
        members, directions = self.read(result)
        return DelaysFinding(
            **members,
            loss_ratio=result.worst_loss_ratio,
            figures_ms={direction: self._kind.figures(counts) for direction, counts in directions.items()},
            stamped_lost=sum(counts.stamped_sent - counts.stamped_received for counts in directions.values()),
            by_tester_ms={
                direction: self._kind.figures(of_tester)
                for direction, counts in directions.items()
                if (of_tester := _of_tester(counts)) is not None
            },
            in_sum_ms=self._in_sum(result) if directions else None,
        )

    def _in_sum(self, result: TrialResult) -> dict[str, float] | None:
        """The figures over the frames of all paths, of figures that delays have without an order."""
        if result.in_sum is None:
            return None
        of_all = {"delay_us": result.in_sum.delay_us, "ipdv_us": None}
        return self._kind.figures(next(iter(result.directions().values())).model_copy(update=of_all))

    def _subtracted(self, case: Case) -> dict[str, Any]:
        """The delay to subtract from this case's latencies, where the conditions ask for it."""
        if not (isinstance(self.conditions, Calibrated) and self.conditions.subtract_calibration):
            return {}
        stamps, calibration = self.conditions.stamps, self.plan.calibration
        if stamps == "auto":
            raise PlanError("needs `stamps` loop, kernel or card: each has a floor", option="subtract_calibration")
        floor = None if calibration is None else calibration.floor(self.first_trial(case).longest_frame, stamps)
        if calibration is None or floor is None:
            by = "" if stamps == "loop" else f" by the time stamps of {stamps}"
            raise PlanError(
                f"this tester's own delay on such ports{by} is unknown: run dutperf selftest first",
                option="subtract_calibration",
            )
        own = Subtracted(delay_ms=floor.typical_us / 1000, frame_size=floor.frame_size, date=calibration.date)
        return {"subtracted": own.model_dump()}


def _of_tester(counts: DirectionCounts) -> DirectionCounts | None:
    """Counts whose delays are the tester's share of those that were measured: a kind's figures of them are its share
    of the figures. None: unknown."""
    delay, change = counts.delay_us, counts.ipdv_us
    if delay is None or delay.by_tester is None:
        return None
    shares: dict[str, Any] = {"delay_us": DelaysOf(min=0, **dict(delay.by_tester)), "ipdv_us": None}
    if change is not None and change.by_tester is not None:
        shares["ipdv_us"] = DelayChanges(**dict(change.by_tester))
    return counts.model_copy(update=shares)


class Subtracted(Value):
    """The tester's own typical delay, which was subtracted from each latency."""

    delay_ms: float
    frame_size: int
    """Frame size at which it was measured, in bytes incl. FCS."""
    date: str

    def sentence(self) -> str:
        return (
            f"; the tester's own delay of {self.delay_ms:.4f} ms (its median with {self.frame_size} bytes, calibrated"
            f" {self.date}) is subtracted from latencies"
        )


class TrialsFiles(DelaysFiles):
    repetition: int
    trial: int
    unwritten: int
    """Delays that are missing in the files."""
    errors: tuple[str, ...]
    """The system's write errors."""


class Figures(Value):
    """One figure over the repetitions, in milliseconds."""

    mean: float | None
    """Only where it is the result."""
    median: float
    p1: float
    p99: float
    dispersion_percent: float | None
    median_interval: MedianInterval | None
    """None also with too few repetitions: 95 % need six."""
    values: tuple[float, ...]
    by_tester: float | None = None
    """How much of the result the tester's own loops may have added, at most; None: unknown, of an older engine."""

    @property
    def typical(self) -> float:
        """The mean where it is the result, else the median."""
        return self.median if self.mean is None else self.mean

    def cells(self) -> Row:
        means = () if self.mean is None else (self.mean,)
        values = map(points.measured, (*means, self.median, self.p1, self.p99))
        return (*values, "-" if self.dispersion_percent is None else f"{self.dispersion_percent:.2f} %")


class DelaysPoint(Sparse, points.DirectionsPoint[Figures]):
    """A case, the rate it was measured at, and each direction's figures by name."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    columns: ClassVar[Row] = ("figure", "median", "p1", "p99", "dispersion", "limited by")
    sparse: ClassVar[Sequence[str]] = ("paths", "in_sum")
    lost_are: ClassVar[str] = "they count as the largest delay that they could have had"
    what: ClassVar[str]
    """The quantity, as at the beginning of a plot's title."""
    plotted: ClassVar[Mapping[str, str]]
    """Figures that are plotted over the cases, and their meaning."""

    rate_fps: int
    subtracted: Subtracted | None = None
    """None: latencies are as measured."""
    forward: dict[str, Figures] | None = None
    reverse: dict[str, Figures] | None = None
    paths: dict[Direction, dict[str, Figures]] | None = None
    """Of each path of named ports."""
    in_sum: dict[str, Figures] | None = None
    """Over the delays of all paths together."""
    limited_by: LimitedBy | None
    """``tester`` where it could not measure at this rate."""
    headline: str
    """The figure whose median decided whether another repetition was needed."""
    repetitions: Repetitions
    stamped_lost: int
    """Frames with a time stamp that were lost, in all repetitions."""
    tester_stall_ms: float
    """Longest loop stall of the tester in these trials; a delay may include as much."""
    dut_core_taken: float | None
    """Largest share (0-1) of the DUT's core that other processes took in a trial; None: the DUT is
    not on this machine."""
    loop_stamps_because: str | None = None
    """Why the kernel did not time the delays though it was to where it can; None: it did, or was not to."""
    receive_timestamps: NicArrivals | None = None
    """Of all valid trials; None: delays end when the tester's loop polls, or are by other stamps."""
    stamps: StampCounts | None = None
    """Of all valid trials; None: the tester's loops, or a NIC, timed the delays."""
    clocks: Clocks | None = None
    """Of the valid trial in which they were compared worst; None: an older engine."""
    delays_files: tuple[TrialsFiles, ...]
    """Of the trials behind the figures, where every delay was to be written."""
    trials: Trials

    def main_figure(self) -> MainFigure:
        figure = super().main_figure()
        return MainFigure(f"{figure.text} at {Load.fps(self.rate_fps)}", figure.spread)

    def of_all_paths(self) -> dict[str, Figures] | None:
        return self.in_sum

    def remarks(self) -> Iterator[str]:
        """The number of repetitions, why they ended, the
        headline's interval, and losses."""
        if self.repetitions.finished:
            within = [
                f"{direction} {text}"
                for direction, all_ in self.directions().items()
                if (text := _within(all_[self.headline]))
            ]
            yield f": {self.repetitions.after()}" + (
                f" the median {self.headline} lies within {', '.join(within)}" if within else ""
            )
        if self.stamped_lost:
            yield f": {self.stamped_lost:,} stamped frames were lost: {self.lost_are}"
        disturbed = [*self._tester_stalled(), *self._dut_disturbed()]
        if self.has_number and disturbed:
            yield f": {', '.join(disturbed)}: the largest delays may include as much"
        yield from self._timed_by()
        unwritten = sum(files.unwritten for files in self.delays_files)
        if unwritten:
            why = (
                ", ".join(sorted({error for files in self.delays_files for error in files.errors}))
                or "writing did not keep up"
            )
            yield f": {unwritten:,} delays are missing in the delay files ({why}); the figures include all of them"

    def _timed_by(self) -> Iterator[str]:
        if self.receive_timestamps is not None:
            yield self.receive_timestamps.sentence()
        if self.stamps is not None:
            yield self.stamps.sentence()
        if self.clocks is not None:
            yield self.clocks.sentence()
        if self.loop_stamps_because is not None:
            yield f": delays are by the tester's loops: {self.loop_stamps_because}"

    def _tester_stalled(self) -> Iterator[str]:
        if self.stamps is None:
            yield f"a loop of the tester stalled for {self.tester_stall_ms:.3f} ms at most"

    def _dut_disturbed(self) -> Iterator[str]:
        taken = self.dut_core_taken or 0.0
        if taken > DUT_CORE_TAKEN_LIMIT:
            yield f"other processes took up to {taken:.0%} of the core of the DUT"

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The figures over the cases, and each repetition's headline figure, by direction."""
        used = [direction for point in points for direction in point.directions()]
        active = [direction for direction in shown_directions(used) if direction in used]
        figures = [
            (f"{direction}, {name}", point.case, (of.typical, of.p1, of.p99))
            for direction in active
            for name in cls.plotted
            for point in points
            if direction in point.directions()
            for of in (point.directions()[direction][name],)
        ]
        meanings = "; ".join(f"{name}: {meaning}" for name, meaning in cls.plotted.items())
        over = charts.over_cases(
            cls.what, f"{', '.join(cls.plotted)}, ms", figures, caption=f"{meanings}. {charts.bars(cls.columns[1])}"
        )
        return (*over, *(cls._repetitions(points, direction) for direction in active))

    @classmethod
    def _repetitions(cls, points: Sequence[Self], direction: Direction) -> Chart:
        values = [
            (point.case, point.directions()[direction][points[0].headline].values)
            for point in points
            if direction in point.directions()
        ]
        return charts.repetitions(
            f"{cls.what}, {direction},", f"{points[0].headline}, ms", values, name=f"repetitions-{direction}"
        )


def _within(figures: Figures) -> str:
    interval = figures.median_interval
    return (
        ""
        if interval is None
        else f"{interval.low:.4f} to {interval.high:.4f} ms ({interval.confidence * 100:g} % confidence)"
    )


def point_builder(kind: Kind, point: type[DelaysPoint]) -> Callable[[Recorded], DelaysPoint]:
    """Returns the builder of such points (:data:`dutperf.results.points.PointBuilder`)."""

    def build(recorded: Recorded) -> DelaysPoint:
        events = recorded.of(DelaysFinding)
        subtracted = _subtracted(recorded)
        dead = any(event.not_forwarding for event in events)
        usable = [_subtract(event, subtracted, kind) for event in events if event.valid and not dead]
        beyond = any(not event.valid for event in events)
        stopped = _stopped(recorded.conditions, kind, events)
        return point(
            case=recorded.case,
            rate_fps=recorded.limits["rate_fps"],
            subtracted=subtracted,
            **({} if beyond else _by_direction(usable, kind, recorded.conditions.every.repetitions)),
            limited_by=points.unmeasured_by(recorded.of(ResultEvent)) if beyond else None,
            headline=kind.headline,
            repetitions=Repetitions(finished=len(events), stopped=stopped),
            stamped_lost=sum(event.stamped_lost for event in usable),
            **_disturbance(recorded),
            receive_timestamps=_nic_arrivals(recorded),
            stamps=StampCounts.of(_of_directions(recorded, "stamps")),
            clocks=max(
                _of_directions(recorded, "clocks"),
                key=lambda one: (one.error_us, abs(one.step_us or 0.0)),
                default=None,
            ),
            loop_stamps_because=next(
                (because for one in _valid_results(recorded) if (because := one.loop_stamps_because) is not None), None
            ),
            delays_files=_files(recorded),
            trials=points.trials(recorded.of(ResultEvent)),
            message=_message(recorded, events, stopped) + ("" if subtracted is None else subtracted.sentence()),
        )

    return build


def _by_direction(events: Sequence[DelaysFinding], kind: Kind, rule: Rule) -> dict[str, Any]:
    directions = shown_directions(direction for event in events for direction in event.figures_ms)
    each = {direction: _over_repetitions(events, direction, kind, rule) for direction in directions}
    if directions == LEFT_AND_RIGHT:
        return {direction.value: figures for direction, figures in each.items()}
    in_sum = _named([event.in_sum_ms for event in events], kind, rule)
    return {"paths": {direction: figures for direction, figures in each.items() if figures}, "in_sum": in_sum}


def _subtracted(recorded: Recorded) -> Subtracted | None:
    member = recorded.limits.get("subtracted")
    return None if member is None else Subtracted.model_validate(member)


def _subtract(event: DelaysFinding, subtracted: Subtracted | None, kind: Kind) -> DelaysFinding:
    """The event with the tester's delay subtracted from its latencies. The journal keeps them as
    measured."""
    figures_ms = {
        direction: figures and _without_own(figures, subtracted, kind)
        for direction, figures in event.figures_ms.items()
    }
    in_sum_ms = event.in_sum_ms and _without_own(event.in_sum_ms, subtracted, kind)
    return event.model_copy(update={"figures_ms": figures_ms, "in_sum_ms": in_sum_ms})


def _without_own(figures: dict[str, float], subtracted: Subtracted | None, kind: Kind) -> dict[str, float]:
    if subtracted is None:
        return figures
    own_ms = dict.fromkeys(kind.latencies, subtracted.delay_ms)
    return {name: value - own_ms.get(name, 0.0) for name, value in figures.items()}


def of_stream(kind: Kind) -> Callable[[Recorded, DirectionCounts], dict[str, float] | None]:
    """Returns how this evaluates the delays of a stream (:data:`dutperf.results.streams.Delays`)."""

    def figures(recorded: Recorded, counts: DirectionCounts) -> dict[str, float] | None:
        of_trial = kind.figures(counts)
        return of_trial and _without_own(of_trial, _subtracted(recorded), kind)

    return figures


def _nic_arrivals(recorded: Recorded) -> NicArrivals | None:
    arrivals = _of_directions(recorded, "receive_timestamps")
    if not arrivals:
        return None
    sums = {name: sum(getattr(one, name) for one in arrivals) for name in ("by_nic", "by_poll", "impossible")}
    return NicArrivals(**sums, uncertainty_us=max(one.uncertainty_us for one in arrivals))


def _of_directions(recorded: Recorded, member: str) -> list[Any]:
    """Those of the directions of valid trials that have it."""
    directions = (counts for result in _valid_results(recorded) for counts in result.directions().values())
    return [value for counts in directions if (value := getattr(counts, member)) is not None]


def _valid_results(recorded: Recorded) -> list[TrialResult]:
    return [event.result for event in recorded.of(ResultEvent) if event.result.verdict is Verdict.VALID]


def _disturbance(recorded: Recorded) -> dict[str, Any]:
    """Disturbances that the delays of the valid trials may include."""
    results = _valid_results(recorded)
    counted = [counts for result in results for counts in result.directions().values()]
    stall_us = [max(one.stall_us.sender, one.stall_us.receiver, one.waited_us or 0.0) for one in counted]
    taken = [result.dut_core_taken for result in results if result.dut_core_taken is not None]
    return {"tester_stall_ms": max(stall_us, default=0.0) / 1000, "dut_core_taken": max(taken, default=None)}


def _files(recorded: Recorded) -> tuple[TrialsFiles, ...]:
    """Files of each repetition's last trial, where it was valid."""
    last = {event.repetition: event for event in recorded.of(ResultEvent)}
    paths = {(event.repetition, event.trial.trial): event.trial.delays_files for event in recorded.of(TrialEvent)}
    valid = [
        (event, paths[event.repetition, event.trial])
        for event in last.values()
        if event.result.verdict is Verdict.VALID
    ]
    return tuple(_trials_files(event, files) for event, files in valid if files is not None)


def _trials_files(event: ResultEvent, files: DelaysFiles) -> TrialsFiles:
    counted = [one.delays_file for one in event.result.directions().values()]
    written = [one for one in counted if one is not None]
    return TrialsFiles(
        **to_json(files),
        repetition=event.repetition,
        trial=event.trial,
        unwritten=sum(one.unwritten for one in written),
        errors=tuple(one.error for one in written if one.error),
    )


def _stopped(conditions: Conditions, kind: Kind, events: Sequence[DelaysFinding]) -> Stopped | None:
    """Why no further repetition is needed after those of ``events``; None where one is, or where
    the DUT forwarded nothing."""
    if any(event.not_forwarding for event in events):
        return None
    if any(not event.valid for event in events):
        return Stopped.VOID
    named = [direction for direction in (events[0].figures_ms if events else ()) if not direction.is_of_two]
    figures = [
        [event.figures_ms.get(direction) for event in events] for direction in named or conditions.every.active()
    ]
    return repetition.stopped(
        conditions.every.repetitions,
        *([None if one is None else one[kind.headline] for one in each] for each in figures),
    )


def _message(recorded: Recorded, events: Sequence[DelaysFinding], stopped: Stopped | None) -> str:
    """The rate, and the message of the worst repetition: one without figures, else the one that
    lost most."""
    without = [event for event in events if event.not_forwarding or not event.valid]
    by_loss = without or sorted(events, key=lambda event: event.loss_ratio)
    worst = by_loss[-1].message if by_loss else "not measured"
    return f"at {Load.fps(recorded.limits['rate_fps'])}: {worst}" + recorded.shortfall(len(events), stopped)


def _over_repetitions(
    events: Sequence[DelaysFinding], direction: Direction, kind: Kind, rule: Rule
) -> dict[str, Figures] | None:
    """A direction's figures; None where it was not active, or in some repetition no frame had a
    delay."""
    figures = [event.figures_ms.get(direction) for event in events]
    return _named(figures, kind, rule, [event.by_tester_ms.get(direction) for event in events])


def _named(
    of_events: Sequence[dict[str, float] | None],
    kind: Kind,
    rule: Rule,
    shares: Sequence[dict[str, float] | None] = (),
) -> dict[str, Figures] | None:
    each = [named for named in of_events if named is not None]
    if not each or len(each) < len(of_events):
        return None
    figures = {name: _figures([one[name] for one in each], rule) for name in each[0]}
    if kind.mean:
        figures = {name: one.model_copy(update={"mean": fmean(one.values)}) for name, one in figures.items()}
    known = [one for one in shares if one is not None]
    if len(known) < len(each):
        return figures
    own = {name: _by_tester(one, [share[name] for share in known]) for name, one in figures.items()}
    return {name: one.model_copy(update={"by_tester": own[name]}) for name, one in figures.items()}


def _by_tester(figure: Figures, shares_ms: Sequence[float]) -> float:
    """The share of the result, from that of each repetition's value: what is left would have been the result."""
    left = [value - copysign(share, value) for value, share in zip(figure.values, shares_ms, strict=True)]
    return abs(figure.typical - (median(left) if figure.mean is None else fmean(left)))


def _figures(values: list[float], rule: Rule) -> Figures:
    figures = percentiles(values)
    # A share of zero or of a negative median is meaningless.
    dispersion = intervals.dispersion_percent(values) if figures["median"] > 0 else None
    return Figures(
        mean=None,
        **figures,
        dispersion_percent=dispersion,
        median_interval=median_interval(values, rule),
        values=tuple(values),
    )


def _at_given_rate(facts: Facts) -> str | None:
    return "measured at a given rate, not at a measured throughput" if facts.conditions.rate is not None else None


def _subtraction(facts: Facts) -> str | None:
    if not facts.conditions.subtract_calibration:
        return None
    own_ms = sorted({frame["subtracted"]["delay_ms"] for frame in facts.frames})
    return (
        f"the tester's own typical delay ({', '.join(f'{one:.4f}' for one in own_ms)} ms) is subtracted from latencies;"
        " no clause has this"
    )


AT_THROUGHPUT = (
    Clause("RFC 8219 sections 7.2, 7.3", _at_given_rate),
    Clause("RFC 8219 sections 7.2, 7.3", throughput_otherwise),
    Clause("RFC 8219 sections 7.2, 7.3", deviations.few_repetitions),
)
SUBTRACTED = Clause("RFC 8219 sections 7.2, 7.3", _subtraction)
