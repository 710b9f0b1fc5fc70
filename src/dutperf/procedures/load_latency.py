# SPDX-License-Identifier: Apache-2.0
"""Load-latency: delay, its variation, and loss at shares of the throughput. No clause asks for it: RFC 8219
7.2 and 7.3 measure at the throughput alone, where the queues of a DUT are about to fill.

Each load has a trial in which every frame is stamped. Load 0 is lone frames: each has the DUT to itself.
Delays are those of the frames that arrived; the loss stands beside them.

A load's error: the rate is a whole number of frames/s. Below the throughput the delays of a work-conserving
DUT grow with its utilisation, so an error of the throughput moves the loads near 100 % most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.lab.refdut import Properties
from dutperf.model import Case, Delays, Direction, LimitedBy, Load, Stamping, Trial, TrialResult, Value, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import DELAY_MS, Figure, KnownTruth, delayed, of_delays
from dutperf.procedures.rates import rate_of, throughput_otherwise
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import LossAndDelays, MainFigure, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics
from dutperf.search.binary import HIGHEST
from dutperf.setup.conditions import (
    AtThroughput,
    Repetitions,
    Steady,
    WithDuration,
    WithFlowsApart,
    WithPattern,
    WithStamps,
    WithTolerance,
)
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option

LONE_FPS = 100
"""Rate of lone frames at most: 10 ms apart, longer than a frame stays in a DUT without a queue."""
HIGHEST_LOAD = 1000
"""In % of the throughput."""


class LoadLatency(AtThroughput, WithDuration, WithTolerance, WithPattern, WithStamps, WithFlowsApart, Steady):
    """Conditions of a load-latency measurement."""

    loads: Annotated[
        Given[Annotated[tuple[float, ...], Field(min_length=1, max_length=100)], Sequence[float] | str],
        Option(
            "Offered loads, in % of the throughput; 0: lone frames",
            label="offered loads, % of the throughput",
            metavar="PERCENT,…",
        ),
    ] = default((0.0, 10.0, 50.0, 90.0, 100.0))
    repetitions: Repetitions = default(1)

    @field_validator("loads", mode="before")
    @classmethod
    def _of_a_list(cls, given: Any) -> Any:
        return [one.strip().removesuffix("%") for one in given.split(",")] if isinstance(given, str) else given

    @field_validator("loads")
    @classmethod
    def _ascending(cls, loads: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= load <= HIGHEST_LOAD for load in loads):
            raise ValueError(f"offered loads are 0 to {HIGHEST_LOAD} % of the throughput")
        if len(set(loads)) < len(loads):
            raise ValueError("the same load twice: list each once")
        return tuple(sorted(loads))


def rates_of(loads: Sequence[float], throughput_fps: int, media_fps: int | None) -> tuple[int, ...]:
    """The rate of each of the ascending loads, in frames/s; ``media_fps`` is the media's maximum (None: unknown).
    Raises PlanError: two loads are the same rate, or a load is not possible."""
    rates = tuple(max(1, round(throughput_fps * load / 100)) for load in loads)
    if not loads[0]:
        rates = (min(LONE_FPS, max(1, rates[1] // 2)) if rates[1:] else LONE_FPS, *rates[1:])
    limit_fps = min(media_fps or HIGHEST, HIGHEST)
    if rates[-1] > limit_fps:
        raise PlanError(
            f"{loads[-1]:g} % of {throughput_fps:,} frames/s are above the highest rate, {limit_fps:,}", option="loads"
        )
    for number in range(1, len(rates)):
        if rates[number] <= rates[number - 1]:
            text = f"{loads[number]:g} % of {throughput_fps:,} frames/s are {rates[number]:,} frames/s: not more than"
            before = "lone frames" if not loads[number - 1] else f"{loads[number - 1]:g} %"
            raise PlanError(f"{text} {before}, {rates[number - 1]:,}", option="loads")
    return rates


def _lone(trial: Trial) -> Trial:
    """The trial with frames at even intervals, those of each path between those of the others."""
    streams = trial.streams()
    apart_ns = 1_000_000_000 // max(one.rate_fps for one in streams.values()) // len(streams)
    return trial.with_streams(
        {
            way: one.with_rate(one.rate_fps).model_copy(update={"begin_ns": number * apart_ns or None})
            for number, (way, one) in enumerate(streams.items())
        }
    )


class DelayFigures(Value):
    """Delays of a direction in a trial, in µs, of the frames that arrived."""

    min: float
    p50: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, delays: Delays) -> Self:
        return cls(**{name: getattr(delays, name) for name in cls.model_fields})

    @property
    def pdv(self) -> float:
        """Packet delay variation (RFC 8219 7.3.1, without lost frames)."""
        return self.p999 - self.min


class Reading(Value):
    """What the trial at a load showed; empty where none was valid."""

    rate_fps: int
    valid: bool
    loss_ratio: dict[Direction, float]
    delay_us: dict[Direction, DelayFigures]
    """Without a direction of which no frame arrived."""
    message: str


class LoadsFinding(RepetitionFinding):
    """What the loads of a repetition showed, in ascending order."""

    event: Literal["loads"] = "loads"
    readings: tuple[Reading, ...]


class LoadLatencyProcedure(Procedure[LoadLatency]):
    def __init__(self, plan: Plan[LoadLatency]) -> None:
        super().__init__(plan)
        self._throughput = {case: rate_of(plan, case) for case in self.cases}
        self._rates = {
            case: rates_of(plan.conditions.loads, self._throughput[case], plan.traffic.maximum_fps(case))
            for case in self.cases
        }

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._rates[case][0])

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "series", "order": "ascending", "ends": "with the highest load"}

    def limits(self, case: Case) -> dict[str, Any]:
        return {"throughput_fps": self._throughput[case], "rates_fps": list(self._rates[case])}

    def trials_of(self, *, first: bool) -> float:
        return len(self.conditions.loads)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        trial = super().trial(case, load, number, duration_s).model_copy(update={"stamping": Stamping.EVERY})
        return trial if self.conditions.loads[0] or load != self.first_load(case) else _lone(trial)

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> LoadsFinding:
        """One series. A DUT that forwards nothing at the first
        load ends it."""
        readings: list[Reading] = []
        rates_fps = self._rates[place.case]
        for number, rate_fps in enumerate(rates_fps):
            result = self.measure(bench, Load.fps(rate_fps), place.within(len(rates_fps) - number))
            if not readings and evidence.forwards_nothing(result):
                return LoadsFinding(readings=(), not_forwarding=True, message=self.no_forwarding(result))
            if self.is_hopeless:
                readings += [_read(each, result) for each in rates_fps[number:]]
                break
            readings.append(_read(rate_fps, result))
        valid = any(reading.valid for reading in readings)
        return LoadsFinding(readings=tuple(readings), valid=valid, message=None if valid else readings[-1].message)

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        slowest = [
            (reading.rate_fps, max(delays.p50 for delays in reading.delay_us.values()))
            for reading in done[-1].readings
            if reading.delay_us
        ]
        if slowest:
            (low, at_low), (high, at_high) = slowest[0], slowest[-1]
            text = f"median delay {at_low:,.0f} µs at {low:,} frames/s, {at_high:,.0f} µs at {high:,}"
            bench.say(f"repetition {place.repetition}: {text}", place)


def _read(rate_fps: int, result: TrialResult) -> Reading:
    valid = result.verdict is Verdict.VALID
    directions = result.directions() if valid else {}
    return Reading(
        rate_fps=rate_fps,
        valid=valid,
        loss_ratio={direction: counts.loss_ratio for direction, counts in directions.items()},
        delay_us={
            direction: DelayFigures.of(delays)
            for direction, counts in directions.items()
            if (delays := counts.delay_us) is not None
        },
        message=evidence.losses(result) if valid else evidence.invalidity(result),
    )


# --- over the repetitions -------------------------------------------------------------------------


class AtLoad(LossAndDelays):
    """A load, all repetitions together."""

    share_percent: float
    """Of the throughput; 0: lone frames."""
    load: Load
    loss_ratio: dict[Direction, Statistics]
    """Lost frames as a share of those sent."""
    delay_us: dict[Direction, dict[str, Statistics]]
    """``min``, ``p50``, ``p99``, ``p999``, ``max`` and ``pdv`` (D99.9 - Dmin, RFC 8219 7.3.1) of the frames that
    arrived. Without a direction of which a repetition had none."""
    limited_by: LimitedBy | None
    """``tester`` where it could not measure this load in one of the repetitions; without figures then."""
    trials: Trials


class LoadLatencyPoint(points.Point):
    """A case, and its delays and losses at each load."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    title: ClassVar[str] = "load-latency: delay of the slower direction in µs, loss of the worse one"
    columns: ClassVar[Row] = ("load", "rate", "lost", "min", "median", "p99", "p99.9", "PDV", "limited by")

    series: ClassVar[str | None] = "loads"
    implied: ClassVar[Sequence[str]] = ("*.pdv",)

    throughput_fps: int
    """Of which the loads are shares."""
    loads: tuple[AtLoad, ...]
    limited_by: LimitedBy | None
    """``tester`` where it could measure none of the loads."""
    repetitions: int
    """Finished ones."""
    trials: Trials

    @property
    def has_number(self) -> bool:
        return any(at.loss_ratio for at in self.loads)

    def main_figure(self) -> MainFigure:
        """The median delays of the highest and the lowest load."""
        measured = [at for at in self.loads if at.loss_ratio]
        lowest, highest = measured[0], measured[-1]
        others = f", {_median(lowest)} {_where(lowest)}" if len(measured) > 1 else ""
        whose = " in the slower direction" if len(highest.delay_us) > 1 else ""
        return MainFigure(f"{_median(highest)} median delay{whose} {_where(highest)}{others}")

    def rows(self) -> list[Row]:
        return [_row(at) for at in self.loads]

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        return (_delay_chart(points), _loss_chart(points))


