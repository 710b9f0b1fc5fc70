# SPDX-License-Identifier: Apache-2.0
"""Base of recovery and reset: each repetition is one valid trial in which something happens to the
DUT, and each direction shows how long it took.

A direction without a time states the reason: nothing happened (``not_caused``), or it was not over
when the trial ended (``not_over``). One repetition that was not over voids the figures, which would
flatter the DUT without it. Repetitions in which nothing happened are left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.model import (
    Case,
    Direction,
    DirectionCounts,
    LimitedBy,
    Load,
    Sparse,
    Trial,
    Value,
)
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, fixed_repetitions
from dutperf.procedures.trial_action import TrialAction
from dutperf.results import charts, points
from dutperf.results.charts import Chart
from dutperf.results.points import PointBuilder, Recorded, Row, Trials
from dutperf.results.statistics import percentiles
from dutperf.setup.conditions import AtThroughput
from dutperf.statistics.stopping import Stopped

Rates = Mapping[str, int]
"""A case's rates by name, in frames/s per direction; ``rate_fps`` is the one that trials
begin with."""


class Reading(Value):
    """The time that a direction of one trial shows."""

    outcome: Literal["measured", "not_caused", "not_over"]
    times_s: dict[str, float] = Field(default_factory=dict)
    """In seconds, by method; where ``measured``."""
    remark: str = ""
    """Why there is none."""


class TimesFinding(RepetitionFinding):
    """What a repetition's trial showed."""

    event: Literal["times"] = "times"
    readings: dict[Direction, Reading]


@dataclass(frozen=True)
class Kind:
    """A kind of event on the DUT."""

    name: str
    """Of the procedure."""
    rates: Callable[[Plan[Any], Case], Rates]
    """Of a case. Raises PlanError."""
    amend: Callable[[Trial, Any, Rates], Trial]
    read: Callable[[DirectionCounts, Any, Rates], Reading]
    rates_text: Callable[[Rates], str]
    action: Callable[[Plan[Any]], TrialAction | None] = lambda _plan: None
    """Raises PlanError."""


class TimesProcedure(Procedure[AtThroughput]):
    """A procedure of times (:class:`dutperf.procedures.base.Procedure`). Raises PlanError: unknown rates, or times that
    do not fit into a trial."""

    def __init__(self, kind: Kind, plan: Plan[Any]) -> None:
        super().__init__(plan)
        self._kind = kind
        self._action = kind.action(plan)
        self._rates = {case: kind.rates(plan, case) for case in self.cases}
        for case in self.cases:
            self.first_trial(case)  # raises PlanError before anything is sent

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._rates[case]["rate_fps"])

    def limits(self, case: Case) -> dict[str, Any]:
        return dict(self._rates[case])

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        return self._kind.amend(super().trial(case, load, number, duration_s), self.conditions, self._rates[case])

    def action(self) -> TrialAction | None:
        return self._action

    def stopped(self, prior: Prior) -> Stopped | None:
        return _stopped(prior, fixed_repetitions(self.conditions))

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> TimesFinding:
        rates, conditions = self._rates[place.case], self.conditions
        result = self.measure(bench, self.first_load(place.case), place)
        members, usable = self.read(result)
        readings = {direction: self._kind.read(counts, conditions, rates) for direction, counts in usable.items()}
        return TimesFinding(**members, readings=readings)


def _stopped(found: Sequence[TimesFinding], repetitions: int) -> Stopped | None:
    """Why no further repetition is needed; None where one is. A repetition that is not valid voids
    all figures, and so does one that was not over in any direction."""
    if any(not one.valid for one in found):
        return Stopped.VOID
    voided = {way for one in found for way, reading in one.readings.items() if reading.outcome == "not_over"}
    if found and voided >= set(found[0].readings):
        return Stopped.VOID
    return Stopped.NUMBER if len(found) >= repetitions else None


