# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames: the longest burst at the maximum rate that the DUT forwards without loss
(RFC 9004, which updates RFC 2544 26.4; RFC 8219 7.5).

The maximum rate is the media's, or on links that have none the user's. Only frame sizes whose
throughput is below it are measured (RFC 9004 6.1): of the others no burst is too long. In each
repetition a search of its own finds the longest burst (6.2, 6.3); over the repetitions stand
average, minimum, maximum and standard deviation, and what they say of the DUT's buffer in seconds
(6.4), taking the DUT for a buffer before a server of constant rate.

A value's error is that of its search, a share of the shortest burst that failed
(``burst_resolution``, at least a frame), and that of the tester's timing: a burst whose frames
leave late is another burst, and while the sender is late the DUT forwards ``throughput * lateness``
frames. A trial in which these are more than ``TIMING_FRAMES`` and ``TIMING_SHARE`` of the burst
says nothing, unless it lost more than them; what they were at most is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean, stdev
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from dutperf import journal
from dutperf.journal import Event
from dutperf.model import LimitedBy, Trial, TrialResult, Value, Verdict, to_json
from dutperf.procedures import evidence, repeated_searches
from dutperf.procedures.bench import Amend, Bench, Place, Plan, PlanError, frame_limits
from dutperf.procedures.definition import Definition
from dutperf.procedures.evidence import outcome_of
from dutperf.procedures.rates import highest, rate_of, throughput_given
from dutperf.results import charts, deviations, points
from dutperf.results import statistics as repeated
from dutperf.results.charts import Chart
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Loss, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics, without_number
from dutperf.search import Outcome
from dutperf.search.binary import TYPICAL_TRIALS
from dutperf.search.burst import FIRST_FRAMES, BurstSearch, FoundBurst
from dutperf.setup.conditions import AtThroughput, Conditions, Rate, Repetitions, WithMaximum
from dutperf.setup.option import FIXED, Option
from dutperf.statistics import stopping as repetition
from dutperf.statistics.stopping import Rule

TIMING_FRAMES = 8
"""So many frames the DUT may have forwarded while the sender was late: an eighth of the first
burst."""
TIMING_SHARE = 0.05
"""... or this share of the burst."""
ATTEMPTS = 6
"""Trials of one burst before its frames count as beyond the tester's timing. On a shared machine
one in a few is disturbed."""
LONGEST_DRAIN_NS = 3_600_000_000_000
ABOVE = "above_frames"
"""The member of a ``search`` event that holds the burst which did not pass."""


@dataclass(frozen=True)
class _Limits:
    """Of a frame size: the rate of the bursts, the throughput (both in frames/s per direction) and
    the longest burst."""

    frame_size: int
    rate_fps: int
    is_media: bool
    throughput_fps: int
    longest_frames: int

    @property
    def measured(self) -> bool:
        """Whether there is a burst that is too long (RFC 9004 6.1)."""
        return self.throughput_fps < self.rate_fps

    def amend(self, frames: int) -> Amend:
        """To a trial of ``frames`` frames that goes on receiving, after the time that the DUT needs
        for them, as long as the conditions say (6.2)."""
        duration_ns = (
            frames * 1_000_000_000 // self.rate_fps
        )  # frame k is due at k / rate: exactly so many are due before
        emptying_ns = frames * 1_000_000_000 // self.throughput_fps - duration_ns

        def amended(trial: Trial) -> Trial:
            drain_ns = min(LONGEST_DRAIN_NS, trial.drain_ns + emptying_ns)
            return trial.model_validate({**dict(trial), "duration_ns": duration_ns, "drain_ns": drain_ns})

        return amended

    def outcome(self, result: TrialResult, conditions: Conditions, frames: int) -> Outcome:
        """What a search may learn: nothing also where the sender was so late that it was another
        burst."""
        outcome, shift = outcome_of(result, conditions), shift_frames(result, self.throughput_fps)
        by_timing = outcome is Outcome.PASSED or all(counts.lost <= shift for counts in result.directions().values())
        return Outcome.UNMEASURABLE if by_timing and shift > max(TIMING_FRAMES, TIMING_SHARE * frames) else outcome