def _row(at: AtLoad) -> Row:
    share = f"{at.share_percent:g}%" if at.share_percent else "lone"
    lost = "-" if at.worst_loss_ratio is None else f"{100 * at.worst_loss_ratio:.3g}%"
    figures = (cell(at.worst_us(name), ",.1f") for name in ("min", "p50", "p99", "p999", "pdv"))
    return (share, f"{at.load.value:,}", lost, *figures, "" if at.limited_by is None else at.limited_by.value)


def _median(at: AtLoad) -> str:
    return f"{cell(at.worst_us('p50'), ',.1f')} µs"


def _where(at: AtLoad) -> str:
    return f"at {at.share_percent:g} % of the throughput" if at.share_percent else "with lone frames"


def _delay_chart(points: Sequence[LoadLatencyPoint]) -> Chart:
    curves = [
        charts.line(charts.of_case(point.case, label, several=len(points) > 1), delays)
        for point in points
        for name, label in (
            ("min", "minimum"),
            ("p50", "median"),
            ("p99", "99th percentile"),
            ("p999", "99.9th percentile"),
        )
        if (delays := [(at.share_percent, us) for at in point.loads if (us := at.worst_us(name)) is not None])
    ]
    return Chart(
        name="",
        title="Delay over the load",
        x_label="load, % of the throughput",
        y_label="delay of the slower direction, µs",
        curves=tuple(curves),
        caption=(
            f"0 %: lone frames, at most {LONE_FPS} frames/s. Of the frames that arrived. The tester's own sending and"
            " receiving is included."
        ),
        x_range=(0, None),
        y_scale=charts.scale_of(y for curve in curves for y in curve.y),
    )


