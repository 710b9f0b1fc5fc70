# SPDX-License-Identifier: Apache-2.0
"""Ramp: loss and delay over the offered load, while the rate of one trial rises evenly. No clause
asks for it: it shows at a glance, without a search, where a DUT breaks and how.

Every frame is stamped. A frame's number says when it was due, and with that the rate at which it was
offered; so each loss has a rate, and each of the equal parts of the ramp its own loss and delays.

The first loss is the rate at which the first lost frame was due. A part in which frames left late,
or shortly after, blames nobody: the first loss is then that of the next part without, and its
uncertainty grows. A ramp that leaves it too uncertain is repeated, and has no figure if each one
does. A DUT that buffers b frames loses its first one later than at its capacity: where the rate rises by
s frames/s each second, sqrt(2 s b) frames/s above. Frames that left late take a part of that buffer, so
that the first loss comes too early (:func:`too_low_fps`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.judge.own_loss import clear_parts, late_frames
from dutperf.judge.rules import is_testers
from dutperf.lab.refdut import Properties
from dutperf.model import (
    LOSS_BINS,
    Case,
    Direction,
    DirectionCounts,
    LimitedBy,
    Load,
    Profile,
    Segment,
    Stamping,
    Trial,
    Unit,
    Value,
)
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import ONE_WAY, QUEUE_FRAMES, Evidence, Figure, KnownTruth, fps, median_of
from dutperf.procedures.rates import given
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart, Curve
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import MainFigure, Recorded, Row, Trials, cell
from dutperf.results.statistics import Missing, Statistics, statistics, without_number
from dutperf.setup.changing_rate import seconds
from dutperf.setup.conditions import Repetitions, Steady, WithDuration, WithStamps
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.setup.rate import OptionalRate

PARTS = 50
"""Equal parts of the ramp with losses and delays of their own."""
FROM_SHARE = 100
"""By default the ramp begins at one in so many parts of its highest rate."""
UNCERTAIN_SHARE, UNCERTAIN_BINS = 0.1, 5
"""A first loss is too uncertain if it may lie lower by more than this share of it, and than so many 250ths of the
ramp."""
ATTEMPTS = 3
"""Trials of a repetition at most."""


class Ramp(WithDuration, WithStamps, Steady):
    """Conditions of a ramp."""

    from_rate: Annotated[
        OptionalRate,
        Option(
            "Rate at which the ramp begins. Default: 1 % of `to_rate`",
            label="rate at the beginning of the ramp",
            flag="--from",
            metavar="RATE",
        ),
    ] = default(None)
    to_rate: Annotated[
        OptionalRate,
        Option(
            "Rate at which the ramp ends. Default: the media's maximum frame rate",
            label="rate at the end of the ramp",
            flag="--to",
            metavar="RATE",
        ),
    ] = default(None)
    duration_s: Annotated[
        Given[float, str],
        BeforeValidator(lambda text: seconds(text) if isinstance(text, str) else text),
        Field(ge=0.001, le=86_400),
        Option(
            "How long the rate rises",
            clause="RFC 2544 section 24: 60",
            label="length of the ramp, s",
            flag="--over",
            alias="--duration",
            text=True,
        ),
    ] = default(60.0)
    repetitions: Repetitions = default(1)


class Ends(Value):
    """The rates between which the rate rises, in frames/s."""

    from_fps: int
    to_fps: int

    @property
    def rise_fps(self) -> int:
        return self.to_fps - self.from_fps

    def at(self, share: float) -> float:
        """The rate after this share of the time."""
        return self.from_fps + self.rise_fps * share

    def profile(self, duration_ns: int) -> Profile:
        """The same as the pattern of a stream."""
        return Profile(segments=(Segment(duration_ns=duration_ns, from_fps=self.from_fps, to_fps=self.to_fps),))


def ends_of(conditions: Ramp, media_fps: int | None) -> Ends:
    """The rates of the ramp; ``media_fps`` is the media's maximum frame rate (None: unknown). Raises PlanError: no rate
    to end with, or rates that are not possible."""
    to_fps = given("to_rate", conditions.to_rate, media_fps) or media_fps
    if to_fps is None:
        text = "give the rate at which the ramp ends: the media's maximum is not known (virtual links have none)"
        raise PlanError(text, option="to_rate")
    from_fps = given("from_rate", conditions.from_rate, media_fps) or max(1, to_fps // FROM_SHARE)
    if from_fps >= to_fps:
        text = f"a ramp rises, but not from {from_fps:,} to {to_fps:,} frames/s"
        raise PlanError(text, option="to_rate" if conditions.from_rate is None else "from_rate")
    return Ends(from_fps=from_fps, to_fps=to_fps)


# --- one trial ------------------------------------------------------------------------------------


class PartCounts(Value):
    """Frames of a direction that were due in a part of the ramp."""

    sent: int
    lost: int
    late: bool
    """Whether frames left late in it, or shortly before: its losses may not be the DUT's."""
    delay_us: tuple[float, float, float] | None
    """Median, 99th percentile and maximum; None: no frame arrived, or the tester itself may have added more to the
    median or the 99th percentile than is allowed (:func:`dutperf.judge.rules.is_testers`)."""