@dataclass
class _Course:
    """A repetition under way."""

    limits: _Limits
    repetition: int
    repetitions: int
    trials_after: int
    search: BurstSearch
    results: dict[int, TrialResult] = field(default_factory=dict)
    """Burst to what its last trial showed."""


class BackToBackConditions(WithMaximum, AtThroughput):
    """What the longest burst is measured for."""

    duration_s: Annotated[float, FIXED] = 60.0
    pattern: Annotated[str, FIXED] = "constant"
    burst_rate: Annotated[Rate | None, FIXED] = None
    repetitions: Repetitions = 50
    max_burst_s: Annotated[
        float,
        Field(gt=0, le=3_600),
        Option(
            "Longest burst to try, as the time that its sending takes",
            clause="RFC 9004: up to 30",
            label="longest burst, s at its rate",
        ),
    ] = 30.0
    burst_resolution: Annotated[
        float,
        Field(gt=0, le=0.5),
        Option(
            "The search ends when it knows the longest burst to this share of it; never finer than a frame",
            label="resolution of the search, share of the burst",
            metavar="RATIO",
        ),
    ] = 0.005
    verifications: Annotated[
        int,
        Field(ge=0, le=100),
        Option(
            "How often a burst that failed is offered again before it counts as failed (loss verification, ETSI GS"
            " NFV-TST 009 12.3)",
            label="times that a burst that failed is sent again",
            metavar="COUNT",
        ),
    ] = 1


class BackToBack:
    """The procedure (:class:`dutperf.procedures.bench.Procedure`).

    Raises:
        PlanError: no maximum rate, no throughput, or rates that cannot be.
    """

    def __init__(self, plan: Plan[BackToBackConditions]) -> None:
        self._plan = plan
        self._conditions = plan.conditions
        self._limits = [_limits(plan, size) for size in plan.conditions.frame_sizes]
        self._lengths: list[int] = []

    def description(self) -> dict[str, Any]:
        """See :meth:`dutperf.procedures.bench.Procedure.description`."""
        search = {
            "algorithm": "binary with loss verification (ETSI GS NFV-TST 009, 12.3)",
            "start": "none",
            "first_frames": FIRST_FRAMES,
        }
        return {"search": search, "frames": [self._frame(limits) for limits in self._limits]}

    def run(self, bench: Bench) -> str | None:
        """See :meth:`dutperf.procedures.bench.Procedure.run`. Ends before its time where the DUT
        forwards nothing."""
        measured = [limits for limits in self._limits if limits.measured]
        for index, limits in enumerate(measured):
            message = self._measure(bench, limits, len(measured) - index - 1)
            if message is not None:
                return message
        return None

    def _measure(self, bench: Bench, limits: _Limits, sizes_left: int) -> str | None:
        rule, values = self._conditions.repetitions, list[int | None]()
        while repetition.stopped(rule, values) is None:
            at_least = repetition.next_look(rule, len(values))
            later = at_least - len(values) - 1 + sizes_left * repetition.next_look(rule, 0)
            search = BurstSearch(
                limits.longest_frames, self._conditions.burst_resolution, self._conditions.verifications
            )
            course = _Course(
                limits, len(values) + 1, at_least, round(later * fmean(self._lengths or [TYPICAL_TRIALS])), search
            )
            self._search(bench, course)
            ended = _ended(course)
            bench.record("search", **ended)
            bench.say(
                f"repetition {course.repetition}: {_number(ended['value_frames'])}; {ended['message']}", _place(course)
            )
            if ended["silent"]:
                return str(ended["message"])
            values.append(ended["value_frames"])
        return None

    def _search(self, bench: Bench, course: _Course) -> None:
        while (frames := course.search.next_frames()) is not None:
            course.results[frames], outcome = self._offer(bench, course, frames)
            course.search.tell(outcome)
        self._lengths.append(len(course.search.found().loads))

    def _offer(self, bench: Bench, course: _Course, frames: int) -> tuple[TrialResult, Outcome]:
        """A trial of that burst; another one where a valid trial's timing was not that of the
        burst."""
        limits = course.limits
        for _ in range(ATTEMPTS):
            result = bench.measure(limits.rate_fps, _place(course), limits.amend(frames))
            outcome = limits.outcome(result, self._conditions, frames)
            if outcome is not Outcome.UNMEASURABLE or result.verdict is not Verdict.VALID:
                break
        return result, outcome

    def _frame(self, limits: _Limits) -> dict[str, Any]:
        first = limits.amend(min(FIRST_FRAMES, limits.longest_frames))(
            self._plan.make_trial(limits.frame_size, limits.rate_fps, 0)
        )
        return {
            **frame_limits(self._plan, limits.frame_size, limits.rate_fps),
            "first_trial": to_json(first),
            "rate_fps": limits.rate_fps,
            "rate_is_media": limits.is_media,
            "throughput_fps": limits.throughput_fps,
            "longest_frames": limits.longest_frames,
            "measured": limits.measured,
        }