def _loss_chart(points: Sequence[LoadLatencyPoint]) -> Chart:
    curves = [
        charts.line(charts.of_case(point.case, str(direction), several=len(points) > 1), losses)
        for point in points
        for direction in (point.loads[0].loss_ratio if point.loads else ())
        if (
            losses := [
                (at.share_percent, 100 * (at.loss_ratio[direction].median or 0.0))
                for at in point.loads
                if direction in at.loss_ratio
            ]
        )
    ]
    return Chart(
        name="loss",
        title="Frame loss over the load",
        x_label="load, % of the throughput",
        y_label="frames lost, %",
        curves=tuple(curves),
        x_range=(0, None),
        y_range=(0, None),
    )


def point(recorded: Recorded) -> LoadLatencyPoint:
    found, results = recorded.of(LoadsFinding), recorded.of(ResultEvent)
    dead = next((one.message for one in found if one.not_forwarding), None)
    usable = found if dead is None else []
    rates_fps: list[int] = recorded.limits["rates_fps"]
    loads = tuple(
        _at(share, [one.readings[number] for one in usable], recorded, Load.fps(rate_fps))
        for number, (share, rate_fps) in enumerate(zip(recorded.conditions.loads, rates_fps, strict=True))
        if usable
    )
    nothing = bool(loads) and all(at.limited_by is not None for at in loads)
    without = [] if nothing else points.without_figures([(at.load, at.limited_by) for at in loads])
    return LoadLatencyPoint(
        case=recorded.case,
        throughput_fps=recorded.limits["throughput_fps"],
        loads=loads,
        limited_by=points.unmeasured_by(results) if nothing else None,
        repetitions=len(found),
        trials=points.trials(results),
        message="; ".join([dead or _message(usable), *without]) + recorded.shortfall(len(found)),
    )


