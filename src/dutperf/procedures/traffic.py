# SPDX-License-Identifier: Apache-2.0
"""Traffic: a trial whose rate is changed while it runs, to find out by hand what a DUT does. No clause asks for it.

A change ends the trial, with its drain, and begins the next one: each part between two changes is a trial with its own
verdict, counts and delays, and what is sent stays a function of that trial. Between two parts nothing is sent for the
receiving time after sending, and for ARP or NDP.

The run ends with a part that nobody ended, or by request. No part is repeated. What was asked for does not follow from
the trials, so each part's finding has the rate of the next one: a run that is resumed goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.lab.refdut import Properties
from dutperf.model import (
    Case,
    Direction,
    DirectionCounts,
    LimitedBy,
    Load,
    Question,
    Stamping,
    Trial,
    TrialResult,
    Unit,
    Value,
    Verdict,
)
from dutperf.procedures import evidence, rates
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import LOST_EVERY, Figure, KnownTruth, fps
from dutperf.procedures.load_latency import DelayFigures
from dutperf.procedures.request import Request
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.points import LossAndDelays, MainFigure, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics
from dutperf.setup.conditions import (
    Conditions,
    Rate,
    WithDuration,
    WithFrameSizes,
    WithPacing,
    WithPattern,
    WithPorts,
    WithStreams,
)
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.rate import OptionalRate
from dutperf.spelling import count_of
from dutperf.statistics.stopping import Stopped

WHOLE = 0.99
"""Share of its planned time after which a part counts as not ended by anyone."""


class Traffic(WithDuration, WithPattern, WithPacing, WithStreams, WithPorts, Conditions, WithFrameSizes):
    """Conditions of traffic whose rate is changed by hand."""

    duration_s: Annotated[
        float,
        Field(ge=0.001, le=86_400),
        Option(
            "Longest time at one rate: without a change the traffic ends then",
            label="longest time at one rate, s",
        ),
    ] = 600.0
    drain_s: Annotated[
        float,
        Field(ge=0, le=3_600),
        Option(
            "Receiving time after each part",
            clause="RFC 2544 section 23: 2",
            label="receiving time after sending, s",
        ),
    ] = 0.5
    rate: Annotated[
        OptionalRate,
        Option(
            "Rate per direction to begin with: frames/s, or % of the maximum",
            label="first rate per direction",
            metavar="RATE",
        ),
    ] = default(None)


class PartOfDirection(Value):
    sent: int
    lost: int
    loss_ratio: float
    delay_us: DelayFigures | None
    """Of the frames that arrived; None: none did."""

    @classmethod
    def of(cls, counts: DirectionCounts) -> Self:
        delays = counts.delay_us
        return cls(
            sent=counts.sent,
            lost=counts.lost,
            loss_ratio=counts.loss_ratio,
            delay_us=None if delays is None else DelayFigures.of(delays),
        )


class PartFinding(RepetitionFinding):
    """What a part showed, and what was asked for then."""

    event: Literal["part"] = "part"
    rate_fps: int
    sending_s: float
    directions: dict[Direction, PartOfDirection]
    """Empty where it was not valid."""
    next_fps: int | None
    """The rate of the next part; None: there is none."""


@dataclass
class _Asked:
    """What was asked for during a part: a rate in frames/s, or 0 for the end."""

    bench: Bench
    case: Case
    plan: Plan[Traffic]
    next_fps: int | None = None

    def is_there(self) -> bool:
        if self.next_fps is None:
            self.next_fps = self.bench.requested(self._fps)
        return self.next_fps is not None

    def _fps(self, request: Request) -> int:
        if request.rate is None:
            return 0
        rate_fps = _possible(self.plan, self.case, request.rate)
        self.plan.traffic.trial(self.case, Load.fps(rate_fps), 0)
        return rate_fps


class TrafficProcedure(Procedure[Traffic]):
    def __init__(self, plan: Plan[Traffic]) -> None:
        super().__init__(plan)
        if plan.conditions.rate is None:
            raise PlanError("is missing: give the rate per direction to begin with", option="rate")
        self._first = {case: _possible(plan, case, plan.conditions.rate) for case in self.cases}

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._first[case])

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "by hand", "ends": "with a part that nobody ended, or by request"}

    def limits(self, case: Case) -> dict[str, Any]:
        return {"rate_fps": self._first[case]}

    def at_least(self, done: int) -> int:
        """The present part."""
        return done + 1

    def stopped(self, prior: Prior) -> Stopped | None:
        return Stopped.NUMBER if prior and prior[-1].next_fps is None else None

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Every frame is stamped, and each part counts as it is."""
        made = super().trial(case, load, number, duration_s)
        return made.model_copy(update={"stamping": Stamping.EVERY, "question": Question(once=True)})

    def _message(self, result: TrialResult) -> str:
        if result.verdict is not Verdict.VALID:
            return evidence.invalidity(result)
        return self.no_forwarding(result) if evidence.dead_directions(result) else evidence.losses(result)

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> PartFinding:
        rate_fps = prior[-1].next_fps if prior else self._first[place.case]
        load, asked = Load.fps(rate_fps), _Asked(bench, place.case, self.plan)
        make = partial(self.trial, place.case, load)
        result = bench.measure(load, place, make, ended_by=asked.is_there)
        if (recorded := bench.recorded(PartFinding)) is not None:
            return recorded
        valid = result.verdict is Verdict.VALID
        return PartFinding(
            valid=valid,
            message=self._message(result),
            rate_fps=rate_fps,
            sending_s=round(_sending_s(result), 6),
            directions={way: PartOfDirection.of(counts) for way, counts in result.directions().items()}
            if valid
            else {},
            next_fps=self._next_fps(asked, rate_fps, result),
        )

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        bench.say(f"part {len(done)}: {_part_in_words(done[-1])}", place)

    def _next_fps(self, asked: _Asked, rate_fps: int, result: TrialResult) -> int | None:
        """A part that someone ended goes on even if what was asked for is lost, as in a run that was killed just then.
        The tester's failure ends it."""
        if asked.is_there():
            return asked.next_fps or None
        was_ended = _sending_s(result) < WHOLE * self.conditions.duration_s
        return rate_fps if was_ended and result.verdict is not Verdict.ABORTED else None


