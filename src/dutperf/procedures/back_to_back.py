# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames: the longest burst at the maximum rate that the DUT forwards without loss
(RFC 9004, which updates RFC 2544 26.4; RFC 8219 7.5).

The maximum rate is the media's, or the user's on links without one. Only frame sizes whose
throughput is below it are measured (RFC 9004 6.1): at the others no burst is too long. Each
repetition searches for the longest burst again (6.2, 6.3). Reported are average, minimum, maximum and
standard deviation over the repetitions, and from them the DUT's buffer in seconds (6.4), with the
DUT modelled as a buffer before a server of constant rate.

A value has two errors. The search's is a share of the shortest burst that failed
(``burst_resolution``, at least a frame). The tester's timing adds the other: while the sender is
late, the DUT forwards ``throughput * lateness`` frames, so the burst is another one. A trial in
which these are more than ``TIMING_FRAMES`` and ``TIMING_SHARE`` of the burst proves nothing, unless
it lost more frames than these. Their maximum is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean, stdev
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from dutperf.journal import ResultEvent, WaitEvent
from dutperf.lab.refdut import Properties
from dutperf.model import Case, LimitedBy, Load, Trial, TrialResult, Unit, Verdict
from dutperf.procedures import evidence, rates, repeated_searches
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Bench, Place, Plan
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.evidence import outcome_of
from dutperf.procedures.known_truth import ONE_WAY, QUEUE_FRAMES, Evidence, Figure, KnownTruth, fps
from dutperf.procedures.repeated_searches import Offered, RepeatedSearches, SearchFinding, UpperBound
from dutperf.results import charts, deviations, points
from dutperf.results import statistics as repeated
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import MainFigure, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics, without_number
from dutperf.search import Outcome
from dutperf.search.binary import TYPICAL_TRIALS, Search, SearchResult
from dutperf.search.burst import FIRST_FRAMES, BurstSearch
from dutperf.setup.conditions import (
    AtThroughput,
    Conditions,
    Repetitions,
    Steady,
    WithMaximum,
    WithPacing,
    WithTolerance,
)
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.ratio import AnyRatio
from dutperf.statistics.stopping import Rule

TIMING_FRAMES = 8
"""Most frames that the DUT may have forwarded while the sender was late: an eighth of the first
burst."""
TIMING_SHARE = 0.05
"""... or this share of the burst."""
ATTEMPTS = 6
"""Trials of one burst before it counts as limited by the tester's timing. On a shared machine one
in a few is disturbed."""
LONGEST_DRAIN_NS = 3_600_000_000_000