class Times(Value):
    """Statistics over the repetitions that showed a time, in seconds."""

    median: float
    mean: float
    """RFC 2544 26.5 reports the average."""
    p1: float
    p99: float
    values: tuple[float, ...]

    @property
    def typical(self) -> float:
        return self.median

    def cells(self) -> Row:
        return tuple(map(points.measured, (self.median, self.mean, self.p1, self.p99)))


class TimesPoint(Sparse, points.DirectionsPoint[Times]):
    """A case, its rates, and each direction's times by method."""

    sparse: ClassVar[Sequence[str]] = ("paths",)
    less_is_better: ClassVar[Sequence[str]] = ("*",)
    columns: ClassVar[Row] = ("time", "median", "mean", "p1", "p99", "limited by")

    rates_fps: dict[str, int]
    forward: dict[str, Times] | None = None
    reverse: dict[str, Times] | None = None
    paths: dict[Direction, dict[str, Times]] | None = None
    """Of each path of named ports."""
    outcomes: dict[str, dict[str, int]]
    """By direction: how many repetitions were ``measured``, ``not_caused``, ``not_over``."""
    limited_by: LimitedBy | None
    """``tester`` where it could not measure at these rates."""
    repetitions: int
    """Finished ones."""
    trials: Trials

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        what, _, meaning = cls.title.partition(", s: ")
        figures = [
            (name, point.case, (times.median, times.p1, times.p99))
            for point in points
            for name, times in point.named().items()
        ]
        caption = f"{meaning[0].upper()}{meaning[1:]}. {charts.bars()}"
        return charts.over_cases(what.capitalize(), "time, s", figures, caption=caption)


def point_builder(kind: Kind, point: type[TimesPoint]) -> PointBuilder:
    def build(recorded: Recorded) -> TimesPoint:
        events = recorded.of(TimesFinding)
        rule = fixed_repetitions(recorded.conditions)
        beyond = any(not event.valid for event in events)
        dead = any(event.not_forwarding for event in events)
        used = dict.fromkeys(direction for event in events for direction in event.readings)
        directions = tuple(used) or recorded.conditions.active()
        readings = {
            direction: [event.readings[direction] for event in events if direction in event.readings]
            for direction in directions
        }
        times = {} if beyond or dead else {direction: _times(of_one) for direction, of_one in readings.items()}
        rates = {
            name: value
            for name, value in recorded.limits.items()
            if name.endswith("_fps") and name != "media_maximum_fps"
        }
        return point(
            case=recorded.case,
            rates_fps=rates,
            **_as_members(times),
            outcomes={direction.value: _outcomes(of_one) for direction, of_one in readings.items()},
            limited_by=points.unmeasured_by(recorded.of(ResultEvent)) if beyond else None,
            repetitions=len(events),
            trials=points.trials(recorded.of(ResultEvent)),
            message=(
                f"{kind.rates_text(rates)}:"
                f" {_message(events, readings)}{recorded.shortfall(len(events), _stopped(events, rule))}"
            ),
        )

    return build


def _as_members(times: Mapping[Direction, dict[str, Times] | None]) -> dict[str, Any]:
    if all(direction.is_of_two for direction in times):
        return {direction.value: of_one for direction, of_one in times.items()}
    return {"paths": {direction: of_one for direction, of_one in times.items() if of_one}}


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


def _message(events: Sequence[TimesFinding], readings: Mapping[Direction, list[Reading]]) -> str:
    """Repetitions without a result; else directions without a time; else that there are none."""
    without = [event.message for event in events if event.not_forwarding or not event.valid]
    if without or not events:
        return str(without[-1]) if without else "not measured"
    texts = [text for direction, of_one in readings.items() for text in _exceptions(direction, of_one)]
    return "; ".join(texts) or f"every repetition showed a time ({len(events)} of them)"


def _exceptions(direction: Direction, readings: Sequence[Reading]) -> list[str]:
    texts = []
    for outcome in ("not_over", "not_caused"):
        remarks = [reading.remark for reading in readings if reading.outcome == outcome]
        if remarks:
            texts.append(f"{direction}: in {len(remarks)} of {len(readings)} repetitions {remarks[0]}")
    return texts
