# SPDX-License-Identifier: Apache-2.0
"""Frame loss rate: the share of the frames that the DUT loses, over the rate at which they are sent
(RFC 2544 26.3, RFC 8219 7.4).

The first rate is the media's maximum for the frame size (or a lower one of the user's). The others
follow in steps of at most 10 % of it, until two rates in a row pass without loss. If the rates are
listed, each of them is measured. Each rate has one trial; a repetition is the whole series.

Only valid trials give a loss ratio. A rate with a repetition in which no trial was valid has no
figures at all: trials that lose frames are disturbed more easily, so the remaining ones would
flatter the DUT.

A ratio's error: where each of n frames is lost with probability p, a trial shows p within 2 *
sqrt(p (1 - p) / n) in 95 % of all trials. Buffered frames are not lost: a DUT that buffers b frames
has a ratio lower by b / n under overload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, field_validator

from dutperf.journal import Finding, RepetitionFinding, ResultEvent
from dutperf.lab.refdut import Properties
from dutperf.model import Case, Direction, LimitedBy, Load, Sparse, TrialResult, Unit, Value
from dutperf.model.digits import lost_share
from dutperf.procedures import evidence, rates, searches
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.evidence import outcome_of
from dutperf.procedures.known_truth import LOST_EVERY, Figure, KnownTruth, fps
from dutperf.procedures.rates import given
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import MainFigure, Recorded, Row, Trials
from dutperf.results.statistics import percentiles
from dutperf.search import Outcome
from dutperf.search.series import PASSES_IN_A_ROW, Series
from dutperf.setup.conditions import Rate, Repetitions, Usual, WithConnections, WithMaximum, WithTimeout
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.setup.rate import OptionalRate
from dutperf.spelling import with_and

WIDEST_STEP = Rate(value=10, unit="percent")
"""RFC 2544 26.3: the maximum granularity."""
IN_SUM = "in_sum"
"""Of the lost frames of all paths, as a share of those sent."""
MOST_RATES = 10_000
"""Of a series; a step that makes more of them is a typing error."""


class RateFinding(Finding):
    """A rate's valid trial."""

    model_config = ConfigDict(extra="forbid")

    event: Literal["rate"] = "rate"
    load: Load
    outcome: Outcome
    loss_ratio: dict[str, float] | None
    """By direction, and ``worst``; of named ports by path, and ``in_sum``; None: no trial was valid."""


class SeriesFinding(RepetitionFinding):
    """A series of rates has ended."""

    event: Literal["series"] = "series"


AtRate = TypeVar("AtRate", RateFinding, ResultEvent)


class FrameLoss(WithTimeout, WithConnections, WithMaximum, Usual):
    """Conditions of a frame loss measurement."""

    repetitions: Repetitions = default(1)
    step: Annotated[
        OptionalRate,
        Option(
            "Step between rates: % of the highest, or frames/s. Default: 10%",
            label="step between rates",
            metavar="RATE",
        ),
    ] = default(None)
    """None: 10 %, the widest that RFC 2544 26.3 allows."""
    rates: Annotated[
        Given[Annotated[tuple[Rate, ...], Field(min_length=1)] | None, Sequence[Rate | str | float] | str],
        Option("Measure these rates instead of a series: 10k,20k,50%", label="rates per direction", metavar="RATE,…"),
    ] = default(None)

    @field_validator("rates", mode="before")
    @classmethod
    def _of_a_list(cls, given: Any) -> Any:
        return given.split(",") if isinstance(given, str) else given


