# SPDX-License-Identifier: Apache-2.0
"""What recovery and reset share: each repetition is one valid trial in which something happens to
the DUT, and each direction shows how long it took.

A direction that shows no time says why: nothing happened (``not_caused``), or it was not over when
the trial ended (``not_over``). One repetition that was not over takes the figures away: without it
they would flatter the DUT. Those in which nothing happened are left out, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dutperf.journal import Event
from dutperf.model import Direction, DirectionCounts, LimitedBy, Trial, Value, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.bench import Bench, Place, Plan, fixed_repetitions, frame_limits
from dutperf.procedures.during import During
from dutperf.results import charts, points
from dutperf.results.charts import Chart
from dutperf.results.points import PointBuilder, Recorded, Row, Trials
from dutperf.results.statistics import percentiles
from dutperf.statistics.stopping import Stopped

Rates = Mapping[str, int]
"""A frame size's rates by name, in frames/s per direction; ``rate_fps`` is the one that trials
begin with."""


class Reading(Value):
    """What a direction of one trial shows."""

    outcome: Literal["measured", "not_caused", "not_over"]
    times_s: dict[str, float] = Field(default_factory=dict)
    """In seconds, by the method; where ``measured``."""
    remark: str = ""
    """Why there is none."""


@dataclass(frozen=True)
class Kind:
    """One thing that may happen to a DUT."""

    name: str
    """Of the procedure, and of the journal's event of a repetition."""
    rates: Callable[[Plan[Any], int], Rates]
    """Of a frame size. Raises PlanError."""
    amend: Callable[[Trial, Any, Rates], Trial]
    read: Callable[[DirectionCounts, Any, Rates], Reading]
    said: Callable[[Rates], str]
    """At which rates, for a person."""
    during: Callable[[Plan[Any]], During | None] = lambda _plan: None
    """Raises PlanError."""


class TimesProcedure:
    """A procedure of times (:class:`dutperf.procedures.bench.Procedure`).

    Raises:
        PlanError: rates that are not known, or times that do not fit into a trial.
    """

    def __init__(self, kind: Kind, plan: Plan[Any]) -> None:
        self._kind = kind
        self._plan = plan
        self._repetitions = fixed_repetitions(plan.conditions)
        self._during = kind.during(plan)
        self._rates = {size: kind.rates(plan, size) for size in plan.conditions.frame_sizes}
        for size, rates in self._rates.items():
            kind.amend(plan.make_trial(size, rates["rate_fps"], 0), plan.conditions, rates)

    def description(self) -> dict[str, Any]:
        """See :meth:`dutperf.procedures.bench.Procedure.description`."""
        frames = [{**frame_limits(self._plan, size, rates["rate_fps"]), **rates} for size, rates in self._rates.items()]
        return {"search": {"algorithm": "none"}, "frames": frames}

    def run(self, bench: Bench) -> str | None:
        """See :meth:`dutperf.procedures.bench.Procedure.run`. Ends before its time where the DUT
        forwards nothing."""
        for sizes_done, size in enumerate(self._rates):
            events, later = list[Event](), (len(self._rates) - sizes_done - 1) * self._repetitions
            while _stopped(events, self._repetitions) is None:
                left = self._repetitions - len(events) + later
                place = Place(
                    size, len(events) + 1, self._repetitions, lower_fps=None, upper_fps=None, trials_left=left
                )
                events.append(self._measure(bench, place))
                bench.record(self._kind.name, **events[-1])
                if events[-1]["silent"]:
                    return str(events[-1]["message"])
        return None

    def _measure(self, bench: Bench, place: Place) -> Event:
        """The members of a repetition's event."""
        rates, conditions = self._rates[place.frame_size], self._plan.conditions
        result = bench.measure(
            rates["rate_fps"], place, lambda trial: self._kind.amend(trial, conditions, rates), self._during
        )
        valid = result.verdict is Verdict.VALID
        silence = evidence.silence(result) if valid and evidence.silent_directions(result) else None
        usable = result.directions() if valid and silence is None else {}
        return {
            "frame_size": place.frame_size,
            "repetition": place.repetition,
            "valid": valid,
            "silent": silence is not None,
            "message": silence or (evidence.losses(result) if valid else evidence.invalidity(result)),
            "readings": {
                direction.value: self._kind.read(counts, conditions, rates).model_dump(mode="json")
                for direction, counts in usable.items()
            },
        }


def _stopped(events: Sequence[Event], repetitions: int) -> Stopped | None:
    """Why no further repetition is needed; None where one is. One that is not valid takes all
    figures away, and so does one that was not over anywhere."""
    if any(not event["valid"] for event in events):
        return Stopped.VOID
    voided = {
        name for event in events for name, reading in event["readings"].items() if reading["outcome"] == "not_over"
    }
    if events and voided >= set(events[0]["readings"]):
        return Stopped.VOID
    return Stopped.NUMBER if len(events) >= repetitions else None


