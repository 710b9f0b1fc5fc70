# SPDX-License-Identifier: Apache-2.0
"""Soak: how probable it is that a DUT loses frames at a rate, by trials over hours. No clause asks for it: RFC 2544's
throughput passes by one trial without loss, and a DUT that loses frames once in an hour passes too. PLRsearch
(draft-vpolak-bmwg-plrsearch) asks the same question of a whole range of rates.

Trials of the same length at the same rate follow each other. Each either loses frames or does not (more than is
tolerated). The probability of a lossy trial has an interval that holds after any number of trials
(:mod:`dutperf.statistics.sequential`), so the soak may end as soon as the interval lies below or above the target,
and at the latest when its time is over. It presumes that trials are alike and independent: the plot of the loss of
each trial shows drift.

No trial is repeated. A trial without loss is valid in spite of small disturbances, one with loss is not, because they
may have caused it: whoever repeats it until it is valid sees a DUT without loss (validity.BY_LOSS). So such a trial
counts as lossless for the lower end of the interval and as lossy for the upper end. Trials that would be invalid
without loss too are left out; how many there were of either is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.judge import validity
from dutperf.lab.refdut import Properties
from dutperf.model import Case, LimitedBy, Load, Question, Trial, TrialResult, Unit, Value, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import LOST_EVERY, Figure, KnownTruth, fps
from dutperf.procedures.rates import rate_of
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.points import MainFigure, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics, without_number
from dutperf.search.binary import HIGHEST
from dutperf.setup.conditions import (
    AtThroughput,
    Conditions,
    WithDuration,
    WithPacing,
    WithPattern,
    WithPorts,
    WithSettling,
    WithStreams,
    WithTolerance,
)
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.ratio import AnyRatio
from dutperf.spelling import count_of
from dutperf.statistics import sequential, stopping
from dutperf.statistics.stopping import Stopped

HOPELESS = 8
"""After so many trials, none of which was measured, none will be."""


class Soak(
    AtThroughput, WithDuration, WithTolerance, WithPattern, WithPacing, WithSettling, WithStreams, WithPorts, Conditions
):
    """Conditions of a soak."""

    load_percent: Annotated[
        float,
        Field(gt=0, le=1000),
        Option(
            "Load to soak at, in % of the throughput or of `rate`",
            label="load, % of the throughput",
            flag="--load",
            metavar="PERCENT",
        ),
    ] = 100.0
    target: Annotated[
        AnyRatio,
        Field(gt=0, lt=1),
        Option(
            "Probability of a trial with loss that the soak tests",
            label="probability of a lossy trial that is asked about",
            metavar="RATIO",
            text=True,
        ),
    ] = default(0.05)
    confidence: Annotated[
        AnyRatio,
        Field(ge=0.5, le=0.9999),
        Option(
            "Confidence of the interval of that probability",
            label="confidence of the interval",
            metavar="RATIO",
            text=True,
        ),
    ] = default(stopping.CONFIDENCE)
    soak_s: Annotated[
        float,
        Field(gt=0, le=31_536_000),
        Option("Longest time of all trials", label="longest time, s", flag="--for"),
    ] = 7_200.0


Outcome = Literal["lossless", "lossy", "perhaps", "unmeasured"]
"""Of a trial; ``perhaps``: it lost frames, and a disturbance may have caused that."""


class SoakFinding(RepetitionFinding):
    """What a trial showed. A DUT that forwards nothing after it did lost all frames of the trial, which is the last."""

    event: Literal["soak"] = "soak"
    outcome: Outcome
    loss_ratio: float | None
    """Of the direction or path that lost the greater share; None: not measured."""
    sent: int
    lost: int
    """In all directions."""


class Seen(Value):
    """The trials of a soak so far."""

    trials: int
    """Without the unmeasured ones."""
    lossy: int
    perhaps: int
    low: float
    high: float
    """Interval of the probability of a lossy trial."""

    @classmethod
    def of(cls, found: Sequence[SoakFinding], conditions: Soak) -> Seen:
        count = Counter(one.outcome for one in found)
        lossy, perhaps = count["lossy"], count["perhaps"]
        trials = lossy + perhaps + count["lossless"]
        low, _ = sequential.interval(lossy, trials, conditions.confidence)
        _, high = sequential.interval(lossy + perhaps, trials, conditions.confidence)
        return cls(trials=trials, lossy=lossy, perhaps=perhaps, low=low, high=high)

    def verdict(self, target: float) -> Literal["below", "above", "open"]:
        """``below`` or ``above`` the target, or ``open``."""
        return "below" if self.high < target else "above" if self.low > target else "open"


class SoakProcedure(Procedure[Soak]):
    def __init__(self, plan: Plan[Soak]) -> None:
        super().__init__(plan)
        self._rates = {case: self._rate(case) for case in self.cases}
        self._most = most_trials(plan.conditions)

    def _rate(self, case: Case) -> int:
        rate_fps = max(1, round(rate_of(self.plan, case) * self.conditions.load_percent / 100))
        limit_fps = min(self.plan.traffic.maximum_fps(case) or HIGHEST, HIGHEST)
        if rate_fps > limit_fps:
            raise PlanError(f"{rate_fps:,} frames/s are above the highest rate, {limit_fps:,}", option="load_percent")
        return rate_fps

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._rates[case])

    def algorithm(self) -> dict[str, Any]:
        return {
            "algorithm": "trials at one rate until the probability of loss is known to be below or above the target",
            "interval": "confidence sequence, Beta mixture",
            "most_trials": self._most,
        }

    def limits(self, case: Case) -> dict[str, Any]:
        return {"rate_fps": self._rates[case]}

    def at_least(self, done: int) -> int:
        """Those for which there is time."""
        return self._most

    def stopped(self, prior: Prior) -> Stopped | None:
        return _stopped(prior, self.conditions)

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> SoakFinding:
        result = self.measure(bench, self.first_load(place.case), place)
        counts, outcome = result.directions().values(), _outcome(result, self.conditions.loss_tolerance)
        dead = result.verdict is Verdict.VALID and bool(evidence.dead_directions(result))
        never_forwarded = dead and all(one.outcome == "unmeasured" for one in prior)
        counted = outcome != "unmeasured" and not never_forwarded
        reasons = evidence.invalidity(result) if outcome in ("perhaps", "unmeasured") else evidence.losses(result)
        if self.is_hopeless:
            reasons = evidence.lasting(result)
        return SoakFinding(
            valid=outcome != "unmeasured",
            not_forwarding=dead,
            message=self.no_forwarding(result) if dead else reasons,
            outcome=outcome if counted else "unmeasured",
            loss_ratio=result.worst_loss_ratio if counted else None,
            sent=sum(one.sent for one in counts) if counted else 0,
            lost=sum(one.lost for one in counts) if counted else 0,
        )

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Each counts as it is."""
        question = Question(tolerated_loss=self.conditions.loss_tolerance, once=True)
        return super().trial(case, load, number, duration_s).model_copy(update={"question": question})

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        """When frames were lost, and at each doubling."""
        seen = Seen.of(done, self.conditions)
        if done[-1].lost or len(done) & (len(done) - 1) == 0 or self.stopped(done) is not None:
            bench.say(f"after {len(done):,} trials: {_sentence(seen, self.conditions)}", place)


