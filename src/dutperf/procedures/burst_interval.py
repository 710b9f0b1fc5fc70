# SPDX-License-Identifier: Apache-2.0
"""Burst interval: the shortest interval between bursts of a given length that the DUT forwards without loss (RFC 2544
section 21).

The frames of a burst have the smallest gap of the media, or that of the user's rate on links without a speed. Each
repetition searches for the highest mean rate of such bursts; the interval is their length divided by that rate, from
the first frame of a burst to the first of the next. The pause is what is left of it between the last frame of a burst
and the first of the next.

With the DUT modelled as a queue of Q frames before a server of C frames/s, bursts of n frames at R frames/s pass if
n (1 - C / R) is at most Q + 1, and then the shortest interval is n / C: the DUT has to empty its queue meanwhile. A
burst that is longer is lost at any interval. In a trial of T seconds the queue may grow by its free places, f, so the
value is up to f / (C T) of itself shorter than that. The search's own error is its resolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from dutperf.lab.refdut import Properties
from dutperf.model import Axis, Bursts, Case, LimitedBy, Load, Question, Trial
from dutperf.procedures import rates, repeated_searches
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import ONE_WAY, Evidence, Figure, KnownTruth, fps, median_of
from dutperf.procedures.repeated_searches import RepeatedSearches, SearchFinding, SearchPoint, UpperBound, statistics_of
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials, cell
from dutperf.results.statistics import Missing, Repetitions, Statistics
from dutperf.search.binary import BinarySearch, Bounds, Resolution, Search
from dutperf.setup.conditions import Steady, WithDuration, WithMaximum, WithPacing, WithTolerance
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.setup.ratio import AnyRatio
from dutperf.setup.steady_pattern import LONGEST_BURST

BURST: Axis[int] = Axis("burst_frames", "frames", "burst")
"""Length of the bursts."""
BURSTS = (16, 64, 256, 1024)
"""Recommended by RFC 2544 section 21."""
LEAST_BURSTS = 2
"""In a trial, so that there is an interval."""


class BurstInterval(WithMaximum, WithDuration, WithTolerance, WithPacing, Steady):
    """Conditions of a measurement of the shortest interval between bursts."""

    bursts: Annotated[
        Given[
            Annotated[tuple[Annotated[int, Field(ge=2, le=LONGEST_BURST)], ...], Field(min_length=1, max_length=100)],
            Sequence[int] | int | str,
        ],
        Option(
            "Lengths of the bursts, in frames",
            clause="RFC 2544 section 21: 16,64,256,1024",
            label="frames of a burst",
            metavar="FRAMES,…",
        ),
    ] = default(BURSTS)
    interval_resolution: Annotated[
        AnyRatio,
        Field(gt=0, le=0.5),
        Option(
            "Resolution at which the search ends, as a share of the interval",
            label="resolution of the search, share of the interval",
            metavar="RATIO",
            text=True,
        ),
    ] = default(0.005)

    @field_validator("bursts", mode="before")
    @classmethod
    def _bursts_of_text(cls, given: Any) -> Any:
        parts = given.split(",") if isinstance(given, str) else given
        return (parts,) if isinstance(parts, int) else parts

    @field_validator("bursts")
    @classmethod
    def _bursts_in_order(cls, bursts: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(bursts)) < len(bursts):
            raise ValueError("the same length twice: list each once")
        return tuple(sorted(bursts))


class BurstIntervalProcedure(RepeatedSearches[BurstInterval]):
    nothing_passed = "no interval up to half of a trial is long enough"

    def __init__(self, plan: Plan[BurstInterval]) -> None:
        super().__init__(plan)
        self._bounds = {case: self._bounds_of(case) for case in self.cases}

    def cases_of(self) -> tuple[Case, ...]:
        """Each length of each case."""
        return tuple(
            Case({**dict(case.items()), BURST: burst})
            for case in super().cases_of()
            for burst in self.conditions.bursts
        )

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._bounds[case].first)

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "binary", "start": "none"}

    def limits(self, case: Case) -> dict[str, Any]:
        limits = self._bounds[case]
        return {
            "rate_fps": limits.highest,
            "rate_is_media": limits.maximum_is_media,
            "longest_interval_us": _interval_us(case, limits.lowest),
        }

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        limits, made = self._bounds[case], super().trial(case, load, number, duration_s)
        pattern = Bursts(frames=case[BURST], within_fps=limits.highest)
        question = Question(
            tolerated_loss=self.conditions.loss_tolerance, resolution=self.conditions.interval_resolution
        )
        streams = {way: one.model_copy(update={"pattern": pattern}) for way, one in made.streams().items()}
        return made.with_streams(streams).model_copy(update={"question": question})

    def new_search(self, place: Place, prior: Prior) -> Search:
        return BinarySearch(self._bounds[place.case])

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        return f"bursts without a pause between them passed, at {Load.fps(self._bounds[case].highest)}"

    def _bounds_of(self, case: Case) -> Bounds:
        rate_fps = rates.first(self.plan, case, "the rate within a burst").value
        _, is_media = rates.highest(self.conditions, self.plan.traffic.maximum_fps(case))
        lowest_fps = ceil(LEAST_BURSTS * case[BURST] / self.conditions.duration_s)
        if lowest_fps > rate_fps:
            raise PlanError(
                f"{LEAST_BURSTS} bursts of {case[BURST]:,} frames at {rate_fps:,} frames/s take longer than a trial of"
                f" {self.conditions.duration_s:g} s",
                option="duration_s",
            )
        resolution = Resolution(share=self.conditions.interval_resolution)
        least_fps = min(rate_fps, max(lowest_fps, self.conditions.every.of_directions.least_fps))
        return Bounds(resolution=resolution, minimum=least_fps, maximum=rate_fps, maximum_is_media=is_media)


def _interval_us(case: Case, mean_fps: float) -> float:
    return case[BURST] / mean_fps * 1e6


class BurstIntervalPoint(SearchPoint):
    """A case and its shortest interval."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    figure: ClassVar[str] = "interval_us"
    in_headline: ClassVar[str] = "µs from a burst to the next"
    missing: ClassVar[Mapping[str, Missing]] = {figure: Missing.HIGHEST}
    form: ClassVar[str] = ",.2f"
    what: ClassVar[str] = "Burst interval"
    label: ClassVar[str] = "shortest interval, µs"
    drawn_over_cases: ClassVar[bool] = True
    title: ClassVar[str] = "shortest interval between bursts, µs from the first frame of one to that of the next"
    columns: ClassVar[Row] = ("median", "p1", "p99", "pause µs", "mean frames/s", "limited by")
    implied: ClassVar[Sequence[str]] = ("pause_us", "mean_fps")

    interval_us: Statistics
    pause_us: float | None
    """Of the median: from the last frame of a burst to the first of the next."""
    mean_fps: float | None
    """Of the median, per direction."""
    rate_fps: int
    """Within a burst."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    """The lowest mean rate that failed."""
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        figures = (*self.interval_us.cells(self.form), cell(self.pause_us, self.form), cell(self.mean_fps, ",.0f"))
        return [(*figures, self.limited_by or "-")]

    def loads_by_stream(self) -> set[Load]:
        """Those of the mean rates of the repetitions, and the upper bound."""
        values = [round(self.case[BURST] * 1e6 / one) for one in self.interval_us.values if one is not None]
        upper = set() if self.upper_bound is None else {self.upper_bound.load}
        return {Load.fps(value) for value in values} | upper

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return float(conditions["interval_resolution"]) * (self.interval_us.p99 or 0.0)


def point(recorded: Recorded) -> BurstIntervalPoint:
    mean_fps, members = repeated_searches.found(recorded)
    rate_fps, burst = recorded.limits["rate_fps"], recorded.case[BURST]
    values = [None if one is None else _interval_us(recorded.case, one) for one in mean_fps.values]
    rule = recorded.conditions.every.repetitions
    interval_us = statistics_of(recorded.of(SearchFinding), values, rule, Missing.HIGHEST)
    median_us = interval_us.median
    return BurstIntervalPoint(
        **members,
        interval_us=interval_us,
        pause_us=None if median_us is None else max(0.0, median_us - (burst - 1) / rate_fps * 1e6),
        mean_fps=None if not median_us else burst / median_us * 1e6,
        rate_fps=rate_fps,
    )


def _few_lengths(facts: Facts) -> str | None:
    missing = [str(burst) for burst in BURSTS if burst not in facts.conditions.bursts]
    return f"no bursts of {', '.join(missing)} frames" if missing else None


def _rate(facts: Facts) -> str | None:
    below = [frame for frame in facts.frames if not frame["rate_is_media"]]
    return "the frames of a burst have a given rate, not the smallest gap of the media" if below else None


# --- a DUT whose truth is known ------------------------------------------------------------------

CAPACITY_FPS, RATE_FPS, FRAMES, QUEUE = 5_000, 20_000, 64, 100
"""48 frames of a burst have to wait."""
SEARCH_S, RESOLUTION = 1.0, 0.005


def _interval() -> Figure:
    """Before the last of m bursts ends, its DUT has served for (m - 1) intervals and a burst's time, and the queue and
    the frame in service hold what is left of m bursts."""
    true_s, intervals = FRAMES / CAPACITY_FPS, 1
    for _ in range(10):  # how many bursts a trial has depends on the interval
        intervals = ceil(SEARCH_S / true_s) - 1
        waiting = (intervals + 1) * FRAMES - QUEUE - 1
        true_s = (waiting / CAPACITY_FPS - (FRAMES - 1) / RATE_FPS) / intervals

    def error(evidence: Evidence) -> float:
        late_s = evidence.largest_disturbance_s() + FRAMES / RATE_FPS
        return (true_s * RESOLUTION + (late_s + 2 / CAPACITY_FPS) / intervals) * 1e6

    true_us = true_s * 1e6
    return Figure("burst interval", "µs", true_us, 0.03 * true_us, median_of("interval_us"), error)


def _known_truth() -> KnownTruth:
    conditions = {"bursts": FRAMES, "max_rate": fps(RATE_FPS), "duration_s": SEARCH_S}
    return KnownTruth(
        Properties(capacity_fps=CAPACITY_FPS, queue=QUEUE),
        {**ONE_WAY, **conditions, "interval_resolution": RESOLUTION},
        (_interval(),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="burst-interval",
    summary="Search for the shortest lossless burst interval (RFC 2544 21).",
    chapter=Chapter.RATES,
    example="--lab kernel-ipv4 --bursts 16,64 --max-rate 50k --duration 0.5 --drain 0.2 --repetitions 3",
    simulated={"max_rate": "50k", "bursts": (16, 64), "interval_resolution": 0.05, "repetitions": 2},
    known_truth=_known_truth,
    conditions=BurstInterval,
    make=BurstIntervalProcedure,
    point=point,
    rules=deviations.rules(
        Clause("RFC 2544 section 21", _few_lengths),
        Clause("RFC 2544 section 21", _rate),
        Clause("RFC 2544 section 21", deviations.loss),
    ),
)