@dataclass(frozen=True)
class _Limits:
    """Limits of a case: the rate of the bursts, the throughput (both in frames/s per direction) and
    the longest burst."""

    rate_fps: int
    is_media: bool
    throughput_fps: int
    longest_frames: int

    @property
    def measured(self) -> bool:
        """Whether there is a burst that is too long (RFC 9004 6.1)."""
        return self.throughput_fps < self.rate_fps

    def burst(self, trial: Trial, frames: int) -> Trial:
        """``trial``, which has the rate, with ``frames`` frames. It receives for the time that the
        DUT needs to forward them, and then as long as the conditions say (6.2)."""
        duration_ns = (
            frames * 1_000_000_000 // self.rate_fps
        )  # frame k is due at k / rate: exactly ``frames`` are due before
        emptying_ns = max(0, frames * 1_000_000_000 // self.throughput_fps - duration_ns)
        drain_ns = min(LONGEST_DRAIN_NS, trial.drain_ns + emptying_ns)
        return trial.within(duration_ns, drain_ns=drain_ns)

    def outcome(self, result: TrialResult, conditions: Conditions, frames: int) -> Outcome:
        """Outcome for the search: also unmeasurable where the sender was so late that it was another
        burst."""
        outcome, shift = outcome_of(result, conditions), shift_frames(result, self.throughput_fps)
        by_timing = outcome is Outcome.PASSED or all(counts.lost <= shift for counts in result.directions().values())
        return Outcome.UNMEASURABLE if by_timing and shift > max(TIMING_FRAMES, TIMING_SHARE * frames) else outcome


class BackToBack(WithMaximum, AtThroughput, WithTolerance, WithPacing, Steady):
    """Conditions of a back-to-back measurement."""

    repetitions: Repetitions = default(50)
    max_burst_s: Annotated[
        float,
        Field(gt=0, le=3_600),
        Option(
            "Longest burst to try, in s",
            clause="RFC 9004: up to 30",
            label="longest burst, s at its rate",
        ),
    ] = 30.0
    burst_resolution: Annotated[
        AnyRatio,
        Field(gt=0, le=0.5),
        Option(
            "Resolution at which the search ends, as a share of the burst",
            label="resolution of the search, share of the burst",
            metavar="RATIO",
            text=True,
        ),
    ] = default(0.005)
    verifications: Annotated[
        int,
        Field(ge=0, le=100),
        Option(
            "How often a failed burst is offered again (NFV-TST 009 12.3)",
            label="repeats of a burst that failed",
            metavar="COUNT",
        ),
    ] = 1


class BurstFinding(SearchFinding):
    """The result of a search for the longest burst."""

    timing_frames: int
    """Timing error of lower and upper bound in frames; an upper bound that the tester could not
    measure is left out."""


class BackToBackProcedure(RepeatedSearches[BackToBack]):
    unit = Unit.FRAMES
    failed_at = "of"

    def __init__(self, plan: Plan[BackToBack]) -> None:
        super().__init__(plan)
        self._limits = {case: _limits(plan, case) for case in self.cases}

    def is_needed(self, case: Case) -> bool:
        return self._limits[case].measured

    def first_load(self, case: Case) -> Load:
        return Load(min(FIRST_FRAMES, self._limits[case].longest_frames), self.unit)

    def algorithm(self) -> dict[str, Any]:
        return {
            "algorithm": "binary with loss verification (ETSI GS NFV-TST 009, 12.3)",
            "start": "none",
            "first_frames": FIRST_FRAMES,
        }

    def limits(self, case: Case) -> dict[str, Any]:
        limits = self._limits[case]
        return {
            "rate_fps": limits.rate_fps,
            "rate_is_media": limits.is_media,
            "throughput_fps": limits.throughput_fps,
            "longest_frames": limits.longest_frames,
            "measured": limits.measured,
        }

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """The burst sets the duration."""
        limits = self._limits[case]
        return limits.burst(super().trial(case, Load.fps(limits.rate_fps), number), load.value)

    def trials_of(self, *, first: bool) -> float:
        return fmean([*self._lengths[True], *self._lengths[False]] or [TYPICAL_TRIALS])

    def new_search(self, place: Place, prior: Prior) -> Search:
        longest = self._limits[place.case].longest_frames
        return BurstSearch(longest, self.conditions.burst_resolution, self.conditions.verifications)

    def offer(self, bench: Bench, load: Load, place: Place) -> tuple[TrialResult, Outcome]:
        """Run a trial of that burst; repeat it where a valid trial's timing was not the burst's."""
        limits = self._limits[place.case]
        expected = replace(place, duration_s=load.value / limits.rate_fps)
        for _ in range(ATTEMPTS):
            result = self.measure(bench, load, expected)
            outcome = limits.outcome(result, self.conditions, load.value)
            if outcome is not Outcome.UNMEASURABLE or result.verdict is not Verdict.VALID:
                break
        return result, outcome

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        longest = self._limits[case].longest_frames
        return f"the longest burst of the search, {longest:,} frames, passed: allow longer ones"

    def why_unmeasurable(self, case: Case, result: TrialResult) -> str:
        if result.verdict is not Verdict.VALID:
            return evidence.invalidity(result)
        shift = shift_frames(result, self._limits[case].throughput_fps)
        return f"frames left so late that the DUT could forward {shift:,} meanwhile"

    def finding(
        self, members: dict[str, Any], case: Case, result: SearchResult, offered: Sequence[Offered]
    ) -> BurstFinding:
        decisive = {result.lower_bound, result.upper_bound if result.limited_by is LimitedBy.DUT else None}
        last = {one.value: one.result for one in offered if one.value in decisive}
        shifts = (shift_frames(one, self._limits[case].throughput_fps) for one in last.values())
        return BurstFinding(**members, timing_frames=max(shifts, default=0))


def shift_frames(result: TrialResult, throughput_fps: int) -> int:
    """Frames that a DUT of that throughput can forward while the sender is late, which is the
    burst's uncertainty."""
    return ceil(
        max((counts.lateness_us.max for counts in result.directions().values()), default=0.0) / 1e6 * throughput_fps
    )


def _limits(plan: Plan[BackToBack], case: Case) -> _Limits:
    rate_fps = rates.first(plan, case, "the rate of the bursts").value
    _, is_media = rates.highest(plan.conditions, plan.traffic.maximum_fps(case))
    longest = max(1, int(plan.conditions.max_burst_s * rate_fps))
    return _Limits(rate_fps, is_media, rates.rate_of(plan, case), longest)


class BackToBackPoint(points.Point):
    """A case and its longest burst."""

    title: ClassVar[str] = "longest burst at the maximum rate, frames per direction"
    columns: ClassVar[Row] = ("average", "min", "max", "std dev", "buffer ms", "limited by")

    rate_fps: int
    """Of the bursts."""
    throughput_fps: int
    measured: bool
    """False where the throughput is the maximum rate: then no burst is too long."""
    average_frames: float | None
    minimum_frames: int | None
    maximum_frames: int | None
    standard_deviation_frames: float | None
    """Of the sample; None also with a single repetition."""
    burst_frames: Statistics
    implied_buffer_s: float | None
    """Sending time of the average burst at its rate."""
    corrected_buffer_s: float | None
    """... without the frames that the DUT forwarded meanwhile."""
    timing_frames: int
    """Largest error of a value in frames, because frames left late."""
    longest_frames: int
    """The longest burst of the search."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    repetitions: repeated.Repetitions
    trials: Trials

    @property
    def finished(self) -> int:
        """A case that is not measured needs none."""
        return super().finished if self.measured else sys.maxsize

    @property
    def has_number(self) -> bool:
        """That no burst is too long is a result too."""
        return self.average_frames is not None or not self.measured

    def main_figure(self) -> MainFigure:
        if not self.measured:
            return MainFigure(f"no burst is too long at {self.rate_fps:,} {Unit.FRAMES_PER_SECOND.label}")
        figures = MainFigure.of(self.burst_frames, "")
        return MainFigure(
            f"{cell(self.average_frames, ',.1f')} {Unit.FRAMES.label} in the longest burst", figures.spread
        )

    def rows(self) -> list[Row]:
        frames = (self.minimum_frames, self.maximum_frames)
        buffer_ms = None if self.corrected_buffer_s is None else self.corrected_buffer_s * 1000
        figures = (
            cell(self.average_frames, ",.1f"),
            *(cell(one, ",d") for one in frames),
            cell(self.standard_deviation_frames, ",.1f"),
        )
        return [(*figures, cell(buffer_ms, ".4f"), self.limited_by or "-")]

    def loads_by_stream(self) -> set[Load]:
        """Those of the lower bounds and the upper bound."""
        return repeated_searches.bounds(self.burst_frames, self.upper_bound, Unit.FRAMES)

    def remarks(self) -> Iterator[str]:
        """How the buffer is computed, and how certain the figures are."""
        if self.implied_buffer_s is not None and self.corrected_buffer_s is not None:
            yield (
                f": buffer time {self.implied_buffer_s * 1000:.4f} ms at {self.rate_fps:,} frames/s;"
                f" {self.corrected_buffer_s * 1000:.4f} ms corrected for the throughput of"
                f" {self.throughput_fps:,} frames/s"
            )
        if self.timing_frames:
            yield f": frames that left late make each value uncertain by up to {self.timing_frames:,} frames"
        if certainty := self.repetitions.certainty(self.burst_frames):
            yield f": {certainty}"

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        """Plus the timing error."""
        upper = self.maximum_frames or 0 if self.upper_bound is None else self.upper_bound.load.value
        return max(1.0, float(conditions["burst_resolution"] * upper)) + self.timing_frames

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The average over the cases (RFC 9004 6.4: with minimum and maximum), and each repetition's
        value."""
        y_label = f"longest burst, {Unit.FRAMES.label}"
        figures = [
            ("measured", point.case, (point.average_frames, point.minimum_frames, point.maximum_frames))
            for point in points
        ]
        caption = (
            "Average of the repetitions; the bars reach from the smallest to the largest value. No value where the"
            " throughput is the maximum rate."
        )
        values = [(point.case, point.burst_frames.values) for point in points]
        return (
            *charts.over_cases("Longest burst", y_label, figures, caption=caption),
            charts.repetitions("Longest burst", y_label, values),
        )


def point(recorded: Recorded) -> BackToBackPoint:
    found, limits, rule = recorded.of(BurstFinding), recorded.limits, recorded.conditions.every.repetitions
    decisive = repeated_searches.decisive(found)
    stopped = repeated_searches.stopped(found, rule, [search.lower_bound for search in found])
    results = recorded.of(ResultEvent)
    unneeded = LimitedBy.MEDIA if limits["rate_is_media"] else LimitedBy.RANGE
    steady = points.without_waits(results, recorded.of(WaitEvent))
    return BackToBackPoint(
        case=recorded.case,
        **{name: limits[name] for name in ("rate_fps", "throughput_fps", "measured", "longest_frames")},
        **_figures(found, limits, rule),
        timing_frames=max((search.timing_frames for search in found), default=0),
        limited_by=(None if decisive is None else decisive.limited_by) if limits["measured"] else unneeded,
        upper_bound=repeated_searches.upper_bound(found, steady),
        repetitions=repeated.Repetitions(finished=len(found), stopped=stopped),
        trials=points.trials(results),
        message=_message(found, limits) + (recorded.shortfall(len(found), stopped) if limits["measured"] else ""),
    )


def _figures(found: Sequence[BurstFinding], limits: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    """RFC 9004 6.4. No numbers where in some repetition no burst passed, or the DUT forwarded
    nothing."""
    values = tuple(search.lower_bound for search in found)
    passed = [value for value in values if value is not None]
    usable = [] if any(search.not_forwarding for search in found) or len(passed) < len(values) else passed
    average = fmean(usable) if usable else None
    implied_s = None if average is None else average / limits["rate_fps"]
    return {
        "average_frames": average,
        "minimum_frames": min(usable, default=None),
        "maximum_frames": max(usable, default=None),
        "standard_deviation_frames": stdev(usable) if len(usable) > 1 else None,
        "burst_frames": statistics(values, rule) if usable else without_number(values),
        "implied_buffer_s": implied_s,
        "corrected_buffer_s": (
            None if implied_s is None else implied_s * (1 - limits["throughput_fps"] / limits["rate_fps"])
        ),
    }


def _message(found: Sequence[BurstFinding], limits: Mapping[str, Any]) -> str:
    if not limits["measured"]:
        throughput, rate = f"{limits['throughput_fps']:,}", f"{limits['rate_fps']:,}"
        return (
            f"the throughput, {throughput} frames/s, is no less than the rate of a burst, {rate}: no burst is too long"
        )
    return repeated_searches.message(found)


BURST_REPETITIONS = 50


def _burst_rate(facts: Facts) -> str | None:
    below = [frame for frame in facts.frames if not frame["rate_is_media"]]
    return "the bursts are sent at a given rate, not at the media's maximum" if below else None


def _burst_repetitions(facts: Facts) -> str | None:
    return (
        f"{facts.repetitions} repetitions, fewer than {BURST_REPETITIONS}"
        if facts.repetitions < BURST_REPETITIONS
        else None
    )


RULES = deviations.rules(
    Clause("RFC 9004 section 5", rates.throughput_given),
    Clause("RFC 9004 section 5", rates.throughput_otherwise),
    Clause("RFC 9004 section 6.2", _burst_rate),
    Clause("RFC 9004 section 6.2", deviations.loss),
    Clause("RFC 2544 section 26.4", _burst_repetitions),
)


# --- a DUT whose truth is known ------------------------------------------------------------------

BURST_CAPACITY_FPS, BURST_RATE_FPS = 5_000, 10_000
BURST_RESOLUTION = 0.02


def _burst() -> Figure:
    """A burst of n frames at a rate R leaves n - n C / R of them in the DUT, which holds the queue and the
    frame in service."""
    true = (QUEUE_FRAMES + 1) / (1 - BURST_CAPACITY_FPS / BURST_RATE_FPS)

    def error(evidence: Evidence) -> float:
        return true * BURST_RESOLUTION + 2 + BURST_RATE_FPS * evidence.largest_disturbance_s()

    return Figure("longest burst", "frames", true, 0.15 * true, lambda point: iter([point.average_frames]), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(capacity_fps=BURST_CAPACITY_FPS, queue=QUEUE_FRAMES),
        {
            **ONE_WAY,
            "rate": fps(BURST_CAPACITY_FPS),
            "max_rate": fps(BURST_RATE_FPS),
            "max_burst_s": 0.5,
            "burst_resolution": BURST_RESOLUTION,
        },
        (_burst(),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="back-to-back",
    summary="Search for the longest lossless burst (RFC 9004, 2544 26.4).",
    chapter=Chapter.RATES,
    example="--lab kernel-ipv4 --lab-option limit_fps=20000 --rate 20k --max-rate 50k --max-burst 1 --repetitions 3",
    simulated={"max_rate": "70k", "burst_resolution": 0.02},
    known_truth=_known_truth,
    conditions=BackToBack,
    make=BackToBackProcedure,
    point=point,
    rules=RULES,
)