class FrameLossProcedure(Procedure[FrameLoss]):
    def __init__(self, plan: Plan[FrameLoss]) -> None:
        super().__init__(plan)
        self._rates = {case: rates_of(plan.conditions, plan.traffic.maximum_fps(case)) for case in self.cases}
        for case, rates_fps in self._rates.items():
            self.trial(case, Load.fps(rates_fps[-1]), 0)  # raises ConfigError before anything is sent
        self._lengths: list[int] = []
        self._series = self._begun(())

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._rates[case][0])

    def algorithm(self) -> dict[str, Any]:
        ends = (
            "with the last rate of the list"
            if self.conditions.rates
            else f"with {PASSES_IN_A_ROW} rates in a row that pass"
        )
        return {"algorithm": "series", "order": "descending", "ends": ends}

    def limits(self, case: Case) -> dict[str, Any]:
        rates_fps = self._rates[case]
        return {"maximum_fps": rates_fps[0], "rates_fps": list(rates_fps)}

    def trials_of(self, *, first: bool) -> float:
        return fmean(self._lengths or map(len, self._rates.values()))

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> SeriesFinding:
        self._series = series = self._begun(self._rates[place.case], has_forwarded=bool(prior))
        offered, message = 0, None
        while (value := series.next_load()) is not None:
            load, probing = Load.fps(value), series.probing
            result = self.measure(bench, load, self._now(place))
            outcome = outcome_of(result, self.conditions)
            if not probing:
                offered += 1
                bench.record(_measured(load, outcome, result), place)
            series.record_outcome(outcome, searches.loss_of(result))
            if series.not_forwarding:
                message = self.no_forwarding(result)
            if self.is_hopeless:
                message = evidence.lasting(result)
                break
        self._lengths.append(offered)
        return SeriesFinding(not_forwarding=series.not_forwarding, message=message)

    def _begun(self, rates_fps: Sequence[int], *, has_forwarded: bool = False) -> Series:
        lowest = self.conditions.every.of_directions.least_fps
        to_the_end = self.conditions.rates is not None
        return Series(rates_fps, to_the_end=to_the_end, lowest=lowest, has_forwarded=has_forwarded)

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        text = done[-1].message or _result(self._series, self.conditions)
        bench.say(f"repetition {place.repetition}: {text}", self._now(place))

    def _now(self, place: Place) -> Place:
        series = self._series
        lower, upper = (None if one is None else Load.fps(one) for one in (series.lower, series.upper))
        return place.within(series.trials_left() + series.probing, lower=lower, upper=upper)


def rates_of(conditions: FrameLoss, media_fps: int | None) -> tuple[int, ...]:
    """The rates to offer, from the highest down; ``media_fps`` is the media's maximum frame rate (None: unknown).
    Raises PlanError: no rate to begin with, a step that is too wide, or rates that are not possible."""
    if conditions.rates is not None:
        return _listed(conditions, conditions.rates, media_fps)
    return _descending(
        rates.known_highest(conditions, media_fps, "the rate to begin with"), conditions.step or WIDEST_STEP
    )


def _listed(conditions: FrameLoss, listed: Sequence[Rate], media_fps: int | None) -> tuple[int, ...]:
    for option in ("max_rate", "step"):
        if getattr(conditions, option) is not None:
            raise PlanError("has no effect where the rates are listed", option=option)
    listed_fps = [fps for rate in listed if (fps := given("rates", rate, media_fps)) is not None]
    if len(set(listed_fps)) < len(listed_fps):
        raise PlanError("the same rate twice: list each once", option="rates")
    return tuple(sorted(listed_fps, reverse=True))


def _descending(maximum_fps: int, step: Rate) -> tuple[int, ...]:
    share = step.value / (100 if step.unit == "percent" else maximum_fps)
    if share * 100 > WIDEST_STEP.value:
        raise PlanError(
            f"{step} is wider than {WIDEST_STEP} of the highest rate ({maximum_fps:,} frames/s); to measure fewer"
            " rates, list them",
            option="step",
        )
    if share * MOST_RATES < 1:
        raise PlanError(f"{step} makes a series of more than {MOST_RATES:,} rates", option="step")
    steps = ceil(1 / share - 1e-9)  # 1e-9: the binary rounding of a share such as 0.03 must not add a step
    return tuple(dict.fromkeys(max(1, round(maximum_fps * (1 - number * share))) for number in range(steps)))