def _possible(plan: Plan[Any], case: Case, rate: Rate) -> int:
    rate_fps = rates.given("rate", rate, plan.traffic.maximum_fps(case))
    assert rate_fps is not None
    return rate_fps


def _sending_s(result: TrialResult) -> float:
    return max((one.send_time_s for one in result.directions().values()), default=0.0)


def _part_in_words(found: PartFinding) -> str:
    medians = [one.delay_us.p50 for one in found.directions.values() if one.delay_us is not None]
    delay = f", median delay {max(medians):,.0f} µs" if medians else ""
    return f"{found.rate_fps:,} frames/s for {found.sending_s:.1f} s: {found.message}{delay}"


# --- results --------------------------------------------------------------------------------------


class AtRate(LossAndDelays):
    """A rate, all its parts together."""

    load: Load
    parts: int
    sending_s: float
    """In sum."""
    sent: int
    lost: int
    """In all directions of the valid parts."""
    loss_ratio: dict[Direction, Statistics]
    """Of the valid parts."""
    delay_us: dict[Direction, dict[str, Statistics]]
    """``min``, ``p50``, ``p99``, ``p999`` and ``max`` of the frames that arrived. Without a direction of which a part
    had none."""
    limited_by: LimitedBy | None
    """``tester`` where no part at this rate was valid."""