def most_trials(conditions: Soak) -> int:
    """Trials for which there is time, at least one."""
    each_s = (
        conditions.learning_rest_s
        + conditions.warm_up_s
        + conditions.duration_s
        + conditions.drain_s
        + conditions.settle_s
    )
    return max(1, int(conditions.soak_s / each_s))


def _outcome(result: TrialResult, tolerated: float) -> Outcome:
    lost = result.worst_loss_ratio > tolerated
    if result.verdict is Verdict.VALID:
        return "lossy" if lost else "lossless"
    by_loss = bool(result.causes) and {cause.code for cause in result.causes} <= validity.BY_LOSS
    return "perhaps" if lost and by_loss and result.verdict is Verdict.INVALID else "unmeasured"


def _stopped(found: Sequence[SoakFinding], conditions: Soak) -> Stopped | None:
    """Why no further trial is needed; None where one is."""
    if Seen.of(found, conditions).verdict(conditions.target) != "open":
        return Stopped.KNOWN
    if len(found) >= HOPELESS and all(one.outcome == "unmeasured" for one in found):
        return Stopped.NOTHING
    return Stopped.MAXIMUM if len(found) >= most_trials(conditions) else None


def _against(verdict: str, target: float) -> str:
    known = "not known to be below or above" if verdict == "open" else verdict
    return f"{known} the target of {target:.3g}"


def _sentence(seen: Seen, conditions: Soak) -> str:
    confidence = f"{conditions.confidence:.4g}"
    verdict = _against(seen.verdict(conditions.target), conditions.target)
    perhaps = f", {seen.perhaps:,} more perhaps because of a disturbance" if seen.perhaps else ""
    return (
        f"{seen.lossy:,} of {seen.trials:,} trials lost frames{perhaps}; the probability of that is {seen.low:.3g} to"
        f" {seen.high:.3g} (confidence {confidence}), {verdict}"
    )