class Reading(Value):
    """What a direction of one trial shows; rates in frames/s."""

    first_loss_fps: float | None
    """None: the DUT lost nothing that could be blamed on it."""
    too_low_fps: float = 0.0
    """The first loss, at most: frames left late before it."""
    lossless_fps: float
    """The DUT lost nothing up to this rate: the end of the last 250th before the first loss in which no frame was
    lost or late."""
    steady_loss_fps: float | None
    """From this rate on frames were lost in every 250th, in the first of them certainly by the DUT; None: not even in
    the last one."""
    parts: tuple[PartCounts, ...]


class RampFinding(RepetitionFinding):
    """What a repetition's trial showed."""

    event: Literal["ramp"] = "ramp"
    readings: dict[Direction, Reading]

    @property
    def first_loss_fps(self) -> float | None:
        """Of the direction that loses earlier."""
        return min((one for each in self.readings.values() if (one := each.first_loss_fps) is not None), default=None)

    @property
    def lossless_fps(self) -> float | None:
        """Of the direction that loses earlier."""
        return min((each.lossless_fps for each in self.readings.values()), default=None)

    @property
    def steady_loss_fps(self) -> float | None:
        """Of the direction that loses earlier."""
        return min((one for each in self.readings.values() if (one := each.steady_loss_fps) is not None), default=None)

    def within(self, ends: Ends) -> tuple[float, float]:
        """The rates between which the DUT would have lost its first frame, had none left late, or the last one up to
        which it lost none."""
        highest = [
            one.first_loss_fps + one.too_low_fps for one in self.readings.values() if one.first_loss_fps is not None
        ]
        return self.lossless_fps or 0.0, min(highest, default=ends.to_fps)

    def is_uncertain(self, ends: Ends) -> bool:
        """Whether too many frames left late for a figure."""
        lowest, highest = self.within(ends)
        fewest = UNCERTAIN_BINS * ends.rise_fps / LOSS_BINS
        return bool(self.readings) and highest - lowest > max(UNCERTAIN_SHARE * highest, fewest)


def read(trial: Trial, direction: Direction, counts: DirectionCounts, ends: Ends) -> Reading:
    """What a direction of a valid ``trial`` shows."""
    lost = (0,) * LOSS_BINS if counts.losses is None else counts.losses.bins
    late = () if counts.late_bursts is None else counts.late_bursts.bins
    clear = frozenset(clear_parts(late, counts.lateness_us.max, trial.duration_s))
    lossy = [bin_ for bin_, frames in enumerate(lost) if frames]
    unevenly = late_frames(counts)  # a short queue loses one frame at most for each of these
    blamed = [bin_ for bin_ in lossy if bin_ in clear and lost[bin_] > unevenly[bin_]]
    first_bin = blamed[0] if blamed else LOSS_BINS
    lossless = max((bin_ + 1 for bin_ in clear if bin_ < first_bin and not lost[bin_]), default=0)
    last_lossless = max((bin_ for bin_ in range(LOSS_BINS) if not lost[bin_]), default=-1)
    steady = next((bin_ for bin_ in blamed if bin_ > last_lossless), None)
    first_loss_fps = None
    if blamed and counts.losses is not None:
        is_first = first_bin == lossy[0]
        first_loss_fps = ends.at(counts.losses.first_s / trial.duration_s if is_first else (first_bin + 1) / LOSS_BINS)
    return Reading(
        first_loss_fps=first_loss_fps,
        too_low_fps=too_low_fps(first_loss_fps, unevenly, trial.duration_s, ends) if first_loss_fps else 0.0,
        lossless_fps=ends.at(lossless / LOSS_BINS),
        steady_loss_fps=None if steady is None else max(ends.at(steady / LOSS_BINS), first_loss_fps or 0.0),
        parts=tuple(_parts(trial, direction, counts, (lost, clear))),
    )