def shift_frames(result: TrialResult, throughput_fps: int) -> int:
    """How many frames a DUT of that throughput can forward in the time that the sender was late:
    the burst is as uncertain."""
    return ceil(
        max((counts.lateness_us.max for counts in result.directions().values()), default=0.0) / 1e6 * throughput_fps
    )


def _limits(plan: Plan[BackToBackConditions], frame_size: int) -> _Limits:
    conditions, media_fps = plan.conditions, plan.maximum_fps(frame_size)
    rate_fps, is_media = highest(conditions, media_fps)
    if rate_fps is None:
        raise PlanError(
            "give the rate of the bursts: the media's maximum frame rate is not known (virtual links have none)",
            option="max_rate",
        )
    longest = max(1, int(conditions.max_burst_s * rate_fps))
    return _Limits(frame_size, rate_fps, is_media, rate_of(conditions, frame_size, media_fps), longest)


def _place(course: _Course) -> Place:
    frames = course.search.next_frames()
    return Place(
        frame_size=course.limits.frame_size,
        repetition=course.repetition,
        repetitions=course.repetitions,
        lower_fps=None,
        upper_fps=None,
        trials_left=0 if course.search.found().silent else course.search.trials_left() + course.trials_after,
        duration_s=None if frames is None else frames / course.limits.rate_fps,
        burst_frames=frames,
    )


def _ended(course: _Course) -> dict[str, Any]:
    """The members of a ``search`` event."""
    found, limits = course.search.found(), course.limits
    told = (
        found.value_frames,
        found.above_frames if found.limited_by is LimitedBy.DUT else None,
    )  # of what the tester could not do nothing is taken
    decisive = [course.results[frames] for frames in told if frames is not None]
    return {
        "frame_size": limits.frame_size,
        "repetition": course.repetition,
        "silent": found.silent,
        "value_frames": found.value_frames,
        "limited_by": found.limited_by,
        "above_frames": found.above_frames,
        "timing_frames": max((shift_frames(result, limits.throughput_fps) for result in decisive), default=0),
        "loads": [[frames, outcome] for frames, outcome in found.loads],
        "message": _explanation(found, course),
    }


def _explanation(found: FoundBurst, course: _Course) -> str:
    """Why the value is what it is, in a sentence."""
    if found.above_frames is None:
        return (
            f"the longest burst of the search, {course.limits.longest_frames:,} frames, passed: allow for longer ones"
        )
    result, above = course.results[found.above_frames], f"{found.above_frames:,} frames"
    if found.silent:
        return evidence.silence(result)
    if found.limited_by is LimitedBy.TESTER:
        return f"limited by the tester at {above}: {_untimely(result, course.limits)}"
    failed = f"of a burst of {above} {evidence.losses(result)}"
    return failed if found.value_frames is not None else f"nothing passed: {failed}"


def _untimely(result: TrialResult, limits: _Limits) -> str:
    if result.verdict is not Verdict.VALID:
        return evidence.invalidity(result)
    return f"frames left so late that the DUT could forward {shift_frames(result, limits.throughput_fps):,} meanwhile"