class Times(Value):
    """Over the repetitions that showed a time, in seconds."""

    median: float
    mean: float
    """RFC 2544 26.5 reports the average."""
    p1: float
    p99: float
    values: tuple[float, ...]

    def cells(self) -> Row:
        """See :class:`dutperf.results.points.Figures`."""
        return tuple(map(points.measured, (self.median, self.mean, self.p1, self.p99)))


class TimesPoint(points.DirectionsPoint[Times]):
    """A frame size, its rates, and each direction's times by method."""

    columns: ClassVar[Row] = ("time", "median", "mean", "p1", "p99", "limited by")

    rates_fps: dict[str, int]
    forward: dict[str, Times] | None = None
    reverse: dict[str, Times] | None = None
    outcomes: dict[str, dict[str, int]]
    """By direction: how many repetitions were ``measured``, ``not_caused``, ``not_over``."""
    limited_by: LimitedBy | None
    """``tester`` where it could not measure at these rates."""
    repetitions: int
    """Finished ones."""
    trials: Trials

    @property
    def finished(self) -> int:
        """See :class:`dutperf.results.points.Point`."""
        return self.repetitions

    @classmethod
    def charts(cls, points: Sequence[Self], frames: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The times over the frame size."""
        del frames
        names = dict.fromkeys(name for point in points for name in point.named())
        over = {
            name: [(float(point.frame_size), times) for point in points if (times := point.named().get(name))]
            for name in names
        }
        curves = [
            charts.with_bars(name, [(size, (times.median, times.p1, times.p99)) for size, times in each])
            for name, each in over.items()
        ]
        what, _, meaning = cls.title.partition(", s: ")
        over_sizes = Chart(
            name="",
            title=f"{what.capitalize()} over frame size",
            x_label="frame size, bytes",
            y_label="time, s",
            curves=tuple(curves),
            caption=f"{meaning[0].upper()}{meaning[1:]}. {charts.bars()}",
            x_scale="octaves",
            y_scale=charts.scale_of(y for curve in curves for y in curve.y),
        )
        return (over_sizes,)


def point_builder(kind: Kind, point: type[TimesPoint]) -> PointBuilder:
    """Makes such points from the journal."""

    def build(recorded: Recorded) -> TimesPoint:
        events = recorded.of(kind.name)
        rule = fixed_repetitions(recorded.conditions)
        beyond = any(not event["valid"] for event in events)
        readings = {direction.value: _readings(events, direction) for direction in recorded.conditions.active()}
        rates = {
            name: recorded.frame[name]
            for name in recorded.frame
            if name.endswith("_fps") and name != "media_maximum_fps"
        }
        return point(
            frame_size=recorded.frame["frame_size"],
            frame_size_ipv4=recorded.frame["frame_size_ipv4"],
            rates_fps=rates,
            **({} if beyond else {direction: _times(of_one) for direction, of_one in readings.items()}),
            outcomes={direction: _outcomes(of_one) for direction, of_one in readings.items()},
            limited_by=LimitedBy.TESTER if beyond else None,
            repetitions=len(events),
            trials=points.trials(recorded.of("result")),
            message=(
                f"{kind.said(rates)}:"
                f" {_message(events, readings)}{recorded.shortfall(len(events), _stopped(events, rule))}"
            ),
        )

    return build


def _readings(events: Sequence[dict[str, Any]], direction: Direction) -> list[Reading]:
    return [
        Reading.model_validate(event["readings"][direction.value])
        for event in events
        if direction.value in event["readings"]
    ]


def _outcomes(readings: Sequence[Reading]) -> dict[str, int]:
    return {
        outcome: sum(reading.outcome == outcome for reading in readings)
        for outcome in ("measured", "not_caused", "not_over")
    }


def _times(readings: Sequence[Reading]) -> dict[str, Times] | None:
    measured = [reading.times_s for reading in readings if reading.outcome == "measured"]
    if not measured or any(reading.outcome == "not_over" for reading in readings):
        return None
    by_name = {name: [times[name] for times in measured] for name in measured[0]}
    return {
        name: Times(**percentiles(values), mean=fmean(values), values=tuple(values)) for name, values in by_name.items()
    }


def _message(events: Sequence[dict[str, Any]], readings: Mapping[str, list[Reading]]) -> str:
    """What speaks against the figures: repetitions without a result, else directions without a
    time, else nothing."""
    without = [event["message"] for event in events if event["silent"] or not event["valid"]]
    if without or not events:
        return str(without[-1]) if without else "not measured"
    said = [text for direction, of_one in readings.items() for text in _exceptions(direction, of_one)]
    return "; ".join(said) or f"every repetition showed a time ({len(events)} of them)"


def _exceptions(direction: str, readings: Sequence[Reading]) -> list[str]:
    found = []
    for outcome in ("not_over", "not_caused"):
        remarks = [reading.remark for reading in readings if reading.outcome == outcome]
        if remarks:
            found.append(f"{direction}: in {len(remarks)} of {len(readings)} repetitions {remarks[0]}")
    return found