def too_low_fps(first_loss_fps: float, late: Sequence[int], duration_s: float, ends: Ends) -> float:
    """By how much the first loss may be too low, at most, because of ``late`` frames in each 250th before it.

    While the tester waits, a DUT with an empty queue (a full bucket) serves nothing; when the n late frames come, its
    queue is longer by up to n, until it has served them. Where the rate rises by s, a first loss at F of a DUT with a
    capacity of C would be at C + sqrt((F - C)^2 + 2 s m) without the m of them that it had not served. It serves
    (C - r)^2 / 2 s from a rate r up to C. Of all C, the difference is largest g = F - r later: s n / g, or
    sqrt(2 s n - g^2) where g^2 < s n. Several times of late frames add less than each alone."""
    slope, bin_fps = ends.rise_fps / duration_s, ends.rise_fps / LOSS_BINS
    alone, frames_before = 0.0, 0
    for bin_, frames in enumerate(late):
        gap = first_loss_fps - ends.at((bin_ + 1) / LOSS_BINS)
        if frames == 0 or gap < -bin_fps:
            continue
        frames_before += frames
        squared, gap = slope * frames, max(0.0, gap)
        alone += squared / gap if gap * gap >= squared else math.sqrt(2 * squared - gap * gap)
    return min(alone, math.sqrt(2 * slope * frames_before))