def _measured(load: Load, outcome: Outcome, result: TrialResult) -> RateFinding:
    ratios = {direction.value: counts.loss_ratio for direction, counts in result.directions().items()} | {
        "worst": result.worst_loss_ratio
    }
    if result.paths is not None:
        ratios[IN_SUM] = result.loss_ratio_in_sum
    return RateFinding(load=load, outcome=outcome, loss_ratio=None if outcome is Outcome.UNMEASURABLE else ratios)


def _result(series: Series, conditions: FrameLoss) -> str:
    """Result of one series, in a few words."""
    lossless = f"no loss{_tolerated(conditions)}"
    return f"no rate with {lossless}" if series.lower is None else f"{lossless} at {Load.fps(series.lower)}"


def _tolerated(conditions: FrameLoss) -> str:
    """The pass criterion, to follow every "no loss"."""
    return f" ({conditions.passing()})" if conditions.passing() else ""


class Figures(Value):
    """Figures over the repetitions; None where the tester could not measure the rate in one of
    them."""

    median: float | None
    p1: float | None
    p99: float | None
    values: tuple[float | None, ...]
    """One for each repetition that reached this rate, in order."""


class LossRatio(Sparse):
    """Lost frames as a share of those sent."""

    sparse: ClassVar[Sequence[str]] = ("in_sum", "paths")

    forward: Figures | None = None
    reverse: Figures | None = None
    worst: Figures
    """The worst direction or path of each repetition."""
    in_sum: Figures | None = None
    """Of all paths of named ports together."""
    paths: dict[Direction, Figures] | None = None
    """Of each path of named ports."""


class RateLoss(Value):
    load: Load
    percent_of_maximum: float | None
    """Of the media's maximum frame rate; None where that is unknown."""
    loss_ratio: LossRatio
    limited_by: LimitedBy | None
    """``tester`` where it could not measure this rate."""
    trials: Trials


class FrameLossPoint(points.Point):
    """A case and its loss over the rate, from the highest rate down."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    title: ClassVar[str] = "frame loss, frames/s per direction and share of the frames lost"
    columns: ClassVar[Row] = ("rate", "of maximum", "worst: median", "p1", "p99", "forward", "reverse", "limited by")

    series: ClassVar[str | None] = "rates"
    implied: ClassVar[Sequence[str]] = ("*.forward", "*.reverse", "*.in_sum", "*.paths.*")

    rates: tuple[RateLoss, ...]
    first_lossless_fps: int | None
    """Highest rate at which no repetition lost more than is tolerated."""
    repetitions: int
    """Finished ones."""
    not_forwarding: bool
    """Whether the case ended because the DUT forwards nothing."""

    @property
    def has_number(self) -> bool:
        return not self.not_forwarding and any(rate.limited_by is None for rate in self.rates)

    @property
    def limit(self) -> LimitedBy | None:
        """That of all rates, if it is the same."""
        limits = {rate.limited_by for rate in self.rates}
        return limits.pop() if len(limits) == 1 else None

    def main_figure(self) -> MainFigure:
        """The highest rate without loss, and the loss at the highest rate that was measured."""
        highest = next(rate for rate in self.rates if rate.limited_by is None)
        passed = f"passed ({self.pass_criterion})" if self.pass_criterion else "without loss"
        lost = f"{lost_share(highest.loss_ratio.worst.median)} lost at {highest.load}"
        if self.first_lossless_fps is None:
            return MainFigure(f"{lost}, no rate {passed}")
        lossless = f"{self.first_lossless_fps:,} {Unit.FRAMES_PER_SECOND.label} {passed}"
        return MainFigure(f"{lossless}, {lost}" if highest.loss_ratio.worst.median else lossless)

    def rows(self) -> list[Row]:
        return [_row(rate) for rate in self.rates]

    def remarks(self) -> Iterator[str]:
        """At each rate the loss in sum and of the paths that
        lost any."""
        for rate in self.rates:
            if rate.loss_ratio.paths is not None:
                yield f" at {rate.load}: {_by_path(rate.loss_ratio, rate.loss_ratio.paths)}"

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The loss of the worse direction over the rate, both axes from 0 to 100 % (RFC 2544 26.3);
        over frames/s where the maximum is not known."""
        shares = all(rate.percent_of_maximum is not None for point in points for rate in point.rates)
        unknown = " The media's maximum is not known (virtual links have none), so the rates are in frames/s."
        return (
            Chart(
                name="",
                title="Frame loss over the offered rate",
                x_label=(
                    "offered rate per direction, % of the media's maximum"
                    if shares
                    else "offered rate, frames/s per direction"
                ),
                y_label="frames lost in the worse direction, %",
                curves=tuple(charts.with_bars(str(point.case), _losses(point, shares)) for point in points),
                caption=charts.bars() + ("" if shares else unknown),
                x_range=(0, 100 if shares else None),
                y_range=(0, 100),
            ),
        )