class TrafficPoint(points.Point):
    """A case, and what its traffic met at each rate."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    title: ClassVar[str] = "traffic by hand: delay of the slower direction in µs, loss of the worse one"
    columns: ClassVar[Row] = (
        "rate",
        "parts",
        "for, s",
        "lost",
        "lost, %",
        "min",
        "median",
        "p99",
        "p99.9",
        "limited by",
    )
    series: ClassVar[str | None] = "rates"

    rates: tuple[AtRate, ...]
    """Ascending."""
    limited_by: LimitedBy | None
    """``tester`` where no part was valid."""
    trials: Trials

    @property
    def has_number(self) -> bool:
        return any(at.loss_ratio for at in self.rates)

    def main_figure(self) -> MainFigure:
        """The loss over all rates, and the longest median delay of one."""
        measured = [at for at in self.rates if at.loss_ratio]
        lowest, highest = measured[0].load.value, measured[-1].load.value
        lost, sent = sum(at.lost for at in measured), sum(at.sent for at in measured)
        rates = f"{highest:,}" if lowest == highest else f"{lowest:,} to {highest:,}"
        medians = [us for at in measured if (us := at.worst_us("p50")) is not None]
        delay = f", a median delay of {max(medians):,.1f} µs at most" if medians else ""
        frames = f"{lost:,} of {count_of(sent, 'frame')} lost"
        return MainFigure(f"{frames} at {rates} {Unit.FRAMES_PER_SECOND.label}{delay}")

    def rows(self) -> list[Row]:
        return [_row(at) for at in self.rates]

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        of_delays = [
            charts.line(charts.of_case(point.case, label, several=len(points) > 1), delays)
            for point in points
            for name, label in (("min", "minimum"), ("p50", "median"), ("p99", "99th percentile"))
            if (delays := [(at.load.value, us) for at in point.rates if (us := at.worst_us(name)) is not None])
        ]
        of_losses = [
            charts.line(charts.of_case(point.case, "loss", several=len(points) > 1), losses)
            for point in points
            if (
                losses := [
                    (at.load.value, 100 * ratio) for at in point.rates if (ratio := at.worst_loss_ratio) is not None
                ]
            )
        ]
        over_rates = partial(Chart, x_label="rate, frames/s per direction", x_range=(0, None))
        return (
            over_rates(
                name="",
                title="Delay over the rate",
                y_label="delay of the slower direction, µs",
                curves=tuple(of_delays),
                caption="Median of the parts at a rate. The tester's own sending and receiving is included.",
                y_scale=charts.scale_of(y for curve in of_delays for y in curve.y),
            ),
            over_rates(
                name="loss",
                title="Frame loss over the rate",
                y_label="frames lost in the worse direction, %",
                curves=tuple(of_losses),
                y_range=(0, None),
            ),
        )


def _row(at: AtRate) -> Row:
    return (
        f"{at.load.value:,}",
        f"{at.parts:,}",
        f"{at.sending_s:.1f}",
        f"{at.lost:,}" if at.loss_ratio else "-",
        cell(None if at.worst_loss_ratio is None else 100 * at.worst_loss_ratio, ".3g"),
        *(cell(at.worst_us(name), ",.1f") for name in ("min", "p50", "p99", "p999")),
        "" if at.limited_by is None else at.limited_by.value,
    )


def point(recorded: Recorded) -> TrafficPoint:
    found = recorded.of(PartFinding)
    results = recorded.of(ResultEvent)
    rates_fps = sorted({one.rate_fps for one in found})
    early = "" if found and found[-1].next_fps is None else " (the run ended early)"
    return TrafficPoint(
        case=recorded.case,
        rates=tuple(
            _at(rate_fps, [one for one in found if one.rate_fps == rate_fps], results) for rate_fps in rates_fps
        ),
        limited_by=points.unmeasured_by(results) if found and not any(one.valid for one in found) else None,
        trials=points.trials(results),
        message=(f"part {len(found)}: {_part_in_words(found[-1])}" if found else "not measured")
        + (early if recorded.too_long is None else f": {recorded.too_long}"),
    )


def _at(rate_fps: int, found: Sequence[PartFinding], results: Sequence[ResultEvent]) -> AtRate:
    valid = [one.directions for one in found if one.valid]
    directions = list(valid[0]) if valid else []
    delays = {way: [one[way].delay_us for one in valid] for way in directions}
    return AtRate(
        load=Load.fps(rate_fps),
        parts=len(found),
        sending_s=round(sum(one.sending_s for one in found), 6),
        sent=sum(way.sent for one in valid for way in one.values()),
        lost=sum(way.lost for one in valid for way in one.values()),
        loss_ratio={way: statistics([one[way].loss_ratio for one in valid], len(valid)) for way in directions},
        delay_us={
            way: {
                name: statistics([getattr(one, name) for one in of_way if one is not None], len(valid))
                for name in DelayFigures.model_fields
            }
            for way, of_way in delays.items()
            if None not in of_way
        },
        limited_by=None if valid else points.unmeasured_by([one for one in results if one.load.value == rate_fps]),
    )


# --- a DUT whose truth is known ------------------------------------------------------------------


def _loss_of_parts() -> Figure:
    """Every part of traffic by hand loses the same share, in either direction."""

    def read(point: Any) -> Iterator[float | None]:
        return (
            ratio * 100
            for at in point.rates
            for one in at.loss_ratio.values()
            for ratio in one.values
            if ratio is not None
        )

    return Figure("loss of each part", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(loss_every=LOST_EVERY),
        {"rate": fps(2_000), "duration_s": 0.5},
        (_loss_of_parts(),),
    )


PROCEDURE = Definition(
    name="traffic",
    summary="Send at a rate that is changed by hand; show delay and loss.",
    chapter=Chapter.LOADS,
    example="--lab kernel-ipv4 --rate 20k --duration 30 --out results/by-hand",
    simulated={"rate": "30k"},
    known_truth=_known_truth,
    conditions=Traffic,
    make=TrafficProcedure,
    point=point,
    rules=deviations.rules(any_size=False),
)