def _at(share: float, readings: Sequence[Reading], recorded: Recorded, load: Load) -> AtLoad:
    results = [event for event in recorded.of(ResultEvent) if event.load == load]
    rule = recorded.conditions.every.repetitions
    valid = all(reading.valid for reading in readings)
    directions = list(readings[0].loss_ratio) if valid else []
    answered = [way for way in directions if all(way in reading.delay_us for reading in readings)]
    return AtLoad(
        share_percent=share,
        load=load,
        loss_ratio={way: statistics([one.loss_ratio[way] for one in readings], rule) for way in directions},
        delay_us={
            way: {
                name: statistics([getattr(one.delay_us[way], name) for one in readings], rule)
                for name in (*DelayFigures.model_fields, "pdv")
            }
            for way in answered
        },
        limited_by=None if valid else points.unmeasured_by(results or recorded.of(ResultEvent)),
        trials=points.trials(results),
    )


def _message(found: Sequence[LoadsFinding]) -> str:
    """Of the load whose trial lost most, or could not be measured."""
    readings = [reading for one in found for reading in one.readings]
    if not readings:
        return "not measured"
    worst = max(readings, key=lambda one: (not one.valid, max(one.loss_ratio.values(), default=0.0)))
    return f"at {Load.fps(worst.rate_fps)}: {worst.message}"


def _other_loads(facts: Facts) -> str | None:
    del facts
    return "measured at offered loads beside the throughput; lost frames do not count as delays"


RULES = deviations.rules(
    Clause("RFC 8219 sections 7.2, 7.3", _other_loads),
    Clause("RFC 8219 sections 7.2, 7.3", throughput_otherwise),
    Clause("RFC 8219 sections 7.2, 7.3", deviations.few_repetitions),
)


# --- a DUT whose truth is known ------------------------------------------------------------------


def _delay_at_loads() -> Figure:
    """The DUT delays every frame by as much, at each load."""

    def read(point: Any) -> Iterator[float | None]:
        return (delays["p50"].median / 1000 for at in point.loads for delays in at.delay_us.values())

    return Figure("median delay at each load", "ms", DELAY_MS, 0.1 * DELAY_MS, read, delayed)


def _known_truth() -> KnownTruth:
    return of_delays(Properties(delay_ms=DELAY_MS), _delay_at_loads(), loads=(0, 50, 100))


PROCEDURE = Definition(
    name="load-latency",
    summary="Measure delay and loss at shares of the throughput.",
    chapter=Chapter.LOADS,
    example="--lab kernel-ipv4 --rate 20k --loads 0,10,50,90,100,120 --duration 10 --pattern poisson",
    known_truth=_known_truth,
    conditions=LoadLatency,
    make=LoadLatencyProcedure,
    point=point,
    rules=RULES,
)