def _by_path(ratio: LossRatio, paths: Mapping[Direction, Figures]) -> str:
    total = lost_share(None if ratio.in_sum is None else ratio.in_sum.median)
    lossy = [f"{path} {lost_share(figures.median)}" for path, figures in paths.items() if figures.median]
    return f"{total} lost in sum of {len(paths)} paths" + (f"; {', '.join(lossy)}" if lossy else "")


def _losses(point: FrameLossPoint, shares: bool) -> list[tuple[float, charts.Figure]]:
    """Rate, as a percentage or in frames/s, and the loss there in percent."""

    def percent(ratio: float | None) -> float | None:
        return None if ratio is None else ratio * 100

    return [
        (
            (rate.percent_of_maximum or 0.0) if shares else rate.load.value,
            (percent(worst.median), percent(worst.p1), percent(worst.p99)),
        )
        for rate in point.rates
        for worst in (rate.loss_ratio.worst,)
    ]


def point(recorded: Recorded) -> FrameLossPoint:
    measured, results = _by_rate(recorded.of(RateFinding)), _by_rate(recorded.of(ResultEvent))
    ends = recorded.of(SeriesFinding)
    rates = tuple(
        _rate(recorded, rate_fps, measured[rate_fps], results[rate_fps]) for rate_fps in sorted(measured, reverse=True)
    )
    lossless_fps = [
        rate_fps for rate_fps, events in measured.items() if all(one.outcome is Outcome.PASSED for one in events)
    ]
    why_ended = next((end.message for end in ends if end.message), None)
    return FrameLossPoint(
        case=recorded.case,
        rates=rates,
        first_lossless_fps=max(lossless_fps, default=None),
        pass_criterion=recorded.conditions.passing(),
        message="; ".join(_message(rates, lossless_fps, why_ended, recorded.conditions))
        + recorded.shortfall(len(ends)),
        repetitions=len(ends),
        not_forwarding=any(end.not_forwarding for end in ends),
    )


def _by_rate(events: Iterable[AtRate]) -> dict[int, list[AtRate]]:
    by_rate: dict[int, list[AtRate]] = {}
    for event in events:
        by_rate.setdefault(event.load.value, []).append(event)
    return by_rate


def _rate(
    recorded: Recorded, rate_fps: int, findings: Sequence[RateFinding], results: Sequence[ResultEvent]
) -> RateLoss:
    media_fps = recorded.limits["media_maximum_fps"]
    return RateLoss(
        load=Load.fps(rate_fps),
        percent_of_maximum=None if media_fps is None else round(100 * rate_fps / media_fps, 4),
        loss_ratio=_loss_ratio([one.loss_ratio for one in findings], recorded.conditions),
        limited_by=(
            points.unmeasured_by(results) if any(one.outcome is Outcome.UNMEASURABLE for one in findings) else None
        ),
        trials=points.trials(results),
    )


def _loss_ratio(ratios: list[dict[str, float] | None], conditions: FrameLoss) -> LossRatio:
    def figures(name: str) -> Figures:
        return _figures(tuple(None if ratio is None else ratio[name] for ratio in ratios))

    known: dict[str, float] = next((ratio for ratio in ratios if ratio is not None), {})
    if IN_SUM in known:
        paths = {Direction(name): figures(name) for name in known if name not in (IN_SUM, "worst")}
        return LossRatio(worst=figures("worst"), in_sum=figures(IN_SUM), paths=paths)
    names = ("worst", *(direction.value for direction in conditions.active()))
    by_name: dict[str, Any] = {name: figures(name) for name in names}
    return LossRatio(**by_name)