def _parts(
    trial: Trial, direction: Direction, counts: DirectionCounts, bins: tuple[Sequence[int], frozenset[int]]
) -> list[PartCounts]:
    """``bins``: losses, and the bins in which no frame left late."""
    lost, clear = bins
    times, each = trial.times(direction), LOSS_BINS // PARTS
    bounds = [times.frames_before(trial.duration_ns * part // PARTS) for part in range(PARTS + 1)]
    delays = _delays_of_parts(counts)
    return [
        PartCounts(
            sent=bounds[part + 1] - bounds[part],
            lost=sum(lost[part * each : (part + 1) * each]),
            late=not clear.issuperset(range(part * each, (part + 1) * each)),
            delay_us=delays[part],
        )
        for part in range(PARTS)
    ]


def _delays_of_parts(counts: DirectionCounts) -> Sequence[tuple[float, float, float] | None]:
    delays = counts.delay_parts_us or (None,) * PARTS
    by_tester = counts.delay_parts_by_tester_us or (None,) * PARTS
    return [
        None if delay and own and any(map(is_testers, delay[:2], own[:2])) else delay
        for delay, own in zip(delays, by_tester, strict=True)
    ]


class RampProcedure(Procedure[Ramp]):
    def __init__(self, plan: Plan[Ramp]) -> None:
        super().__init__(plan)
        self._ends = {case: ends_of(plan.conditions, plan.traffic.maximum_fps(case)) for case in self.cases}

    def first_load(self, case: Case) -> Load:
        """The mean rate of the ramp."""
        return Load.fps(self._ends[case].profile(1).mean_fps)

    def limits(self, case: Case) -> dict[str, Any]:
        return self._ends[case].model_dump()

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "ramp", "order": "ascending", "ends": "with the highest rate"}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        trial = super().trial(case, load, number, duration_s)
        profile = self._ends[case].profile(trial.duration_ns)
        profiles = {way: profile.scaled_to(stream.rate_fps) for way, stream in trial.streams().items()}
        streams = {
            way: stream.model_copy(update={"pattern": profiles[way], "rate_fps": profiles[way].mean_fps})
            for way, stream in trial.streams().items()
        }
        return trial.with_streams(streams).model_copy(update={"stamping": Stamping.EVERY, "delay_parts": PARTS})

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> RampFinding:
        ends = self._ends[place.case]
        for _ in range(ATTEMPTS):
            found = self._of_trial(bench, place)
            if not found.is_uncertain(ends):
                return found
        lowest, highest = found.within(ends)
        where = f"limited by the tester from {lowest:,.0f} to {highest:,.0f} frames/s"
        message = f"{where}: it sent frames late there, so where the DUT began to lose some is not known"
        return found.model_copy(update={"valid": False, "message": message})

    def _of_trial(self, bench: Bench, place: Place) -> RampFinding:
        load, ends = self.first_load(place.case), self._ends[place.case]
        result, trial = self.measure(bench, load, place), self.trial(place.case, load, 0, place.duration_s)
        members, usable = self.read(result)
        readings = {direction: read(trial, direction, counts, ends) for direction, counts in usable.items()}
        return RampFinding(**members, readings=readings)

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        bench.say(f"repetition {place.repetition}: {_first_loss(done[-1], self._ends[place.case])}", place)


# --- over the repetitions -------------------------------------------------------------------------


class PartDelays(Value):
    """Delays in a part of the ramp, in µs."""

    p50: float
    """The median over the repetitions of their medians."""
    p99: float
    """The same of their 99th percentiles."""
    max: float
    """The largest of all."""


class RampPart(Value):
    """A part of the ramp, all repetitions together."""

    load: Load
    """The rate in its middle."""
    sent: dict[Direction, int]
    lost: dict[Direction, int]
    loss_ratio: dict[Direction, float]
    """Lost frames as a share of those sent."""
    forwarded_fps: float
    """Of the load, the share of the frames that arrived, by the times at which they were due."""
    late: int
    """Repetitions in which frames left late in it, so that its losses may not be the DUT's and its
    delays may be longer."""
    delay_us: dict[Direction, PartDelays]
    """Without a direction of which no frame arrived."""

    @property
    def worst_loss_ratio(self) -> float:
        """Of the worse direction."""
        return max(self.loss_ratio.values())

    def worst_us(self, name: str) -> float | None:
        """A delay of the slower direction: ``p50``, ``p99`` or ``max``."""
        return max((getattr(delays, name) for delays in self.delay_us.values()), default=None)


class RampPoint(points.Point):
    """A case, its first loss, and its loss and delays over the offered load."""

    title: ClassVar[str] = "ramp: frames/s per direction, loss of the worse one, delay of the slower one in µs"
    columns: ClassVar[Row] = ("rate", "forwarded", "lost", "median", "p99", "max", "late")

    series: ClassVar[str | None] = "parts"
    missing: ClassVar[Mapping[str, Missing]] = {"*_loss_fps": Missing.HIGHEST}

    ends: Ends
    first_loss_fps: Statistics
    """The rate at which the first frame was lost, in the direction that loses earlier; beyond the ramp where a
    repetition lost none."""
    uncertainty_fps: float | None
    """Between nothing lost and the first loss without late frames, at most, and at least a 250th of the ramp; None: no
    loss."""
    steady_loss_fps: Statistics
    """From this rate on every 250th of the ramp lost frames."""
    parts: tuple[RampPart, ...]
    limited_by: LimitedBy | None
    """``tester`` where it could not measure."""
    repetitions: int
    """Finished ones."""
    trials: Trials

    @property
    def has_number(self) -> bool:
        """A ramp without a loss has a result too."""
        return bool(self.parts) and self.limited_by is None

    def main_figure(self) -> MainFigure:
        if self.first_loss_fps.median is not None:
            return MainFigure.of(self.first_loss_fps, f"{Unit.FRAMES_PER_SECOND.label} at the first loss")
        values, up_to = self.first_loss_fps.values, f"up to {self.ends.to_fps:,} {Unit.FRAMES_PER_SECOND.label}"
        if (none := values.count(None)) < len(values):
            return MainFigure(f"no loss {up_to} in {none} of {len(values)} repetitions")
        nobodys = " that is certainly the DUT's" if any(part.worst_loss_ratio for part in self.parts) else ""
        return MainFigure(f"no loss{nobodys} {up_to}")

    def rows(self) -> list[Row]:
        return [_row(part) for part in self.parts]

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """Loss and delays over the offered load."""
        return (_loss_chart(points), _delay_chart(points))


def _row(part: RampPart) -> Row:
    delays = (cell(part.worst_us(name), ",.0f") for name in ("p50", "p99", "max"))
    late = f"{part.late}" if part.late else ""
    return (f"{part.load.value:,}", f"{part.forwarded_fps:,.0f}", _percent(part.worst_loss_ratio), *delays, late)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def _loss_chart(points: Sequence[RampPoint]) -> Chart:
    curves: list[Curve] = []
    for point in points:
        for direction in point.parts[0].sent if point.parts else ():
            loss = [(part.load.value, 100 * part.loss_ratio[direction]) for part in point.parts]
            curves.append(charts.line(charts.of_case(point.case, str(direction), several=len(points) > 1), loss))
        highest = max((y for curve in curves for y in curve.y), default=0.0)
        curves += _first_loss_line(point, (0.0, highest), several=len(points) > 1)
    return Chart(
        name="",
        title="Frame loss over the offered load of a ramp",
        x_label="offered load, frames/s per direction",
        y_label="frames lost, %",
        curves=tuple(curves),
        caption=f"The rate rises evenly within a trial; each point is a part of it, one in {PARTS}.",
        x_range=(0, None),
        y_range=(0, None),
    )


def _delay_chart(points: Sequence[RampPoint]) -> Chart:
    curves = [
        charts.line(charts.of_case(point.case, label, several=len(points) > 1), delays)
        for point in points
        for name, label in (("p50", "median"), ("p99", "99th percentile"), ("max", "maximum"))
        if (delays := [(one.load.value, us) for one in point.parts if (us := one.worst_us(name)) is not None])
    ]
    ends = [end for curve in curves for end in (min(curve.y), max(curve.y))]
    for point in points if ends else ():
        curves += _first_loss_line(point, (min(ends), max(ends)), several=len(points) > 1)
    return Chart(
        name="delay",
        title="Delay over the offered load of a ramp",
        x_label="offered load, frames/s per direction",
        y_label="delay of the slower direction, µs",
        curves=tuple(curves),
        caption="Of the frames that arrived. The tester's own sending and receiving is included.",
        x_range=(0, None),
        y_scale=charts.scale_of(y for curve in curves for y in curve.y),
    )


def _first_loss_line(point: RampPoint, ends: tuple[float, float], *, several: bool) -> list[Curve]:
    """A vertical line."""
    first_fps = point.first_loss_fps.median
    label = charts.of_case(point.case, "first loss", several=several)
    return [] if first_fps is None else [Curve(label, (first_fps, first_fps), ends, kind="reference")]


def point(recorded: Recorded) -> RampPoint:
    found, ends = recorded.of(RampFinding), Ends.model_validate({name: recorded.limits[name] for name in _ENDS})
    usable = bool(found) and all(one.readings for one in found)
    beyond = any(not one.valid for one in found)

    def of(values: Sequence[float | None]) -> Statistics:
        rule = recorded.conditions.every.repetitions
        none = without_number(values if usable else ())
        return none if beyond or not usable else statistics(values, rule, Missing.HIGHEST.number)

    return RampPoint(
        case=recorded.case,
        ends=ends,
        first_loss_fps=of([one.first_loss_fps for one in found]),
        uncertainty_fps=_uncertainty_fps(found, ends),
        steady_loss_fps=of([one.steady_loss_fps for one in found]),
        parts=tuple(_part(found, ends, part) for part in range(PARTS)) if usable else (),
        limited_by=points.unmeasured_by(recorded.of(ResultEvent)) if beyond else None,
        repetitions=len(found),
        trials=points.trials(recorded.of(ResultEvent)),
        message=_message(found, ends) + recorded.shortfall(len(found)),
    )


_ENDS = ("from_fps", "to_fps")


def _part(found: Sequence[RampFinding], ends: Ends, part: int) -> RampPart:
    by_direction = {
        direction: [one.readings[direction].parts[part] for one in found] for direction in found[0].readings
    }
    late = sum(any(counts[number].late for counts in by_direction.values()) for number in range(len(found)))
    delays = {
        direction: told
        for direction, counts in by_direction.items()
        if (told := [one.delay_us for one in counts if one.delay_us is not None])
    }
    sent, lost = (
        {direction: sum(getattr(one, name) for one in counts) for direction, counts in by_direction.items()}
        for name in ("sent", "lost")
    )
    load_fps, offered = ends.at((part + 0.5) / PARTS), sum(sent.values())
    return RampPart(
        load=Load.fps(max(1, round(load_fps))),
        sent=sent,
        lost=lost,
        loss_ratio={way: lost[way] / sent[way] if sent[way] else 0.0 for way in sent},
        forwarded_fps=round(load_fps * (offered - sum(lost.values())) / offered, 3) if offered else 0.0,
        late=late,
        delay_us={
            direction: PartDelays(
                p50=median(p50 for p50, _, _ in told),
                p99=median(p99 for _, p99, _ in told),
                max=max(largest for _, _, largest in told),
            )
            for direction, told in delays.items()
        },
    )


def _uncertainty_fps(found: Sequence[RampFinding], ends: Ends) -> float | None:
    """The widest of all repetitions."""
    bounds = [one.within(ends) for one in found if one.first_loss_fps is not None]
    widths = [highest - lowest for lowest, highest in bounds]
    return max(ends.rise_fps / LOSS_BINS, *widths) if widths else None


def _message(found: Sequence[RampFinding], ends: Ends) -> str:
    """A repetition without a result; else the first loss, of several repetitions the lowest."""
    without = [one.message for one in found if one.not_forwarding or not one.valid]
    if without or not found:
        return str(without[-1]) if without else "not measured"
    lowest = min(found, key=lambda one: ends.to_fps if one.first_loss_fps is None else one.first_loss_fps)
    return _first_loss(lowest, ends)


def _first_loss(found: RampFinding, ends: Ends) -> str:
    """The result of a repetition, in a few words."""
    if not found.readings or not found.valid:
        return str(found.message)
    if found.first_loss_fps is None:
        lossless = not any(part.lost for reading in found.readings.values() for part in reading.parts)
        text = "no frame was lost" if lossless else "frames were lost only where the tester sent some late"
        return f"{text} from {ends.from_fps:,} to {ends.to_fps:,} frames/s"
    width_fps = _uncertainty_fps([found], ends)
    text = f"first loss at {found.first_loss_fps:,.0f} frames/s (uncertain by {width_fps:,.0f})"
    if found.steady_loss_fps is None:
        return f"{text}; frames were not lost throughout, up to {ends.to_fps:,} frames/s"
    return f"{text}; lost throughout from {found.steady_loss_fps:,.0f} frames/s on"


def _not_constant(facts: Facts) -> str | None:
    del facts
    return "the rate rises within a trial: each rate is offered for a moment, not for a trial of its own"


RULES = deviations.rules(
    Clause("RFC 2544 section 26.3", _not_constant), Clause("RFC 8219 section 12", deviations.single_iteration)
)


# --- a DUT whose truth is known ------------------------------------------------------------------

RAMP_FROM_FPS, RAMP_TO_FPS, RAMP_S = 2_000, 20_000, 1.0
RAMP_CAPACITY_FPS = 8_000


def _where_loss_begins() -> Figure:
    """Above the capacity the DUT's backlog grows with the square of the excess r: r^2 / 2 / slope of the
    ramp. The first frame is lost when it fills the queue. A late burst takes a part of the queue. The
    result is known to a 250th of the ramp, or as the point says."""
    slope = (RAMP_TO_FPS - RAMP_FROM_FPS) / RAMP_S

    def excessfps(backlog: float) -> float:
        return math.sqrt(2 * slope * max(0.0, backlog))

    true = RAMP_CAPACITY_FPS + excessfps(QUEUE_FRAMES + 1)

    def error(evidence: Evidence) -> float:
        burst = RAMP_TO_FPS * evidence.largest_disturbance_s()
        uncertain = float(evidence.point.uncertainty_fps or 0.0) + slope / RAMP_TO_FPS
        return uncertain + excessfps(QUEUE_FRAMES + 1) - excessfps(QUEUE_FRAMES + 1 - burst)

    return Figure("first loss", "frames/s", true, 0.05 * true, median_of("first_loss_fps"), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(capacity_fps=RAMP_CAPACITY_FPS, queue=QUEUE_FRAMES),
        {**ONE_WAY, "from_rate": fps(RAMP_FROM_FPS), "to_rate": fps(RAMP_TO_FPS), "duration_s": RAMP_S},
        (_where_loss_begins(),),
    )


PROCEDURE = Definition(
    name="ramp",
    summary="Show where loss and delay begin while the rate rises.",
    chapter=Chapter.LOADS,
    example="--lab kernel-ipv4 --lab-option limit_fps=10000 --from 1k --to 20k --over 20 --directions forward",
    simulated={"to_rate": "70k", "repetitions": 2},
    known_truth=_known_truth,
    conditions=Ramp,
    make=RampProcedure,
    point=point,
    rules=RULES,
)