def _number(frames: int | None) -> str:
    return "no burst" if frames is None else f"a burst of {frames:,} frames"


class AboveBurst(Value):
    """The shortest burst that failed right above a value."""

    frames: int
    forward: Loss | None = None
    reverse: Loss | None = None


class BackToBackPoint(points.LimitedPoint):
    """A frame size and its longest burst."""

    title: ClassVar[str] = "longest burst at the maximum rate, frames per direction"
    columns: ClassVar[Row] = ("average", "min", "max", "std dev", "buffer ms", "limited by")

    rate_fps: int
    """Of the bursts."""
    throughput_fps: int
    measured: bool
    """Not where the throughput is the maximum rate: then no burst is too long."""
    average_frames: float | None
    minimum_frames: int | None
    maximum_frames: int | None
    standard_deviation_frames: float | None
    """Of the sample; None also with a single repetition."""
    burst_frames: Statistics
    implied_buffer_s: float | None
    """The average burst, in time at its rate."""
    corrected_buffer_s: float | None
    """... without what the DUT forwarded meanwhile."""
    timing_frames: int
    """How many frames a value may be off because frames left late, at most."""
    longest_frames: int
    """The longest burst of the search."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    above: AboveBurst | None
    repetitions: repeated.Repetitions
    trials: Trials

    @property
    def finished(self) -> int:
        """See :class:`dutperf.results.points.Point`. A size that needs no repetition lacks none."""
        return len(self.burst_frames.values) if self.measured else sys.maxsize

    @property
    def has_number(self) -> bool:
        """See :class:`dutperf.results.points.Point`. That no burst is too long is a result."""
        return self.average_frames is not None or not self.measured

    def rows(self) -> list[Row]:
        """See :class:`dutperf.results.points.Point`."""
        frames = (self.minimum_frames, self.maximum_frames)
        buffer_ms = None if self.corrected_buffer_s is None else self.corrected_buffer_s * 1000
        figures = (
            cell(self.average_frames, ",.1f"),
            *(cell(one, ",d") for one in frames),
            cell(self.standard_deviation_frames, ",.1f"),
        )
        return [(*figures, cell(buffer_ms, ".4f"), self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        """What the buffer is taken from, and how sure the figures are."""
        if self.implied_buffer_s is not None and self.corrected_buffer_s is not None:
            yield (
                f": buffer time {self.implied_buffer_s * 1000:.4f} ms at {self.rate_fps:,} frames/s, corrected for the"
                f" throughput of {self.throughput_fps:,} frames/s {self.corrected_buffer_s * 1000:.4f} ms"
            )
        if self.timing_frames:
            yield f": frames that left late make each value uncertain by up to {self.timing_frames:,} frames"
        if certainty := self.repetitions.certainty(self.burst_frames):
            yield f": {certainty}"

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        """See :class:`dutperf.results.points.Point`; with what late frames make uncertain."""
        above = self.maximum_frames or 0 if self.above is None else self.above.frames
        return max(1.0, float(conditions["burst_resolution"] * above)) + self.timing_frames

    @classmethod
    def charts(cls, points: Sequence[Self], frames: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """The average over the frame size (RFC 9004 6.4: with minimum and maximum), and each
        repetition's value."""
        del frames
        figures = [
            (float(point.frame_size), (point.average_frames, point.minimum_frames, point.maximum_frames))
            for point in points
        ]
        curve = charts.with_bars("measured", figures)
        over_sizes = Chart(
            name="",
            title="Longest burst over frame size",
            x_label="frame size, bytes",
            y_label="longest burst, frames per direction",
            curves=(curve,),
            caption=(
                "Average of the repetitions; the bars reach from the smallest to the largest. A size whose throughput"
                " is the maximum rate has none."
            ),
            x_scale="octaves",
            y_scale=charts.scale_of(curve.y),
            y_range=(0 if charts.scale_of(curve.y) == "linear" else None, None),
        )
        return (
            over_sizes,
            charts.repetitions(
                "Longest burst", over_sizes.y_label, [(point.frame_size, point.burst_frames.values) for point in points]
            ),
        )