def _figures(values: tuple[float | None, ...]) -> Figures:
    if None in values:
        return Figures(median=None, p1=None, p99=None, values=values)
    return Figures(**percentiles(values), values=values)


def _message(
    rates: Sequence[RateLoss], lossless_fps: list[int], why_ended: str | None, conditions: FrameLoss
) -> list[str]:
    """``why_ended``: the message of a series that ended early."""
    if not rates:
        return [why_ended or "not measured"]
    without = points.without_figures([(rate.load, rate.limited_by) for rate in rates])
    return [why_ended or _first_lossless(rates, lossless_fps, conditions), *without]


def _first_lossless(rates: Sequence[RateLoss], lossless_fps: list[int], conditions: FrameLoss) -> str:
    lossless = f"no loss{_tolerated(conditions)}"
    if not lossless_fps:
        return f"no rate with {lossless}, down to {rates[-1].load}"
    first_fps = max(lossless_fps)
    lossy = [
        f"{rate.load.value:,}"
        for rate in rates
        if rate.load.value < first_fps and rate.load.value not in lossless_fps and rate.limited_by is None
    ]
    return f"{lossless} at {first_fps:,} frames/s" + (
        f", but some at the lower {with_and(lossy)} frames/s" if lossy else ""
    )


def _row(rate: RateLoss) -> Row:
    worst, both = rate.loss_ratio.worst, (rate.loss_ratio.forward, rate.loss_ratio.reverse)
    share = "-" if rate.percent_of_maximum is None else f"{rate.percent_of_maximum:.1f} %"
    ratios = (worst.median, worst.p1, worst.p99, *(None if figures is None else figures.median for figures in both))
    return (f"{rate.load.value:,}", share, *map(lost_share, ratios), rate.limited_by or "")


def _series(facts: Facts) -> str | None:
    if facts.conditions.rates is not None:
        return (
            "the rates are a given list, not a series from the media's maximum down to two rates in a row without loss"
        )
    if any(frame["media_maximum_fps"] is None for frame in facts.frames):
        return "the series begins at a given rate; the media's maximum is not known"
    below = any(frame["maximum_fps"] < frame["media_maximum_fps"] for frame in facts.frames)
    return "the series begins at a given rate below the media's maximum" if below else None


def _lossless(facts: Facts) -> str | None:
    tolerance = facts.conditions.loss_tolerance
    return (
        f"a rate counts as one without loss with up to {tolerance * 100:g} % of a direction's frames lost"
        if tolerance
        else None
    )


RULES = deviations.rules(
    Clause("RFC 2544 section 26.3", _series),
    Clause("RFC 2544 section 26.3", _lossless),
    Clause("RFC 2544 section 26.3", deviations.frame_timeout),
    Clause("RFC 8219 section 12", deviations.single_iteration),
)


# --- a DUT whose truth is known ------------------------------------------------------------------


def _loss() -> Figure:
    def read(point: Any) -> Iterator[float | None]:
        both = (
            figures
            for rate in point.rates
            for figures in (rate.loss_ratio.forward, rate.loss_ratio.reverse)
            if figures is not None
        )
        return (figures.median * 100 for figures in both if figures.median is not None)

    return Figure("frame loss", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(loss_every=LOST_EVERY),
        {"rates": (fps(4_000), fps(2_000)), "duration_s": 0.5},
        (_loss(),),
        more={"duration_s": 2.0, "repetitions": 3},
    )


PROCEDURE = Definition(
    name="frame-loss",
    summary="Measure loss from the highest rate down (RFC 2544 26.3).",
    chapter=Chapter.RATES,
    example="--lab kernel-ipv4 --rates 20k,10k --duration 2 --out results/loss",
    simulated={"max_rate": "70k"},
    known_truth=_known_truth,
    conditions=FrameLoss,
    make=FrameLossProcedure,
    point=point,
    rules=RULES,
)