class SoakPoint(points.Point):
    """A case and the probability that a trial loses frames."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    title: ClassVar[str] = "soak, probability that a trial loses frames"
    columns: ClassVar[Row] = (
        "rate",
        "trials",
        "with loss",
        "perhaps",
        "probability",
        "target",
        "frames lost",
        "limited by",
    )
    implied: ClassVar[Sequence[str]] = ("lossy_share",)

    rate_fps: int
    trial_s: float
    """Sending time of each trial."""
    measured: int
    """Trials that the tester could measure."""
    unmeasured: int
    lossy: int
    perhaps: int
    """Trials that lost frames, perhaps because of a disturbance."""
    lossy_share: float | None
    low: float
    high: float
    """Interval of the probability of a trial with loss, at the confidence of the conditions."""
    target: float
    verdict: Literal["below", "above", "open"]
    """Where the probability is, against the target."""
    sent: int
    lost: int
    loss_ratio: Statistics
    """Of the trials, each of its worse direction."""
    limited_by: LimitedBy | None
    trials: Trials

    @property
    def has_number(self) -> bool:
        return self.measured > 0

    def main_figure(self) -> MainFigure:
        share = f"{self.lossy:,} of {count_of(self.measured, 'trial')} lost frames"
        probability = f"a probability of {self.low:.3g} to {self.high:.3g}, {_against(self.verdict, self.target)}"
        return MainFigure(f"{share} at {self.rate_fps:,} {Unit.FRAMES_PER_SECOND.label}: {probability}")

    def rows(self) -> list[Row]:
        probability = f"{self.low:.3g} to {self.high:.3g}"
        lost = cell(self.lost / self.sent if self.sent else None, ".3g")
        counts = (f"{self.rate_fps:,}", f"{self.measured:,}", f"{self.lossy:,}", f"{self.perhaps:,}")
        return [(*counts, probability, f"{self.verdict} {self.target:.3g}", lost, self.limited_by or "-")]

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The loss of each trial: drift shows here."""
        values = [(point.case, point.loss_ratio.values) for point in points]
        return (charts.repetitions("Loss", "loss ratio of the trial", values),)


def point(recorded: Recorded) -> SoakPoint:
    found, conditions = recorded.of(SoakFinding), recorded.conditions
    seen = Seen.of(found, conditions)
    ratios = [one.loss_ratio for one in found if one.loss_ratio is not None]
    dead = next((one.message for one in found if one.not_forwarding), None)
    unmeasured = sum(one.outcome == "unmeasured" for one in found)
    left_out = f"; {unmeasured:,} more could not be measured" if unmeasured else ""
    ended = _stopped(found, conditions) is not None or dead is not None
    early = "" if ended else f" ({recorded.early_end()})"
    return SoakPoint(
        case=recorded.case,
        rate_fps=recorded.limits["rate_fps"],
        trial_s=conditions.duration_s,
        measured=seen.trials,
        unmeasured=unmeasured,
        lossy=seen.lossy,
        perhaps=seen.perhaps,
        lossy_share=seen.lossy / seen.trials if seen.trials else None,
        low=seen.low,
        high=seen.high,
        target=conditions.target,
        verdict=seen.verdict(conditions.target),
        sent=sum(one.sent for one in found),
        lost=sum(one.lost for one in found),
        loss_ratio=statistics(ratios, 1) if ratios else without_number(ratios),
        limited_by=points.unmeasured_by(recorded.of(ResultEvent)) if found and unmeasured == len(found) else None,
        trials=points.trials(recorded.of(ResultEvent)),
        message=(dead or _sentence(seen, conditions)) + left_out + early
        if recorded.too_long is None
        else f"not measured: {recorded.too_long}",
    )


# --- a DUT whose truth is known ------------------------------------------------------------------


def _loss_of_trials() -> Figure:
    """Every trial of a soak loses the same share."""

    def read(point: Any) -> Iterator[float | None]:
        return (ratio * 100 for ratio in point.loss_ratio.values if ratio is not None)

    return Figure("loss of each trial", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(loss_every=LOST_EVERY),
        {"rate": fps(2_000), "duration_s": 0.5, "soak_s": 1.5, "target": 0.5},
        (_loss_of_trials(),),
    )


PROCEDURE = Definition(
    name="soak",
    summary="Find how probable loss is at a rate, by trials over hours.",
    chapter=Chapter.LOADS,
    example="--lab kernel-ipv4 --rate 10k --duration 5 --for 60 --target 0.2",
    simulated={"soak_s": 10},
    known_truth=_known_truth,
    conditions=Soak,
    make=SoakProcedure,
    point=point,
    rules=deviations.rules(any_size=False),
)