def point(recorded: Recorded) -> BackToBackPoint:
    """The point that the journal holds (:data:`dutperf.results.points.PointBuilder`)."""
    found, frame, rule = recorded.of("search"), recorded.frame, recorded.conditions.repetitions
    decisive = repeated_searches.decisive(found, ABOVE)
    stopped = (
        None
        if any(search["silent"] for search in found)
        else repetition.stopped(rule, [search["value_frames"] for search in found])
    )
    unneeded = LimitedBy.MEDIA if frame["rate_is_media"] else LimitedBy.RANGE
    return BackToBackPoint(
        **{
            name: frame[name]
            for name in ("frame_size", "frame_size_ipv4", "rate_fps", "throughput_fps", "measured", "longest_frames")
        },
        **_figures(found, frame, rule),
        timing_frames=max((search["timing_frames"] for search in found), default=0),
        limited_by=(None if decisive is None else decisive["limited_by"]) if frame["measured"] else unneeded,
        above=_above(found, repeated_searches.without_waits(recorded.of("result"), recorded.of("wait"))),
        repetitions=repeated.Repetitions(finished=len(found), stopped=stopped),
        trials=points.trials(recorded.of("result")),
        message=_message(found, frame) + (recorded.shortfall(len(found), stopped) if frame["measured"] else ""),
    )


def _figures(found: list[Event], frame: dict[str, Any], rule: Rule) -> dict[str, Any]:
    """RFC 9004 6.4. Without a number where in some repetition no burst passed, or the DUT died."""
    values = tuple(search["value_frames"] for search in found)
    usable = [] if any(search["silent"] for search in found) or None in values else list(values)
    average = fmean(usable) if usable else None
    implied_s = None if average is None else average / frame["rate_fps"]
    return {
        "average_frames": average,
        "minimum_frames": min(usable, default=None),
        "maximum_frames": max(usable, default=None),
        "standard_deviation_frames": stdev(usable) if len(usable) > 1 else None,
        "burst_frames": statistics(values, rule) if usable else without_number(values),
        "implied_buffer_s": implied_s,
        "corrected_buffer_s": (
            None if implied_s is None else implied_s * (1 - frame["throughput_fps"] / frame["rate_fps"])
        ),
    }


def _message(found: list[Event], frame: dict[str, Any]) -> str:
    if not frame["measured"]:
        return f"the throughput, {frame['throughput_fps']:,} frames/s, is the maximum rate: no burst is too long"
    return repeated_searches.message(found, ABOVE)


def _above(found: list[Event], results: list[Event]) -> AboveBurst | None:
    """The shortest of the failed bursts that stand right above a repetition's value; of several
    trials, the one that lost most."""
    wanted = {
        (search["repetition"], search["above_frames"]) for search in found if search["limited_by"] == LimitedBy.DUT
    }
    recorded = [(event["repetition"], journal.recorded_result(event["result"])) for event in results]
    lengths = [
        (_frames(result), result)
        for number, result in recorded
        if (number, _frames(result)) in wanted and result.verdict is Verdict.VALID
    ]
    if not lengths:
        return None
    frames, result = min(lengths, key=lambda trial: (trial[0], -trial[1].worst_loss_ratio))
    return AboveBurst(frames=frames, **points.losses(result))


def _frames(result: TrialResult) -> int:
    return max((counts.intended for counts in result.directions().values()), default=0)


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
    Clause("RFC 9004 section 5", throughput_given),
    Clause("RFC 9004 section 6.2", _burst_rate),
    Clause("RFC 9004 section 6.2", deviations.loss),
    Clause("RFC 2544 section 26.4", _burst_repetitions),
)


PROCEDURE = Definition(
    name="back-to-back",
    summary=(
        "Search for the longest burst at the maximum rate that the DUT forwards without loss (RFC 9004, RFC 2544 26.4)."
    ),
    conditions=BackToBackConditions,
    make=BackToBack,
    point=point,
    rules=RULES,
)
